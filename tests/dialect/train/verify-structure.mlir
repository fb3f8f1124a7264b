// Rules of programs, states and layers, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics %s

// A program has a micro-batch.
// expected-error @+1 {{must hold exactly one train.microbatch}}
train.program @no_microbatch sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
}

// -----

// A program has one update at most.
// expected-error @+1 {{must hold at most one train.update}}
train.program @two_updates sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
  train.update { }
  train.update { }
}

// -----

// Sizes are positive: the micro-batch's.
// expected-error @+1 {{micro_batch must be at least 1, got 0}}
train.program @no_sequences sequence(1) micro_batch(0) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
}

// -----

// Sizes are positive: the number of micro-batches.
// expected-error @+1 {{micro_batches must be at least 1, got -1}}
train.program @no_micro_batches sequence(1) micro_batch(1) micro_batches(-1)
    global_batch(1) {
  train.microbatch { }
}

// -----

// Sizes are positive: the sequence length.
// expected-error @+1 {{sequence must be at least 1, got 0}}
train.program @no_tokens sequence(0) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
}

// -----

// Sizes are positive: the global batch.
// expected-error @+1 {{global_batch must be at least 1, got -4}}
train.program @no_batch sequence(1) micro_batch(1) micro_batches(1)
    global_batch(-4) {
  train.microbatch { }
}

// -----

// The global batch is whole micro-batches on all data-parallel ranks: 12 is
// 4 times 3, but no multiple of 4 times 2.
// expected-error @+1 {{global_batch 12 is not a multiple of micro_batch 2 x micro_batches 4}}
train.program @odd_batch sequence(1) micro_batch(2) micro_batches(4)
    global_batch(12) {
  train.microbatch { }
}

// -----

// A micro-batch takes no arguments.
train.program @arguments sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{region should have no arguments}}
  train.microbatch {
  ^bb0(%x: tensor<8xf32>):
    train.yield
  }
}

// -----

// An update takes no arguments.
train.program @arguments sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
  // expected-error @+1 {{region should have no arguments}}
  train.update {
  ^bb0(%x: tensor<8xf32>):
    train.yield
  }
}

// -----

// A micro-batch hands out nothing.
train.program @results sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    // expected-error @+1 {{hands out 1 values, but train.microbatch has no results}}
    train.yield %t : tensor<8xi32>
  }
}

// -----

// Steps stand in a program.
// expected-error @+1 {{expects parent op 'train.program'}}
train.update { }

// -----

// Layers stand in a micro-batch.
%x = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{expects parent op 'train.microbatch'}}
%y = train.layer "layers.0" (%x) {
^bb0(%a: tensor<8xf32>):
  train.yield %a : tensor<8xf32>
} : (tensor<8xf32>) -> tensor<8xf32>

// -----

// A layer has an input: gradients flow to it.
train.program @no_input sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    // expected-error @+1 {{needs at least one input}}
    train.layer "layers.0" () {
      train.yield
    } : () -> ()
  }
}

// -----

// Block arguments of a layer are its inputs.
train.program @layer_inputs sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %x = train.input tokens : tensor<8xi32>
    // expected-error @+1 {{block arguments differ from its inputs}}
    train.layer "layers.0" (%x) {
    ^bb0(%a: tensor<4xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
  }
}

// -----

// What a layer yields are its outputs.
train.program @layer_outputs sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %x = train.input tokens : tensor<8xi32>
    // expected-error @+1 {{yielded values differ from its outputs}}
    %y = train.layer "layers.0" (%x) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> tensor<8xi32>
  }
}

// -----

// A layer ends in train.yield.
train.program @layer_end sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %x = train.input tokens : tensor<8xi32>
    // expected-error @+1 {{must end in train.yield}}
    train.layer "layers.0" (%x) {
    ^bb0(%a: tensor<8xi32>):
      "test.end"() : () -> ()
    } : (tensor<8xi32>) -> ()
  }
}

// -----

// The same rules hold for layer gradients: inputs.
train.program @grad_inputs sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %x = train.input tokens : tensor<8xi32>
    // expected-error @+1 {{block arguments differ from its inputs}}
    train.layer_grad "layers.0" (%x, %x) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>, tensor<8xi32>) -> ()
  }
}

// -----

// The same rules hold for layer gradients: outputs.
train.program @grad_outputs sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %x = train.input tokens : tensor<8xi32>
    // expected-error @+1 {{yielded values differ from its outputs}}
    train.layer_grad "layers.0" (%x) {
    ^bb0(%a: tensor<8xi32>):
      train.yield %a : tensor<8xi32>
    } : (tensor<8xi32>) -> ()
  }
}

// -----

// Inputs are ids.
// expected-error @+1 {{value must be i32, got 'tensor<8xf32>'}}
%x = train.input tokens : tensor<8xf32>

// -----

// Inputs are one row of ids.
// expected-error @+1 {{must have rank 1 and a static shape, got 'tensor<8x1xi32>'}}
%x = train.input targets : tensor<8x1xi32>

// -----

// Inputs have a size.
// expected-error @+1 {{must have rank 1 and a static shape, got 'tensor<?xi32>'}}
%x = train.input targets : tensor<?xi32>
