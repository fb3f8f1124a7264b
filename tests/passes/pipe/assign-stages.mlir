// Decoder layers are cut by the layout; the embedding goes with the first
// stage, the head with the last, and gradients with their layer.
// RUN: split-file %s %t
// RUN: reckon-opt %S/Inputs/two-layers.mlir -pipe-assign-stages \
// RUN:   | FileCheck %s --check-prefix=TWO
// RUN: reckon-opt %S/Inputs/two-layers.mlir \
// RUN:   -pass-pipeline='builtin.module(pipe-assign-stages{layout=2})' \
// RUN:   | FileCheck %s --check-prefix=ONE
// RUN: reckon-opt %t/uneven.mlir -pipe-assign-stages \
// RUN:   | FileCheck %s --check-prefix=UNEVEN
// RUN: not reckon-opt %t/uneven.mlir 2>&1 \
// RUN:   -pass-pipeline='builtin.module(pipe-assign-stages{layout=1,1})' \
// RUN:   | FileCheck %s --check-prefix=SUM
// RUN: not reckon-opt %t/uneven.mlir 2>&1 \
// RUN:   -pass-pipeline='builtin.module(pipe-assign-stages{layout=1,0,2})' \
// RUN:   | FileCheck %s --check-prefix=EMPTY
// RUN: not reckon-opt %t/orphan.mlir 2>&1 -pipe-assign-stages \
// RUN:   | FileCheck %s --check-prefix=ORPHAN
// RUN: not reckon-opt %t/twice.mlir 2>&1 -pipe-assign-stages \
// RUN:   | FileCheck %s --check-prefix=TWICE

// The program's own layout is [1, 1].
// TWO: train.layer "embedding"({{.*}}) attributes {stage = 0 : i64}
// TWO: train.layer "layers.0"({{.*}}) attributes {stage = 0 : i64}
// TWO: train.layer "layers.1"({{.*}}) attributes {stage = 1 : i64}
// TWO: train.layer "head"({{.*}}) attributes {stage = 1 : i64}
// TWO: train.layer_grad "head"({{.*}}) attributes {stage = 1 : i64}
// TWO: train.layer_grad "layers.1"({{.*}}) attributes {stage = 1 : i64}
// TWO: train.layer_grad "layers.0"({{.*}}) attributes {stage = 0 : i64}
// TWO: train.layer_grad "embedding"({{.*}}) attributes {stage = 0 : i64}

// The option overrides it.
// ONE-COUNT-8: {stage = 0 : i64}
// ONE-NOT: stage = 1

// Stage 0 has one decoder layer, stage 1 two, stage 2 none: only the head.
// UNEVEN: "embedding"({{.*}}) attributes {stage = 0 : i64}
// UNEVEN: "layers.0"({{.*}}) attributes {stage = 0 : i64}
// UNEVEN: "layers.1"({{.*}}) attributes {stage = 1 : i64}
// UNEVEN: "layers.2"({{.*}}) attributes {stage = 1 : i64}
// UNEVEN: "head"({{.*}}) attributes {stage = 2 : i64}

// SUM: error: 'train.program' op expected a layout of 3 decoder layers,
// SUM-SAME: got [1, 1], which has 2
// EMPTY: expected at least 1 decoder layers in stage 1 of the layout, got 0
// ORPHAN: 'train.layer_grad' op has no train.layer of its name
// TWICE: 'train.layer' op is the second layer of this name

//--- uneven.mlir
train.program @uneven sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {pipeline_layout = array<i64: 1, 2, 0>} {
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    train.layer "embedding" (%t) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.layer "layers.0" (%t) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.layer "layers.1" (%t) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.layer "layers.2" (%t) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.layer "head" (%t) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.yield
  }
}

//--- orphan.mlir
train.program @orphan sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    train.layer "layers.0" (%t) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.layer_grad "layers.1" (%t) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.yield
  }
}

//--- twice.mlir
train.program @twice sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    train.layer "layers.0" (%t) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.layer "layers.0" (%t) {
    ^bb0(%a: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.yield
  }
}
