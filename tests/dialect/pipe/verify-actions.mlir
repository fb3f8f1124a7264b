// Rules of pipe.actions and of single actions. The input breaks none; every
// test changes it in one place and looks for the rule that this breaks.
// RUN: reckon-opt -allow-unregistered-dialect %S/Inputs/two-stages.mlir
// DEFINE: %{opt} = not reckon-opt -allow-unregistered-dialect 2>&1
// DEFINE: %{in} = %S/Inputs/two-stages.mlir

// The list starts with begin.
// RUN: sed '/"begin"/d' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=BEGIN %s
// BEGIN: error: 'pipe.actions' op expected to start with the begin fragment

// And ends with update.
// RUN: sed '/"update"/d' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=UPDATE %s
// UPDATE: error: 'pipe.actions' op expected to end with the update fragment

// It holds actions only.
// RUN: sed 's/pipe.load "0LOAD0".*/"test.op"() : () -> ()/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=ACTION %s
// ACTION: error: 'test.op' op is not an action

// A micro-batch runs forward once.
// RUN: sed 's/"0F1" micro_batch 1/"0F1" micro_batch 0/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=FORWARD %s
// FORWARD: error: 'pipe.run' op runs micro-batch 0 forward a second time, expected once

// And backward once.
// RUN: sed 's/"0B1" micro_batch 1/"0B1" micro_batch 0/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=BACKWARD %s
// BACKWARD: error: 'pipe.run' op runs micro-batch 0 backward a second time, expected once

// A micro-batch runs forward first.
// RUN: sed '/"0F0"\|0SEND_F0/d' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=ORDER %s
// ORDER: error: 'pipe.run' op expected the forward of micro-batch 0 before its backward

// The first backward overwrites the gradients.
// RUN: sed 's/@backward_first "0B0"/@backward "0B0"/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=FIRST %s
// FIRST: error: 'pipe.run' op expected the backward with first_micro_batch first, got @backward

// And no other does.
// RUN: sed 's/@backward "0B1"/@backward_first "0B1"/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=LATER %s
// LATER: error: 'pipe.run' op expected a backward that adds to the gradients, got @backward_first

// No micro-batch is forgotten.
// RUN: sed '/0F1\|0SEND_F1\|0B1/d' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=MISSF %s
// MISSF: error: 'pipe.actions' op expected a forward of micro-batch 1

// In the backward neither.
// RUN: sed '/"0B1"/d' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=MISSB %s
// MISSB: error: 'pipe.actions' op expected a backward of micro-batch 1

// A slot is free when it is acquired.
// RUN: sed 's/tokens 1 acquire/tokens 0 acquire/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=FREE %s
// FREE: error: 'pipe.load' op acquires slot tokens 0, which is not released yet
// FREE: note: acquired here

// A slot is acquired when it is used.
// RUN: sed '/"0LOAD1"/d' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=HELD %s
// HELD: error: 'pipe.run' op uses slot tokens 1, which no action before it has acquired

// A slot is released in the end.
// RUN: sed 's/tokens 1 release/tokens 1/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=END %s
// END: error: 'pipe.load' op acquires slot tokens 1, which no action releases

// A load fills tokens or targets.
// RUN: sed '/"0LOAD0"/s/tokens/stash/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=LOAD %s
// LOAD: error: 'pipe.load' op expected acquired slots of class tokens or targets, got class stash

// And fills them anew.
// RUN: sed '/"0LOAD0"/s/ acquire//' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=ANEW %s
// ANEW: error: 'pipe.load' op expected acquired slots of class tokens or targets, got class tokens without acquire

// Micro-batches are numbered below their count.
// RUN: sed 's/"0LOAD0" micro_batch 0/"0LOAD0" micro_batch 2/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=COUNT %s
// COUNT: error: 'pipe.load' op expected a micro-batch below 2, got 2

// Slots are numbered from 0.
// RUN: sed 's/tokens 1 acquire/tokens -1 acquire/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=INDEX %s
// INDEX: error: 'pipe.load' op expected a slot index of at least 0, got -1

// A run names a fragment of its stage.
// RUN: sed 's/@forward "0F0"/@nothing "0F0"/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=NAME %s
// NAME: error: 'pipe.run' op expected a fragment of this stage, got @nothing

// A forward has a micro-batch.
// RUN: sed 's/"0F0" micro_batch 0/"0F0"/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=BATCH %s
// BATCH: error: 'pipe.run' op expected micro_batch for a fragment of kind forward

// Begin has none.
// RUN: sed 's/"begin"/"begin" micro_batch 0/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=NOBATCH %s
// NOBATCH: error: 'pipe.run' op unexpected micro_batch for a fragment of kind begin

// A run binds the classes of its fragment.
// RUN: sed '/"0F0"/s/, output 0 acquire//' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=BIND %s
// BIND: error: 'pipe.run' op expected slots of classes tokens stash output, those of @forward, got tokens stash

// A slot class has one of seven names.
// RUN: sed '/"0F0"/s/stash/stack/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=CLASS %s
// CLASS: error: custom op 'pipe.run' expected a slot class, got 'stack'

// The last stage sends nothing up.
// RUN: sed 's/"1SEND_B0" backward/"1SEND_B0" forward/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=UP %s
// UP: error: 'pipe.send' op expected a neighbour above stage 1, got none

// The first stage receives nothing from below.
// RUN: sed 's/"0RECV_B0" backward/"0RECV_B0" forward/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=DOWN %s
// DOWN: error: 'pipe.recv' op expected a neighbour below stage 0, got none

// A peer is a neighbour.
// RUN: sed '/"0SEND_F0"/s/to 1/to 2/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=PEER %s
// PEER: error: 'pipe.send' op expected the neighbour 1 as peer, got 2

// Channels are numbered by their lower stage.
// RUN: sed '/"1SEND_B0"/s/channel 1/channel 3/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=CHANNEL %s
// CHANNEL: error: 'pipe.send' op expected channel 1 between stages 1 and 0, got 3

// A forward send empties an output.
// RUN: sed '/"0SEND_F0"/s/output/grad_out/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=OUTPUT %s
// OUTPUT: error: 'pipe.send' op expected one slot of class output that is released here

// A send is the last use.
// RUN: sed '/"0SEND_F0"/s/ release//' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=RELEASE %s
// RELEASE: error: 'pipe.send' op expected one slot of class output that is released here

// A backward receive fills a grad_in.
// RUN: sed '/"0RECV_B0"/s/grad_in/input/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=GRADIN %s
// GRADIN: error: 'pipe.recv' op expected one slot of class grad_in that is acquired here

// A message fills one slot.
// RUN: sed '/"0RECV_B0"/s/acquire/acquire, grad_in 2 acquire/' %{in} \
// RUN:   | %{opt} | FileCheck --check-prefix=ONE %s
// ONE: error: 'pipe.recv' op expected one slot of class grad_in that is acquired here
