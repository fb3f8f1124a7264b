//===- Passes.td - passes on the train dialect ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_TRAIN_PASSES_TD
#define RECKON_PASSES_TRAIN_PASSES_TD

include "mlir/Pass/PassBase.td"

def BuildBackward : Pass<"train-build-backward", "::reckon::train::ProgramOp"> {
  let summary = "Appends the backward of every layer";
  let description = [{
    Walks the layers from the last to the first and, inside a layer, its
    operations in reverse, asking each for its vector-Jacobian product. Adds a
    gradient state per parameter. What the backward reads of the forward
    becomes extra results of `train.layer`, in the order of definition;
    parameters are read again, never saved.

    ```mlir
    %y = train.layer "layers.0" (%x) { ... }
    // becomes
    %y, %n, ... = train.layer "layers.0" (%x) { ... }
    %dx = train.layer_grad "layers.0" (%dy, %x, %n, ...) { ... }
    ```
  }];
}

def ApplyRecompute : Pass<"train-apply-recompute",
                          "::reckon::train::ProgramOp"> {
  let summary = "Recomputes decoder layers in the backward";
  let description = [{
    With `mode=full`, decoder layers save nothing but their input, and their
    `train.layer_grad` begins with a copy of those forward operations that its
    saved values depend on. With `mode=none` nothing changes. Embedding and
    head are never recomputed.
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"none\"", "none or full">,
  ];
}

def InsertOptimizer : Pass<"train-insert-optimizer",
                           "::reckon::train::ProgramOp"> {
  let summary = "Adds AdamW with clipping by the global norm";
  let description = [{
    Adds the optimizer's states (fp32 main weights where parameters are not
    fp32, momentum, variance), the scalars, and `train.update`: squared norm of
    all gradients, clip factor, one `train.adamw` per parameter. Numbers come
    from `config.optimizer` of the program; parameters without `decay` get no
    weight decay.
  }];
}

def VerifyTrain : Pass<"verify-train", "::reckon::train::ProgramOp"> {
  let summary = "Closes the train phase";
  let description = [{
    Every parameter has one gradient state; every gradient is accumulated
    exactly once, enters the norm once and one `train.adamw`; every saved value
    is used; layers and layer gradients mirror each other.
  }];
}

#endif // RECKON_PASSES_TRAIN_PASSES_TD
