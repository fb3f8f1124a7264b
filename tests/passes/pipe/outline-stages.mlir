// One program becomes one set of fragments per stage. The input is a model of
// an embedding, two layers of one norm each, and a head; see its comment.
// RUN: reckon-opt %S/Inputs/two-layers.mlir \
// RUN:   -pipe-assign-stages -pipe-outline-stages | FileCheck %s
// RUN: reckon-opt %S/Inputs/two-layers.mlir \
// RUN:   -pass-pipeline='builtin.module(pipe-assign-stages{layout=2},pipe-outline-stages)' \
// RUN:   | FileCheck %s --check-prefix=ONE
// RUN: sed 's/%n = train.rms_norm\(.*\)$/%n = train.rms_norm\1 loc("here")/' \
// RUN:   %S/Inputs/two-layers.mlir | reckon-opt -pipe-assign-stages \
// RUN:   -pipe-outline-stages -mlir-print-debuginfo -mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=LOC
// RUN: sed 's/micro_batches(2)/micro_batches(1)/' %S/Inputs/two-layers.mlir \
// RUN:   | reckon-opt -pipe-assign-stages -pipe-outline-stages \
// RUN:   | FileCheck %s --check-prefix=SINGLE

// The mesh serves all stages and leaves the program; attributes stay on it.
// The schedule's name comes from the config.
// CHECK:      dist.mesh @world
// CHECK-NOT:  train.program
// CHECK:      pipe.program @two schedule("1f1b") sequence(8) micro_batch(1)
// CHECK-SAME:   micro_batches(2) global_batch(4)
// CHECK-SAME:   {config = {schedule = "1f1b"}}

//===----------------------------------------------------------------------===//
// Stage 0
//===----------------------------------------------------------------------===//

// Only states that its layers use, in the program's order; scalars and metrics
// are everywhere, @unused is nowhere.
// CHECK:      pipe.stage 0 layers ["embedding", "layers.0"] {
// CHECK-NEXT:   train.state @embed parameter
// CHECK-NEXT:   train.state @n0 parameter
// CHECK-NEXT:   train.state @"embed#gradient"
// CHECK-NEXT:   train.state @"n0#gradient"
// CHECK-NEXT:   train.state @scalars
// CHECK-NEXT:   train.state @metrics
// CHECK-NEXT:   pipe.fragment @begin kind begin roles [] () {
// CHECK-NEXT:     train.fill_zero @metrics
// CHECK-NEXT:     pipe.return roles []

// The second layer's y goes to stage 1. The embedding's y is saved as the
// layer's x, before the norm: saved values are in order of definition, which
// is not the order in which the backward asks for them.
// CHECK:      pipe.fragment @forward kind forward roles ["tokens"]
// CHECK-SAME:   (%tokens: tensor<8xi32>)
// CHECK:        %[[X:.*]] = train.embedding %tokens
// CHECK:        %[[N:.*]] = train.rms_norm %[[X]]
// CHECK:        %[[Y:.*]] = train.add %[[X]], %[[N]]
// CHECK-NEXT:   pipe.return %[[Y]], %[[X]], %[[N]]
// CHECK-SAME:     roles ["output", "saved", "saved"]

// No layer is left in the backward; the embedding's gradient reads the tokens
// where the forward found them.
// CHECK:      pipe.fragment @backward_first kind backward first_micro_batch
// CHECK-SAME:   roles ["tokens", "saved", "saved", "grad_in"]
// CHECK-SAME:   (%tokens: tensor<8xi32>, %saved: tensor<8x4xf32>,
// CHECK-SAME:   %saved_0: tensor<8x4xf32>, %grad_in: tensor<8x4xf32>)
// CHECK-NEXT:   %[[DN:.*]] = train.rms_norm_grad_weight %grad_in, %saved_0
// CHECK-NEXT:   train.accumulate @"n0#gradient", %[[DN]]
// CHECK-NEXT:   %[[DX:.*]] = train.add %grad_in, %saved
// CHECK-NEXT:   %[[DE:.*]] = train.embedding_grad %[[DX]], %tokens
// CHECK-NEXT:   train.accumulate @"embed#gradient", %[[DE]]
// CHECK-NEXT:   pipe.return roles []
// CHECK:      pipe.fragment @backward kind backward roles
// CHECK:        train.accumulate @"n0#gradient"

// The bucket of four gradients is cut to the two of this stage, and so are the
// replica axes of the norm. The sum of the metrics over the world stays whole.
// AdamW of @n1 belongs to the other stage.
// CHECK:      pipe.fragment @update
// CHECK-NEXT:   %[[G0:.*]] = train.read @"embed#gradient"
// CHECK-NEXT:   %[[G1:.*]] = train.read @"n0#gradient"
// CHECK-NEXT:   %[[R:.*]]:2 = dist.all_reduce %[[G0]], %[[G1]] axes ["dp"]
// CHECK-NEXT:   train.sum_squares @metrics, %[[R]]#0, %[[R]]#1
// CHECK-SAME:     replica_axes = {{\[\[}}"a"], ["b"]]
// CHECK-NEXT:   %[[M:.*]] = train.read @metrics
// CHECK-NEXT:   %[[SUM:.*]] = dist.all_reduce %[[M]] axes ["tp", "dp", "pp"]
// CHECK-NEXT:   train.write @metrics, %[[SUM]]
// CHECK-NEXT:   train.clip_factor @metrics
// CHECK-NEXT:   pipe.return roles []

//===----------------------------------------------------------------------===//
// Stage 1
//===----------------------------------------------------------------------===//

// Optimizer states follow their parameter.
// CHECK:      pipe.stage 1 layers ["layers.1", "head"] {
// CHECK-NEXT:   train.state @n1 parameter
// CHECK-NEXT:   train.state @head parameter
// CHECK-NEXT:   train.state @"n1#gradient"
// CHECK-NEXT:   train.state @"head#gradient"
// CHECK-NEXT:   train.state @"n1#momentum"
// CHECK-NEXT:   train.state @"n1#variance"
// CHECK-NEXT:   train.state @scalars
// CHECK-NEXT:   train.state @metrics

// The last stage sends nothing on: the layer's y is saved for the head. Its x
// needs no place in the stash, it stays in the slot that received it.
// CHECK:      pipe.fragment @forward kind forward roles ["input"]
// CHECK-SAME:   (%input: tensor<8x4xf32>)
// CHECK:        %[[N:.*]] = train.rms_norm %input
// CHECK:        %[[Y:.*]] = train.add %input, %[[N]]
// CHECK-NEXT:   pipe.return %[[N]], %[[Y]] roles ["saved", "saved"]

// The head runs here, so the logits never wait.
// CHECK:      pipe.fragment @backward_first kind backward first_micro_batch
// CHECK-SAME:   roles ["input", "saved", "saved", "targets"]
// CHECK:        %[[L:.*]] = train.linear %saved_0
// CHECK:        train.linear_grad_weight %[[L]], %saved_0
// CHECK:        %[[DY:.*]] = train.linear_grad_input %[[L]]
// CHECK:        train.rms_norm_grad_weight %[[DY]], %saved
// CHECK:        %[[DX:.*]] = train.add %[[DY]], %input
// CHECK-NEXT:   pipe.return %[[DX]] roles ["grad_out"]

// CHECK:      pipe.fragment @update
// CHECK:        train.sum_squares {{.*}}replica_axes = {{\[\[}}"c"], ["d"]]
// CHECK:        %[[P:.*]] = train.adamw @n1
// CHECK-NEXT:   train.write @n1, %[[P]]

//===----------------------------------------------------------------------===//
// Other shapes of the pipeline
//===----------------------------------------------------------------------===//

// In one stage nothing is sent: x and norm of both layers and the y of the
// last are saved, five values.
// ONE:     pipe.stage 0 layers ["embedding", "layers.0", "layers.1", "head"]
// ONE:     pipe.fragment @forward kind forward roles ["tokens"]
// ONE:     pipe.return
// ONE-SAME: roles ["saved" * 5]
// ONE:     pipe.fragment @backward_first
// ONE-SAME: roles ["tokens", "saved" * 5, "targets"]
// ONE-NOT: pipe.stage 1

// With one micro-batch every backward is a first one.
// SINGLE-COUNT-2: pipe.fragment @backward_first
// SINGLE-NOT:     pipe.fragment @backward kind

// Ops keep their locations, and arguments have those of what was saved. The
// parts of the bucket, made anew, have that of the bucket: one line of the
// input in both stages.
// LOC: = train.rms_norm {{.*}} loc("here")
// LOC: pipe.fragment @backward_first
// LOC-SAME: %here: tensor<8x4xf32> loc("here")
// LOC: dist.all_reduce {{.*}} axes ["dp"] {{.*}} loc("<stdin>":[[#LINE:]]:
// LOC: pipe.stage 1
// LOC: dist.all_reduce {{.*}} axes ["dp"] {{.*}} loc("<stdin>":[[#LINE]]:
