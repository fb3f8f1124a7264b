// Two stages, two micro-batches, 1F1B; fragments without content. Tests cut
// single actions out of it or change them, so each stands on one line.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(2) global_batch(2) {
  pipe.stage 0 layers ["embedding", "layers.0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"] (%t: tensor<8xi32>) {
      %y, %s = "test.op"() : () -> (tensor<8x4xf32>, tensor<8x2xf32>)
      pipe.return %y, %s roles ["output", "saved"] : tensor<8x4xf32>, tensor<8x2xf32>
    }
    pipe.fragment @backward_first kind backward first_micro_batch roles ["tokens", "saved", "grad_in"]
        (%t: tensor<8xi32>, %s: tensor<8x2xf32>, %dy: tensor<8x4xf32>) { pipe.return roles [] }
    pipe.fragment @backward kind backward roles ["tokens", "saved", "grad_in"]
        (%t: tensor<8xi32>, %s: tensor<8x2xf32>, %dy: tensor<8x4xf32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire]
      pipe.load "0LOAD1" micro_batch 1 uses [tokens 1 acquire]
      pipe.run @forward "0F0" micro_batch 0 uses [tokens 0, stash 0 acquire, output 0 acquire]
      pipe.send "0SEND_F0" forward to 1 channel 0 micro_batch 0 uses [output 0 release]
      pipe.recv "0RECV_B0" backward from 1 channel 1 micro_batch 0 uses [grad_in 0 acquire]
      pipe.run @forward "0F1" micro_batch 1 uses [tokens 1, stash 1 acquire, output 1 acquire]
      pipe.send "0SEND_F1" forward to 1 channel 0 micro_batch 1 uses [output 1 release]
      pipe.recv "0RECV_B1" backward from 1 channel 1 micro_batch 1 uses [grad_in 1 acquire]
      pipe.run @backward_first "0B0" micro_batch 0 uses [tokens 0 release, stash 0 release, grad_in 0 release]
      pipe.run @backward "0B1" micro_batch 1 uses [tokens 1 release, stash 1 release, grad_in 1 release]
      pipe.run @update "update" uses []
    }
  }
  pipe.stage 1 layers ["layers.1", "head"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["input"] (%x: tensor<8x4xf32>) {
      %s = "test.op"() : () -> tensor<8x2xf32>
      pipe.return %s roles ["saved"] : tensor<8x2xf32>
    }
    pipe.fragment @backward_first kind backward first_micro_batch roles ["input", "saved", "targets"]
        (%x: tensor<8x4xf32>, %s: tensor<8x2xf32>, %u: tensor<8xi32>) {
      %dx = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %dx roles ["grad_out"] : tensor<8x4xf32>
    }
    pipe.fragment @backward kind backward roles ["input", "saved", "targets"]
        (%x: tensor<8x4xf32>, %s: tensor<8x2xf32>, %u: tensor<8xi32>) {
      %dx = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %dx roles ["grad_out"] : tensor<8x4xf32>
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.recv "1RECV_F0" forward from 0 channel 0 micro_batch 0 uses [input 0 acquire]
      pipe.load "1LOAD0" micro_batch 0 uses [targets 0 acquire]
      pipe.run @forward "1F0" micro_batch 0 uses [input 0, stash 0 acquire]
      pipe.recv "1RECV_F1" forward from 0 channel 0 micro_batch 1 uses [input 1 acquire]
      pipe.run @backward_first "1B0" micro_batch 0 uses [input 0 release, stash 0 release, targets 0 release, grad_out 0 acquire]
      pipe.send "1SEND_B0" backward to 0 channel 1 micro_batch 0 uses [grad_out 0 release]
      pipe.load "1LOAD1" micro_batch 1 uses [targets 0 acquire]
      pipe.run @forward "1F1" micro_batch 1 uses [input 1, stash 0 acquire]
      pipe.run @backward "1B1" micro_batch 1 uses [input 1 release, stash 0 release, targets 0 release, grad_out 1 acquire]
      pipe.send "1SEND_B1" backward to 0 channel 1 micro_batch 1 uses [grad_out 1 release]
      pipe.run @update "update" uses []
    }
  }
}
