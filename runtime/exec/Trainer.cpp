//===- Trainer.cpp - the steps of one rank --------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Trainer.h"

#include "runtime/data/TextDataset.h"
#include "runtime/device/StreamDevice.h"
#include "runtime/exec/LearningRate.h"
#include "runtime/exec/Safetensors.h"
#include "runtime/exec/StateInit.h"

#include <algorithm>
#include <cmath>

namespace reckon::exec {

using namespace plan;

/// Samples of the current step for this rank's data-parallel coordinate.
class Trainer::Batches : public BatchSource {
public:
  Batches(const StagePlanT &plan, const Coord &coord,
          std::unique_ptr<data::SampleSource> source)
      : plan_(plan), coord_(coord), source_(std::move(source)) {}

  Status load(uint32_t microbatch, bool targets,
              std::span<int32_t> out) override {
    size_t sequence = plan_.sequence_length;
    for (uint64_t i = 0; i < plan_.micro_batch_size; ++i) {
      uint64_t sample = data::sampleIndex(
          step, plan_.global_batch_size, microbatch, plan_.mesh->dp,
          static_cast<uint64_t>(coord_.dp), plan_.micro_batch_size, i);
      int32_t *row = out.data() + i * sequence;
      source_->read(sample, targets ? nullptr : row, targets ? row : nullptr);
    }
    return Status::success();
  }

  uint64_t step = 0; ///< counted from 0

private:
  const StagePlanT &plan_;
  Coord coord_;
  std::unique_ptr<data::SampleSource> source_;
};

Trainer::Trainer(const Manifest &manifest, const StagePlanT &plan,
                 comm::Communicator &communicator, device::Device &device,
                 FileSystem &files, Clock &clock, TrainOptions options)
    : manifest_(manifest), plan_(plan), communicator_(communicator),
      device_(device), files_(files), clock_(clock),
      options_(std::move(options)),
      coord_(coordOf(*plan.mesh, communicator.rank())) {}

Trainer::~Trainer() {
  executor_.reset();
  program_.reset();
  if (arena_)
    device_.freeArena();
}

const StateT *Trainer::stateOf(Role role) const {
  for (const auto &state : plan_.states)
    if (state->role == role)
      return state.get();
  return nullptr;
}

// --- Set-up -----------------------------------------------------------------

Status Trainer::openFiles() {
  const std::string &directory = options_.runDirectory;
  int rank = communicator_.rank();
  RECKON_TRY(files_.createDirectories(directory));
  auto log = observe::RankLog::open(directory, rank, clock_);
  if (!log)
    return log.error();
  log_ = std::move(*log);
  auto events = observe::LineFile::open(directory + "/events.jsonl", false);
  if (!events)
    return events.error();
  eventsFile_ = std::move(*events);
  if (options_.trace) {
    auto trace = observe::LineFile::open(
        observe::rankFileName(directory, "trace", rank, "csv"), true);
    if (!trace)
      return trace.error();
    traceFile_ = std::move(*trace);
    RECKON_TRY(traceFile_.write("step,stage,label\n"));
  }
  if (options_.profile) {
    auto profile = observe::LineFile::open(
        observe::rankFileName(directory, "profile", rank, "jsonl"), true);
    if (!profile)
      return profile.error();
    profileFile_ = std::move(*profile);
  }
  if (rank == 0) {
    auto metrics = observe::LineFile::open(directory + "/metrics.jsonl", true);
    if (!metrics)
      return metrics.error();
    metricsFile_ = std::move(*metrics);
    live_ = std::make_unique<observe::LiveLine>(options_.out, options_.terminal,
                                                clock_);
    for (const DumpRequest &dump : options_.dumps)
      RECKON_TRY(files_.createDirectories(dump.directory));
  }
  return Status::success();
}

/// Free memory of a device that says so, else 0.
int64_t Trainer::freeBytes() const {
  device::StreamDevice *streams = device_.asStreams();
  Result<device::DeviceMemory> memory =
      streams ? streams->memory() : device::DeviceMemory{};
  return memory ? memory->free : 0;
}

/// What the device holds beside the arena, item by item, against what the plan
/// reserves for it.
void Trainer::logReserve() {
  device::StreamDevice *streams = device_.asStreams();
  if (!streams)
    return;
  Result<device::DeviceMemory> memory = streams->memory();
  if (!memory)
    return;
  int64_t planned = -1;
  auto candidate = manifest_.choice.find("memory");
  if (candidate != manifest_.choice.end() && candidate->contains("stages") &&
      plan_.stage < (*candidate)["stages"].size())
    planned = (*candidate)["stages"][plan_.stage].value("reserve", int64_t(-1));
  int64_t workspace = device_.workspaceBytes();
  int64_t all =
      memory->context + memory->libraries + communicationBytes_ + workspace;
  log_.line(
      "reserve: context and other processes %lld, libraries %lld, NCCL "
      "%lld, workspace of kernels %lld; %lld bytes in all%s",
      static_cast<long long>(memory->context),
      static_cast<long long>(memory->libraries),
      static_cast<long long>(communicationBytes_),
      static_cast<long long>(workspace), static_cast<long long>(all),
      planned < 0 ? "" : (", " + std::to_string(planned) + " planned").c_str());
  if (planned > 0 && all > planned)
    log_.line("warning: more than the plan reserves: raise "
              "cluster.memory_reserve_gib and compile again, or the next "
              "larger plan may not fit");
}

Status Trainer::setUpLocal() {
  log_.line("plan %s, %s, stage %u", manifest_.digest.c_str(),
            describeRank(*plan_.mesh, communicator_.rank()).c_str(),
            plan_.stage);
  for (const std::string &line : options_.logLines)
    log_.line("%s", line.c_str());
  RECKON_TRY(checkSchedule(*plan_.optimizer));
  Result<void *> arena =
      device_.allocateArena(static_cast<int64_t>(plan_.arena_bytes));
  if (!arena)
    return arena.error();
  arena_ = static_cast<std::byte *>(*arena);
  RECKON_TRY(communicator_.registerBuffer(arena_, plan_.arena_bytes));
  log_.line("device %s, arena %lld bytes", device_.name().c_str(),
            static_cast<long long>(device_.arenaBytes()));

  std::unique_ptr<SafetensorsFile> weights;
  if (!options_.initWeights.empty()) {
    auto file = SafetensorsFile::open(options_.initWeights);
    if (!file)
      return file.error();
    weights = std::move(*file);
  }
  RECKON_TRY(initStates(plan_, coord_, device_, arena_, weights.get()));

  auto program =
      StageProgram::bind(plan_, coord_, connections_, device_, arena_);
  if (!program)
    return program.error();
  program_ = std::move(*program);
  list_ = program_->list("step");
  scalars_ = stateOf(Role::scalars);
  metrics_ = stateOf(Role::metrics);
  if (!list_ || !scalars_ || !metrics_ ||
      scalars_->bytes < 4 * sizeof(double) ||
      metrics_->bytes < device::metricSlots * sizeof(double))
    return makeError(ExitCode::Incompatible,
                     "the plan has no list \"step\", scalars or metrics: "
                     "compile it again");
  log_.line("%zu actions a step, %lld instructions and messages, kernels use "
            "%lld bytes beside the arena",
            list_->actions.size(), static_cast<long long>(list_->work),
            static_cast<long long>(device_.workspaceBytes()));

  logReserve();

  std::unique_ptr<data::SampleSource> source;
  if (program_->maxLoadElements() > 0) {
    // A spec without training.data leaves both empty; --data then means text.
    auto neither = [](const std::string &value, const char *supported) {
      return !value.empty() && value != supported;
    };
    if (neither(plan_.data->format, "text") ||
        neither(plan_.data->tokenizer, "byte"))
      return makeError(ExitCode::Incompatible,
                       "expected data format text with tokenizer byte, got " +
                           plan_.data->format + " with " +
                           plan_.data->tokenizer +
                           ": this version reads no other");
    auto path =
        data::resolveText(files_, {options_.data, plan_.data->path,
                                   plan_.data->base, options_.planDirectory});
    if (!path)
      return path.error();
    auto text = data::openText(*path, plan_.sequence_length, plan_.vocab_size,
                               plan_.seed);
    if (!text)
      return text.error();
    source = std::move(*text);
    log_.line("data %s, %llu windows", path->c_str(),
              static_cast<unsigned long long>(source->windows()));
  }
  batches_ = std::make_unique<Batches>(plan_, coord_, std::move(source));

  ExecutorOptions options;
  options.queueSeed = options_.queueSeed;
  options.stop = options_.stop;
  options.trace = options_.trace;
  if (options_.fault)
    options.fault = [this] { fault::commitFault(*options_.fault); };
  options.timeKernels = options_.profile;
  if (options_.hangLimit)
    options.hangLimit = *options_.hangLimit;
  executor_ = makeExecutor(*program_, communicator_, device_, clock_, *batches_,
                           std::move(options));
  return Status::success();
}

/// Writes the start event on rank 0, with what every rank allocated.
Status Trainer::announce() {
  auto all = communicator_.allGatherBytes(std::to_string(device_.arenaBytes()),
                                          /*timeout=*/0);
  if (!all)
    return all.error();
  if (communicator_.rank() != 0)
    return Status::success();
  line_.clear();
  line_.add("event", std::string_view("start"))
      .add("step", int64_t(0))
      .add("time", 1e-9 * static_cast<double>(clock_.wallNs()))
      .add("plan", std::string_view(manifest_.digest))
      .add("world_size", int64_t(communicator_.worldSize()))
      .add("device", device_.name())
      .beginArray("arena_bytes");
  for (const std::string &bytes : *all)
    line_.element(std::atoll(bytes.c_str()));
  return eventsFile_.write(line_.endArray().finish());
}

Status Trainer::setUp() {
  Status status = openFiles();
  if (status.ok()) {
    auto connections = connectStage(plan_, coord_, communicator_);
    if (connections)
      connections_ = std::move(*connections);
    else
      status = connections.status();
  }
  RECKON_TRY(agreeOnStatus(communicator_, status, &failedRank_));
  int64_t before = freeBytes();
  RECKON_TRY(communicator_.start());
  communicationBytes_ = before - freeBytes();
  status = setUpLocal();
  if (!status.ok())
    log_.line("failed: %s", status.error().message.c_str());
  RECKON_TRY(agreeOnStatus(communicator_, status, &failedRank_));
  return announce();
}

// --- Steps ------------------------------------------------------------------

Status Trainer::step(int64_t number) {
  const OptimizerT &optimizer = *plan_.optimizer;
  rate_ = learningRate(optimizer, static_cast<uint64_t>(number));
  auto power = static_cast<double>(number);
  double scalars[4] = {rate_, 1 - std::pow(optimizer.beta1, power),
                       1 - std::pow(optimizer.beta2, power), power};
  RECKON_TRY(device_.copyToDevice(arena_ + scalars_->offset, scalars,
                                  sizeof(scalars)));
  batches_->step = static_cast<uint64_t>(number - 1);
  ExecutorOptions &options = executor_->options();
  options.faultAt.reset();
  if (options_.fault && options_.fault->rank == communicator_.rank() &&
      options_.fault->step == number)
    options.faultAt =
        std::min(options_.fault->at.value_or(list_->work / 2), list_->work - 1);

  RECKON_TRY(executor_->run(*list_));
  RECKON_TRY(device_.synchronize());
  double metrics[device::metricSlots];
  RECKON_TRY(
      device_.copyToHost(metrics, arena_ + metrics_->offset, sizeof(metrics)));
  loss_ =
      metrics[device::MetricLossSum] /
      (static_cast<double>(plan_.global_batch_size) * plan_.sequence_length);
  gradNorm_ = metrics[device::MetricNorm];
  completed_ = number;
  return Status::success();
}

Status Trainer::metricsLine(int64_t number, double seconds) {
  const StepTimes &times = executor_->times();
  double compute = 1e-9 * static_cast<double>(times.compute);
  double communication = 1e-9 * static_cast<double>(times.communication);
  double idle = 1e-9 * static_cast<double>(times.idle);
  log_.line("step %lld loss %.9g grad_norm %.9g: %.6f s, compute %.6f, "
            "communication %.6f, idle %.6f",
            static_cast<long long>(number), loss_, gradNorm_, seconds, compute,
            communication, idle);
  if (communicator_.rank() != 0)
    return Status::success();
  int64_t tokens = int64_t(plan_.global_batch_size) * plan_.sequence_length;
  double rate = static_cast<double>(tokens) / seconds;
  double peak = plan_.peak_flops * communicator_.worldSize();
  line_.clear();
  line_.add("step", number)
      .add("loss", loss_)
      .add("grad_norm", gradNorm_)
      .add("lr", rate_)
      .add("tokens", tokens)
      .add("step_s", seconds)
      .add("tokens_per_s", rate)
      .add("mfu", rate * plan_.model_flops_per_token / peak)
      .add("memory_peak_bytes", device_.arenaBytes())
      .beginObject("buckets")
      .add("compute", compute)
      .add("communication", communication)
      .add("idle", idle)
      .add("other", std::max(0.0, seconds - compute - communication - idle))
      .endObject();
  RECKON_TRY(metricsFile_.write(line_.finish()));
  live_->show({number,
               options_.steps.value_or(int64_t(plan_.optimizer->train_steps)),
               loss_, rate, device_.arenaBytes(), seconds});
  return Status::success();
}

Status Trainer::traceLines(int64_t number) {
  if (!options_.trace)
    return Status::success();
  std::string text;
  for (const ActionT *action : executor_->trace())
    text += std::to_string(number) + "," + std::to_string(plan_.stage) + "," +
            action->label + "\n";
  return traceFile_.write(text);
}

Status Trainer::profileLine(int64_t number, double seconds) {
  if (!options_.profile)
    return Status::success();
  const StepTimes &times = executor_->times();
  line_.clear();
  line_.add("step", number)
      .add("rank", int64_t(communicator_.rank()))
      .add("step_s", seconds)
      .add("compute_s", 1e-9 * static_cast<double>(times.compute))
      .add("communication_s", 1e-9 * static_cast<double>(times.communication))
      .add("idle_s", 1e-9 * static_cast<double>(times.idle))
      .beginObject("kernels");
  for (size_t i = 0; i < times.kernels.size(); ++i)
    if (const KernelTime &time = times.kernels[i]; time.calls > 0)
      line_.beginObject(EnumNameKernel(static_cast<Kernel>(i)))
          .add("calls", time.calls)
          .add("s", 1e-9 * static_cast<double>(time.nanoseconds))
          .endObject();
  return profileFile_.write(line_.endObject().finish());
}

Status Trainer::dumpsAfter(int64_t number) {
  for (const DumpRequest &dump : options_.dumps) {
    if (dump.step != number)
      continue;
    if (dump.weights)
      RECKON_TRY(dumpStates(DumpKind::Weights, plan_, coord_, device_, arena_,
                            communicator_,
                            dump.directory + "/weights.safetensors"));
    if (dump.gradients)
      RECKON_TRY(dumpStates(DumpKind::Gradients, plan_, coord_, device_, arena_,
                            communicator_,
                            dump.directory + "/gradients.safetensors"));
    log_.line("dumped step %lld to %s", static_cast<long long>(number),
              dump.directory.c_str());
  }
  return Status::success();
}

Status Trainer::run() {
  auto last = options_.steps.value_or(
      static_cast<int64_t>(plan_.optimizer->train_steps));
  RECKON_TRY(dumpsAfter(0));
  for (int64_t number = 1; number <= last; ++number) {
    int64_t start = clock_.monotonicNs();
    RECKON_TRY(step(number));
    double seconds = 1e-9 * static_cast<double>(clock_.monotonicNs() - start);
    RECKON_TRY(profileLine(number, seconds));
    RECKON_TRY(metricsLine(number, seconds));
    RECKON_TRY(traceLines(number));
    RECKON_TRY(dumpsAfter(number));
  }
  return Status::success();
}

void Trainer::abort(const Error &error) {
  communicator_.abort(
      makeError(error.code, "rank " + std::to_string(communicator_.rank()) +
                                " stopped: " + error.message));
}

void Trainer::recordEnd(const Status &status) {
  if (live_)
    live_->finish();
  int rank = communicator_.rank();
  bool interrupted =
      !status.ok() && status.error().code == ExitCode::Interrupted;
  const char *message = status.ok() ? "done" : status.error().message.c_str();
  log_.line("ended after step %lld: %s", static_cast<long long>(completed_),
            message);
  // One end for the run, but every rank's own failure.
  if ((status.ok() || interrupted) && rank != 0)
    return;
  line_.clear();
  line_
      .add("event",
           std::string_view(status.ok() || interrupted ? "end" : "failure"))
      .add("step", completed_)
      .add("time", 1e-9 * static_cast<double>(clock_.wallNs()))
      .add("rank", int64_t(rank));
  line_.add("exit_code",
            int64_t(status.ok() ? ExitCode::Done : status.error().code));
  if (!status.ok())
    line_.add("message", status.error().message);
  // The run's own outcome matters more than whether it could be written down.
  (void)eventsFile_.write(line_.finish()).ok();
}

} // namespace reckon::exec
