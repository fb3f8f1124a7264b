//===- Check.cpp - the sections against each other ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The model's shape and the sizes. A value of zero was already reported by the
// reader, so checks that need it are skipped.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/CheckText.h"
#include "frontends/spec/Reader.h"

namespace reckon {
namespace {

void checkHeads(const ModelSpec &model, Reader &reader) {
  int64_t heads = *model.numAttentionHeads, kv = *model.numKeyValueHeads;
  bool mla = *model.kvLoraRank > 0;
  // Latent attention expands to as many key heads as there are query heads.
  if (!mla && heads > 0 && kv > 0 && heads % kv != 0)
    reader.error(model.numKeyValueHeads.loc,
                 "expected model.num_key_value_heads to divide "
                 "num_attention_heads " +
                     num(heads) + ", got " + num(kv) + "; use " +
                     divisorsOf(heads, heads));
  if (mla && *model.qkRopeHeadDim % 2 != 0)
    reader.error(model.qkRopeHeadDim.loc,
                 "expected an even model.qk_rope_head_dim for the rotary "
                 "embedding, got " +
                     num(*model.qkRopeHeadDim) + "; use an even one");
  if (!mla && *model.architecture != "gpt2" && *model.headDim % 2 != 0)
    reader.error(model.headDim.loc,
                 "expected an even model.head_dim for the rotary "
                 "embedding, got " +
                     num(*model.headDim) +
                     (model.headDim.given
                          ? "; use an even one"
                          : " from hidden_size / num_attention_heads; "
                            "change one of them or give head_dim"));
}

void checkSequence(ModelSpec &model, const TrainingSpec &training,
                   Reader &reader) {
  int64_t longest = *model.maxPositionEmbeddings;
  bool learned = *model.architecture == "gpt2";
  if (learned && !model.maxPositionEmbeddings.given)
    model.maxPositionEmbeddings.value = *training.sequenceLength;
  if (longest <= 0 || *training.sequenceLength <= longest)
    return;
  std::string length =
      "training.sequence_length " + num(*training.sequenceLength);
  if (learned)
    reader.error(training.sequenceLength.loc,
                 "expected training.sequence_length of at most "
                 "model.max_position_embeddings " +
                     num(longest) + ", the positions that gpt2 learns, got " +
                     num(*training.sequenceLength) + "; change one of them");
  else
    reader.warn(training.sequenceLength.loc,
                length + " is above model.max_position_embeddings " +
                    num(longest));
}

/// Keeps byte counts within 63 bits, with room for the factors that the
/// accounting multiplies by.
void checkSize(const ModelSpec &model, const TrainingSpec &training,
               Reader &reader) {
  long double hidden = *model.hiddenSize, vocab = *model.vocabSize,
              inner = *model.intermediateSize,
              expert = *model.moeIntermediateSize,
              layers = *model.numHiddenLayers + *model.numNextnPredictLayers,
              attention = static_cast<long double>(*model.headDim) *
                          (2.0L * *model.numAttentionHeads +
                           2.0L * *model.numKeyValueHeads),
              experts = static_cast<long double>(*model.numExperts) +
                        *model.nSharedExperts;
  long double parameters =
      2 * vocab * hidden +
      layers * hidden * (attention + 3 * inner + 3 * experts * expert);
  constexpr long double mostParameters = 1e15L;
  if (parameters > mostParameters)
    reader.error(model.loc,
                 "expected a model of at most 1e15 parameters, got " +
                     formatNumber(static_cast<double>(parameters)) +
                     " from hidden_size, intermediate_size, vocab_size and "
                     "num_hidden_layers; check their digits");
  // 64 bytes an element are more than any activation keeps.
  long double active = *model.numExpertsPerTok * expert;
  long double widest = std::max({hidden, vocab, inner, attention, active});
  long double elements = static_cast<long double>(*training.globalBatchSize) *
                         *training.sequenceLength * widest *
                         std::max(layers, 1.0L);
  if (elements > 7e16L)
    reader.error(training.globalBatchSize.loc,
                 "expected at most 7e16 activation elements in a step, "
                 "got " +
                     formatNumber(static_cast<double>(elements)) +
                     " from global_batch_size, sequence_length, "
                     "num_hidden_layers and the model's widest matrix; "
                     "check their digits");
}

void warnAboutCluster(const Spec &spec, Reader &reader) {
  const ClusterSpec &cluster = spec.cluster;
  int64_t perNode = *cluster.gpusPerNode;
  const Accelerator &accelerator = *cluster.accelerator;
  if (!accelerator.name.empty() && perNode > accelerator.intraNodeSize)
    reader.warn(cluster.gpusPerNode.loc,
                "cluster.gpus_per_node " + num(perNode) + " is more than the " +
                    num(accelerator.intraNodeSize) + " devices that " +
                    accelerator.name +
                    " joins by its fast link; times assume that link");
  const Choice<int64_t> &tp = spec.parallelism.tensorParallel;
  if (perNode > 0 && tp.fixed() && perNode % tp.value() != 0)
    reader.warn(tp.loc, "parallelism.tensor_parallel " + num(tp.value()) +
                            " crosses nodes of " + num(perNode) +
                            " devices; expect slow steps");
  if (*spec.training.precision == Precision::Fp8 && !accelerator.name.empty() &&
      accelerator.fp8DenseTflops <= 0)
    reader.warn(spec.training.precision.loc,
                "training.precision fp8 has no peak on " + accelerator.name +
                    "; times use the one of bf16");
}

} // namespace

void checkSpec(Spec &spec, Reader &reader) {
  checkHeads(spec.model, reader);
  checkSequence(spec.model, spec.training, reader);
  checkSize(spec.model, spec.training, reader);
  if (spec.training.data.given && *spec.training.data.tokenizer == "byte" &&
      *spec.model.vocabSize > 0 && *spec.model.vocabSize < 256)
    reader.error(spec.model.vocabSize.loc,
                 "expected model.vocab_size of at least 256 for the "
                 "tokenizer byte, got " +
                     num(*spec.model.vocabSize) + "; use 256");
  checkParallelism(spec, reader);
  warnAboutCluster(spec, reader);
}

} // namespace reckon
