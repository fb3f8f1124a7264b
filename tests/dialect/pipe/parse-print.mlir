// Every op of the dialect survives a print and a parse, in the pretty and in
// the generic form.
// RUN: reckon-opt -allow-unregistered-dialect %s | FileCheck %s
// RUN: reckon-opt -allow-unregistered-dialect -mlir-print-debuginfo %s \
// RUN:   | reckon-opt -allow-unregistered-dialect | FileCheck %s
// RUN: reckon-opt -allow-unregistered-dialect -mlir-print-op-generic \
// RUN:   -mlir-print-debuginfo %s \
// RUN:   | reckon-opt -allow-unregistered-dialect | FileCheck %s

// CHECK:      pipe.program @tiny schedule("1f1b") sequence(64) micro_batch(2)
// CHECK-SAME:   micro_batches(2) global_batch(8)
// CHECK-SAME:   attributes {config = {seed = 7 : i64}, test.mesh = "dp2"}
pipe.program @tiny schedule("1f1b") sequence(64) micro_batch(2)
    micro_batches(2) global_batch(8)
    attributes {config = {seed = 7 : i64}, test.mesh = "dp2"} {
  // CHECK: pipe.stage 0 layers ["embedding", "layers.0"] {
  pipe.stage 0 layers ["embedding", "layers.0"] {
    // CHECK:      pipe.fragment @begin kind begin roles [] () {
    // CHECK-NEXT:   pipe.return roles []
    pipe.fragment @begin kind begin roles [] () {
      pipe.return roles []
    }
    // Arguments are named after their roles.
    // CHECK:      pipe.fragment @forward kind forward roles ["tokens"]
    // CHECK-SAME:   (%tokens: tensor<128xi32>) {
    // CHECK:      pipe.return %{{.*}}, %{{.*}} roles ["output", "saved"]
    // CHECK-SAME:   : tensor<128x64xf32>, tensor<128x16xf32>
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<128xi32>) {
      %y, %s = "test.forward"(%t)
          : (tensor<128xi32>) -> (tensor<128x64xf32>, tensor<128x16xf32>)
      pipe.return %y, %s roles ["output", "saved"]
          : tensor<128x64xf32>, tensor<128x16xf32>
    }
    // CHECK:      pipe.fragment @backward_first kind backward
    // CHECK-SAME:   first_micro_batch roles ["tokens", "saved", "grad_in"]
    // CHECK-SAME:   (%tokens: tensor<128xi32>, %saved: tensor<128x16xf32>,
    // CHECK-SAME:   %grad_in: tensor<128x64xf32>) {
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "saved", "grad_in"]
        (%t: tensor<128xi32>, %s: tensor<128x16xf32>,
         %dy: tensor<128x64xf32>) {
      pipe.return roles []
    }
    // CHECK: pipe.fragment @backward kind backward roles
    pipe.fragment @backward kind backward roles ["tokens", "saved", "grad_in"]
        (%t: tensor<128xi32>, %s: tensor<128x16xf32>,
         %dy: tensor<128x64xf32>) {
      pipe.return roles []
    }
    // CHECK: pipe.fragment @update kind update roles [] () {
    pipe.fragment @update kind update roles [] () {
      pipe.return roles []
    }
    // CHECK: pipe.actions @step {
    pipe.actions @step {
      // CHECK-NEXT: pipe.run @begin "begin" uses []
      pipe.run @begin "begin" uses []
      // CHECK-NEXT: pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire]
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire]
      pipe.load "0LOAD1" micro_batch 1 uses [tokens 1 acquire]
      // CHECK:      pipe.run @forward "0F0" micro_batch 0
      // CHECK-SAME:   uses [tokens 0, stash 0 acquire, output 0 acquire]
      pipe.run @forward "0F0" micro_batch 0
          uses [tokens 0, stash 0 acquire, output 0 acquire]
      // CHECK-NEXT: pipe.send "0SEND_F0" forward to 1 channel 0 micro_batch 0
      // CHECK-SAME:   uses [output 0 release]
      pipe.send "0SEND_F0" forward to 1 channel 0 micro_batch 0
          uses [output 0 release]
      // CHECK-NEXT: pipe.recv "0RECV_B0" backward from 1 channel 1
      // CHECK-SAME:   micro_batch 0 uses [grad_in 0 acquire]
      pipe.recv "0RECV_B0" backward from 1 channel 1 micro_batch 0
          uses [grad_in 0 acquire]
      pipe.run @forward "0F1" micro_batch 1
          uses [tokens 1, stash 1 acquire, output 1 acquire]
      pipe.send "0SEND_F1" forward to 1 channel 0 micro_batch 1
          uses [output 1 release]
      // CHECK:      pipe.run @backward_first "0B0" micro_batch 0
      // CHECK-SAME:   uses [tokens 0 release, stash 0 release,
      // CHECK-SAME:   grad_in 0 release]
      pipe.run @backward_first "0B0" micro_batch 0
          uses [tokens 0 release, stash 0 release, grad_in 0 release]
      pipe.recv "0RECV_B1" backward from 1 channel 1 micro_batch 1
          uses [grad_in 0 acquire]
      pipe.run @backward "0B1" micro_batch 1
          uses [tokens 1 release, stash 1 release, grad_in 0 release]
      // CHECK: pipe.run @update "update" uses []
      pipe.run @update "update" uses []
    }
  }
  // CHECK: pipe.stage 1 layers ["layers.1", "head"] {
  pipe.stage 1 layers ["layers.1", "head"] {
    pipe.fragment @begin kind begin roles [] () {
      pipe.return roles []
    }
    // CHECK: (%input: tensor<128x64xf32>) {
    pipe.fragment @forward kind forward roles ["input"]
        (%x: tensor<128x64xf32>) {
      %s:2 = "test.forward"(%x)
          : (tensor<128x64xf32>) -> (tensor<128x16xf32>, tensor<128x64xf32>)
      pipe.return %s#0, %s#1 roles ["saved", "saved"]
          : tensor<128x16xf32>, tensor<128x64xf32>
    }
    // Several saved values: %saved, %saved_0, ...
    // CHECK: (%input: tensor<128x64xf32>, %saved: tensor<128x16xf32>,
    // CHECK-SAME: %saved_0: tensor<128x64xf32>, %targets: tensor<128xi32>) {
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["input", "saved", "saved", "targets"]
        (%x: tensor<128x64xf32>, %s0: tensor<128x16xf32>,
         %s1: tensor<128x64xf32>, %t: tensor<128xi32>) {
      %dx = "test.backward"(%s1) : (tensor<128x64xf32>) -> tensor<128x64xf32>
      // CHECK: pipe.return %{{.*}} roles ["grad_out"] : tensor<128x64xf32>
      pipe.return %dx roles ["grad_out"] : tensor<128x64xf32>
    }
    pipe.fragment @backward kind backward
        roles ["input", "saved", "saved", "targets"]
        (%x: tensor<128x64xf32>, %s0: tensor<128x16xf32>,
         %s1: tensor<128x64xf32>, %t: tensor<128xi32>) {
      %dx = "test.backward"(%s1) : (tensor<128x64xf32>) -> tensor<128x64xf32>
      pipe.return %dx roles ["grad_out"] : tensor<128x64xf32>
    }
    pipe.fragment @update kind update roles [] () {
      pipe.return roles []
    }
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      // CHECK: pipe.recv "1RECV_F0" forward from 0 channel 0 micro_batch 0
      pipe.recv "1RECV_F0" forward from 0 channel 0 micro_batch 0
          uses [input 0 acquire]
      pipe.run @forward "1F0" micro_batch 0 uses [input 0, stash 0 acquire]
      pipe.load "1LOAD0" micro_batch 0 uses [targets 0 acquire]
      pipe.run @backward_first "1B0" micro_batch 0
          uses [input 0 release, stash 0 release, targets 0 release,
                grad_out 0 acquire]
      // CHECK: pipe.send "1SEND_B0" backward to 0 channel 1 micro_batch 0
      pipe.send "1SEND_B0" backward to 0 channel 1 micro_batch 0
          uses [grad_out 0 release]
      pipe.recv "1RECV_F1" forward from 0 channel 0 micro_batch 1
          uses [input 0 acquire]
      pipe.run @forward "1F1" micro_batch 1 uses [input 0, stash 0 acquire]
      pipe.load "1LOAD1" micro_batch 1 uses [targets 0 acquire]
      pipe.run @backward "1B1" micro_batch 1
          uses [input 0 release, stash 0 release, targets 0 release,
                grad_out 1 acquire]
      pipe.send "1SEND_B1" backward to 0 channel 1 micro_batch 1
          uses [grad_out 1 release]
      pipe.run @update "update" uses []
    }
  }
}

// The slot-use attribute on its own.
// CHECK: #pipe.use<grad_out 3 acquire release>
"test.attr"() {use = #pipe.use<grad_out 3 acquire release>} : () -> ()

// A saved value is called what it was called where it was made; a run of more
// than two equal roles is counted.
// CHECK: pipe.program @named
pipe.program @named sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  pipe.stage 0 layers ["layers.0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    // CHECK: pipe.return {{.*}} roles ["saved" * 3]
    pipe.fragment @forward kind forward roles ["tokens"] (%t: tensor<8xi32>) {
      %s:3 = "test.op"()
          : () -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      pipe.return %s#0, %s#1, %s#2 roles ["saved", "saved" * 2]
          : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
    }
    // CHECK: roles ["tokens", "saved" * 3, "targets"]
    // CHECK-SAME: (%tokens: tensor<8xi32>, %layers.0.gate: tensor<8x4xf32>,
    // CHECK-SAME: %layers.0.up: tensor<8x4xf32>, %saved: tensor<8x4xf32>,
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "saved" * 3, "targets"]
        (%t: tensor<8xi32>, %a: tensor<8x4xf32> loc("layers.0.gate"),
         %b: tensor<8x4xf32> loc("layers.0.up"), %c: tensor<8x4xf32>,
         %u: tensor<8xi32>) {
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}
