//===- Runtime.h - streams, events and graphs of the emulated device ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_EMULATED_RUNTIME_H
#define RECKON_RUNTIME_CUDA_EMULATED_RUNTIME_H

#include "runtime/cuda/emulated/Blocks.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon::cuda::emulated {

struct Capture;
struct GraphRun;

/// What an operation does when it is reached.
struct Work {
  std::shared_ptr<const KernelLaunch> kernel; ///< a kernel, or
  std::function<void()> act;                  ///< host code, or
  ExternalFactory external;                   ///< something outside
};

/// A node of a graph: work, or nothing (a joint), behind other nodes.
struct Node {
  Work work;
  std::vector<size_t> after;
  const Stream *stream = nullptr; ///< that it was captured from
};

struct Graph {
  std::vector<Node> nodes;
};
struct GraphExec {
  std::shared_ptr<const Graph> graph;
};

/// An event has a ticket for each record that was issued.
struct Event {
  uint64_t issued = 0;
  uint64_t completed = 0;
  int64_t timeNs = 0; ///< of the newest completed record
  bool timed = true;
  Capture *capture = nullptr; ///< of its newest record, if that was captured
  std::vector<size_t> nodes;  ///< the nodes that it then stands for
};

/// An entry of a stream's queue.
struct Entry {
  enum class Kind { Run, Record, Wait, Graph } kind = Kind::Run;
  Work work;
  std::unique_ptr<ExternalOperation> external;
  Event *event = nullptr;
  uint64_t ticket = 0;
  std::unique_ptr<GraphRun> graph;
};

/// One launch of a graph under way.
struct GraphRun {
  std::shared_ptr<const Graph> graph;
  std::vector<std::unique_ptr<ExternalOperation>> externals; ///< by node
  std::vector<uint32_t> waiting; ///< unfinished nodes before each
  std::vector<std::vector<size_t>> before;
  std::vector<size_t> ready;
  size_t left = 0;
};

struct Stream {
  std::deque<Entry> queue;
  uint64_t priority = 0; ///< with a seed: the highest that can go on does
  bool frozen = false;   ///< with a seed: goes on only when no other can
  Capture *capture = nullptr;
  std::vector<size_t> tail; ///< capturing: nodes that the next one is behind
};

/// A capture under way.
struct Capture {
  Stream *origin = nullptr;
  std::vector<Stream *> streams;
  Graph graph;
  bool invalid = false;
};

/// The device of one host thread.
class Runtime {
public:
  static Runtime &get();

  /// Puts work on a stream, or into its capture.
  cudaError_t issue(Stream *stream, Work work);
  cudaError_t record(Event *event, Stream *stream);
  cudaError_t wait(Event *event, Stream *stream);

  cudaError_t beginCapture(Stream *stream);
  cudaError_t endCapture(Stream *stream, Graph **graph);
  cudaError_t launchGraph(const GraphExec &exec, Stream *stream);

  /// Does at most one thing that can be done now; whether anything moved.
  bool turn();
  /// Takes turns until `done`, or until nothing will ever move again.
  cudaError_t until(const std::function<bool()> &done);

  cudaError_t fail(cudaError_t error, std::string text);
  cudaError_t error() const { return error_; }
  const std::string &errorText() const { return errorText_; }

  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Event>> events;
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<std::unique_ptr<GraphExec>> execs;
  std::map<uintptr_t, size_t> memory; ///< device allocations by address
  size_t memoryUsed = 0;
  size_t memoryLimit = 0;
  size_t sharedLimit = 0; ///< of a block; 0: an H100's
  std::map<int, Progress> progress;
  int nextProgress = 1;
  std::optional<uint64_t> seed;
  uint64_t kernels = 0;

  void seedAgain() {
    seeded_ = false;
    order_.clear();
  }
  void drop(Stream *stream);
  bool owns(const Stream *stream) const;
  bool owns(const Event *event) const;
  void reset();

private:
  enum class Step { Blocked, Moved };

  Step stepStream(Stream &stream);
  Step stepGraph(GraphRun &run);
  Step perform(const Work &work, std::unique_ptr<ExternalOperation> &external,
               bool &done);
  void run(const KernelLaunch &kernel);
  uint64_t random();
  void drawOrder();
  bool mayStep(const Stream &stream) const { return thaw_ || !stream.frozen; }

  std::vector<std::unique_ptr<Capture>> captures_;
  cudaError_t error_ = cudaSuccess;
  std::string errorText_;
  size_t next_ = 0;
  std::vector<Stream *> order_;
  bool thaw_ = false;
  int64_t movedNs_ = 0;
  uint64_t state_ = 0;
  bool seeded_ = false;
};

} // namespace reckon::cuda::emulated

#endif // RECKON_RUNTIME_CUDA_EMULATED_RUNTIME_H
