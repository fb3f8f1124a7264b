// Embedding, one layer, head: what becomes saved, the order of the backward,
// where gradients are summed. 8 tokens, 4 columns, a vocabulary of 16.
// RUN: reckon-opt -pass-pipeline="builtin.module(train.program(train-build-backward))" \
// RUN:   %s | FileCheck %s

train.program @tiny sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @embed parameter decay : tensor<16x4xbf16>
  train.state @norm parameter : tensor<4xbf16>
  train.state @proj parameter decay : tensor<4x4xbf16>
  train.state @head parameter decay : tensor<16x4xbf16>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    %tokens = train.input tokens : tensor<8xi32>
    %targets = train.input targets : tensor<8xi32>
    %x0 = train.layer "embedding" (%tokens) {
    ^bb0(%ids: tensor<8xi32>):
      %w = train.read @embed : tensor<16x4xbf16>
      %x = train.embedding %ids, %w
          : (tensor<8xi32>, tensor<16x4xbf16>) -> tensor<8x4xbf16>
      train.yield %x : tensor<8x4xbf16>
    } : (tensor<8xi32>) -> tensor<8x4xbf16>
    %x1 = train.layer "layers.0" (%x0) {
    ^bb0(%x: tensor<8x4xbf16>):
      %nw = train.read @norm : tensor<4xbf16>
      %n = train.rms_norm %x, %nw {eps = 1.0e-5 : f64}
          : (tensor<8x4xbf16>, tensor<4xbf16>) -> tensor<8x4xbf16>
      %w = train.read @proj : tensor<4x4xbf16>
      %h = train.linear %n, %w
          : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
      %y = train.add %x, %h
          : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
      train.yield %y : tensor<8x4xbf16>
    } : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
    train.layer "head" (%x1, %targets) {
    ^bb0(%x: tensor<8x4xbf16>, %t: tensor<8xi32>):
      %w = train.read @head : tensor<16x4xbf16>
      %l = train.linear %x, %w
          : (tensor<8x4xbf16>, tensor<16x4xbf16>) -> tensor<8x16xbf16>
      %m = train.cross_entropy_max %l : (tensor<8x16xbf16>) -> tensor<8xf32>
      %s = train.cross_entropy_sum %l, %t, %m
          : (tensor<8x16xbf16>, tensor<8xi32>, tensor<8xf32>) -> tensor<2x8xf32>
      %lse = train.cross_entropy_loss @metrics, %l, %t, %s, %m
          {scale = 0.125 : f64} : (tensor<8x16xbf16>, tensor<8xi32>,
              tensor<2x8xf32>, tensor<8xf32>) -> tensor<8xf32>
      train.yield
    } : (tensor<8x4xbf16>, tensor<8xi32>) -> ()
    train.yield
  }
}

// One gradient state per parameter, f32 in every precision, behind the
// parameters and in front of what comes later in the order of roles.
// CHECK:      train.state @head parameter
// CHECK-NEXT: train.state @"embed#gradient" gradient of @embed
// CHECK-SAME:   : tensor<16x4xf32>
// CHECK-NEXT: train.state @"norm#gradient" gradient of @norm : tensor<4xf32>
// CHECK-NEXT: train.state @"proj#gradient" gradient of @proj : tensor<4x4xf32>
// CHECK-NEXT: train.state @"head#gradient" gradient of @head : tensor<16x4xf32>
// CHECK-NEXT: train.state @metrics

// The embedding's backward reads the tokens, an input: nothing is saved.
// CHECK:      %[[X0:.*]] = train.layer "embedding"(%tokens)

// The layer saves its norm's result for linear; its input is no result; add
// saves nothing; parameters are read again.
// CHECK:      %[[X1:.*]]:2 = train.layer "layers.0"(%[[X0]])
// CHECK:        %[[N:.*]] = train.rms_norm
// CHECK:        %[[Y:.*]] = train.add
// CHECK-NEXT:   train.yield %[[Y]], %[[N]] : tensor<8x4xbf16>, tensor<8x4xbf16>

// The head saves logits and log-sum-exp: targets are an input, sums and
// maximum are not read by the gradient.
// CHECK:      %[[HEAD:.*]]:2 = train.layer "head"(%[[X1]]#0, %targets)
// CHECK:        %[[L:.*]] = train.linear
// CHECK:        %[[LSE:.*]] = train.cross_entropy_loss
// CHECK-NEXT:   train.yield %[[L]], %[[LSE]] : tensor<8x16xbf16>, tensor<8xf32>

// Last layer first. The head has no cotangent coming in: the loss is the root.
// CHECK:      %[[DX1:.*]] = train.layer_grad "head"(%[[X1]]#0, %targets,
// CHECK-SAME:   %[[HEAD]]#0, %[[HEAD]]#1) {
// CHECK-NEXT: ^bb0(%[[HX:.*]]: tensor<8x4xbf16>, %[[HT:.*]]: tensor<8xi32>,
// CHECK-SAME:   %[[HL:.*]]: tensor<8x16xbf16>, %[[HS:.*]]: tensor<8xf32>):
// CHECK-NEXT:   %[[DL:.*]] = train.cross_entropy_grad %[[HL]], %[[HT]], %[[HS]]
// CHECK-SAME:     {scale = 1.250000e-01 : f64}
// CHECK-NEXT:   %[[DWH:.*]] = train.linear_grad_weight %[[DL]], %[[HX]]
// CHECK-SAME:     -> tensor<16x4xf32>
// CHECK-NEXT:   train.accumulate @"head#gradient", %[[DWH]]
// CHECK-NEXT:   %[[WH:.*]] = train.read @head
// CHECK-NEXT:   %[[DHX:.*]] = train.linear_grad_input %[[DL]], %[[WH]]
// CHECK-NEXT:   train.yield %[[DHX]]

// The layer: cotangent, then what was saved in the order of definition (its
// input first). A weight gradient is accumulated where it is made, and made
// before the input gradient, which may take over the cotangent's buffer. Two
// paths reach x, so two cotangents are added.
// CHECK:      %[[DX0:.*]] = train.layer_grad "layers.0"(%[[DX1]], %[[X0]],
// CHECK-SAME:   %[[X1]]#1) {
// CHECK-NEXT: ^bb0(%[[DY:.*]]: tensor<8x4xbf16>, %[[X:.*]]: tensor<8x4xbf16>,
// CHECK-SAME:   %[[NS:.*]]: tensor<8x4xbf16>):
// CHECK-NEXT:   %[[DW:.*]] = train.linear_grad_weight %[[DY]], %[[NS]]
// CHECK-NEXT:   train.accumulate @"proj#gradient", %[[DW]] : tensor<4x4xf32>
// CHECK-NEXT:   %[[W:.*]] = train.read @proj
// CHECK-NEXT:   %[[DN:.*]] = train.linear_grad_input %[[DY]], %[[W]]
// CHECK-NEXT:   %[[DNW:.*]] = train.rms_norm_grad_weight %[[DN]], %[[X]]
// CHECK-NEXT:   train.accumulate @"norm#gradient", %[[DNW]] : tensor<4xf32>
// CHECK-NEXT:   %[[NW:.*]] = train.read @norm
// CHECK-NEXT:   %[[DXN:.*]] = train.rms_norm_grad_input %[[DN]], %[[X]],
// CHECK-SAME:     %[[NW]]
// CHECK-NEXT:   %[[DX:.*]] = train.add %[[DY]], %[[DXN]]
// CHECK-NEXT:   train.yield %[[DX]]

// Token ids have no cotangent.
// CHECK:      train.layer_grad "embedding"(%[[DX0]], %tokens) {
// CHECK-NEXT: ^bb0(%[[DE:.*]]: tensor<8x4xbf16>, %[[IDS:.*]]: tensor<8xi32>):
// CHECK-NEXT:   %[[DWE:.*]] = train.embedding_grad %[[DE]], %[[IDS]]
// CHECK-SAME:     -> tensor<16x4xf32>
// CHECK-NEXT:   train.accumulate @"embed#gradient", %[[DWE]]
// CHECK-NEXT:   train.yield{{$}}
// CHECK-NEXT: } : (tensor<8x4xbf16>, tensor<8xi32>) -> ()
