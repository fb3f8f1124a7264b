// The lists of all stages against each other. The input's lists are sound;
// every test changes an action in a way that no stage alone can notice.
// DEFINE: %{in} = %S/Inputs/stages.mlir
// DEFINE: %{opt} = reckon-opt -allow-unregistered-dialect
// DEFINE: %{fails} = not reckon-opt -allow-unregistered-dialect -verify-schedule 2>&1
// RUN: %{opt} %{in} -pipe-schedule > %t.mlir
// RUN: %{opt} %t.mlir -verify-schedule
// RUN: %{opt} %{in} -pass-pipeline='builtin.module(pipe-schedule{kind=gpipe})' \
// RUN:   > %t.gpipe.mlir
// RUN: %{opt} %t.gpipe.mlir -verify-schedule

// There are lists at all.
// RUN: %{fails} %{in} | FileCheck --check-prefix=NONE %s
// NONE: 'pipe.program' op has no action lists; run pipe-schedule first

// The schedule has a name that promises a bound.
// RUN: sed 's/schedule("1f1b")/schedule("zigzag")/' %t.mlir | %{fails} \
// RUN:   | FileCheck --check-prefix=KIND %s
// KIND: 'pipe.program' op expected the schedule gpipe or 1f1b, got 'zigzag'

// Every message sent is received.
// RUN: sed '/pipe.recv "1RECV_F1"/d; s/input 1\( release\)\?/input 0\1/; /"1F1"/s/input 0/input 0 acquire/' %t.mlir \
// RUN:   | %{fails} | FileCheck --check-prefix=LOST %s
// LOST: 'pipe.actions' op receives 1 messages on channel 0, expected the 2
// LOST-SAME: that stage 0 sends

// Both sides of a channel use one order.
// RUN: sed -e '/"1RECV_F0"/s/micro_batch 0/micro_batch 1/' \
// RUN:   -e '/"1RECV_F1"/s/micro_batch 1/micro_batch 0/' %t.mlir \
// RUN:   | %{fails} | FileCheck --check-prefix=ORDER %s
// ORDER: 'pipe.actions' op expects micro-batch 1 as message 0 on channel 0,
// ORDER-SAME: but stage 0 sends micro-batch 0; both sides must use one order

// The last of two stages under 1F1B has min(m, 2 - 1) = 1 micro-batch in
// flight; the lists of GPipe have 2.
// RUN: sed 's/schedule("gpipe")/schedule("1f1b")/' %t.gpipe.mlir \
// RUN:   | %{fails} | FileCheck --check-prefix=FLIGHT %s
// FLIGHT: 'pipe.actions' op has 2 micro-batches in flight, expected at most 1
// FLIGHT-SAME: in stage 1 of 2 under 1f1b

// Slots are numbered without gaps: the plan would set aside 6 for 2.
// RUN: sed 's/tokens 1/tokens 5/' %t.mlir | %{fails} \
// RUN:   | FileCheck --check-prefix=GAP %s
// GAP: 'pipe.actions' op uses 2 slots of class tokens numbered below 6,
// GAP-SAME: expected 2

// More slots than are held at once: the stash of stage 1 holds one micro-batch
// at a time.
// RUN: sed '/"1[FB]1"/s/stash 0/stash 1/' %t.mlir | %{fails} \
// RUN:   | FileCheck --check-prefix=MORE %s
// MORE: 'pipe.actions' op uses 2 slots of class stash numbered below 2,
// MORE-SAME: expected 1

// A result can be computed while the last one is sent: two outputs.
// RUN: sed 's/output 1/output 0/' %t.mlir | %{fails} \
// RUN:   | FileCheck --check-prefix=DOUBLE %s
// DOUBLE: 'pipe.actions' op uses 1 slots of class output numbered below 1,
// DOUBLE-SAME: expected 2

// Stage 0 runs 0B0 before 0F1, stage 1 runs 1F1 before 1B0: each list alone is
// in order, together nobody can go on. The error shows the circle.
// RUN: sed -e '/"0F1"\|"0SEND_F1"/{s/stash 1/stash 0/;H;d}' -e '/"0B0"/G' \
// RUN:   -e '/"0B1"/s/stash 1/stash 0/' %t.gpipe.mlir > %t.dead.mlir
// RUN: %{opt} %t.dead.mlir
// RUN: %{fails} %t.dead.mlir | FileCheck --check-prefix=DEAD %s
// DEAD:      'pipe.program' op the action lists deadlock:
// DEAD-SAME: 0B0 needs the result of 0RECV_B0,
// DEAD-SAME: 1SEND_B0 needs the result of 1B0,
// DEAD-SAME: 1B0 is issued after 1F1,
// DEAD-SAME: 1F1 needs the result of 1RECV_F1,
// DEAD-SAME: 0SEND_F1 needs the result of 0F1,
// DEAD-SAME: 0F1 is issued after 0B0
