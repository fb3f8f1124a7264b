//===- Runtime.cpp - streams and their progress ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/emulated/Runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace reckon::cuda::emulated {

namespace {

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

Runtime &Runtime::get() {
  thread_local Runtime runtime;
  return runtime;
}

bool Runtime::owns(const Stream *stream) const {
  return std::any_of(streams.begin(), streams.end(),
                     [&](const auto &own) { return own.get() == stream; });
}

bool Runtime::owns(const Event *event) const {
  return std::any_of(events.begin(), events.end(),
                     [&](const auto &own) { return own.get() == event; });
}

void Runtime::reset() {
  order_.clear();
  for (const auto &[address, bytes] : memory)
    std::free(reinterpret_cast<void *>(address));
  memory.clear();
  memoryUsed = 0;
  streams.clear();
  events.clear();
  graphs.clear();
  execs.clear();
  captures_.clear();
  progress.clear();
  error_ = cudaSuccess;
  errorText_.clear();
}

void Runtime::drop(Stream *stream) {
  order_.clear();
  std::erase_if(streams, [&](const auto &own) { return own.get() == stream; });
}

cudaError_t Runtime::fail(cudaError_t error, std::string text) {
  // What a kernel did wrong stays; a refused call harms nothing.
  if (error == cudaErrorLaunchFailure && error_ == cudaSuccess) {
    error_ = error;
    errorText_ = std::move(text);
  }
  return error;
}

/// splitmix64 over the seed.
uint64_t Runtime::random() {
  if (!seeded_) {
    state_ = *seed;
    seeded_ = true;
  }
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// --- Issuing ----------------------------------------------------------------

cudaError_t Runtime::issue(Stream *stream, Work work) {
  if (error_ != cudaSuccess)
    return error_;
  if (!stream || !owns(stream))
    return cudaErrorInvalidResourceHandle;
  if (Capture *capture = stream->capture) {
    if (capture->invalid)
      return cudaErrorStreamCaptureInvalidated;
    capture->graph.nodes.push_back({std::move(work), stream->tail, stream});
    stream->tail = {capture->graph.nodes.size() - 1};
    return cudaSuccess;
  }
  Entry entry;
  if (work.external)
    entry.external = work.external();
  entry.work = std::move(work);
  stream->queue.push_back(std::move(entry));
  return cudaSuccess;
}

cudaError_t Runtime::record(Event *event, Stream *stream) {
  if (error_ != cudaSuccess)
    return error_;
  if (!stream || !event || !owns(stream) || !owns(event))
    return cudaErrorInvalidResourceHandle;
  if (stream->capture) {
    event->capture = stream->capture;
    event->nodes = stream->tail;
    return cudaSuccess;
  }
  event->capture = nullptr;
  Entry entry;
  entry.kind = Entry::Kind::Record;
  entry.event = event;
  entry.ticket = ++event->issued;
  stream->queue.push_back(std::move(entry));
  return cudaSuccess;
}

cudaError_t Runtime::wait(Event *event, Stream *stream) {
  if (error_ != cudaSuccess)
    return error_;
  if (!stream || !event || !owns(stream) || !owns(event))
    return cudaErrorInvalidResourceHandle;
  if (event->capture) {
    // The wait takes the stream into the event's capture.
    Capture *capture = event->capture;
    if (stream->capture && stream->capture != capture) {
      stream->capture->invalid = capture->invalid = true;
      return cudaErrorStreamCaptureIsolation;
    }
    if (!stream->capture) {
      stream->capture = capture;
      stream->tail.clear();
      capture->streams.push_back(stream);
    }
    for (size_t node : event->nodes)
      if (std::find(stream->tail.begin(), stream->tail.end(), node) ==
          stream->tail.end())
        stream->tail.push_back(node);
    return cudaSuccess;
  }
  if (stream->capture) {
    stream->capture->invalid = true;
    return cudaErrorStreamCaptureIsolation;
  }
  Entry entry;
  entry.kind = Entry::Kind::Wait;
  entry.event = event;
  entry.ticket = event->issued;
  stream->queue.push_back(std::move(entry));
  return cudaSuccess;
}

// --- Captures ---------------------------------------------------------------

cudaError_t Runtime::beginCapture(Stream *stream) {
  if (error_ != cudaSuccess)
    return error_;
  if (!stream || !owns(stream))
    return cudaErrorInvalidResourceHandle;
  if (stream->capture)
    return cudaErrorStreamCaptureUnsupported;
  captures_.push_back(std::make_unique<Capture>());
  stream->capture = captures_.back().get();
  stream->capture->origin = stream;
  stream->capture->streams = {stream};
  stream->tail.clear();
  return cudaSuccess;
}

cudaError_t Runtime::endCapture(Stream *stream, Graph **graph) {
  if (!stream || !owns(stream))
    return cudaErrorInvalidResourceHandle;
  Capture *capture = stream->capture;
  if (!capture || capture->origin != stream)
    return cudaErrorStreamCaptureUnmatched;
  // Everything must be ordered before the end of the first stream.
  std::vector<char> reached(capture->graph.nodes.size(), 0);
  std::vector<size_t> stack = stream->tail;
  while (!stack.empty()) {
    size_t node = stack.back();
    stack.pop_back();
    if (reached[node])
      continue;
    reached[node] = 1;
    const std::vector<size_t> &after = capture->graph.nodes[node].after;
    stack.insert(stack.end(), after.begin(), after.end());
  }
  bool joined = std::find(reached.begin(), reached.end(), 0) == reached.end();
  cudaError_t result = capture->invalid ? cudaErrorStreamCaptureInvalidated
                       : !joined        ? cudaErrorStreamCaptureUnjoined
                                        : cudaSuccess;
  for (Stream *other : capture->streams) {
    other->capture = nullptr;
    other->tail.clear();
  }
  for (const auto &event : events)
    if (event->capture == capture) {
      event->capture = nullptr;
      event->nodes.clear();
    }
  *graph = nullptr;
  if (result == cudaSuccess) {
    graphs.push_back(std::make_unique<Graph>(std::move(capture->graph)));
    *graph = graphs.back().get();
  }
  std::erase_if(captures_,
                [&](const auto &own) { return own.get() == capture; });
  return result;
}

cudaError_t Runtime::launchGraph(const GraphExec &exec, Stream *stream) {
  if (error_ != cudaSuccess)
    return error_;
  if (!stream || !owns(stream))
    return cudaErrorInvalidResourceHandle;
  if (stream->capture)
    return cudaErrorStreamCaptureUnsupported;
  auto run = std::make_unique<GraphRun>();
  run->graph = exec.graph;
  const std::vector<Node> &nodes = exec.graph->nodes;
  run->left = nodes.size();
  run->externals.resize(nodes.size());
  run->before.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].work.external)
      run->externals[i] = nodes[i].work.external();
    run->waiting.push_back(static_cast<uint32_t>(nodes[i].after.size()));
    for (size_t earlier : nodes[i].after)
      run->before[earlier].push_back(i);
    if (nodes[i].after.empty())
      run->ready.push_back(i);
  }
  Entry entry;
  entry.kind = Entry::Kind::Graph;
  entry.graph = std::move(run);
  stream->queue.push_back(std::move(entry));
  return cudaSuccess;
}

// --- Progress ---------------------------------------------------------------

void Runtime::run(const KernelLaunch &kernel) {
  ++kernels;
  std::optional<uint64_t> order;
  if (seed)
    order = random();
  std::string wrong = runKernel(kernel, order);
  if (!wrong.empty())
    (void)fail(cudaErrorLaunchFailure, std::move(wrong));
}

Runtime::Step Runtime::perform(const Work &work,
                               std::unique_ptr<ExternalOperation> &external,
                               bool &done) {
  done = true;
  if (external) {
    switch (external->advance()) {
    case ExternalOperation::State::Blocked:
      done = false;
      return Step::Blocked;
    case ExternalOperation::State::Moved:
      done = false;
      return Step::Moved;
    case ExternalOperation::State::Done:
      return Step::Moved;
    case ExternalOperation::State::Failed:
      (void)fail(cudaErrorLaunchFailure, external->failure());
      return Step::Moved;
    }
  }
  if (work.kernel)
    run(*work.kernel);
  else if (work.act)
    work.act();
  return Step::Moved;
}

Runtime::Step Runtime::stepGraph(GraphRun &graph) {
  const std::vector<Node> &nodes = graph.graph->nodes;
  if (seed) // as the streams that they were captured from would be
    std::stable_sort(
        graph.ready.begin(), graph.ready.end(), [&](size_t a, size_t b) {
          return nodes[a].stream->priority > nodes[b].stream->priority;
        });
  for (size_t at = 0; at < graph.ready.size(); ++at) {
    size_t node = graph.ready[at];
    if (seed && !mayStep(*nodes[node].stream))
      continue;
    bool done = false;
    Step step = perform(nodes[node].work, graph.externals[node], done);
    if (done) {
      graph.ready.erase(graph.ready.begin() + static_cast<ptrdiff_t>(at));
      --graph.left;
      for (size_t later : graph.before[node])
        if (--graph.waiting[later] == 0)
          graph.ready.push_back(later);
    }
    if (step == Step::Moved)
      return step;
  }
  return Step::Blocked;
}

Runtime::Step Runtime::stepStream(Stream &stream) {
  if (stream.queue.empty())
    return Step::Blocked;
  Entry &entry = stream.queue.front();
  bool done = true;
  Step step = Step::Moved;
  switch (entry.kind) {
  case Entry::Kind::Run:
    step = perform(entry.work, entry.external, done);
    break;
  case Entry::Kind::Record:
    if (entry.ticket > entry.event->completed) {
      entry.event->completed = entry.ticket;
      entry.event->timeNs = nowNs();
    }
    break;
  case Entry::Kind::Wait:
    done = entry.event->completed >= entry.ticket;
    step = done ? Step::Moved : Step::Blocked;
    break;
  case Entry::Kind::Graph:
    if (entry.graph->left > 0)
      step = stepGraph(*entry.graph);
    done = entry.graph->left == 0;
    break;
  }
  if (done)
    stream.queue.pop_front();
  return step;
}

/// A stream that is far behind all others shows what nothing but luck ordered,
/// and taking turns evenly never lets one fall behind. So each stream has a
/// random priority for a while, as in probabilistic concurrency testing
/// (Burckhardt et al., A randomized scheduler with probabilistic guarantees of
/// finding bugs, ASPLOS 2010), and some are frozen: they go on only when
/// nothing else did for a while, for other ranks may wait for them.
void Runtime::drawOrder() {
  order_.clear();
  for (const auto &stream : streams) {
    stream->priority = random();
    stream->frozen = random() % 3 == 0;
    order_.push_back(stream.get());
  }
  std::sort(order_.begin(), order_.end(), [](const Stream *a, const Stream *b) {
    return a->priority > b->priority;
  });
}

bool Runtime::turn() {
  bool moved = false;
  for (auto &[handle, hook] : progress)
    moved |= hook.poll && hook.poll();
  size_t count = streams.size();
  if (count == 0 || error_ != cudaSuccess)
    return moved;
  if (seed) {
    constexpr uint64_t operationsOfAnOrder = 64;
    constexpr int64_t patienceNs = 2'000'000;
    if (order_.size() != count)
      drawOrder();
    bool patient = !progress.empty() && nowNs() - movedNs_ < patienceNs;
    for (bool thaw : {false, true}) {
      if (thaw && patient)
        break;
      thaw_ = thaw;
      for (Stream *stream : order_) {
        if (!mayStep(*stream) || stepStream(*stream) != Step::Moved)
          continue;
        movedNs_ = nowNs();
        stream->frozen = false; // if it was, it had its time
        if (random() % operationsOfAnOrder == 0)
          drawOrder();
        return true;
      }
    }
    return moved;
  }
  size_t first = next_++ % count;
  for (size_t i = 0; i < count; ++i)
    if (stepStream(*streams[(first + i) % count]) == Step::Moved)
      return true;
  return moved;
}

cudaError_t Runtime::until(const std::function<bool()> &done) {
  while (error_ == cudaSuccess && !done()) {
    if (turn())
      continue;
    if (progress.empty()) // nobody else can end this
      return fail(cudaErrorLaunchFailure, "no stream can go on");
    for (auto &[handle, hook] : progress)
      if (hook.idle)
        hook.idle();
  }
  return error_;
}

} // namespace reckon::cuda::emulated
