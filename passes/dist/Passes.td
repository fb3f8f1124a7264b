//===- Passes.td - sharding, propagation, partitioning --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_DIST_PASSES_TD
#define RECKON_PASSES_DIST_PASSES_TD

include "mlir/Pass/PassBase.td"

class DistPass<string flag> : Pass<flag, "::reckon::train::ProgramOp"> {
  let dependentDialects = ["::reckon::dist::DistDialect"];
}

def ApplySpec : DistPass<"dist-apply-spec"> {
  let summary = "Writes the mesh and the shardings of the states";
  let description = [{
    From `config.mesh`, `config.zero_stage` and `config.origins`: parameters are
    split over tp along their `tensor_parallel_dim`; gradients likewise and
    unreduced over dp; with ZeRO-1 the optimizer's states are also flat over
    dp. Inputs are split over dp by rows.

    ```mlir
    train.state @w parameter {tensor_parallel_dim = 0 : i64} : tensor<8x4xf32>
    // becomes
    train.state @w parameter {dist.sharding =
        #dist.sharding<[["tp"], []], origin = "tiny.yaml:30:3">, ...}
    ```
  }];
}

def Propagate : DistPass<"dist-propagate"> {
  let summary = "Gives every value a sharding in one forward walk";
  let description = [{
    Each operation's rule turns operand shardings into result shardings. An
    operand that does not suit gets a `dist.reshard` in front: partial results
    are reduced before anything that is not linear, split dimensions that a
    rule needs whole are gathered, and values take the sharding of the state
    they are written to. Gradients are reduced once, where the update reads
    them, to the sharding of the optimizer's states.
  }];
}

def VerifySharded : DistPass<"verify-sharded"> {
  let summary = "Closes the sharded phase";
  let description = [{
    Every value has a sharding; split dimensions are divisible; partial results
    feed only linear operations, resharding and gradient accumulation; there is
    no collective yet.
  }];
}

def Partition : DistPass<"dist-partition"> {
  let summary = "Turns global shapes into a rank's shapes";
  let description = [{
    A dimension that its ranks do not divide is an error, never a truncation.
    States record what they lost: `global_shape`, `box_axes`, `flat_axes` and
    `replica_axes`. Operations over a split vocabulary get `vocab_axes`; the
    norm and the loss get `replica_axes`, so that equal values on several ranks
    count once.
  }];
}

def ReshardToCollectives : DistPass<"dist-reshard-to-collectives"> {
  let summary = "Replaces each reshard by the collective that does it";
  let description = [{
    partial to replicated: all_reduce; partial to split: all_reduce, then slice
    (dist-fuse-collectives makes a reduce_scatter of them); split to replicated:
    all_gather; replicated to split: slice; split to split: all_to_all. Anything else is an error that names both shardings.
  }];
}

def FuseCollectives : DistPass<"dist-fuse-collectives"> {
  let summary = "Removes transfers that others imply";
  let description = [{
    An optimisation: without it results are the same.

    - Equal transfers of one value become one.
    - all_reduce then slice becomes reduce_scatter.
    - slice of all_gather, and all_gather of slice, over the same axes vanish.
  }];
}

def Quantize : DistPass<"dist-quantize"> {
  let summary = "Computes the linears of decoder layers in fp8";
  let description = [{
    Only where the program's precision is fp8; the embedding, norms, attention
    and the head stay in bf16. Each linear becomes a `train.linear_fp8` of codes
    that `train.cast_fp8` makes with one scale a tensor, from the largest
    magnitude that `train.amax` finds now. A tensor that tensor-parallel ranks
    share is scaled alike on all of them: its maximum is all-reduced, in one
    message for all weights of a layer and one for the maxima that are there at
    the same time. Readers of one value share its codes.

    A layer saves the transposed codes of an activation in place of the
    activation where its backward only multiplies it, and else the largest
    magnitudes that its backward would have to find again.

    ```mlir
    %q = train.linear %n1, %w
    // becomes
    %n1_amax = train.amax %n1
    %n1_s, %n1_c, %n1_t = train.cast_fp8 %n1, %n1_amax straight transposed
    %w_s, %w_c = train.cast_fp8 %w, %w_amax straight
    %q = train.linear_fp8 %n1_c, %n1_s, %w_c, %w_s {k = 64 : i64}
    ```
  }];
}

def BucketCollectives : DistPass<"dist-bucket-collectives"> {
  let summary = "Merges the update's collectives layer by layer";
  let description = [{
    Reductions and gathers over the same axes that belong to the parameters of
    one layer become one variadic collective: one message instead of nine.
  }];
}

def VerifyPartitioned : DistPass<"verify-partitioned"> {
  let summary = "Closes the partitioned phase";
  let description = [{
    No `dist.reshard` and no `dist.sharding` is left; in an fp8 program no linear
    of a decoder layer is left in another precision; the local shapes of every
    state times its ranks are its global shape; groups have the size that the
    mesh says.
  }];
}

#endif // RECKON_PASSES_DIST_PASSES_TD
