// The action lists of a pipeline of two stages and two micro-batches.
// RUN: reckon-opt -allow-unregistered-dialect %S/Inputs/stages.mlir \
// RUN:   -pipe-schedule -verify-schedule | FileCheck %s
// RUN: reckon-opt -allow-unregistered-dialect %S/Inputs/stages.mlir \
// RUN:   -pass-pipeline='builtin.module(pipe-schedule{kind=gpipe},verify-schedule)' \
// RUN:   | FileCheck %s --check-prefix=GPIPE
// RUN: reckon-opt -allow-unregistered-dialect %S/Inputs/stages.mlir \
// RUN:   -pass-pipeline='builtin.module(pipe-schedule{kind=gpipe},pipe-schedule{kind=1f1b})' \
// RUN:   | FileCheck %s
// RUN: not reckon-opt -allow-unregistered-dialect %S/Inputs/stages.mlir 2>&1 \
// RUN:   -pass-pipeline='builtin.module(pipe-schedule{kind=zigzag})' \
// RUN:   | FileCheck %s --check-prefix=UNKNOWN

// 1F1B, stage 0: 2 - 1 - 0 = 1 forward to warm up, then forward and backward
// in turn, then the last backward. Loads and receives of the next action are
// issued before the run of this one; a send follows its run.
// CHECK:      pipe.stage 0
// CHECK:      pipe.actions @step {
// CHECK-NEXT:   pipe.run @begin "begin" uses []
// CHECK-NEXT:   pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire]
// CHECK-NEXT:   pipe.load "0LOAD1" micro_batch 1 uses [tokens 1 acquire]
// CHECK-NEXT:   pipe.run @forward "0F0" micro_batch 0
// CHECK-SAME:     uses [tokens 0, stash 0 acquire, output 0 acquire]
// CHECK-NEXT:   pipe.send "0SEND_F0" forward to 1 channel 0 micro_batch 0
// CHECK-SAME:     uses [output 0 release]
// CHECK-NEXT:   pipe.recv "0RECV_B0" backward from 1 channel 1 micro_batch 0
// CHECK-SAME:     uses [grad_in 0 acquire]
// The second forward's result goes to a slot of its own while the first one is
// still on its way.
// CHECK-NEXT:   pipe.run @forward "0F1" micro_batch 1
// CHECK-SAME:     uses [tokens 1, stash 1 acquire, output 1 acquire]
// CHECK-NEXT:   pipe.send "0SEND_F1" forward to 1 channel 0 micro_batch 1
// CHECK-NEXT:   pipe.recv "0RECV_B1" backward from 1 channel 1 micro_batch 1
// CHECK-SAME:     uses [grad_in 1 acquire]
// The first backward overwrites the gradients, the second adds.
// CHECK-NEXT:   pipe.run @backward_first "0B0" micro_batch 0
// CHECK-SAME:     uses [tokens 0 release, stash 0 release, grad_in 0 release]
// CHECK-NEXT:   pipe.run @backward "0B1" micro_batch 1
// CHECK-SAME:     uses [tokens 1 release, stash 1 release, grad_in 1 release]
// CHECK-NEXT:   pipe.run @update "update" uses []
// CHECK-NEXT: }

// Stage 1 is the last: no warm-up, and one micro-batch in flight, so its stash
// has one slot.
// CHECK:      pipe.stage 1
// CHECK:      pipe.run @forward "1F0" micro_batch 0
// CHECK-SAME:   uses [input 0, stash 0 acquire]
// CHECK:      pipe.run @backward_first "1B0" micro_batch 0
// CHECK-SAME:   uses [input 0 release, stash 0 release, targets 0 release,
// CHECK-SAME:   grad_out 0 acquire]
// CHECK-NEXT: pipe.send "1SEND_B0" backward to 0 channel 1 micro_batch 0
// CHECK:      pipe.run @forward "1F1" micro_batch 1
// CHECK-SAME:   uses [input 1, stash 0 acquire]
// CHECK:      pipe.run @backward "1B1" micro_batch 1
// CHECK-NOT:  pipe.actions

// GPipe: all forwards, then all backwards; two micro-batches in flight in the
// last stage too. The program's schedule takes the new name.
// GPIPE:      pipe.program @p schedule("gpipe")
// GPIPE:      pipe.stage 1
// GPIPE:      pipe.run @forward "1F0" micro_batch 0
// GPIPE-SAME:   stash 0 acquire
// GPIPE-NOT:  pipe.run @backward
// GPIPE:      pipe.run @forward "1F1" micro_batch 1
// GPIPE-SAME:   stash 1 acquire
// GPIPE:      pipe.run @backward_first "1B0"
// GPIPE:      pipe.run @backward "1B1"

// UNKNOWN: 'pipe.program' op expected a schedule, gpipe or 1f1b, got 'zigzag'
