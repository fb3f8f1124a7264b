//===- Passes.td - the passes of level 3, in the order in which they run --===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PIPE_PASSES_TD
#define RECKON_PASSES_PIPE_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// From one program to one per stage
//===----------------------------------------------------------------------===//

def AssignStages : Pass<"pipe-assign-stages", "mlir::ModuleOp"> {
  let summary = "give every layer the pipeline stage that runs it";
  let description = [{
    Cuts the decoder layers (`layers.0`, `layers.1`, ...) into stages by the
    layout, the number of decoder layers of each stage. What comes before them
    belongs to the first stage, what comes after to the last, and a layer's
    backward to the stage of its forward.

    Before, with `layout=1,1`:

    ```mlir
    %x0 = train.layer "embedding" (%tokens) ...
    %x1 = train.layer "layers.0" (%x0) ...
    %x2 = train.layer "layers.1" (%x1) ...
    train.layer "head" (%x2, %targets) ...
    ```

    After:

    ```mlir
    %x0 = train.layer "embedding" (%tokens) attributes {stage = 0 : i64} ...
    %x1 = train.layer "layers.0" (%x0) attributes {stage = 0 : i64} ...
    %x2 = train.layer "layers.1" (%x1) attributes {stage = 1 : i64} ...
    train.layer "head" (%x2, %targets) attributes {stage = 1 : i64} ...
    ```
  }];
  let options = [
    ListOption<"layout", "layout", "int64_t",
               "decoder layers per stage; by default pipeline_layout of the "
               "program, and one stage where that is absent">
  ];
  let dependentDialects = ["::reckon::train::TrainDialect"];
}

def OutlineStages : Pass<"pipe-outline-stages", "mlir::ModuleOp"> {
  let summary = "turn the program into one set of fragments per stage";
  let description = [{
    Replaces `train.program` by `pipe.program`. Layer bodies are inlined into
    the forward and backward fragments of their stage. A layer that no other
    layer reads, which is the head, runs forward inside the backward fragment,
    so that logits never wait between the two. A value that crosses from
    forward to backward is saved, one that crosses to the neighbour stage
    becomes an output; any other crossing is an error.

    The backward exists twice when there is more than one micro-batch; the copy
    with `first_micro_batch` overwrites gradients. The update region is split
    by the owner of each state; operations on the metrics stay in every stage,
    since the norm is global.

    Before:

    ```mlir
    %x1, %n = train.layer "layers.0" (%x0) attributes {stage = 0 : i64} ...
    %x2, %m = train.layer "layers.1" (%x1) attributes {stage = 1 : i64} ...
    ```

    After:

    ```mlir
    pipe.stage 0 layers ["embedding", "layers.0"] {
      pipe.fragment @forward kind forward roles ["tokens"] (%tokens: ...) {
        ...
        pipe.return %x1, %x0, %n roles ["output", "saved", "saved"] : ...
      }
      ...
    }
    pipe.stage 1 layers ["layers.1", "head"] {
      pipe.fragment @forward kind forward roles ["input"] (%input: ...) {
        ...
        pipe.return %m, %x2 roles ["saved", "saved"] : ...
    ```
  }];
  let dependentDialects = ["::reckon::pipe::PipeDialect"];
}

//===----------------------------------------------------------------------===//
// The order of actions
//===----------------------------------------------------------------------===//

def SchedulePipeline : Pass<"pipe-schedule", "mlir::ModuleOp"> {
  let summary = "list what every stage does in a step, in issue order";
  let description = [{
    Fills `pipe.actions @step` of every stage: the schedule's order of forwards
    and backwards, loads and receives one micro-batch ahead, a send right after
    the run that made its content, and the slots that each of them binds. The
    lists come from passes/model, which the planner counts memory from.

    After, for the first of two stages and two micro-batches:

    ```mlir
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire]
      pipe.load "0LOAD1" micro_batch 1 uses [tokens 1 acquire]
      pipe.run @forward "0F0" micro_batch 0
          uses [tokens 0, stash 0 acquire, output 0 acquire]
      pipe.send "0SEND_F0" forward to 1 channel 0 micro_batch 0
          uses [output 0 release]
      ...
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"\"",
           "gpipe or 1f1b; by default the schedule that the program names">
  ];
  let dependentDialects = ["::reckon::pipe::PipeDialect"];
}

//===----------------------------------------------------------------------===//
// What closes the level
//===----------------------------------------------------------------------===//

def VerifySchedule : Pass<"verify-schedule", "mlir::ModuleOp"> {
  let summary = "check the action lists of all stages against each other";
  let description = [{
    Beyond what each op verifies alone: both sides of a channel name the same
    micro-batches in the same order; no stage has more micro-batches in flight
    than its schedule allows (m for gpipe, min(m, stages - stage) for 1f1b);
    slots are numbered without gaps, as many as are held at once; and the
    lists of all stages together, run for two steps with sends that wait for
    their receive, come to an end.
  }];
}

#endif // RECKON_PASSES_PIPE_PASSES_TD
