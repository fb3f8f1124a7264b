// A rank's rows of a value that all ranks hold: a copy from an offset that
// depends on the coordinate. 8 rows of 4 fp32 over TP 2: 4 * 4 * 4 = 64 bytes.
// RUN: reckon-opt %s -plan-materialize | FileCheck %s

pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(1) global_batch(1) attributes {config = {mesh = {tp = 2 : i64, cp = 1 : i64, ep = 1 : i64, dp = 1 : i64, pp = 1 : i64}}} {
  pipe.stage 0 layers ["head"] {
    train.state @w parameter : tensor<6x4xf32>
    pipe.fragment @begin kind begin roles [] () { pipe.return roles [] }
    pipe.fragment @forward kind forward roles ["tokens"] (%t: tensor<8xi32>) { pipe.return roles [] }
    pipe.fragment @backward_first kind backward first_micro_batch roles ["tokens", "targets"] (%t: tensor<8xi32>, %u: tensor<8xi32>) {
      %w = train.read @w : tensor<6x4xf32>
      // CHECK-LABEL: plan.fragment @backward_first
      // CHECK: [[X:%.*]] = plan.temp : <8x4xf32>
      %x = train.embedding %t, %w : (tensor<8xi32>, tensor<6x4xf32>) -> tensor<8x4xf32>
      // CHECK: [[Y:%.*]] = plan.temp : <4x4xf32>
      // CHECK-NEXT: plan.copy ins([[X]] : {{.*}}) outs([[Y]] : {{.*}}) {source_offset = #plan.expr<64 * tp>}
      %y = dist.slice %x axes ["tp"] group_size 2 dim 0 : (tensor<8x4xf32>) -> tensor<4x4xf32>
      // Blocks of a group, in the order of its ranks; not in place.
      // CHECK-NEXT: [[Z:%.*]] = plan.temp : <8x4xf32>
      // CHECK-NEXT: plan.all_gather over @tp_ranks ins([[Y]] : {{.*}}) outs([[Z]] :
      %z = dist.all_gather %y axes ["tp"] group_size 2 dim 0 : (tensor<4x4xf32>) -> tensor<8x4xf32>
      // CHECK-NEXT: [[S:%.*]] = plan.temp : <4x4xf32>
      // CHECK-NEXT: plan.reduce_scatter sum over @tp_ranks ins([[Z]] : {{.*}}) outs([[S]] :
      %s = dist.reduce_scatter %z axes ["tp"] group_size 2 reduction "sum" dim 0 : (tensor<8x4xf32>) -> tensor<4x4xf32>
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
