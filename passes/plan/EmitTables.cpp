//===- EmitTables.cpp - tables of one plan file ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/EmitTables.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reckon;
using namespace reckon::planir;

// The dialect numbers its enums as the file does.
static_assert(int(planir::Axis::pp) == int(plan::Axis::pp) &&
              int(planir::Role::metrics) == int(plan::Role::metrics) &&
              int(planir::InitKind::rope) == int(plan::InitKind::rope) &&
              int(planir::Reduction::max) == int(plan::Reduction::max) &&
              int(planir::Direction::backward) ==
                  int(plan::Direction::backward));

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::string reckon::planir::sourceOf(Location loc) {
  std::string text;
  loc->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    text = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
            Twine(file.getColumn()))
               .str();
    return WalkResult::interrupt();
  });
  return text;
}

std::unique_ptr<plan::ExprT> reckon::planir::emitExpr(ExprAttr expr) {
  auto result = std::make_unique<plan::ExprT>();
  result->base = expr.getBase();
  for (const ExprTerm &term : expr.getTerms())
    result->terms.emplace_back(static_cast<plan::Axis>(term.axis), term.scale);
  for (const ExprCase &c : expr.getCases())
    result->cases.emplace_back(static_cast<plan::Axis>(c.axis), c.differs,
                               c.equals, c.value);
  return result;
}

static plan::DType emitDType(Type type) {
  return llvm::TypeSwitch<Type, plan::DType>(type)
      .Case<Float64Type>([](auto) { return plan::DType::f64; })
      .Case<BFloat16Type>([](auto) { return plan::DType::bf16; })
      .Case<Float16Type>([](auto) { return plan::DType::f16; })
      .Case<Float8E4M3FNType>([](auto) { return plan::DType::f8e4m3; })
      .Case<Float8E5M2Type>([](auto) { return plan::DType::f8e5m2; })
      .Case<IntegerType>([](IntegerType integer) {
        return integer.getWidth() == 64   ? plan::DType::i64
               : integer.getWidth() == 32 ? plan::DType::i32
                                          : plan::DType::u8;
      })
      .Default([](Type) { return plan::DType::f32; });
}

void reckon::planir::emitType(BufferType type, plan::BufferT &buffer) {
  buffer.dtype = emitDType(type.getElementType());
  buffer.shape.assign(type.getShape().begin(), type.getShape().end());
}

static std::vector<plan::Axis> emitAxes(ArrayRef<int64_t> axes) {
  std::vector<plan::Axis> result;
  for (int64_t axis : axes)
    result.push_back(static_cast<plan::Axis>(axis));
  return result;
}

//===----------------------------------------------------------------------===//
// Config
//===----------------------------------------------------------------------===//

namespace {

/// Typed access to a program's config; remembers what is missing.
class ConfigReader {
public:
  ConfigReader(ProgramOp program) : program(program) {
    if (auto config = program.getConfig())
      root = *config;
  }

  int64_t integer(StringRef path) {
    auto value = dyn_cast_or_null<IntegerAttr>(find(path));
    return value ? value.getInt() : miss(path);
  }
  double number(StringRef path) {
    auto value = dyn_cast_or_null<FloatAttr>(find(path));
    return value ? value.getValueAsDouble() : miss(path);
  }
  std::string text(StringRef path, bool optional = false) {
    auto value = dyn_cast_or_null<StringAttr>(find(path));
    if (!value && !optional)
      miss(path);
    return value ? value.getValue().str() : std::string();
  }

  LogicalResult result() const {
    if (missing.empty())
      return success();
    return ProgramOp(program).emitOpError()
           << "config lacks what the plan file needs: " << missing;
  }

private:
  Attribute find(StringRef path) const {
    Attribute here = root;
    SmallVector<StringRef> keys;
    path.split(keys, '.');
    for (StringRef key : keys) {
      auto dictionary = dyn_cast_or_null<DictionaryAttr>(here);
      here = dictionary ? dictionary.get(key) : Attribute();
    }
    return here;
  }
  int miss(StringRef path) {
    missing += (missing.empty() ? "" : ", ") + path.str();
    return 0;
  }

  ProgramOp program;
  DictionaryAttr root;
  std::string missing;
};

LogicalResult emitConfig(ProgramOp program, plan::StagePlanT &file) {
  ConfigReader config(program);
  file.name = config.text("name");
  file.precision = config.text("precision");
  file.seed = config.integer("seed");
  file.sequence_length = config.integer("sequence_length");
  file.micro_batch_size = config.integer("micro_batch_size");
  file.num_micro_batches = config.integer("num_micro_batches");
  file.global_batch_size = config.integer("global_batch_size");
  file.vocab_size = config.integer("vocab_size");
  file.model_flops_per_token = config.number("model_flops_per_token");
  file.peak_flops = config.number("peak_flops");

  file.optimizer = std::make_unique<plan::OptimizerT>();
  plan::OptimizerT &optimizer = *file.optimizer;
  optimizer.lr = config.number("optimizer.lr");
  optimizer.beta1 = config.number("optimizer.beta1");
  optimizer.beta2 = config.number("optimizer.beta2");
  optimizer.clip_grad = config.number("optimizer.clip_grad");
  optimizer.schedule = config.text("lr_schedule.type");
  optimizer.min_lr = config.number("lr_schedule.min_lr");
  optimizer.warmup_steps = config.integer("lr_schedule.warmup_steps");
  optimizer.decay_steps = config.integer("lr_schedule.decay_steps");
  optimizer.train_steps = config.integer("lr_schedule.train_steps");

  file.data = std::make_unique<plan::DataT>();
  file.data->format = config.text("data.format");
  file.data->path = config.text("data.path");
  file.data->base = config.text("data.base", /*optional=*/true);
  file.data->tokenizer = config.text("data.tokenizer");
  return config.result();
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

std::unique_ptr<plan::GroupT> emitGroup(GroupOp op) {
  auto group = std::make_unique<plan::GroupT>();
  StringRef name = op.getSymName();
  name.consume_back("_ranks");
  group->name = name.str();
  group->axes = emitAxes(op.getAxes());
  if (op.getFilters())
    for (auto filter : op.getFilters()->getAsRange<AxisFilterAttr>()) {
      auto entry = std::make_unique<plan::AxisFilterT>();
      entry->axis = static_cast<plan::Axis>(filter.getAxis());
      entry->values.assign(filter.getValues().begin(),
                           filter.getValues().end());
      group->filters.push_back(std::move(entry));
    }
  return group;
}

std::unique_ptr<plan::StateT> emitState(StateOp op) {
  auto state = std::make_unique<plan::StateT>();
  state->name = op.getSymName().str();
  state->role = static_cast<plan::Role>(op.getRole());
  state->dtype = emitDType(cast<BufferType>(op.getType()).getElementType());
  state->global_shape.assign(op.getGlobalShape().begin(),
                             op.getGlobalShape().end());
  for (auto extent : op.getBox().getAsRange<ExtentAttr>()) {
    auto entry = std::make_unique<plan::ExtentT>();
    entry->start = emitExpr(extent.getStart());
    entry->size = emitExpr(extent.getSize());
    state->box.push_back(std::move(entry));
  }
  if (op.getFlatAxes()) {
    ArrayRef<int64_t> axes = *op.getFlatAxes();
    state->flat_axes = emitAxes(axes);
    state->flat_elements = *op.getFlatElements();
  }
  state->offset = *op.getOffset();
  state->bytes = op.getBytes();
  // Accumulators mean nothing beyond the step that fills them.
  state->lifetime = op.getRole() == Role::gradient ? plan::Lifetime::step
                                                   : plan::Lifetime::persistent;
  if (op.getReplicaAxes()) {
    ArrayRef<int64_t> axes = *op.getReplicaAxes();
    state->replica_axes = emitAxes(axes);
  }
  if (auto init = op.getInitAttr()) {
    state->init = std::make_unique<plan::InitT>();
    state->init->kind = static_cast<plan::InitKind>(init.getKind());
    ArrayRef<double> numbers = init.getNumbers().asArrayRef();
    if (init.getKind() == InitKind::normal && !numbers.empty())
      state->init->stddev = numbers[0];
    if (init.getKind() == InitKind::rope)
      state->init->rope.assign(numbers.begin(), numbers.end());
  }
  state->decay = op.getDecay();
  state->tie = op.getTie().value_or("").str();
  state->source = sourceOf(op.getLoc());
  return state;
}

} // namespace

FailureOr<TableIndex> reckon::planir::emitTables(ProgramOp program,
                                                 plan::StagePlanT &file) {
  if (!program.getArenaBytes())
    return program.emitOpError("has no arena; run plan-allocate-buffers first");
  if (failed(emitConfig(program, file)))
    return failure();
  file.stage = program.getStage();
  ArrayRef<int64_t> mesh = program.getMesh();
  file.mesh = std::make_unique<plan::MeshT>();
  file.mesh->tp = mesh[0];
  file.mesh->cp = mesh[1];
  file.mesh->ep = mesh[2];
  file.mesh->dp = mesh[3];
  file.mesh->pp = mesh[4];
  file.arena_bytes = *program.getArenaBytes();

  TableIndex index;
  auto add = [](auto &table, llvm::StringMap<uint32_t> &numbers,
                StringRef symbol, auto entry) {
    numbers[symbol] = static_cast<uint32_t>(table.size());
    table.push_back(std::move(entry));
  };
  for (Operation &op : *program.getBody())
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](StreamOp op) {
          auto stream = std::make_unique<plan::StreamT>();
          stream->name = op.getSymName().str();
          add(file.streams, index.streams, op.getSymName(), std::move(stream));
        })
        .Case([&](GroupOp op) {
          add(file.groups, index.groups, op.getSymName(), emitGroup(op));
        })
        .Case([&](ChannelOp op) {
          auto channel = std::make_unique<plan::ChannelT>();
          channel->name = op.getSymName().str();
          channel->id = op.getId();
          channel->direction = static_cast<plan::Direction>(op.getDirection());
          channel->source_stage = op.getSource();
          channel->target_stage = op.getTarget();
          add(file.channels, index.channels, op.getSymName(),
              std::move(channel));
        })
        .Case([&](StateOp op) {
          add(file.states, index.states, op.getSymName(), emitState(op));
        })
        .Case([&](SlotClassOp op) {
          auto slot = std::make_unique<plan::SlotClassT>();
          slot->name = op.getSymName().str();
          slot->bytes = op.getBytes();
          slot->count = op.getCount();
          slot->offset = *op.getOffset();
          slot->category = op.getCategory().str();
          add(file.slot_classes, index.slotClasses, op.getSymName(),
              std::move(slot));
        })
        .Case([&](LaneOp op) {
          auto lane = std::make_unique<plan::LaneT>();
          lane->name = op.getSymName().str();
          lane->bytes = op.getBytes().value_or(0);
          lane->offset = *op.getOffset();
          lane->logits_bytes = op.getLogitsBytes();
          add(file.lanes, index.lanes, op.getSymName(), std::move(lane));
        })
        .Case([&](FragmentOp op) {
          uint32_t number = index.fragments.size();
          index.fragments[op.getSymName()] = number;
        });
  return index;
}
