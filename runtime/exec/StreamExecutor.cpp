//===- StreamExecutor.cpp - action lists on a device with streams ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/StreamExecutor.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace reckon::exec {

using namespace plan;

StreamExecutor::StreamExecutor(StageProgram &program,
                               comm::Communicator &communicator,
                               device::StreamDevice &device, Clock &clock,
                               BatchSource &batches, ExecutorOptions options)
    : Executor(std::move(options)), program_(program),
      communicator_(communicator), device_(device), clock_(clock),
      batches_(batches) {
  pointers_.resize(program.maxOperands());
  in_.resize(program.maxOperands());
  out_.resize(program.maxOperands());
  const char *graphs = std::getenv("RECKON_CUDA_GRAPHS");
  graphsWanted_ =
      !options_.timeKernels && !(graphs && std::string(graphs) == "0");
}

// --- The first run of a list ------------------------------------------------

Status StreamExecutor::nativeEvents(std::vector<Event> &events) {
  for (Event &event : events) {
    Result<uint32_t> native = device_.makeEvent(false);
    if (!native)
      return native.error();
    event.native = *native;
  }
  return Status::success();
}

Result<StreamExecutor::Prepared *> StreamExecutor::prepare(BoundList &list) {
  auto [at, fresh] = prepared_.try_emplace(&list);
  Prepared &prepared = at->second;
  if (!fresh)
    return &prepared;
  if (prepared_.size() == 1)
    for (const auto &fragment : program_.fragments())
      RECKON_TRY(nativeEvents(fragment->events));
  RECKON_TRY(nativeEvents(list.events));
  prepared.actions.resize(list.actions.size());
  auto timedEvent = [&](uint32_t &event) -> Status {
    Result<uint32_t> made = device_.makeEvent(true);
    if (made)
      event = *made;
    return made.status();
  };
  RECKON_TRY(timedEvent(prepared.start));
  for (size_t i = 0; i < list.actions.size(); ++i) {
    Extra &extra = prepared.actions[i];
    RECKON_TRY(timedEvent(extra.begin));
    RECKON_TRY(timedEvent(extra.end));
    for (const BoundLoad &load : list.actions[i].loads) {
      Result<void *> host = device_.pinned(
          static_cast<int64_t>(load.target.elements * sizeof(int32_t)));
      if (!host)
        return host.error();
      extra.staging.push_back(static_cast<int32_t *>(*host));
    }
  }
  return &prepared;
}

// --- Issuing ----------------------------------------------------------------

/// A fault that is asked for comes before the item with its number; in a
/// fragment that is a graph, before the fragment.
void StreamExecutor::countWork(int64_t items) {
  if (options_.faultAt && options_.fault && *options_.faultAt >= worked_ &&
      *options_.faultAt < worked_ + items)
    options_.fault();
  worked_ += items;
}

Status StreamExecutor::interrupted() const {
  if (options_.stop && options_.stop->load(std::memory_order_relaxed))
    return makeError(ExitCode::Interrupted,
                     "interrupted by a signal; nothing was saved");
  return Status::success();
}

Status StreamExecutor::timed(int stream, size_t kernel,
                             const std::function<Status()> &work) {
  if (!options_.timeKernels)
    return work();
  if (timedUsed_ == timed_.size()) {
    Timed pair;
    for (uint32_t *event : {&pair.begin, &pair.end}) {
      Result<uint32_t> made = device_.makeEvent(true);
      if (!made)
        return made.error();
      *event = *made;
    }
    timed_.push_back(pair);
  }
  Timed &pair = timed_[timedUsed_++];
  pair.kernel = kernel;
  RECKON_TRY(device_.record(pair.begin, stream));
  RECKON_TRY(work());
  return device_.record(pair.end, stream);
}

Status StreamExecutor::launch(BoundAction &action,
                              BoundInstruction &instruction) {
  size_t n = 0;
  for (const BoundOperand &input : instruction.inputs)
    pointers_[n++] = input.address(action.slots);
  for (const BoundOperand &output : instruction.outputs)
    pointers_[n++] = output.address(action.slots);
  return timed(static_cast<int>(instruction.stream),
               static_cast<size_t>(instruction.source->kernel),
               [&] { return instruction.kernel->run({pointers_.data(), n}); });
}

Status StreamExecutor::copy(BoundAction &action,
                            BoundInstruction &instruction) {
  int stream = static_cast<int>(instruction.stream);
  return timed(stream, static_cast<size_t>(Kernel::copy), [&]() -> Status {
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      const BoundOperand &from = instruction.inputs[i];
      int64_t bytes = static_cast<int64_t>(from.elements) *
                      dtypeSize(instruction.source->inputs[i]->dtype);
      RECKON_TRY(
          device_.copyOnStream(instruction.outputs[i].address(action.slots),
                               from.address(action.slots), bytes, stream));
    }
    return Status::success();
  });
}

Status StreamExecutor::collective(BoundAction &action,
                                  BoundInstruction &instruction) {
  size_t n = instruction.inputs.size();
  for (size_t i = 0; i < n; ++i) {
    in_[i] = {instruction.inputs[i].address(action.slots),
              instruction.inputs[i].elements};
    out_[i] = {instruction.outputs[i].address(action.slots),
               instruction.outputs[i].elements};
  }
  communicator_.onStream(
      device_.nativeStream(static_cast<int>(instruction.stream)));
  return post(communicator_, instruction, {in_.data(), n}, {out_.data(), n})
      .status();
}

Status StreamExecutor::issueFragment(BoundAction &action) {
  for (BoundInstruction &instruction : action.fragment->instructions) {
    int stream = static_cast<int>(instruction.stream);
    Status status;
    switch (instruction.op) {
    case Opcode::record:
      status = device_.record(instruction.event->native, stream);
      break;
    case Opcode::wait:
      status = device_.wait(instruction.event->native, stream);
      break;
    case Opcode::launch:
      status = launch(action, instruction);
      break;
    case Opcode::copy:
      status = copy(action, instruction);
      break;
    case Opcode::all_reduce:
    case Opcode::all_gather:
    case Opcode::reduce_scatter:
      status = collective(action, instruction);
      break;
    }
    if (!status.ok())
      return atInstruction(status.error(), *action.source, *instruction.source);
  }
  return Status::success();
}

Status StreamExecutor::runFragment(BoundAction &action, Extra &extra) {
  BoundFragment &fragment = *action.fragment;
  countWork(fragment.work);
  if (!graphsWanted_ || fragment.work == 0)
    return issueFragment(action);
  int home = static_cast<int>(action.stream);
  if (!extra.graph) {
    auto [at, fresh] = graphs_.try_emplace({&fragment, action.slots}, 0);
    if (fresh) {
      RECKON_TRY(device_.beginCapture(home));
      Status issued = issueFragment(action);
      Result<uint32_t> graph = device_.endCapture(home);
      RECKON_TRY(issued);
      if (!graph)
        return makeError(graph.error().code, "fragment " +
                                                 fragment.source->name + ": " +
                                                 graph.error().message);
      at->second = *graph;
    }
    extra.graph = at->second;
  }
  return device_.launchGraph(*extra.graph, home);
}

Status StreamExecutor::load(BoundAction &action, Extra &extra) {
  for (size_t i = 0; i < action.loads.size(); ++i) {
    const BoundLoad &load = action.loads[i];
    std::span<int32_t> host{extra.staging[i], load.target.elements};
    RECKON_TRY(batches_.load(action.microbatch, load.isTargets, host));
    RECKON_TRY(device_.upload(load.target.address(action.slots), host.data(),
                              static_cast<int64_t>(host.size_bytes()),
                              static_cast<int>(action.stream)));
  }
  return Status::success();
}

Status StreamExecutor::message(BoundAction &action) {
  size_t n = action.buffers.size();
  for (size_t i = 0; i < n; ++i)
    in_[i] = {action.buffers[i].address(action.slots),
              action.buffers[i].elements};
  comm::Segments segments{in_.data(), n};
  communicator_.onStream(device_.nativeStream(static_cast<int>(action.stream)));
  Result<comm::Ticket> posted =
      action.kind == ActionKind::send
          ? communicator_.send(action.channel, segments, action.dtype)
          : communicator_.receive(action.channel, segments, action.dtype);
  return posted.status();
}

Status StreamExecutor::issue(BoundAction &action, Extra &extra) {
  int stream = static_cast<int>(action.stream);
  for (const Event *event : action.waits)
    RECKON_TRY(device_.wait(event->native, stream));
  RECKON_TRY(device_.record(extra.begin, stream));
  if (action.fragment) {
    RECKON_TRY(runFragment(action, extra));
  } else {
    countWork(1);
    Status status =
        action.kind == ActionKind::load ? load(action, extra) : message(action);
    if (!status.ok())
      return makeError(status.error().code, "action " + action.source->label +
                                                ": " + status.error().message);
  }
  RECKON_TRY(device_.record(extra.end, stream));
  for (const Event *event : action.records)
    RECKON_TRY(device_.record(event->native, stream));
  return Status::success();
}

// --- Waiting ----------------------------------------------------------------

std::string StreamExecutor::blocked(BoundList &list, Prepared &prepared) {
  std::string text = "this rank is blocked in";
  std::vector<bool> named(program_.numStreams(), false);
  bool any = false;
  for (size_t i = 0; i < list.actions.size(); ++i) {
    const BoundAction &action = list.actions[i];
    if (named[action.stream])
      continue;
    Result<bool> reached = device_.reached(prepared.actions[i].end);
    if (reached && *reached)
      continue;
    named[action.stream] = true;
    text += (any ? ", " : " ") + action.source->label + " (stream " +
            program_.streamName(action.stream) + ")";
    any = true;
  }
  return any ? text : "this rank has done all actions";
}

Status StreamExecutor::waitForDevice(BoundList &list, Prepared &prepared) {
  // The earliest action of each stream that has not ended.
  std::vector<size_t> ends;
  size_t first = 0;
  double since = clock_.seconds();
  // An abort lets blocked streams go on, so what blocks is noted before.
  std::string noted;
  double notedAt = since;
  while (true) {
    Result<bool> finished = device_.finished();
    if (!finished)
      return finished.error();
    if (*finished)
      return Status::success();
    RECKON_TRY(interrupted());
    Result<bool> moved = communicator_.progress();
    if (!moved) {
      Error error = moved.error();
      if (error.code == ExitCode::Hang)
        error.message +=
            "; " + (noted.empty() ? "this rank was not blocked" : noted);
      return error;
    }
    bool ended = false;
    for (; first < list.actions.size(); ++first) {
      Result<bool> reached = device_.reached(prepared.actions[first].end);
      if (!reached)
        return reached.error();
      if (!*reached)
        break;
      ended = true;
    }
    double now = clock_.seconds();
    if (ended) {
      since = now;
      noted.clear();
    }
    if (now - std::max(since, notedAt) > options_.hangLimit / 8) {
      noted = blocked(list, prepared);
      notedAt = now;
    }
    if (now - since > options_.hangLimit) {
      char limit[32];
      std::snprintf(limit, sizeof limit, "%g", options_.hangLimit);
      return makeError(
          ExitCode::Hang,
          std::string("expected an action to end within ") + limit +
              " s (RECKON_HANG_LIMIT_S), got none: " + blocked(list, prepared) +
              "; run `reckon verify` on the plan, and look at "
              "the other ranks' logs");
    }
    device_.relax();
  }
}

Status StreamExecutor::account(BoundList &list, Prepared &prepared) {
  double compute = 0;
  std::vector<double> ends(list.actions.size());
  for (size_t i = 0; i < list.actions.size(); ++i) {
    const Extra &extra = prepared.actions[i];
    if (list.actions[i].fragment) {
      Result<double> spent = device_.secondsBetween(extra.begin, extra.end);
      if (!spent)
        return spent.error();
      compute += *spent;
    }
    if (options_.trace) {
      Result<double> end = device_.secondsBetween(prepared.start, extra.end);
      if (!end)
        return end.error();
      ends[i] = *end;
    }
  }
  times_.compute = static_cast<int64_t>(compute * 1e9);
  for (size_t i = 0; i < timedUsed_; ++i) {
    Result<double> spent =
        device_.secondsBetween(timed_[i].begin, timed_[i].end);
    if (!spent)
      return spent.error();
    KernelTime &time = times_.kernels[timed_[i].kernel];
    ++time.calls;
    time.nanoseconds += static_cast<int64_t>(*spent * 1e9);
  }
  if (options_.trace) {
    std::vector<size_t> order(list.actions.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return ends[a] < ends[b]; });
    for (size_t i : order)
      trace_.push_back(list.actions[i].source);
  }
  return Status::success();
}

Status StreamExecutor::run(BoundList &list) {
  Status status = runToEnd(list);
  if (!status.ok())
    device_.abandon();
  return status;
}

Status StreamExecutor::runToEnd(BoundList &list) {
  Result<Prepared *> prepared = prepare(list);
  if (!prepared)
    return prepared.error();
  trace_.clear();
  times_ = {};
  worked_ = 0;
  timedUsed_ = 0;
  if (!list.actions.empty())
    RECKON_TRY(device_.record((*prepared)->start,
                              static_cast<int>(list.actions[0].stream)));
  int64_t began = clock_.monotonicNs();
  for (size_t i = 0; i < list.actions.size(); ++i) {
    RECKON_TRY(interrupted());
    RECKON_TRY(issue(list.actions[i], (*prepared)->actions[i]));
  }
  RECKON_TRY(waitForDevice(list, **prepared));
  RECKON_TRY(account(list, **prepared));
  times_.idle =
      std::max<int64_t>(0, clock_.monotonicNs() - began - times_.compute);
  return Status::success();
}

} // namespace reckon::exec
