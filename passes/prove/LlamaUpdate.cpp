//===- LlamaUpdate.cpp - reduction, clipping and AdamW, as terms ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Execute.h"
#include "passes/prove/Llama.h"

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

/// Gradients are summed over the replicas, each element of which enters the
/// norm once in the world; AdamW works on whole parameters, or with ZeRO on
/// this replica's flat block, which a gather puts together again.
std::map<std::string, TermId> Llama::update() {
  CoordFunctions &functions = terms_.functions();
  const unsigned kDp = 1u << static_cast<unsigned>(Axis::dp);
  const unsigned kTp = 1u << static_cast<unsigned>(Axis::tp);
  int64_t dp = functions.mesh().dp;

  struct Work {
    const model::Parameter *parameter;
    TermId gradient;
    int64_t elements, padded; ///< padded: of the whole; 0 without ZeRO
  };
  std::vector<Work> works;
  auto padding = [&](TermId whole, int64_t elements) {
    int64_t missing =
        elements - terms_[whole].bytes / dtypeSize(terms_[whole].dtype);
    if (missing == 0)
      return whole;
    DType dtype = terms_[whole].dtype;
    TermId parts[] = {whole, terms_.symbol(symbols::kPadding, -1, dtype,
                                           missing * dtypeSize(dtype))};
    return terms_.concat(parts);
  };
  for (const model::Parameter &parameter : share_.parameters) {
    Work work{&parameter, gradients_.at(parameter.name),
              localElements(parameter), 0};
    // A norm's gradient sums over rows, of which each tensor rank saw a part.
    bool rowSum = spread_.sequenceParallel && !parameter.tpDim;
    bool joint = rowSum && spread_.jointNorms;
    if (rowSum && !joint)
      work.gradient = overTp(work.gradient);
    if (spread_.zero) {
      int64_t block = (work.elements + dp - 1) / dp;
      work.padded = block * dp;
      work.elements = block;
      work.gradient = padding(work.gradient, work.padded);
    }
    if (dp > 1)
      work.gradient = terms_.collective(Opcode::all_reduce, Reduction::sum,
                                        joint ? kTp | kDp : kDp, work.gradient,
                                        terms_[work.gradient].bytes);
    if (spread_.zero) {
      int64_t bytes = work.elements * dtypeSize(DType::f32);
      work.gradient =
          terms_.slice(work.gradient, functions.block(kDp, bytes), bytes);
    }
    // Equal on all replicas without ZeRO; on all tensor ranks when not split.
    unsigned equal = (spread_.zero ? 0 : kDp) | (parameter.tpDim ? 0 : kTp);
    FnId owner = ownerOn(functions.realAxes(equal));
    TermId inputs[] = {work.gradient, metrics_};
    metrics_ = terms_.kernel(Kernel::sum_squares, std::span(&owner, 1), {},
                             inputs, 0, DType::f64, spread_.metricsBytes);
    works.push_back(work);
  }

  unsigned world = functions.realAxes((1u << kNumAxes) - 1);
  if (world)
    metrics_ = terms_.collective(Opcode::all_reduce, Reduction::sum, world,
                                 metrics_, spread_.metricsBytes);
  TermId summed[] = {metrics_};
  metrics_ =
      terms_.kernel(Kernel::clip_factor, {}, std::span(&intent_.clipGrad, 1),
                    summed, 0, DType::f64, spread_.metricsBytes);

  std::map<std::string, TermId> after;
  TermId scalars = terms_.symbol(symbols::state("scalars"), -1, DType::f64,
                                 spread_.scalarsBytes);
  for (const Work &work : works) {
    const std::string &name = work.parameter->name;
    int64_t bytes = work.elements * dtypeSize(DType::f32);
    auto shard = [&](const char *suffix) {
      return terms_.symbol(symbols::state(name + suffix), -1, DType::f32,
                           bytes);
    };
    // This replica's block of a padded whole.
    auto block = [&](TermId whole) {
      if (!spread_.zero)
        return whole;
      int64_t size = work.elements * dtypeSize(terms_[whole].dtype);
      return terms_.slice(padding(whole, work.padded),
                          functions.block(kDp, size), size);
    };
    TermId main = intent_.bf16 ? shard("#main_weight") : block(weight(name));
    TermId inputs[] = {work.gradient, metrics_,           scalars,
                       main,          shard("#momentum"), shard("#variance")};
    double floats[] = {intent_.beta1, intent_.beta2, intent_.eps,
                       work.parameter->decay ? intent_.weightDecay : 0.0};
    auto result = [&](unsigned output, DType dtype) {
      return terms_.kernel(Kernel::adamw, {}, floats, inputs, output, dtype,
                           work.elements * dtypeSize(dtype));
    };
    TermId fresh =
        intent_.bf16 ? result(3, DType::bf16) : result(0, DType::f32);
    if (intent_.bf16)
      after[name + "#main_weight"] = result(0, DType::f32);
    after[name + "#momentum"] = result(1, DType::f32);
    after[name + "#variance"] = result(2, DType::f32);
    if (spread_.zero && dp > 1)
      fresh = terms_.collective(Opcode::all_gather, Reduction::sum, kDp, fresh,
                                work.padded * dtypeSize(dtype_));
    after[name] = fresh;
  }
  return after;
}
