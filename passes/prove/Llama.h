//===- Llama.h - what a stage of a Llama must compute ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// An independent statement of the mathematics, in the terms of Terms.h: the
// forward chain, its derivative by the chain rule, the sums over
// tensor-parallel partial results, the optimizer. It knows shapes and degrees,
// nothing of buffers, fragments, schedules or passes.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_LLAMA_H
#define RECKON_PASSES_PROVE_LLAMA_H

#include "passes/model/ParameterTable.h"
#include "passes/prove/Intent.h"
#include "passes/prove/Terms.h"

#include <map>
#include <string>
#include <vector>

namespace reckon::prove {

/// Which part of the model a stage has.
struct StageShare {
  bool embedding = false, head = false;
  int64_t firstLayer = 0, lastLayer = 0; ///< [first, last)
  /// Their parameters, in program order.
  std::vector<model::Parameter> parameters;
};

/// How a plan spreads the work where the mathematics leaves it open.
struct Spread {
  int64_t microBatchTokens = 0;  ///< rows of a micro-batch of one replica
  bool zero = false;             ///< optimizer states are flat shards over dp
  bool sequenceParallel = false; ///< activations between matrices hold a tensor
                                 ///< rank's part of the rows
  bool jointNorms = false; ///< then: the gradients of norms are summed over
                           ///< tensor ranks and replicas at once
  int64_t metricsBytes = 0, scalarsBytes = 0;
};

/// The terms of a state after the step, or of the values in between.
class Llama {
public:
  Llama(TermTable &terms, const Intent &intent, const StageShare &share,
        const Spread &spread);

  /// Values of one micro-batch that leave the stage, or end in it.
  struct Results {
    TermId activations = kNoTerm; ///< to the next stage; unless head
    TermId gradient = kNoTerm;    ///< to the previous stage; unless embedding
  };

  /// Adds a micro-batch: `input` is the activations that arrive (or kNoTerm
  /// with the embedding), `gradient` what arrives from the next stage (or
  /// kNoTerm with the head).
  Results microBatch(int64_t number, TermId input, TermId gradient);

  /// All micro-batches are added: the metrics after the step, and by state
  /// name what optimizer and parameters become.
  TermId metricsAfter() const { return metrics_; }
  std::map<std::string, TermId> update();

  /// A parameter's accumulated gradient of this rank, before any reduction
  /// over replicas.
  TermId accumulated(const std::string &parameter) const {
    return gradients_.at(parameter);
  }
  double scale() const { return scale_; }

private:
  struct Saved;
  /// A matrix in fp8: codes, their transpose, one scale.
  struct Codes {
    TermId codes, transposed, scale;
  };
  TermId weight(const std::string &name) const;
  int64_t localElements(const model::Parameter &parameter) const;
  FnId constant(int64_t value) { return terms_.functions().constant(value); }
  FnId vocabOffset();
  FnId ownerOn(unsigned axes);

  TermId activation(plan::Kernel kernel, std::vector<FnId> args,
                    std::vector<double> floats, std::vector<TermId> inputs,
                    int64_t width, unsigned output = 0);
  TermId perRow(plan::Kernel kernel, std::vector<FnId> args,
                std::vector<double> floats, std::vector<TermId> inputs,
                unsigned output = 0);
  TermId f32(plan::Kernel kernel, std::vector<FnId> args,
             std::vector<double> floats, std::vector<TermId> inputs,
             int64_t elements, unsigned output = 0);
  TermId overTp(TermId partial,
                plan::Reduction reduction = plan::Reduction::sum);
  TermId toRows(TermId partial);
  TermId allRows(TermId rows);
  TermId rmsNorm(TermId x, const std::string &name);
  TermId linear(TermId x, const std::string &name);
  TermId add(TermId a, TermId b);
  TermId rope(TermId x, int64_t heads, bool inverse);
  TermId gradInput(TermId dy, const std::string &name);
  void gradWeight(TermId dy, TermId x, const std::string &name);
  TermId gradNorm(TermId dy, TermId x, const std::string &name);
  /// Rows and columns of this rank's part of a matrix.
  std::pair<int64_t, int64_t> localShape(const std::string &name) const;

  // Linears in fp8 (LlamaFp8.cpp).
  bool inFp8(const std::string &name) const;
  Codes quantize(TermId x, int64_t rows, int64_t columns, bool split,
                 bool gradient);
  Codes quantizeWeight(const std::string &name);
  Codes quantizeInput(TermId x, const std::string &name);
  Codes quantizeGradient(TermId dy, const std::string &name);
  TermId linearFp8(TermId x, const std::string &name);
  TermId gradInputFp8(TermId dy, const std::string &name);
  void gradWeightFp8(TermId dy, TermId x, const std::string &name);

  void accumulate(const std::string &name, plan::Kernel kernel,
                  std::vector<FnId> args, std::vector<double> floats,
                  std::vector<TermId> inputs);
  Saved forward(TermId x, int64_t layer);
  TermId backward(TermId dy, const Saved &saved, int64_t layer);
  TermId head(TermId x, int64_t microBatch);

  TermTable &terms_;
  const Intent &intent_;
  const StageShare &share_;
  const model::ModelDims &dims_;
  const Spread &spread_;
  int64_t tokens_, tp_;
  int64_t rows_; ///< of activations between matrices
  plan::DType dtype_;
  double scale_;
  TermId metrics_;
  std::map<std::string, model::Parameter> parameters_;
  std::map<std::string, TermId> weights_;
  std::map<std::string, TermId> gradients_;
};

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_LLAMA_H
