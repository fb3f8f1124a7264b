// Rules of pipe.program, pipe.stage, pipe.fragment and pipe.return, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics %s

// At least one micro-batch.
// expected-error @+1 {{expected at least 1 micro-batch, got 0}}
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(0)
    global_batch(0) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// At least one stage.
// expected-error @+1 {{expected at least one stage}}
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
}

// -----

// Nothing but stages.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{is not a pipe.stage, which is all that a pipe.program holds}}
  "test.op"() : () -> ()
}

// -----

// Stages are numbered in order.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) {
      %y = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %y roles ["output"] : tensor<8x4xf32>
    }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "grad_in"] (%t: tensor<8xi32>, %dy: tensor<8x4xf32>) {
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
  // expected-error @+1 {{expected index 1 in order, got 2}}
  pipe.stage 2 layers ["l1"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["input"]
        (%x: tensor<8x4xf32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["input", "targets"] (%x: tensor<8x4xf32>, %u: tensor<8xi32>) {
      %dx = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %dx roles ["grad_out"] : tensor<8x4xf32>
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// What is sent forward has the type of what is received.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) {
      %y = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %y roles ["output"] : tensor<8x4xf32>
    }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "grad_in"] (%t: tensor<8xi32>, %dy: tensor<8x4xf32>) {
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
  pipe.stage 1 layers ["l1"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    // expected-error @+1 {{expected input of type 'tensor<8x4xf32>', the output of stage 0, got 'tensor<4x4xf32>'}}
    pipe.fragment @forward kind forward roles ["input"]
        (%x: tensor<4x4xf32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["input", "targets"] (%x: tensor<4x4xf32>, %u: tensor<8xi32>) {
      %dx = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %dx roles ["grad_out"] : tensor<8x4xf32>
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// And backward.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) {
      %y = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %y roles ["output"] : tensor<8x4xf32>
    }
    // expected-error @+1 {{expected grad_in of type 'tensor<8x4xf32>', the grad_out of stage 1, got 'tensor<8x4xbf16>'}}
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "grad_in"] (%t: tensor<8xi32>, %dy: tensor<8x4xbf16>) {
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
  pipe.stage 1 layers ["l1"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["input"]
        (%x: tensor<8x4xf32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["input", "targets"] (%x: tensor<8x4xf32>, %u: tensor<8xi32>) {
      %dx = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %dx roles ["grad_out"] : tensor<8x4xf32>
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// All stages have an action list, or none.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) {
      %y = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %y roles ["output"] : tensor<8x4xf32>
    }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "grad_in"] (%t: tensor<8xi32>, %dy: tensor<8x4xf32>) {
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire]
      pipe.run @forward "0F0" micro_batch 0 uses [tokens 0, output 0 acquire]
      pipe.send "0SEND_F0" forward to 1 channel 0 micro_batch 0
          uses [output 0 release]
      pipe.recv "0RECV_B0" backward from 1 channel 1 micro_batch 0
          uses [grad_in 0 acquire]
      pipe.run @backward_first "0B0" micro_batch 0
          uses [tokens 0 release, grad_in 0 release]
      pipe.run @update "update" uses []
    }
  }
  // expected-error @+1 {{expected an action list in every stage or in none, got one only in stage 0}}
  pipe.stage 1 layers ["l1"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["input"]
        (%x: tensor<8x4xf32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["input", "targets"] (%x: tensor<8x4xf32>, %u: tensor<8xi32>) {
      %dx = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %dx roles ["grad_out"] : tensor<8x4xf32>
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// Action lists have a schedule.
// expected-error @+1 {{expected the name of the schedule of its action lists}}
pipe.program @p sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire, targets 0 acquire]
      pipe.run @forward "0F0" micro_batch 0 uses [tokens 0]
      pipe.run @backward_first "0B0" micro_batch 0
          uses [tokens 0 release, targets 0 release]
      pipe.run @update "update" uses []
    }
  }
}

// -----

// A stage has one begin fragment.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{expected 1 fragment of kind begin, got 0}}
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// A stage has one forward fragment.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{expected 1 fragment of kind forward, got 0}}
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// A stage has one update fragment.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{expected 1 fragment of kind update, got 0}}
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
  }
}

// -----

// The first micro-batch has a backward of its own.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{expected 1 fragment of kind backward with first_micro_batch, got 0}}
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// Later micro-batches have one too.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(2)
    global_batch(2) {
  // expected-error @+1 {{expected 1 fragment of kind backward without first_micro_batch, got 0}}
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// With a single micro-batch there is no later one.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{expected 0 fragment of kind backward without first_micro_batch, got 1}}
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward kind backward
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// At most one action list.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire, targets 0 acquire]
      pipe.run @forward "0F0" micro_batch 0 uses [tokens 0]
      pipe.run @backward_first "0B0" micro_batch 0
          uses [tokens 0 release, targets 0 release]
      pipe.run @update "update" uses []
    }
    // expected-error @+1 {{is the second action list of this stage, expected at most one}}
    pipe.actions @eval {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire, targets 0 acquire]
      pipe.run @forward "0F0" micro_batch 0 uses [tokens 0]
      pipe.run @backward_first "0B0" micro_batch 0
          uses [tokens 0 release, targets 0 release]
      pipe.run @update "update" uses []
    }
  }
}

// -----

// The first stage takes tokens.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    // expected-error @+1 {{expected argument of role tokens in stage 0 of 1}}
    pipe.fragment @forward kind forward roles [] () { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// It has no neighbour below.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    // expected-error @+1 {{unexpected argument of role input in stage 0 of 1}}
    pipe.fragment @forward kind forward roles ["tokens", "input"]
        (%t: tensor<8xi32>, %x: tensor<8x4xf32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// The last stage has no neighbour above.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    // expected-error @+1 {{unexpected result of role output in stage 0 of 1}}
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) {
      %y = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %y roles ["output"] : tensor<8x4xf32>
    }
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// The backward binds the tokens to release them.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    // expected-error @+1 {{expected argument of role tokens in stage 0 of 1}}
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["targets"]
        (%u: tensor<8xi32>) {
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// The last stage takes targets.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    // expected-error @+1 {{expected argument of role targets in stage 0 of 1}}
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens"]
        (%t: tensor<8xi32>) {
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// No gradient comes from above the last stage.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    // expected-error @+1 {{unexpected argument of role grad_in in stage 0 of 1}}
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets", "grad_in"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>, %dy: tensor<8x4xf32>) {
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// No gradient leaves the first stage.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    // expected-error @+1 {{unexpected result of role grad_out in stage 0 of 1}}
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "targets"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) {
      %dx = "test.op"() : () -> tensor<8x4xf32>
      pipe.return %dx roles ["grad_out"] : tensor<8x4xf32>
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// What the forward saves is what the backward takes.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"]
        (%t: tensor<8xi32>) { pipe.return roles [] }
    // expected-error @+1 {{expected the 0 values that @forward saves, in order and with their types, got 1 saved arguments}}
    pipe.fragment @backward_first kind backward first_micro_batch
        roles ["tokens", "saved", "targets"]
        (%t: tensor<8xi32>, %s: tensor<8x4xf32>, %u: tensor<8xi32>) {
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// first_micro_batch is for backward only.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    // expected-error @+1 {{expected first_micro_batch only on kind backward, got update}}
    pipe.fragment @f kind update first_micro_batch roles [] () {
      pipe.return roles []
    }
  }
}

// -----

// One role per argument.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    // expected-error @+1 {{expected one role per argument, got 0 roles for 1}}
    pipe.fragment @f kind forward roles [] (%t: tensor<8xi32>) {
      pipe.return roles []
    }
  }
}

// -----

// The role fits the kind.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    // expected-error @+1 {{expected a role among tokens, input in a fragment of kind forward, got 'saved'}}
    pipe.fragment @f kind forward roles ["saved"] (%t: tensor<8xi32>) {
      pipe.return roles []
    }
  }
}

// -----

// Fragments around the step take nothing.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    // expected-error @+1 {{expected no argument in a fragment of kind update, got 'tokens'}}
    pipe.fragment @f kind update roles ["tokens"] (%t: tensor<8xi32>) {
      pipe.return roles []
    }
  }
}

// -----

// Only saved values come in numbers.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    // expected-error @+1 {{expected role 'tokens' at most once}}
    pipe.fragment @f kind forward roles ["tokens", "tokens"]
        (%t: tensor<8xi32>, %u: tensor<8xi32>) {
      pipe.return roles []
    }
  }
}

// -----

// A fragment ends with its return.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    // expected-error @+1 {{expected to end with pipe.return}}
    pipe.fragment @f kind update roles [] () {
      "test.op"() : () -> ()
    }
  }
}

// -----

// One role per result.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @f kind forward roles [] () {
      %y = "test.op"() : () -> tensor<8x4xf32>
      // expected-error @+1 {{expected one role per result, got 0 roles for 1}}
      pipe.return %y roles [] : tensor<8x4xf32>
    }
  }
}

// -----

// A backward has one result at most.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @f kind backward roles [] () {
      %y = "test.op"() : () -> tensor<8x4xf32>
      // expected-error @+1 {{expected a role among grad_out in a fragment of kind backward, got 'output'}}
      pipe.return %y roles ["output"] : tensor<8x4xf32>
    }
  }
}

// -----

// Fragments around the step leave nothing.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @f kind update roles [] () {
      %y = "test.op"() : () -> tensor<8x4xf32>
      // expected-error @+1 {{expected no result in a fragment of kind update, got 'saved'}}
      pipe.return %y roles ["saved"] : tensor<8x4xf32>
    }
  }
}

// -----

// Only saved results come in numbers.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @f kind forward roles [] () {
      %y = "test.op"() : () -> tensor<8x4xf32>
      // expected-error @+1 {{expected role 'output' at most once}}
      pipe.return %y, %y roles ["output", "output"]
          : tensor<8x4xf32>, tensor<8x4xf32>
    }
  }
}

// -----

// An argument stays in the slot that it came in.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @f kind forward roles ["tokens"] (%t: tensor<8xi32>) {
      %y = "test.op"() : () -> tensor<8x4xf32>
      // expected-error @+1 {{result #0 is an argument: its slot already holds it}}
      pipe.return %t roles ["saved"] : tensor<8xi32>
    }
  }
}

// -----

// A value has one slot.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    pipe.fragment @f kind forward roles [] () {
      %y = "test.op"() : () -> tensor<8x4xf32>
      // expected-error @+1 {{result #1 is returned twice, expected one slot per value}}
      pipe.return %y, %y roles ["output", "saved"]
          : tensor<8x4xf32>, tensor<8x4xf32>
    }
  }
}

// -----

// Counted roles: at least one.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  pipe.stage 0 layers ["l0"] {
    // expected-error @+1 {{expected a count above 0}}
    pipe.fragment @f kind forward roles ["saved" * 0] () {
      pipe.return roles []
    }
  }
}
