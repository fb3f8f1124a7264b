// What verify-plan finds by itself, one chunk each.
// RUN: reckon-opt %s -split-input-file -verify-diagnostics -verify-plan

// expected-error @+1 {{has no arena; run plan-allocate-buffers}}
plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 256 {
  plan.stream @compute
  plan.lane @workspace bytes 256 offset 0
  plan.fragment @f home @compute lane @workspace slots () {
    // expected-error @+1 {{has no place in the arena}}
    %a = plan.temp : !plan.buffer<64xf32>
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 256 {
  plan.stream @compute
  plan.lane @workspace bytes 256 offset 0
  plan.fragment @f home @compute lane @workspace slots () {
    %a = plan.lane_ref + 0 : !plan.buffer<64xf32>
    // expected-error @+1 {{has no stream}}
    plan.launch "fill_zero" outs(%a : !plan.buffer<64xf32>) args [] floats []
  }
}

// -----

// The reduction's stream starts behind the fragment, but not behind the kernel
// that writes what it reduces.
plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] arena 256 {
  plan.stream @compute
  plan.stream @tp
  plan.group @tp_ranks axes [tp]
  plan.lane @workspace bytes 256 offset 0
  plan.fragment @f home @compute lane @workspace slots () events 2 {
    %a = plan.lane_ref + 0 : !plan.buffer<64xf32>
    plan.record 0 on @compute
    // expected-note @+1 {{that work is here}}
    plan.launch "fill_zero" on @compute outs(%a : !plan.buffer<64xf32>) args [] floats []
    plan.wait 0 on @tp
    // expected-error @+1 {{on stream "tp" touches bytes of earlier work on stream "compute" and is not ordered behind it}}
    plan.all_reduce sum over @tp_ranks on @tp ins(%a : !plan.buffer<64xf32>) outs(%a : !plan.buffer<64xf32>)
    plan.record 1 on @tp
    plan.wait 1 on @compute
  }
}

// -----

// Nothing waits for the reduction at the end.
plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] arena 256 {
  plan.stream @compute
  plan.stream @tp
  plan.group @tp_ranks axes [tp]
  plan.lane @workspace bytes 256 offset 0
  // expected-error @+1 {{ends before its work on stream "tp"}}
  plan.fragment @f home @compute lane @workspace slots () events 1 {
    %a = plan.lane_ref + 0 : !plan.buffer<64xf32>
    plan.record 0 on @compute
    plan.wait 0 on @tp
    plan.all_reduce sum over @tp_ranks on @tp ins(%a : !plan.buffer<64xf32>) outs(%a : !plan.buffer<64xf32>)
  }
}

// -----

// b is written while a still waits to be read; both cover bytes 256 .. 512.
plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 768 {
  plan.stream @compute
  plan.lane @workspace bytes 768 offset 0
  plan.fragment @f home @compute lane @workspace slots () {
    // expected-note @+1 {{which ends at byte 512}}
    %a = plan.lane_ref + 0 : !plan.buffer<128xf32>
    // expected-error @+1 {{starts at byte 256, inside another buffer that lives at the same time}}
    %b = plan.lane_ref + 256 : !plan.buffer<128xf32>
    plan.launch "fill_zero" on @compute outs(%a : !plan.buffer<128xf32>) args [] floats []
    plan.launch "fill_zero" on @compute outs(%b : !plan.buffer<128xf32>) args [] floats []
    plan.launch "add" on @compute ins(%a, %b : !plan.buffer<128xf32>, !plan.buffer<128xf32>) outs(%b : !plan.buffer<128xf32>) args [] floats []
  }
}

// -----

// The same bytes one after the other are fine.
plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 512 {
  plan.stream @compute
  plan.lane @workspace bytes 512 offset 0
  plan.fragment @f home @compute lane @workspace slots () {
    %a = plan.lane_ref + 0 : !plan.buffer<128xf32>
    %b = plan.lane_ref + 0 : !plan.buffer<64xf32>
    plan.launch "fill_zero" on @compute outs(%a : !plan.buffer<128xf32>) args [] floats []
    plan.launch "fill_zero" on @compute outs(%b : !plan.buffer<64xf32>) args [] floats []
  }
}

// -----

// The load of the next step would overwrite tokens that the run still reads:
// the run waits for the load, but no load waits for a run.
plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 512 {
  plan.stream @compute
  plan.stream @load
  plan.slot_class @tokens bytes 256 count 1 offset 0 category "activations"
  plan.lane @workspace bytes 256 offset 256
  plan.fragment @f home @compute lane @workspace slots (tokens : @tokens) {
    %t = plan.slot_ref "tokens" + 0 : !plan.buffer<8xi32>
    %a = plan.lane_ref + 0 : !plan.buffer<8xi32>
    plan.copy on @compute ins(%t : !plan.buffer<8xi32>) outs(%a : !plan.buffer<8xi32>)
  }
  plan.actions @step events 1 {
    // expected-error @+1 {{on stream "load" touches bytes of earlier work on stream "compute" and is not ordered behind it}}
    plan.load "0LOAD0" [!plan.buffer<8xi32>] on @load microbatch 0 slots (@tokens[0] acquire) records [0]
    // expected-note @+1 {{that work is here}}
    plan.run "0F0" @f on @compute microbatch 0 slots (@tokens[0] release) waits [0]
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 256 {
  plan.stream @load
  plan.slot_class @tokens bytes 256 count 1 offset 0 category "activations"
  plan.actions @step {
    plan.load "0LOAD0" [!plan.buffer<8xi32>] on @load slots (@tokens[0] acquire)
    // expected-error @+1 {{acquires slot 0 of @tokens, which is not released yet}}
    plan.load "0LOAD1" [!plan.buffer<8xi32>] on @load slots (@tokens[0] acquire)
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 256 {
  plan.stream @load
  plan.slot_class @tokens bytes 256 count 1 offset 0 category "activations"
  plan.actions @step {
    // expected-error @+1 {{uses slot 0 of @tokens, which nobody has acquired}}
    plan.load "0LOAD0" [!plan.buffer<8xi32>] on @load slots (@tokens[0] release)
  }
}

// -----

plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] arena 256 {
  plan.stream @load
  plan.slot_class @tokens bytes 256 count 1 offset 0 category "activations"
  plan.actions @step {
    // expected-error @+1 {{holds a slot that nobody releases in this step}}
    plan.load "0LOAD0" [!plan.buffer<8xi32>] on @load slots (@tokens[0] acquire)
  }
}
