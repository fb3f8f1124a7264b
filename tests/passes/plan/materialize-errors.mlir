// What plan-materialize refuses, each with the op's place.
// RUN: reckon-opt %s -split-input-file -verify-diagnostics -plan-materialize

// expected-error @+1 {{needs config.mesh, the degree of each axis}}
pipe.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) {
  pipe.stage 0 layers ["head"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"] (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch roles ["tokens", "targets"] (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// expected-error @+1 {{config.mesh lacks the degree of ep}}
pipe.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) attributes {config = {mesh = {tp = 1 : i64, cp = 1 : i64}}} {
  pipe.stage 0 layers ["head"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"] (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch roles ["tokens", "targets"] (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

pipe.program @p sequence(8) micro_batch(1) micro_batches(1) global_batch(1) attributes {config = {mesh = {tp = 1 : i64, cp = 1 : i64, ep = 1 : i64, dp = 1 : i64, pp = 1 : i64}}} {
  // expected-error @+1 {{has no action list; run pipe-schedule first}}
  pipe.stage 0 layers ["head"] {
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"] (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch roles ["tokens", "targets"] (%t: tensor<8xi32>, %u: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
  }
}

// -----

// A gradient that something else reads as well cannot go straight into its
// accumulator.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1) global_batch(1) attributes {config = {mesh = {tp = 1 : i64, cp = 1 : i64, ep = 1 : i64, dp = 1 : i64, pp = 1 : i64}}} {
  pipe.stage 0 layers ["head"] {
    train.state @w parameter : tensor<6x4xf32>
    train.state @"w#gradient" gradient of @w : tensor<6x4xf32>
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"] (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch roles ["tokens", "targets"] (%t: tensor<8xi32>, %u: tensor<8xi32>) {
      %w = train.read @w : tensor<6x4xf32>
      %dw = train.add %w, %w : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
      // expected-error @+1 {{expected a weight gradient that nothing else uses, so that its kernel can add to the state}}
      train.accumulate @"w#gradient", %dw : tensor<6x4xf32>
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire, targets 0 acquire]
      pipe.run @forward "0F0" micro_batch 0 uses [tokens 0]
      pipe.run @backward_first "0B0" micro_batch 0 uses [tokens 0 release, targets 0 release]
      pipe.run @update "update" uses []
    }
  }
}

// -----

// Columns of a row-major tensor are not contiguous.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1) global_batch(1) attributes {config = {mesh = {tp = 2 : i64, cp = 1 : i64, ep = 1 : i64, dp = 1 : i64, pp = 1 : i64}}} {
  pipe.stage 0 layers ["head"] {
    train.state @w parameter : tensor<6x4xf32>
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"] (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch roles ["tokens", "targets"] (%t: tensor<8xi32>, %u: tensor<8xi32>) {
      %w = train.read @w : tensor<6x4xf32>
      %x = train.embedding %t, %w : (tensor<8xi32>, tensor<6x4xf32>) -> tensor<8x4xf32>
      // expected-error @+1 {{works along dimension 1, expected 0 or a flat split: other blocks are not contiguous}}
      %y = dist.all_gather %x axes ["tp"] group_size 2 dim 1 : (tensor<8x4xf32>) -> tensor<8x8xf32>
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire, targets 0 acquire]
      pipe.run @forward "0F0" micro_batch 0 uses [tokens 0]
      pipe.run @backward_first "0B0" micro_batch 0 uses [tokens 0 release, targets 0 release]
      pipe.run @update "update" uses []
    }
  }
}

// -----

pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1) global_batch(1) attributes {config = {mesh = {tp = 2 : i64, cp = 1 : i64, ep = 1 : i64, dp = 1 : i64, pp = 1 : i64}}} {
  pipe.stage 0 layers ["head"] {
    train.state @w parameter : tensor<6x4xf32>
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"] (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch roles ["tokens", "targets"] (%t: tensor<8xi32>, %u: tensor<8xi32>) {
      %w = train.read @w : tensor<6x4xf32>
      %x = train.embedding %t, %w : (tensor<8xi32>, tensor<6x4xf32>) -> tensor<8x4xf32>
      // expected-error @+1 {{has no lowering to the plan level}}
      %y = dist.all_to_all %x axes ["tp"] group_size 2 split 1 concat 0 : (tensor<8x4xf32>) -> tensor<16x2xf32>
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () { pipe.return roles [] }
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire, targets 0 acquire]
      pipe.run @forward "0F0" micro_batch 0 uses [tokens 0]
      pipe.run @backward_first "0B0" micro_batch 0 uses [tokens 0 release, targets 0 release]
      pipe.run @update "update" uses []
    }
  }
}
