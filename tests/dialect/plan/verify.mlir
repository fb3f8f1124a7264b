// One chunk per rule of the plan dialect's verifiers.
// RUN: reckon-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{degree of dp is 0, expected at least 1}}
plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 0, pp = 1] {
}

// -----

// expected-error @+1 {{is stage 2 of 2}}
plan.program @p stage 2 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 2] {
}

// -----

// expected-error @+1 {{expected the axes in the order tp, cp, ep, dp, pp}}
plan.program @p stage 0 mesh [cp = 1, tp = 1, ep = 1, dp = 1, pp = 1] {
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 512 {
  // expected-error @+1 {{has no offset although the program has an arena}}
  plan.slot_class @s bytes 256 count 1 category "activations"
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 512 {
  // 256 + 2 * 256 = 768 bytes do not fit into 512.
  // expected-error @+1 {{ends at byte 768 of an arena of 512}}
  plan.slot_class @s bytes 256 count 2 offset 256 category "activations"
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 1024 {
  // expected-note @+1 {{which end at byte 512}}
  plan.slot_class @s bytes 256 count 2 offset 0 category "activations"
  // expected-error @+1 {{starts at byte 256, inside another entry's bytes}}
  plan.lane @l bytes 256 offset 256
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{names axis tp twice}}
  plan.group @g axes [tp, tp]
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{needs at least one axis}}
  plan.group @g axes []
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{filters tp by 2, outside of 0 .. 1}}
  plan.group @g axes [tp] where [#plan.filter<tp in [2]>]
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 3] {
  // expected-error @+1 {{connects stages 1 and 2 in the program of stage 0}}
  plan.channel @c 2 forward from 1 to 2
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 2] {
  // expected-error @+1 {{connects stage 0 to itself}}
  plan.channel @c 0 forward from 0 to 0
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 2] {
  plan.channel @c 0 forward from 0 to 1
  // expected-error @+1 {{has the number 0 of another channel}}
  plan.channel @d 0 backward from 1 to 0
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  // Rank tp 1 would hold rows 7 .. 13 of 12.
  // expected-error @+1 {{box reaches element 14 of dimension 0, which has 12}}
  plan.state @w parameter : !plan.buffer<7x4xf32> global [12, 4] box [7 * tp : 7, 0 : 4] bytes 112
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{box has 1 extents, the global shape 2}}
  plan.state @w parameter : !plan.buffer<6x4xf32> global [12, 4] box [6 * tp : 6] bytes 96
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{type has 20 elements, the rank holds 24}}
  plan.state @w parameter : !plan.buffer<5x4xf32> global [12, 4] box [6 * tp : 6, 0 : 4] bytes 96
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{has 80 bytes, its type 96}}
  plan.state @w parameter : !plan.buffer<6x4xf32> global [12, 4] box [6 * tp : 6, 0 : 4] bytes 80
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 2, pp = 1] {
  // 2 ranks with 5 elements each hold 10 of 12.
  // expected-error @+1 {{splits 12 elements over 2 ranks with 5 each}}
  plan.state @w momentum : !plan.buffer<5xf32> global [12] box [0 : 12] bytes 20 flat [dp] 5
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{offset 64 is no multiple of 256}}
  plan.state @w parameter : !plan.buffer<4xf32> global [4] box [0 : 4] bytes 16 offset 64
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{has slots of 100 bytes, expected a positive multiple of 256}}
  plan.slot_class @s bytes 100 count 1 category "activations"
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{has 0 slots, expected at least one}}
  plan.slot_class @s bytes 256 count 0 category "activations"
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{has 512 bytes of logits in 256}}
  plan.lane @l bytes 256 logits 512
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  // expected-error @+1 {{uses lane @l, which the program does not have}}
  plan.fragment @f lane @l slots () {
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  // expected-error @+1 {{slot "x" is of class @s, which the program does not have}}
  plan.fragment @f lane @l slots (x : @s) {
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.stream @a
  plan.lane @l
  plan.fragment @f lane @l slots () events 1 {
    // expected-error @+1 {{waits for event 0, which nothing before it records}}
    plan.wait 0 on @a
    plan.record 0 on @a
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.stream @a
  plan.lane @l
  plan.fragment @f lane @l slots () events 1 {
    // expected-error @+1 {{records event 1 of a fragment with 1}}
    plan.record 1 on @a
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.stream @a
  plan.lane @l
  plan.fragment @f lane @l slots () events 1 {
    plan.record 0 on @a
    // expected-error @+1 {{records event 0 again}}
    plan.record 0 on @a
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () events 1 {
    // expected-error @+1 {{runs on stream @a, which the program does not have}}
    plan.record 0 on @a
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 2, pp = 1] {
  plan.state @w parameter : !plan.buffer<8xf32> global [8] box [0 : 8] bytes 32
  plan.lane @l
  plan.fragment @f lane @l slots () {
    // On dp 1: 20 * 1 + 4 * 4 = 36 of 32 bytes.
    // expected-error @+1 {{reaches byte 36 of state @w, which has 32}}
    %0 = plan.state_ref @w + 20 * dp : !plan.buffer<4xf32>
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 2, pp = 1] {
  plan.state @w parameter : !plan.buffer<8xf32> global [8] box [0 : 8] bytes 32
  plan.lane @l
  plan.fragment @f lane @l slots () {
    // expected-error @+1 {{offset is no multiple of the element's 4 bytes}}
    %0 = plan.state_ref @w + 2 * dp : !plan.buffer<4xf32>
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    // expected-error @+1 {{refers to state @w, which the program does not have}}
    %0 = plan.state_ref @w + 0 : !plan.buffer<4xf32>
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.slot_class @s bytes 256 count 1 category "activations"
  plan.lane @l
  plan.fragment @f lane @l slots (x : @s) {
    // expected-error @+1 {{refers to slot "y", which the fragment does not have}}
    %0 = plan.slot_ref "y" + 0 : !plan.buffer<4xf32>
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.slot_class @s bytes 256 count 1 category "activations"
  plan.lane @l
  plan.fragment @f lane @l slots (x : @s) {
    // 65 * 4 = 260 bytes.
    // expected-error @+1 {{reaches byte 260 of slot "x", which has 256}}
    %0 = plan.slot_ref "x" + 0 : !plan.buffer<65xf32>
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.slot_class @s bytes 256 count 1 category "activations"
  plan.lane @l
  plan.fragment @f lane @l slots (x : @s) {
    // expected-error @+1 {{offset 16 is no multiple of 256}}
    %0 = plan.slot_ref "x" + 16 : !plan.buffer<4xf32>
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l bytes 256
  plan.fragment @f lane @l slots () {
    // expected-error @+1 {{reaches byte 272 of lane @l, which has 256}}
    %0 = plan.lane_ref + 256 : !plan.buffer<4xf32>
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    %0 = plan.temp : !plan.buffer<4xf32>
    // expected-error @+1 {{has no kernel "convolution"}}
    plan.launch "convolution" outs(%0 : !plan.buffer<4xf32>) args [] floats []
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    %0 = plan.temp : !plan.buffer<4xf32>
    // expected-error @+1 {{kernel "add" takes 2 inputs, got 1}}
    plan.launch "add" ins(%0 : !plan.buffer<4xf32>) outs(%0 : !plan.buffer<4xf32>) args [] floats []
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    %0 = plan.temp : !plan.buffer<4xf32>
    // expected-error @+1 {{kernel "adamw" takes 3 or 4 outputs, got 1}}
    plan.launch "adamw" ins(%0, %0, %0 : !plan.buffer<4xf32>, !plan.buffer<4xf32>, !plan.buffer<4xf32>) outs(%0 : !plan.buffer<4xf32>) args [] floats [0.9, 0.95, 1.0e-8, 0.1]
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    %x = plan.temp : !plan.buffer<8x4xf32>
    %w = plan.temp : !plan.buffer<6x5xf32>
    %y = plan.temp : !plan.buffer<8x6xf32>
    // expected-error @+1 {{kernel "linear": in 1 has 30 elements, expected N * K = 24}}
    plan.launch "linear" ins(%x, %w : !plan.buffer<8x4xf32>, !plan.buffer<6x5xf32>) outs(%y : !plan.buffer<8x6xf32>) args [6, 4] floats []
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    %0 = plan.temp : !plan.buffer<4xf32>
    // expected-error @+1 {{kernel "rms_norm" takes 1 numbers, got 0}}
    plan.launch "rms_norm" ins(%0, %0 : !plan.buffer<4xf32>, !plan.buffer<4xf32>) outs(%0 : !plan.buffer<4xf32>) args [4] floats []
  }
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.group @g axes [tp]
  plan.lane @l
  plan.fragment @f lane @l slots () {
    %0 = plan.temp : !plan.buffer<4xf32>
    %1 = plan.temp : !plan.buffer<4xf32>
    // expected-error @+1 {{works in place: outputs must be the inputs}}
    plan.all_reduce sum over @g ins(%0 : !plan.buffer<4xf32>) outs(%1 : !plan.buffer<4xf32>)
  }
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    %0 = plan.temp : !plan.buffer<4xf32>
    // expected-error @+1 {{refers to group @g, which the program does not have}}
    plan.all_reduce sum over @g ins(%0 : !plan.buffer<4xf32>) outs(%0 : !plan.buffer<4xf32>)
  }
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.group @g axes [tp]
  plan.lane @l
  plan.fragment @f lane @l slots () {
    %0 = plan.temp : !plan.buffer<4xf32>
    %1 = plan.temp : !plan.buffer<9xf32>
    // Two ranks with 4 elements each are 8, not 9.
    // expected-error @+1 {{has a block of 4 elements and 2 ranks, but 9 elements in all}}
    plan.all_gather over @g ins(%0 : !plan.buffer<4xf32>) outs(%1 : !plan.buffer<9xf32>)
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    %0 = plan.temp : !plan.buffer<4xf32>
    %1 = plan.temp : !plan.buffer<5xf32>
    // expected-error @+1 {{copies between buffers of different sizes}}
    plan.copy ins(%0 : !plan.buffer<4xf32>) outs(%1 : !plan.buffer<5xf32>)
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.slot_class @s bytes 256 count 2 category "activations"
  plan.actions @step {
    // expected-error @+1 {{binds slot 2 of @s, which has 2}}
    plan.load "0LOAD0" [!plan.buffer<8xi32>] slots (@s[2] acquire)
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.slot_class @s bytes 256 count 2 category "activations"
  plan.actions @step {
    // expected-error @+1 {{moves 260 bytes of slot @s, which has 256}}
    plan.load "0LOAD0" [!plan.buffer<65xi32>] slots (@s[0] acquire)
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.slot_class @s bytes 256 count 2 category "activations"
  plan.actions @step {
    // expected-error @+1 {{moves 0 buffers with 1 slots bound}}
    plan.load "0LOAD0" [] slots (@s[0] acquire)
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.slot_class @s bytes 256 count 2 category "activations"
  plan.slot_class @t bytes 256 count 2 category "activations"
  plan.lane @l
  plan.fragment @f lane @l slots (x : @s) {
  }
  plan.actions @step {
    // expected-error @+1 {{binds a slot of @t where @f takes @s}}
    plan.run "0F0" @f slots (@t[0] acquire)
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.actions @step {
    // expected-error @+1 {{refers to fragment @f, which the program does not have}}
    plan.run "0F0" @f slots ()
  }
}

// -----

plan.program @p stage 1 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 2] {
  plan.channel @c 0 forward from 0 to 1
  plan.actions @step {
    // expected-error @+1 {{sends on @c, which starts at stage 0}}
    plan.send "1SEND_F0" @c [] slots ()
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 2] {
  plan.channel @c 0 forward from 0 to 1
  plan.actions @step {
    // expected-error @+1 {{receives on @c, which ends at stage 1}}
    plan.recv "0RECV_B0" @c [] slots ()
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
  }
  plan.actions @step events 1 {
    // expected-error @+1 {{waits for event 0, which nothing records}}
    plan.run "begin" @f slots () waits [0]
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    // expected-error @+1 {{buffer dimension is 0, expected a positive size}}
    %0 = plan.temp : !plan.buffer<0xf32>
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    // expected-error @+1 {{buffer element type is 'i1', expected f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i64, i32 or i8}}
    %0 = plan.temp : !plan.buffer<4xi1>
  }
}

// -----

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] {
  plan.lane @l
  plan.fragment @f lane @l slots () {
    %0 = plan.temp : !plan.buffer<8xf32>
    %1 = plan.temp : !plan.buffer<4xf32>
    // On tp 1: 20 * 1 + 4 * 4 = 36 of 32 bytes.
    // expected-error @+1 {{copies up to byte 36 of a source of 32}}
    plan.copy ins(%0 : !plan.buffer<8xf32>) outs(%1 : !plan.buffer<4xf32>) {source_offset = #plan.expr<20 * tp>}
  }
}
