//===- TinyPlan.cpp - hand-made plans for tests of the runtime ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/exec/TinyPlan.h"

#include "runtime/data/TextDataset.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/device/kernels/CounterRng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace reckon::test {

using namespace plan;

namespace {

constexpr uint32_t kCompute = 0;
constexpr uint32_t kCollective = 1;
constexpr uint32_t kLoad = 2;
constexpr uint32_t kSend = 3;
constexpr uint32_t kReceive = 4;
constexpr int64_t kTiny = kHidden * kVocab;

template <typename T> std::unique_ptr<T> make() {
  return std::make_unique<T>();
}

class Builder {
public:
  Builder(const TinyOptions &options, int stage)
      : o_(options), stage_(stage), first_(stage == 0),
        last_(stage == options.pp - 1), plan_(make<StagePlanT>()),
        rows_(options.microBatchSize * kSequence) {}

  std::unique_ptr<StagePlanT> build() {
    header();
    for (const char *name : {"embed", "head"}) {
      bool mine = name[0] == 'e' ? first_ : last_;
      if (mine)
        parameter(name);
    }
    scalars_ = state("scalars", Role::scalars, DType::f64, {8});
    metrics_ = state("metrics", Role::metrics, DType::f64, {4});
    memory();
    begin();
    if (first_)
      forward();
    for (bool firstMicroBatch : {true, false})
      backward(firstMicroBatch);
    update();
    actions();
    plan_->arena_bytes = at_;
    return std::move(plan_);
  }

private:
  void header() {
    StagePlanT &p = *plan_;
    p.version = kPlanFormat;
    p.name = "tiny";
    p.stage = static_cast<uint32_t>(stage_);
    p.mesh = make<MeshT>();
    p.mesh->tp = p.mesh->cp = p.mesh->ep = 1;
    p.mesh->dp = static_cast<uint32_t>(o_.dp);
    p.mesh->pp = static_cast<uint32_t>(o_.pp);
    p.precision = "fp32";
    p.seed = 7;
    p.sequence_length = kSequence;
    p.micro_batch_size = static_cast<uint32_t>(o_.microBatchSize);
    p.num_micro_batches = static_cast<uint32_t>(o_.microBatches);
    p.global_batch_size =
        static_cast<uint32_t>(o_.microBatchSize * o_.microBatches * o_.dp);
    p.vocab_size = kVocab;
    p.model_flops_per_token = 6.0 * kTiny;
    p.peak_flops = 1e9;
    p.optimizer = make<OptimizerT>();
    p.optimizer->lr = kRate;
    p.optimizer->train_steps = 8;
    p.optimizer->schedule = "constant";
    p.optimizer->beta1 = 0.9;
    p.optimizer->beta2 = 0.95;
    p.optimizer->clip_grad = kClip;
    p.data = make<DataT>();
    p.data->format = "text";
    p.data->path = "corpus.txt";
    p.data->tokenizer = "byte";
    for (const char *name : {"compute", "collective", "load", "send", "recv"}) {
      auto stream = make<StreamT>();
      stream->name = name;
      p.streams.push_back(std::move(stream));
    }
    auto group = [&](const char *name, std::vector<Axis> axes) {
      auto g = make<GroupT>();
      g->name = name;
      g->axes = std::move(axes);
      p.groups.push_back(std::move(g));
    };
    group("dp", {Axis::dp});
    group("world", {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp});
    for (uint32_t id = 0; o_.pp > 1 && id < 2; ++id) {
      auto channel = make<ChannelT>();
      channel->name = id == 0 ? "forward" : "backward";
      channel->id = id;
      channel->direction = static_cast<Direction>(id);
      channel->source_stage = id;
      channel->target_stage = 1 - id;
      p.channels.push_back(std::move(channel));
    }
  }

  uint64_t allocate(uint64_t bytes) {
    uint64_t offset = at_;
    at_ += (bytes + 255) / 256 * 256;
    return offset;
  }

  uint32_t state(const std::string &name, Role role, DType dtype,
                 std::vector<int64_t> shape, int64_t elements = 0) {
    auto s = make<StateT>();
    s->name = name;
    s->role = role;
    s->dtype = dtype;
    s->global_shape = shape;
    for (int64_t size : shape) {
      auto extent = make<ExtentT>();
      extent->start = constantExpr(0);
      extent->size = constantExpr(size);
      s->box.push_back(std::move(extent));
    }
    int64_t count = elements ? elements : elementCount(shape);
    s->bytes = static_cast<uint64_t>(count * dtypeSize(dtype));
    s->offset = allocate(s->bytes);
    s->replica_axes = {Axis::dp};
    plan_->states.push_back(std::move(s));
    return static_cast<uint32_t>(plan_->states.size() - 1);
  }

  int64_t shard() const { return (kTiny + o_.dp - 1) / o_.dp; }

  void parameter(const std::string &name) {
    std::vector<int64_t> shape{kVocab, kHidden};
    int64_t padded = o_.zero1 ? shard() * o_.dp : kTiny;
    int64_t part = o_.zero1 ? shard() : kTiny;
    uint32_t w = state(name, Role::parameter, DType::f32, shape, padded);
    plan_->states[w]->init = make<InitT>();
    plan_->states[w]->init->kind = InitKind::normal;
    plan_->states[w]->init->stddev = 0.1;
    state(name + "#gradient", Role::gradient, DType::f32, shape, padded);
    for (auto [suffix, role] : {std::pair{"#momentum", Role::momentum},
                                std::pair{"#variance", Role::variance}}) {
      uint32_t s = state(name + suffix, role, DType::f32, shape, part);
      if (o_.zero1) {
        plan_->states[s]->flat_axes = {Axis::dp};
        plan_->states[s]->flat_elements = part;
        plan_->states[s]->replica_axes.clear();
      }
    }
    parameters_.push_back(w);
  }

  uint32_t slotClass(const char *name, int64_t bytes, int count) {
    auto cls = make<SlotClassT>();
    cls->name = name;
    cls->bytes = static_cast<uint64_t>((bytes + 255) / 256 * 256);
    cls->count = static_cast<uint32_t>(count);
    cls->offset = allocate(cls->bytes * cls->count);
    cls->category = "activations";
    plan_->slot_classes.push_back(std::move(cls));
    return static_cast<uint32_t>(plan_->slot_classes.size() - 1);
  }

  void memory() {
    int64_t rowBytes = rows_ * kHidden * 4;
    int m = o_.microBatches;
    if (first_)
      tokens_ = slotClass("tokens", rows_ * 4, m);
    if (last_)
      targets_ = slotClass("targets", rows_ * 4, m);
    x_ = slotClass(o_.pp == 1 ? "stash"
                   : first_   ? "output"
                              : "input",
                   rowBytes, first_ && o_.pp > 1 ? 2 : m);
    if (o_.pp > 1)
      dx_ = slotClass(first_ ? "grad_in" : "grad_out", rowBytes, m);
    auto lane = make<LaneT>();
    lane->name = "workspace";
    lane->bytes = static_cast<uint64_t>(rows_ * (kVocab + kHidden + 8) * 4);
    lane->offset = allocate(lane->bytes);
    plan_->lanes.push_back(std::move(lane));
  }

  std::unique_ptr<BufferT> buffer(Region region, uint32_t index, DType dtype,
                                  std::vector<int64_t> shape,
                                  int64_t offset = 0) {
    auto b = make<BufferT>();
    b->region = region;
    b->index = index;
    b->dtype = dtype;
    b->shape = std::move(shape);
    b->offset = constantExpr(offset);
    return b;
  }

  /// This dp rank's range of a flattened buffer.
  std::unique_ptr<BufferT> rangeOf(uint32_t state, int64_t elements) {
    auto b = buffer(Region::state, state, DType::f32, {elements});
    b->offset->terms.push_back(Term(Axis::dp, elements * 4));
    return b;
  }

  std::unique_ptr<BufferT> metrics() {
    return buffer(Region::state, metrics_, DType::f64, {4});
  }

  FragmentT &fragment(const std::string &name,
                      const std::vector<uint32_t> &slots = {}) {
    auto f = make<FragmentT>();
    f->name = name;
    for (uint32_t cls : slots) {
      auto formal = make<SlotFormalT>();
      formal->name = plan_->slot_classes[cls]->name;
      formal->slot_class = cls;
      f->slots.push_back(std::move(formal));
    }
    plan_->fragments.push_back(std::move(f));
    return *plan_->fragments.back();
  }

  using Buffers = std::vector<std::unique_ptr<BufferT>>;
  template <typename... B> static Buffers list(B... buffers) {
    Buffers all;
    (all.push_back(std::move(buffers)), ...);
    return all;
  }

  InstructionT &instruction(FragmentT &f, Opcode op, uint32_t stream,
                            Buffers in = {}, Buffers out = {}) {
    auto i = make<InstructionT>();
    i->op = op;
    i->stream = stream;
    i->inputs = std::move(in);
    i->outputs = std::move(out);
    f.instructions.push_back(std::move(i));
    return *f.instructions.back();
  }

  void launch(FragmentT &f, Kernel kernel, Buffers in, Buffers out,
              std::vector<int64_t> args = {}, std::vector<double> floats = {}) {
    InstructionT &i =
        instruction(f, Opcode::launch, kCompute, std::move(in), std::move(out));
    i.kernel = kernel;
    for (int64_t arg : args)
      i.args.push_back(constantExpr(arg));
    i.floats = std::move(floats);
    i.layer = "test";
    i.source = "tiny:1:1";
  }

  void begin() {
    FragmentT &f = fragment("begin");
    launch(f, Kernel::fill_zero, {}, list(metrics()));
  }

  std::unique_ptr<BufferT> slot(uint32_t index, DType dtype,
                                std::vector<int64_t> shape) {
    return buffer(Region::slot, index, dtype, std::move(shape));
  }
  std::unique_ptr<BufferT> lane(int64_t offset, std::vector<int64_t> shape) {
    return buffer(Region::lane, 0, DType::f32, std::move(shape), offset * 4);
  }
  std::unique_ptr<BufferT> weights(uint32_t parameter) {
    return buffer(Region::state, parameter, DType::f32, {kVocab, kHidden});
  }

  void forward() {
    FragmentT &f = fragment("forward", {tokens_, x_});
    launch(f, Kernel::embedding,
           list(slot(0, DType::i32, {rows_}), weights(parameters_[0])),
           list(slot(1, DType::f32, {rows_, kHidden})), {kVocab, kHidden, 0});
  }

  void backward(bool firstMicroBatch) {
    int64_t acc = firstMicroBatch ? 0 : 1;
    std::vector<uint32_t> slots;
    auto add = [&](uint32_t cls) {
      slots.push_back(cls);
      return static_cast<uint32_t>(slots.size() - 1);
    };
    uint32_t tokens = first_ ? add(tokens_) : 0;
    uint32_t targets = last_ ? add(targets_) : 0;
    uint32_t x = last_ ? add(x_) : 0;
    uint32_t dx = o_.pp > 1 ? add(dx_) : 0;
    FragmentT &f =
        fragment(firstMicroBatch ? "backward_first" : "backward", slots);
    auto gradient = [&] {
      return o_.pp > 1 ? slot(dx, DType::f32, {rows_, kHidden})
                       : lane(rows_ * kVocab, {rows_, kHidden});
    };
    if (last_) {
      uint32_t head = parameters_.back();
      int64_t small = rows_ * (kVocab + kHidden);
      auto input = [&] { return slot(x, DType::f32, {rows_, kHidden}); };
      auto logits = [&] { return lane(0, {rows_, kVocab}); };
      auto want = [&] { return slot(targets, DType::i32, {rows_}); };
      auto max = [&] { return lane(small, {rows_}); };
      auto sums = [&] { return lane(small + rows_, {2, rows_}); };
      auto lse = [&] { return lane(small + 3 * rows_, {rows_}); };
      launch(f, Kernel::linear, list(input(), weights(head)), list(logits()),
             {kVocab, kHidden});
      launch(f, Kernel::cross_entropy_max, list(logits()), list(max()),
             {kVocab, kVocab});
      launch(f, Kernel::cross_entropy_sum, list(logits(), want(), max()),
             list(sums()), {kVocab, kVocab, 0});
      launch(f, Kernel::cross_entropy_loss, list(sums(), max()),
             list(lse(), metrics()), {1});
      double tokensOfStep =
          double(o_.dp) * o_.microBatches * static_cast<double>(rows_);
      launch(f, Kernel::cross_entropy_grad, list(logits(), want(), lse()),
             list(logits()), {kVocab, kVocab, 0}, {1 / tokensOfStep});
      launch(f, Kernel::linear_grad_weight, list(logits(), input()),
             list(weights(head + 1)), {kVocab, kHidden, acc});
      launch(f, Kernel::linear_grad_input, list(logits(), weights(head)),
             list(gradient()), {kVocab, kHidden});
    }
    if (first_)
      launch(f, Kernel::embedding_grad,
             list(gradient(), slot(tokens, DType::i32, {rows_})),
             list(weights(parameters_[0] + 1)), {kVocab, kHidden, 0, acc});
  }

  /// A collective on its own stream, between two events of the home stream.
  InstructionT &collective(FragmentT &f, Opcode op, uint32_t group, Buffers in,
                           Buffers out) {
    auto event = [&](Opcode kind, uint32_t stream, uint32_t id) {
      instruction(f, kind, stream).event = id;
    };
    uint32_t e = f.events;
    f.events += 2;
    event(Opcode::record, kCompute, e);
    event(Opcode::wait, kCollective, e);
    InstructionT &i =
        instruction(f, op, kCollective, std::move(in), std::move(out));
    i.group = group;
    event(Opcode::record, kCollective, e + 1);
    event(Opcode::wait, kCompute, e + 1);
    return i;
  }

  void update() {
    FragmentT &f = fragment("update");
    int64_t part = o_.zero1 ? shard() : kTiny;
    int64_t padded = o_.zero1 ? shard() * o_.dp : kTiny;
    auto whole = [&](uint32_t state) {
      return buffer(Region::state, state, DType::f32, {padded});
    };
    auto mine = [&](uint32_t state) {
      return o_.zero1 ? rangeOf(state, part) : whole(state);
    };
    Buffers in;
    Buffers out;
    for (uint32_t w : parameters_) {
      in.push_back(whole(w + 1));
      out.push_back(mine(w + 1));
    }
    collective(f, o_.zero1 ? Opcode::reduce_scatter : Opcode::all_reduce, 0,
               std::move(in), std::move(out));
    for (uint32_t w : parameters_) {
      launch(f, Kernel::sum_squares, list(mine(w + 1)), list(metrics()));
      // Without ZeRO all dp ranks hold the same sum: one of them counts.
      auto owner = constantExpr(o_.zero1 ? 1 : 0);
      if (!o_.zero1)
        owner->cases.push_back(Case(Axis::dp, false, 0, 1));
      f.instructions.back()->args.push_back(std::move(owner));
    }
    collective(f, Opcode::all_reduce, 1, list(metrics()), list(metrics()));
    launch(f, Kernel::clip_factor, {}, list(metrics()), {}, {kClip});
    for (uint32_t w : parameters_)
      launch(f, Kernel::adamw,
             list(mine(w + 1), metrics(),
                  buffer(Region::state, scalars_, DType::f64, {8})),
             list(mine(w), buffer(Region::state, w + 2, DType::f32, {part}),
                  buffer(Region::state, w + 3, DType::f32, {part})),
             {}, {0.9, 0.95, 1e-8, 0.1});
    for (uint32_t w : parameters_)
      if (o_.zero1)
        collective(f, Opcode::all_gather, 0, list(mine(w)), list(whole(w)));
  }

  ActionT &action(ActionKind kind, const std::string &label, uint32_t stream,
                  int microbatch,
                  const std::vector<std::pair<uint32_t, int>> &slots) {
    auto a = make<ActionT>();
    a->kind = kind;
    a->label = label;
    a->stream = stream;
    a->units.push_back(Unit(0, static_cast<uint32_t>(microbatch)));
    for (auto [cls, index] : slots) {
      auto binding = make<SlotBindingT>();
      binding->slot_class = cls;
      binding->index = static_cast<uint32_t>(index);
      a->bindings.push_back(std::move(binding));
    }
    // Every action has its own event.
    a->records = {static_cast<uint32_t>(list_->actions.size())};
    list_->actions.push_back(std::move(a));
    return *list_->actions.back();
  }

  uint32_t lastEvent() const {
    return static_cast<uint32_t>(list_->actions.size() - 1);
  }

  void run(const char *fragmentName, const std::string &label, int microbatch,
           const std::vector<std::pair<uint32_t, int>> &slots,
           std::vector<uint32_t> waits) {
    ActionT &a = action(ActionKind::run, label, kCompute, microbatch, slots);
    a.waits = std::move(waits);
    for (size_t i = 0; i < plan_->fragments.size(); ++i)
      if (plan_->fragments[i]->name == fragmentName)
        a.fragment = static_cast<uint32_t>(i);
  }

  void actions() {
    plan_->lists.push_back(make<ActionListT>());
    list_ = plan_->lists.back().get();
    list_->name = "step";
    int m = o_.microBatches;
    std::string s = std::to_string(stage_);
    auto name = [&](const char *kind, int j) {
      return s + kind + std::to_string(j);
    };
    auto activation = [&](uint32_t formal) {
      return slot(formal, DType::f32, {rows_, kHidden});
    };
    run("begin", "begin", 0, {}, {});
    std::vector<uint32_t> loaded;
    std::vector<uint32_t> arrived(m);
    for (int j = 0; j < m; ++j) {
      std::vector<std::pair<uint32_t, int>> slots;
      if (first_)
        slots.push_back({tokens_, j});
      if (last_)
        slots.push_back({targets_, j});
      ActionT &load =
          action(ActionKind::load, name("LOAD", j), kLoad, j, slots);
      for (uint32_t i = 0; i < slots.size(); ++i)
        load.buffers.push_back(slot(i, DType::i32, {rows_}));
      loaded.push_back(lastEvent());
    }
    std::vector<uint32_t> sent;
    for (int j = 0; j < m; ++j) {
      if (!first_) {
        ActionT &a =
            action(ActionKind::recv, name("RECV_F", j), kReceive, j, {{x_, j}});
        a.buffers.push_back(activation(0));
        a.channel = 0;
        arrived[j] = lastEvent();
        continue;
      }
      int index = o_.pp > 1 ? j % 2 : j;
      std::vector<uint32_t> waits{loaded[j]};
      if (o_.pp > 1 && j >= 2 && o_.messageEvents)
        waits.push_back(sent[j - 2]); // its slot is used again
      run("forward", name("F", j), j, {{tokens_, j}, {x_, index}}, waits);
      if (o_.pp > 1) {
        uint32_t computed = lastEvent();
        ActionT &a = action(ActionKind::send, name("SEND_F", j), kSend, j,
                            {{x_, index}});
        a.buffers.push_back(activation(0));
        a.channel = 0;
        if (o_.messageEvents)
          a.waits = {computed};
        sent.push_back(lastEvent());
      }
    }
    for (int j = 0; j < m; ++j) {
      std::vector<std::pair<uint32_t, int>> slots;
      std::vector<uint32_t> waits{loaded[j]};
      if (first_)
        slots.push_back({tokens_, j});
      if (last_) {
        slots.push_back({targets_, j});
        slots.push_back({x_, j});
      }
      if (!first_)
        waits.push_back(arrived[j]);
      if (o_.pp > 1)
        slots.push_back({dx_, j});
      if (o_.pp > 1 && first_) {
        ActionT &a = action(ActionKind::recv, name("RECV_B", j), kReceive, j,
                            {{dx_, j}});
        a.buffers.push_back(activation(0));
        a.channel = 1;
        waits.push_back(lastEvent());
      }
      run(j == 0 ? "backward_first" : "backward", name("B", j), j, slots,
          waits);
      if (o_.pp > 1 && last_) {
        uint32_t computed = lastEvent();
        ActionT &a =
            action(ActionKind::send, name("SEND_B", j), kSend, j, {{dx_, j}});
        a.buffers.push_back(activation(0));
        a.channel = 1;
        if (o_.messageEvents)
          a.waits = {computed};
      }
    }
    run("update", "update", 0, {}, {});
    list_->events = static_cast<uint32_t>(list_->actions.size());
  }

  TinyOptions o_;
  int stage_;
  bool first_;
  bool last_;
  std::unique_ptr<StagePlanT> plan_;
  ActionListT *list_ = nullptr;
  int64_t rows_;
  uint64_t at_ = 0;
  std::vector<uint32_t> parameters_;
  uint32_t scalars_ = 0;
  uint32_t metrics_ = 0;
  uint32_t tokens_ = 0;
  uint32_t targets_ = 0;
  uint32_t x_ = 0;
  uint32_t dx_ = 0;
};

} // namespace

std::vector<std::unique_ptr<StagePlanT>> tinyPlan(TinyOptions options) {
  std::vector<std::unique_ptr<StagePlanT>> stages;
  for (int stage = 0; stage < options.pp; ++stage)
    stages.push_back(Builder(options, stage).build());
  return stages;
}

Manifest tinyManifest(const StagePlanT &plan) {
  Manifest manifest;
  manifest.name = plan.name;
  manifest.digest = "0123456789abcdef0123456789abcdef";
  manifest.mesh = *plan.mesh;
  return manifest;
}

std::string tinyText() {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "Reckon first, then try; line " + std::to_string(i) + ".\n";
  return text;
}

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/reckon-test-XXXXXX";
  path = mkdtemp(name);
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

static void trainRank(const TinyOptions &options, int steps,
                      const TemporaryFolder &folder, int rank,
                      comm::Communicator &communicator,
                      exec::TrainOptions train,
                      const std::function<void(int, exec::Trainer &)> &during,
                      RankResult &result) {
  auto stages = tinyPlan(options);
  int stage = rank / options.dp;
  auto device = device::makeCpuDevice({.threads = 1, .isa = {}});
  ASSERT_TRUE(device.ok()) << device.error().message;
  Manifest manifest = tinyManifest(*stages[stage]);
  exec::Trainer trainer(manifest, *stages[stage], communicator, **device,
                        systemFiles(), systemClock(), std::move(train));
  result.status = trainer.setUp();
  if (!result.status.ok())
    return;
  if (during) {
    during(rank, trainer);
    return;
  }
  for (int step = 1; step <= steps && result.status.ok(); ++step) {
    result.status = trainer.step(step);
    result.losses.push_back(trainer.loss());
    result.norms.push_back(trainer.gradNorm());
  }
  if (!result.status.ok()) {
    trainer.abort(result.status.error());
    return;
  }
  for (const ActionT *action : trainer.executor().trace())
    result.trace.push_back(action->label);
  result.status = communicator.finish();
}

std::vector<RankResult>
trainTiny(const TinyOptions &options, int steps, const TemporaryFolder &folder,
          const std::function<void(int, exec::TrainOptions &)> &adjust,
          const std::function<void(int, exec::Trainer &)> &during) {
  std::ofstream(folder / "corpus.txt") << tinyText();
  int world = options.dp * options.pp;
  auto communicators = comm::makeLocalWorld(world, {});
  EXPECT_TRUE(communicators.ok()) << communicators.error().message;
  std::vector<RankResult> results(world);
  std::vector<std::thread> threads;
  std::FILE *sink = std::fopen("/dev/null", "w");
  for (int rank = 0; rank < world; ++rank) {
    exec::TrainOptions train;
    train.planDirectory = folder.path;
    train.runDirectory = folder / "run";
    train.out = sink;
    train.steps = steps;
    if (adjust)
      adjust(rank, train);
    threads.emplace_back([&, rank, train] {
      trainRank(options, steps, folder, rank, *(*communicators)[rank], train,
                during, results[rank]);
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  std::fclose(sink);
  return results;
}

std::vector<double> initialWeights(const std::string &name) {
  std::vector<float> values(kTiny);
  device::fillNormal(values.data(), 7, name, 0, kTiny, 0.1);
  return {values.begin(), values.end()};
}

RankResult referenceTiny(int globalBatch, int steps,
                         std::vector<double> embedding,
                         std::vector<double> head) {
  TemporaryFolder folder;
  std::ofstream(folder / "corpus.txt") << tinyText();
  auto source = data::openText(folder / "corpus.txt", kSequence, kVocab, 7);
  EXPECT_TRUE(source.ok());
  RankResult result;
  std::vector<double> *weights[2] = {&embedding, &head};
  std::vector<double> m[2] = {std::vector<double>(kTiny),
                              std::vector<double>(kTiny)};
  std::vector<double> v[2] = {m[0], m[0]};
  for (int step = 1; step <= steps; ++step) {
    std::vector<double> gradient[2] = {std::vector<double>(kTiny),
                                       std::vector<double>(kTiny)};
    double loss = 0;
    double scale = 1.0 / (globalBatch * kSequence);
    for (int i = 0; i < globalBatch; ++i) {
      std::vector<int32_t> tokens(kSequence);
      std::vector<int32_t> targets(kSequence);
      (*source)->read((step - 1) * globalBatch + i, tokens.data(),
                      targets.data());
      for (int64_t t = 0; t < kSequence; ++t) {
        const double *x = &embedding[tokens[t] * kHidden];
        std::vector<double> p(kVocab);
        double sum = 0;
        for (int64_t w = 0; w < kVocab; ++w) {
          double logit = 0;
          for (int64_t h = 0; h < kHidden; ++h)
            logit += x[h] * head[w * kHidden + h];
          sum += p[w] = std::exp(logit);
        }
        loss -= std::log(p[targets[t]] / sum);
        for (int64_t w = 0; w < kVocab; ++w) {
          double d = (p[w] / sum - (w == targets[t])) * scale;
          for (int64_t h = 0; h < kHidden; ++h) {
            gradient[1][w * kHidden + h] += d * x[h];
            gradient[0][tokens[t] * kHidden + h] += d * head[w * kHidden + h];
          }
        }
      }
    }
    double norm = 0;
    for (const auto &g : gradient)
      for (double value : g)
        norm += value * value;
    norm = std::sqrt(norm);
    result.losses.push_back(loss * scale);
    result.norms.push_back(norm);
    double factor = std::min(1.0, kClip / (norm + 1e-6));
    for (int k = 0; k < 2; ++k)
      for (int64_t i = 0; i < kTiny; ++i) {
        double g = gradient[k][i] * factor;
        double &w = (*weights[k])[i];
        m[k][i] = 0.9 * m[k][i] + 0.1 * g;
        v[k][i] = 0.95 * v[k][i] + 0.05 * g * g;
        double mHat = m[k][i] / (1 - std::pow(0.9, step));
        double vHat = v[k][i] / (1 - std::pow(0.95, step));
        w = w * (1 - kRate * 0.1) - kRate * mHat / (std::sqrt(vHat) + 1e-8);
      }
  }
  return result;
}

} // namespace reckon::test
