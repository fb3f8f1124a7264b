//===- CudnnAttention.cpp - bf16 attention by cuDNN -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A gradient with equal bits on every run costs cuDNN scratch of 2 bytes for
// every pair of tokens in every head: 2 GiB for 32 heads of a sequence of 5793
// tokens. So a call is divided into slices, one after the other in the same
// scratch: by sequences, then by key heads with the query heads that share
// them. One group of heads of a few thousand tokens still fills a chip.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/plugin/CudnnAttention.h"
#include "runtime/cuda/plugin/CudnnGraph.h"
#include "runtime/cuda/plugin/Slices.h"

#include <cudnn.h>

#include <map>
#include <tuple>

namespace reckon::cuda {

namespace {

using device::DType;

Status checkedDnn(cudnnStatus_t status, const std::string &what) {
  if (status == CUDNN_STATUS_SUCCESS)
    return Status::success();
  return makeError(ExitCode::Environment,
                   "expected cuDNN to " + what + ", got " +
                       cudnnGetErrorString(status) +
                       "; see `reckon doctor`, or set "
                       "RECKON_CUDNN_ATTENTION=0 to use Reckon's own kernel");
}

/// The element `elements` of 2 bytes further.
template <typename T> T *further(T *bf16, int64_t elements) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Byte *>(bf16) + 2 * elements;
}

/// A direction of calls of one shape; all calls of that shape share it.
class Forward {
public:
  using Operands = AttentionForward;
  Status open(cudnnHandle_t handle, const AttentionShape &shape);
  int64_t workspaceBytes() const { return graph_->workspaceBytes(); }
  Status run(cudnnHandle_t handle, const AttentionForward &operands,
             void *workspace) {
    return graph_->forward(handle, operands, workspace);
  }

private:
  std::unique_ptr<CudnnGraph> graph_;
};

class Backward {
public:
  using Operands = AttentionBackward;
  Status open(cudnnHandle_t handle, const AttentionShape &shape);
  int64_t workspaceBytes() const { return graph_->workspaceBytes(); }
  Status run(cudnnHandle_t handle, const AttentionBackward &operands,
             void *workspace);

private:
  AttentionShape shape_;
  AttentionSlice slice_;
  std::unique_ptr<CudnnGraph> graph_;
};

Result<std::unique_ptr<CudnnGraph>> makeGraph(cudnnHandle_t handle,
                                              CudnnGraph::Direction direction,
                                              const AttentionShape &shape,
                                              const AttentionSlice &slice) {
  auto graph = std::make_unique<CudnnGraph>(direction, shape, slice);
  RECKON_TRY(graph->choose(handle));
  RECKON_TRY(graph->build());
  return graph;
}

Status Forward::open(cudnnHandle_t handle, const AttentionShape &shape) {
  auto graph = makeGraph(handle, CudnnGraph::Direction::Forward, shape,
                         {shape.batch, shape.hkv});
  if (!graph)
    return graph.error();
  graph_ = std::move(*graph);
  return Status::success();
}

Status Backward::open(cudnnHandle_t handle, const AttentionShape &shape) {
  shape_ = shape;
  AttentionSlice next{shape.batch, shape.hkv};
  // How much scratch a slice takes, only its graph knows.
  do {
    slice_ = next;
    auto graph =
        makeGraph(handle, CudnnGraph::Direction::Backward, shape, slice_);
    if (!graph)
      return graph.error();
    graph_ = std::move(*graph);
    next = smallerSlice(shape, slice_, graph_->workspaceBytes(),
                        attentionWorkspaceBytes);
  } while (next != slice_);
  return Status::success();
}

Status Backward::run(cudnnHandle_t handle, const AttentionBackward &operands,
                     void *workspace) {
  const AttentionShape &s = shape_;
  const int64_t group = s.hq / s.hkv;
  for (int64_t b = 0; b < s.batch; b += slice_.batch)
    for (int64_t h = 0; h < s.hkv; h += slice_.hkv) {
      const int64_t query = (b * s.s * s.hq + h * group) * s.d;
      const int64_t key = (b * s.s * s.hkv + h) * s.d;
      AttentionBackward part;
      part.dO = further(operands.dO, query);
      part.q = further(operands.q, query);
      part.k = further(operands.k, key);
      part.v = further(operands.v, key);
      part.o = further(operands.o, query);
      part.lse = operands.lse + (b * s.hq + h * group) * s.s;
      part.dq = further(operands.dq, query);
      part.dk = further(operands.dk, key);
      part.dv = further(operands.dv, key);
      RECKON_TRY(graph_->backward(handle, part, workspace));
    }
  return Status::success();
}

class CudnnAttention final : public Attention {
public:
  explicit CudnnAttention(Workspace &workspace) : workspace_(workspace) {}
  ~CudnnAttention() override {
    forward_.clear();
    backward_.clear();
    if (handle_)
      (void)cudnnDestroy(handle_);
  }
  Status open() { return checkedDnn(cudnnCreate(&handle_), "start"); }

  AttentionResult<AttentionForward> prepareForward(const AttentionShape &shape,
                                                   int planStream) override {
    if (!takes(shape))
      return own_.prepareForward(shape, planStream);
    return prepare(forward_, shape, planStream);
  }
  AttentionResult<AttentionBackward>
  prepareBackward(const AttentionShape &shape, int planStream) override {
    if (!takes(shape))
      return own_.prepareBackward(shape, planStream);
    return prepare(backward_, shape, planStream);
  }

private:
  template <typename Direction>
  class Prepared final
      : public PreparedAttention<typename Direction::Operands> {
  public:
    Prepared(CudnnAttention &owner, Direction &direction, int planStream)
        : owner_(owner), direction_(direction), planStream_(planStream) {}
    Status run(const typename Direction::Operands &operands,
               cudaStream_t stream) override {
      RECKON_TRY(
          checkedDnn(cudnnSetStream(owner_.handle_, stream), "use a stream"));
      return direction_.run(owner_.handle_, operands,
                            owner_.workspace_.data(planStream_));
    }

  private:
    CudnnAttention &owner_;
    Direction &direction_;
    int planStream_;
  };

  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>;
  template <typename Direction>
  using Shapes = std::map<Key, std::unique_ptr<Direction>>;

  template <typename Direction>
  AttentionResult<typename Direction::Operands>
  prepare(Shapes<Direction> &shapes, const AttentionShape &shape,
          int planStream) {
    std::unique_ptr<Direction> &direction =
        shapes[{shape.batch, shape.hq, shape.hkv, shape.d, shape.s}];
    if (!direction) {
      auto made = std::make_unique<Direction>();
      RECKON_TRY(made->open(handle_, shape));
      direction = std::move(made);
    }
    RECKON_TRY(workspace_.reserve(planStream, direction->workspaceBytes()));
    return std::unique_ptr<PreparedAttention<typename Direction::Operands>>(
        std::make_unique<Prepared<Direction>>(*this, *direction, planStream));
  }

  /// cuDNN's limits; beyond them our own kernel does it.
  static bool takes(const AttentionShape &shape) {
    return shape.dtype == DType::BF16 && shape.d % 8 == 0 && shape.d <= 256 &&
           shape.s >= 2 && shape.batch > 0;
  }

  Workspace &workspace_;
  OwnAttention own_;
  cudnnHandle_t handle_ = nullptr;
  Shapes<Forward> forward_;
  Shapes<Backward> backward_;
};

} // namespace

Result<std::unique_ptr<Attention>> makeCudnnAttention(Workspace &workspace) {
  auto made = std::make_unique<CudnnAttention>(workspace);
  RECKON_TRY(made->open());
  return std::unique_ptr<Attention>(std::move(made));
}

} // namespace reckon::cuda
