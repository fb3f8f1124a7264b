// Two stages as pipe-outline-stages leaves them, before pipe-schedule;
// fragments without content.
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
  }
}
