// One message per layer in the update.
// RUN: reckon-opt -allow-unregistered-dialect \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-bucket-collectives))" \
// RUN:   %s | FileCheck %s

train.program @buckets sequence(8) micro_batch(1) micro_batches(1)
    global_batch(2) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.state @model.layers.1.a.weight parameter : tensor<8xf32>
  train.state @model.layers.1.b.weight parameter : tensor<6xf32>
  train.state @model.layers.11.a.weight parameter : tensor<8xf32>
  train.state @model.norm.weight parameter : tensor<8xf32>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    // Only the update has buckets: a collective here stands between the
    // computations that make and read its operand.
    // CHECK: train.microbatch {
    // CHECK-COUNT-2: dist.all_reduce {{.*}} : (tensor<8xf32>) -> tensor<8xf32>
    %x = "test.value"() : () -> tensor<8xf32>
    %y = dist.all_reduce %x axes ["dp"] group_size 2 reduction "sum"
        : (tensor<8xf32>) -> tensor<8xf32>
    %z = dist.all_reduce %y axes ["dp"] group_size 2 reduction "sum"
        : (tensor<8xf32>) -> tensor<8xf32>
  }
  // CHECK: train.update {
  train.update {
    // Layer 1 has two parameters: one message where its last value is known.
    // Layer 11 is another layer, the norm is a bucket of its own.
    // CHECK-NEXT: %[[A1:.*]] = train.read @model.layers.1.a.weight
    // CHECK-NEXT: %[[A11:.*]] = train.read @model.layers.11.a.weight
    // CHECK-NEXT: dist.reduce_scatter %[[A11]] axes
    // CHECK-NEXT: %[[N:.*]] = train.read @model.norm.weight
    // CHECK-NEXT: dist.reduce_scatter %[[N]] axes
    // CHECK-NEXT: %[[B1:.*]] = train.read @model.layers.1.b.weight
    // CHECK-NEXT: %[[R:.*]]:2 = dist.reduce_scatter %[[A1]], %[[B1]]
    // CHECK-SAME:   axes ["dp"] group_size 2 reduction "sum"
    // CHECK-SAME:   : (tensor<8xf32>, tensor<6xf32>)
    // CHECK-SAME:   -> (tensor<4xf32>, tensor<3xf32>)
    // What read the first member has moved behind the message.
    // CHECK-NEXT: "test.use"(%[[R]]#0) {first}
    // CHECK:      "test.use"(%[[R]]#1) {second}
    %a = train.read @model.layers.1.a.weight : tensor<8xf32>
    %ra = dist.reduce_scatter %a axes ["dp"] group_size 2 reduction "sum"
        : (tensor<8xf32>) -> tensor<4xf32>
    "test.use"(%ra) {first} : (tensor<4xf32>) -> ()
    %c = train.read @model.layers.11.a.weight : tensor<8xf32>
    %rc = dist.reduce_scatter %c axes ["dp"] group_size 2 reduction "sum"
        : (tensor<8xf32>) -> tensor<4xf32>
    %n = train.read @model.norm.weight : tensor<8xf32>
    %rn = dist.reduce_scatter %n axes ["dp"] group_size 2 reduction "sum"
        : (tensor<8xf32>) -> tensor<4xf32>
    %b = train.read @model.layers.1.b.weight : tensor<6xf32>
    %rb = dist.reduce_scatter %b axes ["dp"] group_size 2 reduction "sum"
        : (tensor<6xf32>) -> tensor<3xf32>
    "test.use"(%rb) {second} : (tensor<3xf32>) -> ()

    // What is gathered belongs to the state that it is written to.
    // CHECK:      %[[W:.*]]:2 = dist.all_gather %{{.*}}, %{{.*}} axes ["dp"]
    // CHECK-NEXT: train.write @model.layers.1.a.weight, %[[W]]#0
    // CHECK-NEXT: train.write @model.layers.1.b.weight, %[[W]]#1
    %pa, %pb = "test.value"() : () -> (tensor<4xf32>, tensor<3xf32>)
    %wa = dist.all_gather %pa axes ["dp"] group_size 2
        : (tensor<4xf32>) -> tensor<8xf32>
    train.write @model.layers.1.a.weight, %wa : tensor<8xf32>
    %wb = dist.all_gather %pb axes ["dp"] group_size 2
        : (tensor<3xf32>) -> tensor<6xf32>
    train.write @model.layers.1.b.weight, %wb : tensor<6xf32>

    // Another group is another message.
    // CHECK:      dist.all_reduce %{{[0-9a-z]+}} axes ["tp"]
    // CHECK:      dist.all_reduce %{{[0-9a-z]+}} axes ["dp"]
    %ta = dist.all_reduce %a axes ["tp"] group_size 2 reduction "sum"
        : (tensor<8xf32>) -> tensor<8xf32>
    %tb = dist.all_reduce %b axes ["dp"] group_size 2 reduction "sum"
        : (tensor<6xf32>) -> tensor<6xf32>
  }
}
