// One stage with an embedding, a norm and a head, TP 2, DP 2 with ZeRO-1, two
// micro-batches of 8 tokens; vocabulary 12, hidden size 4. A rank holds rows
// 6 * tp .. 6 * tp + 5 of w, which is table and head at once, and updates 12 of
// its 24 elements; of the norm's 5 weights it updates ceil(5 / 2) = 3.
pipe.program @p schedule("1f1b") sequence(8) micro_batch(1) micro_batches(2) global_batch(4) attributes {config = {name = "one", mesh = {tp = 2 : i64, cp = 1 : i64, ep = 1 : i64, dp = 2 : i64, pp = 1 : i64}}} {
  pipe.stage 0 layers ["embedding", "head"] {
    train.state @w parameter decay {global_shape = array<i64: 12, 4>, box_axes = [["tp"], []], init = {kind = "normal", stddev = 2.0e-02 : f64}, replica_axes = ["dp"]} : tensor<6x4xf32>
    train.state @n parameter {global_shape = array<i64: 5>, box_axes = [[]], init = {kind = "ones"}, replica_axes = ["tp", "dp"]} : tensor<5xf32>
    train.state @"w#gradient" gradient of @w {global_shape = array<i64: 12, 4>, box_axes = [["tp"], []]} : tensor<6x4xf32>
    train.state @"n#gradient" gradient of @n {global_shape = array<i64: 5>, box_axes = [[]]} : tensor<5xf32>
    train.state @"w#momentum" momentum of @w {global_shape = array<i64: 12, 4>, box_axes = [["tp"], []], flat_axes = ["dp"]} : tensor<12xf32>
    train.state @"n#momentum" momentum of @n {global_shape = array<i64: 5>, box_axes = [[]], flat_axes = ["dp"]} : tensor<3xf32>
    train.state @"w#variance" variance of @w {global_shape = array<i64: 12, 4>, box_axes = [["tp"], []], flat_axes = ["dp"]} : tensor<12xf32>
    train.state @"n#variance" variance of @n {global_shape = array<i64: 5>, box_axes = [[]], flat_axes = ["dp"]} : tensor<3xf32>
    train.state @scalars scalars : tensor<8xf64>
    train.state @metrics metrics : tensor<4xf64>
    pipe.fragment @begin kind begin roles [] () {
      train.fill_zero @metrics
      pipe.return roles []
    }
    pipe.fragment @forward kind forward roles ["tokens"] (%t: tensor<8xi32>) {
      %w = train.read @w : tensor<6x4xf32>
      %p = train.embedding %t, %w {vocab_axes = ["tp"]} : (tensor<8xi32>, tensor<6x4xf32>) -> tensor<8x4xf32>
      %x = dist.all_reduce %p axes ["tp"] group_size 2 reduction "sum" : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %y = train.add %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      pipe.return %x, %y roles ["saved", "saved"] : tensor<8x4xf32>, tensor<8x4xf32>
    }
    pipe.fragment @backward_first kind backward first_micro_batch roles ["tokens", "saved", "saved", "targets"]
        (%t: tensor<8xi32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %u: tensor<8xi32>) {
      %w = train.read @w : tensor<6x4xf32>
      %l = train.linear %y, %w : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
      %m0 = train.cross_entropy_max %l {vocab_axes = ["tp"]} : (tensor<8x6xf32>) -> tensor<8xf32>
      %m = dist.all_reduce %m0 axes ["tp"] group_size 2 reduction "max" : (tensor<8xf32>) -> tensor<8xf32>
      %s0 = train.cross_entropy_sum %l, %u, %m {vocab_axes = ["tp"]} : (tensor<8x6xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<2x8xf32>
      %s = dist.all_reduce %s0 axes ["tp"] group_size 2 reduction "sum" : (tensor<2x8xf32>) -> tensor<2x8xf32>
      %lse = train.cross_entropy_loss @metrics, %l, %u, %s, %m {scale = 3.125e-02 : f64, vocab_axes = ["tp"]} : (tensor<8x6xf32>, tensor<8xi32>, tensor<2x8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %dl = train.cross_entropy_grad %l, %u, %lse {scale = 3.125e-02 : f64, vocab_axes = ["tp"]} : (tensor<8x6xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<8x6xf32>
      %dw = train.linear_grad_weight %dl, %y : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
      %dy0 = train.linear_grad_input %dl, %w : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
      train.accumulate @"w#gradient", %dw : tensor<6x4xf32>
      %dy = dist.all_reduce %dy0 axes ["tp"] group_size 2 reduction "sum" : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %dx = train.add %dy, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      %de = train.embedding_grad %dx, %t {vocab_axes = ["tp"]} : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<6x4xf32>
      train.accumulate @"w#gradient", %de : tensor<6x4xf32>
      pipe.return roles []
    }
    pipe.fragment @backward kind backward roles ["tokens", "saved", "saved", "targets"]
        (%t: tensor<8xi32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %u: tensor<8xi32>) {
      %de = train.embedding_grad %y, %t {vocab_axes = ["tp"]} : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<6x4xf32>
      train.accumulate @"w#gradient", %de : tensor<6x4xf32>
      pipe.return roles []
    }
    pipe.fragment @update kind update roles [] () {
      %gw = train.read @"w#gradient" : tensor<6x4xf32>
      %gn = train.read @"n#gradient" : tensor<5xf32>
      %w2, %n2 = dist.reduce_scatter %gw, %gn axes ["dp"] group_size 2 reduction "sum" : (tensor<6x4xf32>, tensor<5xf32>) -> (tensor<12xf32>, tensor<3xf32>)
      train.sum_squares @metrics, %w2, %n2 {replica_axes = [[], ["tp"]]} : tensor<12xf32>, tensor<3xf32>
      %q0 = train.read @metrics : tensor<4xf64>
      %q = dist.all_reduce %q0 axes ["tp", "dp", "pp"] group_size 4 reduction "sum" : (tensor<4xf64>) -> tensor<4xf64>
      train.write @metrics, %q : tensor<4xf64>
      train.clip_factor @metrics {clip = 1.0 : f64}
      %pw = train.adamw @w, %w2 metrics @metrics scalars @scalars {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64} : (tensor<12xf32>) -> tensor<12xf32>
      %pn = train.adamw @n, %n2 metrics @metrics scalars @scalars {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<3xf32>) -> tensor<3xf32>
      %fw, %fn = dist.all_gather %pw, %pn axes ["dp"] group_size 2 : (tensor<12xf32>, tensor<3xf32>) -> (tensor<6x4xf32>, tensor<5xf32>)
      train.write @w, %fw : tensor<6x4xf32>
      train.write @n, %fn : tensor<5xf32>
      pipe.return roles []
    }
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire, targets 0 acquire]
      pipe.run @forward "0F0" micro_batch 0 uses [tokens 0, stash 0 acquire]
      pipe.run @backward_first "0B0" micro_batch 0 uses [tokens 0 release, stash 0 release, targets 0 release]
      pipe.load "0LOAD1" micro_batch 1 uses [tokens 1 acquire, targets 1 acquire]
      pipe.run @forward "0F1" micro_batch 1 uses [tokens 1, stash 0 acquire]
      pipe.run @backward "0B1" micro_batch 1 uses [tokens 1 release, stash 0 release, targets 1 release]
      pipe.run @update "update" uses []
    }
  }
}
