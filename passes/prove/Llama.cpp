//===- Llama.cpp - forward and backward of a Llama, as terms --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Llama.h"

#include "passes/prove/Execute.h"

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

static constexpr unsigned kTp = 1u << static_cast<unsigned>(Axis::tp);

Llama::Llama(TermTable &terms, const Intent &intent, const StageShare &share,
             const Spread &spread)
    : terms_(terms), intent_(intent), share_(share), dims_(intent.dims),
      spread_(spread), tokens_(spread.microBatchTokens),
      tp_(terms.functions().mesh().tp),
      rows_(spread.sequenceParallel ? tokens_ / tp_ : tokens_),
      dtype_(intent.bf16 ? DType::bf16 : DType::f32),
      // Each token's loss counts once in the mean over the global batch.
      scale_(1.0 / static_cast<double>(intent.globalTokens())) {
  metrics_ = terms_.kernel(Kernel::fill_zero, {}, {}, {}, 0, DType::f64,
                           spread_.metricsBytes);
  for (const model::Parameter &parameter : share.parameters) {
    parameters_[parameter.name] = parameter;
    weights_[parameter.name] =
        terms_.symbol(symbols::state(parameter.name), -1, dtype_,
                      localElements(parameter) * dtypeSize(dtype_));
  }
}

int64_t Llama::localElements(const model::Parameter &parameter) const {
  return parameter.localElements(tp_);
}

TermId Llama::weight(const std::string &name) const {
  return weights_.at(name);
}

/// First word of a rank's part of the vocabulary.
FnId Llama::vocabOffset() {
  int64_t rows = dims_.vocab / tp_;
  return terms_.functions().make(
      kTp, [&](const Coord &coord) { return coord.tp * rows; });
}

/// 1 on the first of the ranks that have equal values along `axes`.
FnId Llama::ownerOn(unsigned axes) {
  return terms_.functions().make(axes, [&](const Coord &coord) {
    for (int i = 0; i < kNumAxes; ++i)
      if ((axes & (1u << i)) && coord[static_cast<Axis>(i)] != 0)
        return 0;
    return 1;
  });
}

// --- Operations -------------------------------------------------------------

TermId Llama::activation(Kernel kernel, std::vector<FnId> args,
                         std::vector<double> floats, std::vector<TermId> inputs,
                         int64_t width, unsigned output) {
  return terms_.kernel(kernel, args, floats, inputs, output, dtype_,
                       tokens_ * width * dtypeSize(dtype_));
}

TermId Llama::f32(Kernel kernel, std::vector<FnId> args,
                  std::vector<double> floats, std::vector<TermId> inputs,
                  int64_t elements, unsigned output) {
  return terms_.kernel(kernel, args, floats, inputs, output, DType::f32,
                       elements * dtypeSize(DType::f32));
}

/// A sum or maximum over ranks that each hold a part of the terms.
TermId Llama::overTp(TermId partial, Reduction reduction) {
  if (tp_ == 1)
    return partial;
  return terms_.collective(Opcode::all_reduce, reduction, kTp, partial,
                           terms_[partial].bytes);
}

/// The sum of partial activations: all rows, or with sequence parallelism a
/// tensor rank's part of them.
TermId Llama::toRows(TermId partial) {
  if (!spread_.sequenceParallel)
    return overTp(partial);
  return terms_.collective(Opcode::reduce_scatter, Reduction::sum, kTp, partial,
                           terms_[partial].bytes / tp_);
}

/// All rows again, for a matrix.
TermId Llama::allRows(TermId rows) {
  if (!spread_.sequenceParallel)
    return rows;
  return terms_.collective(Opcode::all_gather, Reduction::sum, kTp, rows,
                           terms_[rows].bytes * tp_);
}

/// A result as wide as the model, on the rows between matrices.
TermId Llama::perRow(Kernel kernel, std::vector<FnId> args,
                     std::vector<double> floats, std::vector<TermId> inputs,
                     unsigned output) {
  return terms_.kernel(kernel, args, floats, inputs, output, dtype_,
                       rows_ * dims_.hidden * dtypeSize(dtype_));
}

TermId Llama::rmsNorm(TermId x, const std::string &name) {
  return perRow(Kernel::rms_norm, {constant(dims_.hidden)},
                {intent_.rmsNormEps}, {x, weight(name)});
}

std::pair<int64_t, int64_t> Llama::localShape(const std::string &name) const {
  const model::Parameter &matrix = parameters_.at(name);
  int64_t shape[2] = {matrix.shape[0], matrix.shape[1]};
  if (matrix.tpDim)
    shape[*matrix.tpDim] /= tp_;
  return {shape[0], shape[1]};
}

TermId Llama::linear(TermId x, const std::string &name) {
  if (inFp8(name))
    return linearFp8(x, name);
  auto [n, k] = localShape(name);
  return activation(Kernel::linear, {constant(n), constant(k)}, {},
                    {x, weight(name)}, n);
}

/// On as many rows as its operands have.
TermId Llama::add(TermId a, TermId b) {
  TermId operands[] = {a, b};
  return terms_.kernel(Kernel::add, {}, {}, operands, 0, dtype_,
                       terms_[a].bytes);
}

TermId Llama::rope(TermId x, int64_t heads, bool inverse) {
  TermId table =
      terms_.symbol(symbols::state("rope.table"), -1, DType::f32,
                    dims_.sequence * dims_.headDim * dtypeSize(DType::f32));
  return activation(Kernel::rope,
                    {constant(heads), constant(dims_.headDim),
                     constant(dims_.sequence), constant(inverse ? 1 : 0)},
                    {}, {x, table}, heads * dims_.headDim);
}

// --- Derivatives ------------------------------------------------------------

TermId Llama::gradInput(TermId dy, const std::string &name) {
  if (inFp8(name))
    return gradInputFp8(dy, name);
  auto [n, k] = localShape(name);
  return activation(Kernel::linear_grad_input, {constant(n), constant(k)}, {},
                    {dy, weight(name)}, k);
}

/// Adds to a gradient in the order of the micro-batches; the first overwrites.
void Llama::accumulate(const std::string &name, Kernel kernel,
                       std::vector<FnId> args, std::vector<double> floats,
                       std::vector<TermId> inputs) {
  auto known = gradients_.find(name);
  bool first = known == gradients_.end();
  args.push_back(constant(first ? 0 : 1));
  if (!first)
    inputs.push_back(known->second);
  gradients_[name] =
      f32(kernel, std::move(args), std::move(floats), std::move(inputs),
          localElements(parameters_.at(name)));
}

void Llama::gradWeight(TermId dy, TermId x, const std::string &name) {
  if (inFp8(name))
    return gradWeightFp8(dy, x, name);
  auto [n, k] = localShape(name);
  accumulate(name, Kernel::linear_grad_weight, {constant(n), constant(k)}, {},
             {dy, x});
}

/// Both derivatives of a norm; gives that of its input.
TermId Llama::gradNorm(TermId dy, TermId x, const std::string &name) {
  accumulate(name, Kernel::rms_norm_grad_weight, {constant(dims_.hidden)},
             {intent_.rmsNormEps}, {dy, x});
  return perRow(Kernel::rms_norm_grad_input, {constant(dims_.hidden)},
                {intent_.rmsNormEps}, {dy, x, weight(name)});
}

// --- Layers -----------------------------------------------------------------

/// What the backward of a decoder layer reads.
struct Llama::Saved {
  TermId x, n1, q, k, v, o, lse, x1, n2, gate, up, act, y;
};

static std::string prefixOf(int64_t layer) {
  return "model.layers." + std::to_string(layer) + ".";
}

Llama::Saved Llama::forward(TermId x, int64_t layer) {
  std::string prefix = prefixOf(layer);
  int64_t heads = dims_.heads / tp_, kvHeads = dims_.kvHeads / tp_;
  int64_t sequences = tokens_ / dims_.sequence;
  Saved s;
  s.x = x;
  s.n1 = rmsNorm(x, prefix + "input_layernorm.weight");
  TermId n1 = allRows(s.n1);
  s.q = rope(linear(n1, prefix + "self_attn.q_proj.weight"), heads, false);
  s.k = rope(linear(n1, prefix + "self_attn.k_proj.weight"), kvHeads, false);
  s.v = linear(n1, prefix + "self_attn.v_proj.weight");
  std::vector<FnId> sizes{constant(heads), constant(kvHeads),
                          constant(dims_.headDim), constant(dims_.sequence)};
  s.o = activation(Kernel::attention, sizes, {}, {s.q, s.k, s.v},
                   heads * dims_.headDim);
  s.lse = f32(Kernel::attention, sizes, {}, {s.q, s.k, s.v},
              sequences * heads * dims_.sequence, 1);
  s.x1 = add(x, toRows(linear(s.o, prefix + "self_attn.o_proj.weight")));
  s.n2 = rmsNorm(s.x1, prefix + "post_attention_layernorm.weight");
  TermId n2 = allRows(s.n2);
  s.gate = linear(n2, prefix + "mlp.gate_proj.weight");
  s.up = linear(n2, prefix + "mlp.up_proj.weight");
  s.act = activation(Kernel::swiglu, {constant(dims_.ffn / tp_)}, {},
                     {s.gate, s.up}, dims_.ffn / tp_);
  s.y = add(s.x1, toRows(linear(s.act, prefix + "mlp.down_proj.weight")));
  return s;
}

TermId Llama::backward(TermId dy, const Saved &s, int64_t layer) {
  std::string prefix = prefixOf(layer);
  auto name = [&](const char *last) { return prefix + last + ".weight"; };
  int64_t heads = dims_.heads / tp_, kvHeads = dims_.kvHeads / tp_;
  int64_t ffn = dims_.ffn / tp_;

  TermId dY = allRows(dy), n1 = allRows(s.n1), n2 = allRows(s.n2);
  gradWeight(dY, s.act, name("mlp.down_proj"));
  TermId dAct = gradInput(dY, name("mlp.down_proj"));
  auto swiglu = [&](unsigned output) {
    return activation(Kernel::swiglu_grad, {constant(ffn)}, {},
                      {dAct, s.gate, s.up}, ffn, output);
  };
  TermId dGate = swiglu(0), dUp = swiglu(1);
  gradWeight(dUp, n2, name("mlp.up_proj"));
  gradWeight(dGate, n2, name("mlp.gate_proj"));
  TermId dN2 = toRows(add(gradInput(dUp, name("mlp.up_proj")),
                          gradInput(dGate, name("mlp.gate_proj"))));
  TermId dX1 = add(dy, gradNorm(dN2, s.x1, name("post_attention_layernorm")));

  TermId dAttended = allRows(dX1);
  gradWeight(dAttended, s.o, name("self_attn.o_proj"));
  TermId dO = gradInput(dAttended, name("self_attn.o_proj"));
  auto attention = [&](unsigned output, int64_t localHeads) {
    return activation(Kernel::attention_grad,
                      {constant(heads), constant(kvHeads),
                       constant(dims_.headDim), constant(dims_.sequence)},
                      {}, {dO, s.q, s.k, s.v, s.o, s.lse},
                      localHeads * dims_.headDim, output);
  };
  TermId dQ = rope(attention(0, heads), heads, true);
  TermId dK = rope(attention(1, kvHeads), kvHeads, true);
  TermId dV = attention(2, kvHeads);
  gradWeight(dV, n1, name("self_attn.v_proj"));
  gradWeight(dK, n1, name("self_attn.k_proj"));
  gradWeight(dQ, n1, name("self_attn.q_proj"));
  TermId dN1 = toRows(add(add(gradInput(dV, name("self_attn.v_proj")),
                              gradInput(dK, name("self_attn.k_proj"))),
                          gradInput(dQ, name("self_attn.q_proj"))));
  return add(dX1, gradNorm(dN1, s.x, name("input_layernorm")));
}

/// Final norm, projection, loss and their derivatives; gives that of x.
TermId Llama::head(TermId x, int64_t microBatch) {
  int64_t width = dims_.vocab / tp_;
  TermId targets = terms_.symbol(symbols::kTargets, microBatch, DType::i32,
                                 tokens_ * dtypeSize(DType::i32));
  TermId n = allRows(rmsNorm(x, "model.norm.weight"));
  TermId logits = linear(n, "lm_head.weight");
  std::vector<FnId> columns{constant(width), constant(width)};
  TermId max =
      overTp(f32(Kernel::cross_entropy_max, columns, {}, {logits}, tokens_),
             Reduction::max);
  columns.push_back(vocabOffset());
  TermId sums = overTp(f32(Kernel::cross_entropy_sum, columns, {},
                           {logits, targets, max}, 2 * tokens_));
  std::vector<FnId> owner{ownerOn(kTp)};
  TermId loss[] = {sums, max, metrics_};
  TermId lse = f32(Kernel::cross_entropy_loss, owner, {}, {sums, max, metrics_},
                   tokens_);
  metrics_ = terms_.kernel(Kernel::cross_entropy_loss, owner, {}, loss, 1,
                           DType::f64, spread_.metricsBytes);
  TermId dLogits = activation(Kernel::cross_entropy_grad, columns, {scale_},
                              {logits, targets, lse}, width);
  gradWeight(dLogits, n, "lm_head.weight");
  return gradNorm(toRows(gradInput(dLogits, "lm_head.weight")), x,
                  "model.norm.weight");
}

Llama::Results Llama::microBatch(int64_t number, TermId input,
                                 TermId gradient) {
  TermId tokens = kNoTerm, x = input;
  std::vector<FnId> lookup{constant(dims_.vocab / tp_), constant(dims_.hidden),
                           vocabOffset()};
  const char *table = "model.embed_tokens.weight";
  if (share_.embedding) {
    tokens = terms_.symbol(symbols::kTokens, number, DType::i32,
                           tokens_ * dtypeSize(DType::i32));
    x = toRows(activation(Kernel::embedding, lookup, {},
                          {tokens, weight(table)}, dims_.hidden));
  }
  std::vector<Saved> saved;
  for (int64_t layer = share_.firstLayer; layer < share_.lastLayer; ++layer) {
    saved.push_back(forward(x, layer));
    x = saved.back().y;
  }
  Results results;
  results.activations = x;
  TermId dy = share_.head ? head(x, number) : gradient;
  for (int64_t layer = share_.lastLayer; layer-- > share_.firstLayer;) {
    dy = backward(dy, saved.back(), layer);
    saved.pop_back();
  }
  if (share_.embedding)
    accumulate(table, Kernel::embedding_grad, lookup, {},
               {allRows(dy), tokens});
  else
    results.gradient = dy;
  return results;
}
