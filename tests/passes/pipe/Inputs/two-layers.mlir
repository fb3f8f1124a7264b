// A model of two layers after dist-partition, cut down to what outlining
// looks at: an embedding, two layers of one norm each, a head, their
// gradients, and an update with one bucket over all parameters. 8 tokens,
// 4 columns, a vocabulary of 16.
train.program @two sequence(8) micro_batch(1) micro_batches(2) global_batch(4)
    attributes {config = {schedule = "1f1b"}, pipeline_layout = array<i64: 1, 1>} {
  dist.mesh @world axes ["tp", "cp", "ep", "dp", "pp"] sizes [1, 1, 1, 2, 2]
  train.state @embed parameter decay : tensor<16x4xf32>
  train.state @n0 parameter : tensor<4xf32>
  train.state @n1 parameter : tensor<4xf32>
  train.state @head parameter decay : tensor<16x4xf32>
  train.state @"embed#gradient" gradient of @embed : tensor<16x4xf32>
  train.state @"n0#gradient" gradient of @n0 : tensor<4xf32>
  train.state @"n1#gradient" gradient of @n1 : tensor<4xf32>
  train.state @"head#gradient" gradient of @head : tensor<16x4xf32>
  train.state @"n1#momentum" momentum of @n1 : tensor<4xf32>
  train.state @"n1#variance" variance of @n1 : tensor<4xf32>
  train.state @unused buffer : tensor<4xf32>
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    %tokens = train.input tokens : tensor<8xi32>
    %targets = train.input targets : tensor<8xi32>
    %x0 = train.layer "embedding" (%tokens) {
    ^bb0(%t: tensor<8xi32>):
      %w = train.read @embed : tensor<16x4xf32>
      %y = train.embedding %t, %w : (tensor<8xi32>, tensor<16x4xf32>) -> tensor<8x4xf32>
      train.yield %y : tensor<8x4xf32>
    } : (tensor<8xi32>) -> tensor<8x4xf32>
    %x1, %s0 = train.layer "layers.0" (%x0) {
    ^bb0(%x: tensor<8x4xf32>):
      %w = train.read @n0 : tensor<4xf32>
      %n = train.rms_norm %x, %w {eps = 1.0e-5 : f64} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
      %y = train.add %x, %n : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      train.yield %y, %n : tensor<8x4xf32>, tensor<8x4xf32>
    } : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    %x2, %s1 = train.layer "layers.1" (%x1) {
    ^bb0(%x: tensor<8x4xf32>):
      %w = train.read @n1 : tensor<4xf32>
      %n = train.rms_norm %x, %w {eps = 1.0e-5 : f64} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
      %y = train.add %x, %n : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      train.yield %y, %n : tensor<8x4xf32>, tensor<8x4xf32>
    } : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    %logits = train.layer "head" (%x2, %targets) {
    ^bb0(%x: tensor<8x4xf32>, %t: tensor<8xi32>):
      %w = train.read @head : tensor<16x4xf32>
      %l = train.linear %x, %w : (tensor<8x4xf32>, tensor<16x4xf32>) -> tensor<8x16xf32>
      train.yield %l : tensor<8x16xf32>
    } : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<8x16xf32>
    %dx2 = train.layer_grad "head" (%x2, %logits) {
    ^bb0(%x: tensor<8x4xf32>, %l: tensor<8x16xf32>):
      %w = train.read @head : tensor<16x4xf32>
      %dw = train.linear_grad_weight %l, %x : (tensor<8x16xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
      train.accumulate @"head#gradient", %dw : tensor<16x4xf32>
      %dx = train.linear_grad_input %l, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
      train.yield %dx : tensor<8x4xf32>
    } : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<8x4xf32>
    %dx1 = train.layer_grad "layers.1" (%dx2, %x1, %s1) {
    ^bb0(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %n: tensor<8x4xf32>):
      %dw = train.rms_norm_grad_weight %dy, %n {eps = 1.0e-5 : f64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4xf32>
      train.accumulate @"n1#gradient", %dw : tensor<4xf32>
      %dx = train.add %dy, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      train.yield %dx : tensor<8x4xf32>
    } : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %dx0 = train.layer_grad "layers.0" (%dx1, %x0, %s0) {
    ^bb0(%dy: tensor<8x4xf32>, %x: tensor<8x4xf32>, %n: tensor<8x4xf32>):
      %dw = train.rms_norm_grad_weight %dy, %n {eps = 1.0e-5 : f64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4xf32>
      train.accumulate @"n0#gradient", %dw : tensor<4xf32>
      %dx = train.add %dy, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      train.yield %dx : tensor<8x4xf32>
    } : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    train.layer_grad "embedding" (%dx0, %tokens) {
    ^bb0(%dy: tensor<8x4xf32>, %t: tensor<8xi32>):
      %dw = train.embedding_grad %dy, %t : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<16x4xf32>
      train.accumulate @"embed#gradient", %dw : tensor<16x4xf32>
      train.yield
    } : (tensor<8x4xf32>, tensor<8xi32>) -> ()
    train.yield
  }
  train.update {
    %g0 = train.read @"embed#gradient" : tensor<16x4xf32>
    %g1 = train.read @"n0#gradient" : tensor<4xf32>
    %g2 = train.read @"n1#gradient" : tensor<4xf32>
    %g3 = train.read @"head#gradient" : tensor<16x4xf32>
    %r:4 = dist.all_reduce %g0, %g1, %g2, %g3 axes ["dp"] group_size 2 reduction "sum"
        : (tensor<16x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x4xf32>)
        -> (tensor<16x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x4xf32>)
    train.sum_squares @metrics, %r#0, %r#1, %r#2, %r#3 {replica_axes = [["a"], ["b"], ["c"], ["d"]]}
        : tensor<16x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x4xf32>
    %m = train.read @metrics : tensor<4xf64>
    %sum = dist.all_reduce %m axes ["tp", "dp", "pp"] group_size 4 reduction "sum"
        : (tensor<4xf64>) -> tensor<4xf64>
    train.write @metrics, %sum : tensor<4xf64>
    train.clip_factor @metrics {clip = 1.0 : f64}
    %p = train.adamw @n1, %r#2 metrics @metrics scalars @scalars
        {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
        : (tensor<4xf32>) -> tensor<4xf32>
    train.write @n1, %p : tensor<4xf32>
    train.yield
  }
}
