//===- Tensors.cpp - the parameters that a rank holds ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Tensors.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

namespace {

class Builder {
public:
  Builder(const ModelShape &model, const model::Choice &choice, bool fused)
      : m_(model), choice_(choice), fused_(fused) {}

  std::vector<RankTensor> layer(bool moe) {
    out_.clear();
    norm();
    attention();
    norm();
    if (moe)
      experts();
    else
      mlp(m_.ffn, choice_.tp);
    return out_;
  }

  std::vector<RankTensor> mtp() {
    std::vector<RankTensor> tensors = layer(m_.isMoe());
    for (int norm = 0; norm < 3; ++norm)
      tensors.push_back({m_.hidden});
    tensors.push_back({ceilDiv(m_.hidden, choice_.tp), 2 * m_.hidden});
    return tensors;
  }

private:
  void norm() {
    out_.push_back({m_.hidden});
    if (m_.layerNorm)
      out_.push_back({m_.hidden});
  }
  /// Rows split over `ways`, with a bias when the model has one.
  void column(int64_t rows, int64_t columns, int64_t ways, bool bias) {
    out_.push_back({ceilDiv(rows, ways), columns});
    if (bias)
      out_.push_back({ceilDiv(rows, ways)});
  }
  /// Columns split; its bias is added after the reduction.
  void row(int64_t rows, int64_t columns, int64_t ways) {
    out_.push_back({rows, ceilDiv(columns, ways)});
    if (m_.linearBias)
      out_.push_back({rows});
  }

  void attention() {
    int64_t t = choice_.tp, h = m_.hidden;
    if (m_.isMla()) {
      const MlaShape &mla = m_.mla;
      int64_t query = m_.heads * (mla.nope + mla.rope);
      if (mla.qRank > 0) {
        out_.push_back({mla.qRank, h});
        out_.push_back({mla.qRank});
        column(query, mla.qRank, t, false);
      } else {
        column(query, h, t, false);
      }
      out_.push_back({mla.kvRank + mla.rope, h});
      out_.push_back({mla.kvRank});
      column(m_.heads * (mla.nope + mla.value), mla.kvRank, t, false);
      row(h, m_.contextWidth(), t);
      return;
    }
    bool bias = m_.attentionBias || m_.linearBias;
    int64_t kv = ceilDiv(m_.kvWidth(), m_.keyWays(t));
    int64_t q = ceilDiv(m_.qWidth(), t);
    if (fused_) {
      // Split evenly also where that parts a head of keys: its ranks gather
      // what the projection gives.
      column(m_.qWidth() + 2 * m_.kvWidth(), h, t, bias);
    } else {
      column(q, h, 1, bias);
      column(kv, h, 1, bias);
      column(kv, h, 1, bias);
    }
    if (m_.qkNorm) {
      out_.push_back({m_.headDim});
      out_.push_back({m_.headDim});
    }
    row(h, m_.contextWidth(), t);
  }

  void mlp(int64_t ffn, int64_t ways) {
    if (m_.gated && !fused_)
      column(ffn, m_.hidden, ways, m_.linearBias);
    column(m_.gated && fused_ ? 2 * ffn : ffn, m_.hidden, ways, m_.linearBias);
    row(m_.hidden, ffn, ways);
  }

  void experts() {
    out_.push_back({m_.experts, m_.hidden}); // router
    if (m_.sharedExperts)
      mlp(m_.sharedExperts * m_.expertFfn, choice_.tp);
    int64_t local = ceilDiv(m_.experts, choice_.ep);
    int64_t width = ceilDiv(m_.expertFfn, choice_.etp);
    int64_t inner = m_.gated ? 2 * width : width;
    if (m_.gated && !fused_) {
      inner = width;
      out_.push_back({local * width, m_.hidden, true});
    }
    out_.push_back({local * inner, m_.hidden, true});
    out_.push_back({local * m_.hidden, width, true});
  }

  const ModelShape &m_;
  const model::Choice &choice_;
  bool fused_;
  std::vector<RankTensor> out_;
};

} // namespace

TensorTable::TensorTable(const ModelShape &model, const model::Choice &choice,
                         bool fused, int64_t vocabularyMultiple) {
  int64_t multiple = std::max<int64_t>(1, vocabularyMultiple) * choice.tp;
  vocabularyRows = ceilDiv(model.vocab, multiple) * multiple / choice.tp;
  Builder builder(model, choice, fused);
  embedding.push_back({vocabularyRows, model.hidden});
  if (model.learnedPositions)
    embedding.push_back({model.learnedPositions, model.hidden});
  denseLayer = builder.layer(false);
  if (model.isMoe())
    moeLayer = builder.layer(true);
  finalNorm.push_back({model.hidden});
  if (model.layerNorm)
    finalNorm.push_back({model.hidden});
  head.push_back({vocabularyRows, model.hidden});
  if (model.mtpLayers)
    mtp = builder.mtp();
}

int64_t model::elementsOf(const std::vector<RankTensor> &tensors, bool expert) {
  int64_t sum = 0;
  for (const RankTensor &tensor : tensors)
    if (tensor.expert == expert)
      sum += tensor.elements();
  return sum;
}
