//===- CudnnGraph.cpp - one direction of attention as a graph of cuDNN ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// cuDNN takes operands as [batch, heads, tokens, size] with any strides, so
// that ours, which are token-major, need no transposition. Its "stats" are the
// natural log-sum-exp of the scaled scores, which is our lse.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/plugin/CudnnGraph.h"

// The frontend's serialisation of graphs, which we do not use, would need
// nlohmann's header in a version of its own.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#define NV_CUDNN_DISABLE_EXCEPTION
#include <cudnn_frontend.h>

#include <cmath>
#include <unordered_map>

namespace reckon::cuda {

namespace fe = cudnn_frontend;

namespace {

/// Numbers of the operands in a graph.
enum Uid : int64_t { Q = 1, K, V, O, Lse, DO, DQ, DK, DV };

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

Status checkedFe(fe::error_object error, const std::string &what) {
  if (error.is_good())
    return Status::success();
  return makeError(ExitCode::Incompatible,
                   "expected cuDNN to " + what + ", got \"" +
                       error.get_message() +
                       "\"; set RECKON_CUDNN_ATTENTION=0 to use Reckon's own "
                       "kernel, which is slower");
}

} // namespace

struct CudnnGraph::State {
  Direction direction;
  AttentionShape shape;
  AttentionSlice slice;
  fe::graph::Graph graph;

  std::string what() const {
    return std::string(direction == Direction::Forward ? "compute"
                                                       : "differentiate") +
           " bf16 attention of " + std::to_string(slice.batch) +
           " sequences of " + std::to_string(shape.s) + " tokens with " +
           std::to_string(slice.hkv * group()) + " query and " +
           std::to_string(slice.hkv) + " key heads of " +
           std::to_string(shape.d);
  }
  int64_t group() const { return shape.hq / shape.hkv; }

  /// `heads` of the call, of which the slice has `sliceHeads`.
  fe::graph::Tensor_attributes tokens(Uid uid, int64_t heads,
                                      int64_t sliceHeads) const {
    return fe::graph::Tensor_attributes()
        .set_uid(uid)
        .set_dim({slice.batch, sliceHeads, shape.s, shape.d})
        .set_stride({shape.s * heads * shape.d, shape.d, heads * shape.d, 1})
        .set_data_type(fe::DataType_t::BFLOAT16);
  }
  fe::graph::Tensor_attributes queries(Uid uid) const {
    return tokens(uid, shape.hq, slice.hkv * group());
  }
  fe::graph::Tensor_attributes keys(Uid uid) const {
    return tokens(uid, shape.hkv, slice.hkv);
  }
  fe::graph::Tensor_attributes statistics(Uid uid) const {
    return fe::graph::Tensor_attributes()
        .set_uid(uid)
        .set_dim({slice.batch, slice.hkv * group(), shape.s, 1})
        .set_stride({shape.hq * shape.s, shape.s, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
  }
  static void output(const Tensor &tensor,
                     const fe::graph::Tensor_attributes &like) {
    tensor->set_output(true)
        .set_uid(like.get_uid())
        .set_dim(like.get_dim())
        .set_stride(like.get_stride())
        .set_data_type(like.get_data_type());
  }

  void describe();
  Status run(cudnnHandle_t handle, std::unordered_map<int64_t, void *> pointers,
             void *workspace) const {
    return checkedFe(graph.execute(handle, pointers, workspace), what());
  }
};

void CudnnGraph::State::describe() {
  graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const auto scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.d)));
  Tensor q = graph.tensor(queries(Q)), k = graph.tensor(keys(K)),
         v = graph.tensor(keys(V));
  // Token i sees tokens 0 to i: no diagonal right of the main one.
  if (direction == Direction::Forward) {
    auto [o, lse] = graph.sdpa(
        q, k, v,
        fe::graph::SDPA_attributes()
            .set_name("attention")
            .set_generate_stats(true)
            .set_attn_scale(scale)
            .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
            .set_diagonal_band_right_bound(0));
    output(o, queries(O));
    output(lse, statistics(Lse));
    return;
  }
  auto [dq, dk, dv] = graph.sdpa_backward(
      q, k, v, graph.tensor(queries(O)), graph.tensor(queries(DO)),
      graph.tensor(statistics(Lse)),
      fe::graph::SDPA_backward_attributes()
          .set_name("attention_grad")
          .set_deterministic_algorithm(true)
          .set_attn_scale(scale)
          .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
          .set_diagonal_band_right_bound(0));
  output(dq, queries(DQ));
  output(dk, keys(DK));
  output(dv, keys(DV));
}

CudnnGraph::CudnnGraph(Direction direction, const AttentionShape &shape,
                       const AttentionSlice &slice)
    : state_(new State{direction, shape, slice, {}}) {}
CudnnGraph::~CudnnGraph() = default;

Status CudnnGraph::choose(cudnnContext *handle, const std::string &properties,
                          int capability) {
  State &s = *state_;
  s.describe();
  if (!handle) {
    auto chip = std::make_shared<fe::DeviceProperties>();
    RECKON_TRY(checkedFe(chip->deserialize(std::vector<uint8_t>(
                             properties.begin(), properties.end())),
                         "read a chip's properties"));
    s.graph.set_device_properties(chip).set_sm_version(capability);
  }
  RECKON_TRY(checkedFe(s.graph.validate(), s.what()));
  RECKON_TRY(checkedFe(s.graph.build_operation_graph(handle), s.what()));
  RECKON_TRY(
      checkedFe(s.graph.create_execution_plans({fe::HeurMode_t::A}), s.what()));
  return checkedFe(s.graph.check_support(), s.what());
}

Status CudnnGraph::build() {
  return checkedFe(state_->graph.build_plans(), state_->what());
}

int64_t CudnnGraph::workspaceBytes() const {
  return state_->graph.get_workspace_size();
}

Status CudnnGraph::forward(cudnnContext *handle,
                           const AttentionForward &operands, void *workspace) {
  return state_->run(handle,
                     {{Q, const_cast<void *>(operands.q)},
                      {K, const_cast<void *>(operands.k)},
                      {V, const_cast<void *>(operands.v)},
                      {O, operands.o},
                      {Lse, operands.lse}},
                     workspace);
}

Status CudnnGraph::backward(cudnnContext *handle,
                            const AttentionBackward &operands,
                            void *workspace) {
  return state_->run(handle,
                     {{Q, const_cast<void *>(operands.q)},
                      {K, const_cast<void *>(operands.k)},
                      {V, const_cast<void *>(operands.v)},
                      {O, const_cast<void *>(operands.o)},
                      {DO, const_cast<void *>(operands.dO)},
                      {Lse, const_cast<float *>(operands.lse)},
                      {DQ, operands.dq},
                      {DK, operands.dk},
                      {DV, operands.dv}},
                     workspace);
}

} // namespace reckon::cuda
