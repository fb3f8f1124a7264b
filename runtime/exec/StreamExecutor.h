//===- StreamExecutor.h - action lists on a device with streams -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Issues a whole list in its order and then waits for the device: inside a step
// the host never does. Each fragment is captured into a graph the first time
// that it runs with certain slots, and replayed afterwards.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_EXEC_STREAMEXECUTOR_H
#define RECKON_RUNTIME_EXEC_STREAMEXECUTOR_H

#include "runtime/device/StreamDevice.h"
#include "runtime/exec/Executor.h"

#include <map>
#include <string>

namespace reckon::exec {

class StreamExecutor final : public Executor {
public:
  StreamExecutor(StageProgram &program, comm::Communicator &communicator,
                 device::StreamDevice &device, Clock &clock,
                 BatchSource &batches, ExecutorOptions options);

  /// Errors of kernels, of communication (with this rank's blocked actions when
  /// a peer is hung), Hang when nothing completes for the limit.
  Status run(BoundList &list) override;

private:
  /// What the executor keeps of an action between steps.
  struct Extra {
    uint32_t begin = 0;             ///< timed event before its work
    uint32_t end = 0;               ///< and behind it
    std::vector<int32_t *> staging; ///< pinned, one for each load
    std::optional<uint32_t> graph;  ///< of its fragment with its slots
  };
  struct Prepared {
    std::vector<Extra> actions;
    uint32_t start = 0; ///< timed event before everything
  };
  /// A kernel's two events of one step, when kernels are timed.
  struct Timed {
    size_t kernel = 0;
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  using GraphKey = std::pair<const BoundFragment *, std::vector<std::byte *>>;

  Status runToEnd(BoundList &list);
  Result<Prepared *> prepare(BoundList &list);
  Status nativeEvents(std::vector<Event> &events);
  Status issue(BoundAction &action, Extra &extra);
  Status runFragment(BoundAction &action, Extra &extra);
  Status issueFragment(BoundAction &action);
  Status launch(BoundAction &action, BoundInstruction &instruction);
  Status copy(BoundAction &action, BoundInstruction &instruction);
  Status collective(BoundAction &action, BoundInstruction &instruction);
  Status message(BoundAction &action);
  Status load(BoundAction &action, Extra &extra);
  Status timed(int stream, size_t kernel, const std::function<Status()> &work);
  void countWork(int64_t items);

  Status waitForDevice(BoundList &list, Prepared &prepared);
  Status account(BoundList &list, Prepared &prepared);
  Status interrupted() const;
  /// "this rank: stream tp waits in 3F1; ...": the first action of each stream
  /// that has not ended.
  std::string blocked(BoundList &list, Prepared &prepared);

  StageProgram &program_;
  comm::Communicator &communicator_;
  device::StreamDevice &device_;
  Clock &clock_;
  BatchSource &batches_;
  bool graphsWanted_ = true;

  std::map<const BoundList *, Prepared> prepared_;
  std::map<GraphKey, uint32_t> graphs_;
  std::vector<Timed> timed_;
  size_t timedUsed_ = 0;
  int64_t worked_ = 0;
  std::vector<void *> pointers_;
  std::vector<comm::Segment> in_;
  std::vector<comm::Segment> out_;
};

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_STREAMEXECUTOR_H
