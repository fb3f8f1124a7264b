// What cannot be outlined, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics -pipe-outline-stages %s

// Every layer has a stage.
train.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    // expected-error @+1 {{expected a stage; run pipe-assign-stages first}}
    train.layer "layers.0" (%t) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.yield
  }
}

// -----

// All work stands inside layers.
train.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  train.microbatch {
    // expected-error @+1 {{stands between layers, expected it inside one}}
    "test.op"() : () -> ()
    train.yield
  }
}

// -----

// expected-error @+1 {{expected at least one layer}}
train.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  train.microbatch { train.yield }
}

// -----

// Stages are numbered without gaps.
// expected-error @+1 {{expected layers in stage 0 of 2, got none}}
train.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    train.layer "layers.0" (%t) attributes {stage = 1 : i64} {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.yield
  }
}

// -----

// A value reaches the next stage only.
train.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  train.microbatch {
    %tokens = train.input tokens : tensor<8xi32>
    // expected-note @+1 {{this value}}
    %x = train.layer "a" (%tokens) attributes {stage = 0 : i64} {
    ^bb0(%t: tensor<8xi32>):
      %y = "test.op"(%t) : (tensor<8xi32>) -> tensor<8x4xf32>
      train.yield %y : tensor<8x4xf32>
    } : (tensor<8xi32>) -> tensor<8x4xf32>
    %y = train.layer "b" (%x) attributes {stage = 1 : i64} {
    ^bb0(%a: tensor<8x4xf32>):
      %y = "test.op"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      train.yield %y : tensor<8x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    // expected-error @+1 {{in the backward of stage 2 needs a value that cannot reach it; only neighbours exchange values}}
    train.layer "c" (%x, %y) attributes {stage = 2 : i64} {
    ^bb0(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>):
      train.yield
    } : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    train.yield
  }
}

// -----

// Neighbours exchange one tensor.
train.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  train.microbatch {
    %tokens = train.input tokens : tensor<8xi32>
    // expected-note @+2 {{sent already}}
    // expected-note @+1 {{this value}}
    %x:2 = train.layer "a" (%tokens) attributes {stage = 0 : i64} {
    ^bb0(%t: tensor<8xi32>):
      %y:2 = "test.op"(%t)
          : (tensor<8xi32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
      train.yield %y#0, %y#1 : tensor<8x4xf32>, tensor<8x4xf32>
    } : (tensor<8xi32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    // expected-error @+1 {{needs a second value of stage 0; neighbours exchange one tensor per micro-batch}}
    train.layer "b" (%x#0, %x#1) attributes {stage = 1 : i64} {
    ^bb0(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>):
      train.yield
    } : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    train.yield
  }
}

// -----

// A parameter belongs to one stage.
train.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  // expected-error @+1 {{is used by stages 0 and 1, expected one; sharing a parameter between stages is not supported}}
  train.state @w parameter : tensor<4xf32>
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    train.layer "a" (%t) attributes {stage = 0 : i64} {
    ^bb0(%a: tensor<8xi32>):
      %w = train.read @w : tensor<4xf32>
      train.yield
    } : (tensor<8xi32>) -> ()
    train.layer "b" (%t) attributes {stage = 1 : i64} {
    ^bb0(%a: tensor<8xi32>):
      %w = train.read @w : tensor<4xf32>
      train.yield
    } : (tensor<8xi32>) -> ()
    train.yield
  }
}

// -----

// The forward of the first stage reads the tokens, or there is nothing to bind
// their slot to.
// expected-error @+1 {{expected the forward of stage 0 to read its tokens}}
train.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    train.layer "a" (%t) attributes {stage = 0 : i64} {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.yield
  }
}

// -----

// The backward of the last stage reads the targets.
// expected-error @+1 {{expected the backward of stage 0 to read its targets}}
train.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  train.microbatch {
    %tokens = train.input tokens : tensor<8xi32>
    %x = train.layer "a" (%tokens) attributes {stage = 0 : i64} {
    ^bb0(%t: tensor<8xi32>):
      %y = "test.op"(%t) : (tensor<8xi32>) -> tensor<8x4xf32>
      train.yield %y : tensor<8x4xf32>
    } : (tensor<8xi32>) -> tensor<8x4xf32>
    train.layer "b" (%x) attributes {stage = 0 : i64} {
    ^bb0(%a: tensor<8x4xf32>):
      train.yield
    } : (tensor<8x4xf32>) -> ()
    train.yield
  }
}

// -----

// An update of several stages' states in one piece has no stage.
train.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  train.state @a parameter : tensor<4xf32>
  train.state @b parameter : tensor<4xf32>
  train.microbatch {
    %tokens = train.input tokens : tensor<8xi32>
    %targets = train.input targets : tensor<8xi32>
    %x = train.layer "a" (%tokens) attributes {stage = 0 : i64} {
    ^bb0(%t: tensor<8xi32>):
      %w = train.read @a : tensor<4xf32>
      %y = "test.op"(%t) : (tensor<8xi32>) -> tensor<8x4xf32>
      train.yield %y : tensor<8x4xf32>
    } : (tensor<8xi32>) -> tensor<8x4xf32>
    train.layer "head" (%x, %targets) attributes {stage = 1 : i64} {
    ^bb0(%a: tensor<8x4xf32>, %t: tensor<8xi32>):
      train.yield
    } : (tensor<8x4xf32>, tensor<8xi32>) -> ()
    %dx = train.layer_grad "head" (%x) attributes {stage = 1 : i64} {
    ^bb0(%a: tensor<8x4xf32>):
      %w = train.read @b : tensor<4xf32>
      %d = "test.op"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      train.yield %d : tensor<8x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    train.layer_grad "a" (%dx) attributes {stage = 0 : i64} {
    ^bb0(%a: tensor<8x4xf32>):
      train.yield
    } : (tensor<8x4xf32>) -> ()
    train.yield
  }
  train.update {
    %a = train.read @a : tensor<4xf32>
    %b = train.read @b : tensor<4xf32>
    // expected-error @+1 {{works on states of several stages and has not one result per operand, so it cannot be split between them}}
    %c = "test.op"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield
  }
}
