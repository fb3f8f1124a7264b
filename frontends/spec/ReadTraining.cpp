//===- ReadTraining.cpp - the section training ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Reader.h"
#include "frontends/spec/Scalars.h"

namespace reckon {
namespace {

OptimizerSpec readOptimizer(Reader &reader) {
  const std::string section = "training.optimizer";
  OptimizerSpec optimizer;
  optimizer.loc = reader.locate(section);
  optimizer.name = reader.word(section + ".name");
  optimizer.lr = reader.real(section + ".lr");
  optimizer.eps = reader.real(section + ".eps");
  optimizer.weightDecay = reader.real(section + ".weight_decay");
  optimizer.clipGrad = reader.real(section + ".clip_grad");
  const KeyRow &betas = *findKey("training.optimizer.betas");
  optimizer.beta1.loc = optimizer.beta2.loc = reader.locate(betas.path);
  optimizer.beta1.value = 0.9;
  optimizer.beta2.value = 0.95;
  const Entry *entry = reader.find(betas.path);
  if (!entry)
    return optimizer;
  optimizer.beta1.given = optimizer.beta2.given = true;
  const Node &list = entry->value;
  if (!list.isList() || list.items.size() != 2) {
    reader.wrong(list, betas, "write for example betas: [0.9, 0.95]");
    return optimizer;
  }
  for (size_t i = 0; i < 2; ++i) {
    const Node &item = list.items[i];
    std::optional<double> beta;
    if (item.isScalar() && !item.quoted)
      beta = parseReal(item.text);
    if (!beta || *beta < 0 || *beta >= 1)
      reader.wrong(item, betas, "write for example betas: [0.9, 0.95]");
    else
      (i == 0 ? optimizer.beta1 : optimizer.beta2).value = *beta;
  }
  return optimizer;
}

LrScheduleSpec readSchedule(Reader &reader, int64_t trainSteps, double lr) {
  const std::string section = "training.lr_schedule";
  LrScheduleSpec schedule;
  schedule.loc = reader.locate(section);
  Field<std::string> type = reader.word(section + ".type");
  schedule.type.loc = type.loc;
  schedule.type.given = type.given;
  for (LrScheduleType each : {LrScheduleType::Constant, LrScheduleType::Linear,
                              LrScheduleType::Cosine, LrScheduleType::Wsd})
    if (*type == toString(each))
      schedule.type.value = each;
  schedule.warmupSteps = reader.integer(section + ".warmup_steps");
  schedule.decaySteps = reader.integer(section + ".decay_steps");
  schedule.minLr = reader.real(section + ".min_lr");
  bool wsd = *schedule.type == LrScheduleType::Wsd;
  if (wsd && !schedule.decaySteps.given)
    schedule.decaySteps.value = std::max<int64_t>(1, trainSteps / 10);
  if (!wsd && schedule.decaySteps.given && !type->empty())
    reader.warn(schedule.decaySteps.loc,
                "training.lr_schedule.decay_steps has no effect on " +
                    std::string(toString(*schedule.type)) +
                    "; it belongs to wsd");
  if (*schedule.type == LrScheduleType::Constant && schedule.minLr.given &&
      !type->empty())
    reader.warn(schedule.minLr.loc,
                "training.lr_schedule.min_lr has no effect on constant");
  if (trainSteps <= 0)
    return schedule;
  std::string horizon = "train_steps " + std::to_string(trainSteps);
  if (*schedule.warmupSteps > trainSteps)
    reader.error(schedule.warmupSteps.loc,
                 "expected training.lr_schedule.warmup_steps of at most " +
                     horizon + ", got " +
                     std::to_string(*schedule.warmupSteps) +
                     "; shorten the warm-up or train longer");
  else if (wsd && *schedule.warmupSteps + *schedule.decaySteps > trainSteps)
    reader.error(
        schedule.decaySteps.loc,
        "expected warmup_steps and decay_steps to fit into " + horizon +
            ", got " + std::to_string(*schedule.warmupSteps) + " and " +
            std::to_string(*schedule.decaySteps) + "; shorten one of them");
  if (*schedule.type != LrScheduleType::Constant && *schedule.minLr > lr)
    reader.error(schedule.minLr.loc,
                 "expected training.lr_schedule.min_lr of at most lr " +
                     formatNumber(lr) + ", got " +
                     formatNumber(*schedule.minLr) + "; lower it or raise lr");
  return schedule;
}

DataSpec readData(Reader &reader) {
  const std::string section = "training.data";
  DataSpec data;
  data.loc = reader.locate(section);
  const Entry *entry = reader.find(section);
  data.given = entry && entry->value.isMap() && !entry->value.entries.empty();
  data.format.value = "text";
  data.tokenizer.value = "byte";
  data.format.loc = data.path.loc = data.tokenizer.loc = data.loc;
  if (!data.given)
    return data;
  data.format = reader.word(section + ".format");
  data.path = reader.text(section + ".path");
  if (const Entry *path = reader.find(section + ".path"))
    data.folder = folderOf(path->value.loc);
  const KeyRow &tokenizer = *findKey("training.data.tokenizer");
  data.tokenizer.loc = reader.locate(tokenizer.path);
  if (const Entry *given = reader.find(tokenizer.path)) {
    data.tokenizer.given = true;
    std::optional<std::string> text = reader.readText(given->value, tokenizer);
    if (text && !isNeutral(given->value))
      data.tokenizer.value = *text;
  }
  return data;
}

CheckpointSpec readCheckpoint(Reader &reader) {
  const std::string section = "training.checkpoint";
  CheckpointSpec checkpoint;
  checkpoint.loc = reader.locate(section);
  const Entry *entry = reader.find(section);
  checkpoint.given =
      entry && entry->value.isMap() && !entry->value.entries.empty();
  checkpoint.dir = reader.text(section + ".dir");
  checkpoint.keep = reader.integer(section + ".keep");
  checkpoint.async = reader.flag(section + ".async");
  const KeyRow &interval = *findKey("training.checkpoint.interval");
  checkpoint.interval.loc = reader.locate(interval.path);
  if (const Entry *given = reader.find(interval.path);
      given && !isNeutral(given->value)) {
    KeyRow steps = interval;
    steps.kind = KeyKind::Integer;
    steps.low = 0, steps.high = 1e12;
    checkpoint.interval.given = true;
    checkpoint.interval.value =
        reader.readInteger(given->value, steps).value_or(0);
  }
  if (checkpoint.given)
    reader.warn(checkpoint.loc, "training.checkpoint is read, but this version "
                                "writes no checkpoints");
  return checkpoint;
}

} // namespace

TrainingSpec readTraining(Reader &reader) {
  TrainingSpec training;
  training.loc = reader.locate("training");
  training.sequenceLength = reader.integer("training.sequence_length");
  training.globalBatchSize = reader.integer("training.global_batch_size");
  training.trainSteps = reader.integer("training.train_steps");
  Field<std::string> precision = reader.word("training.precision");
  training.precision.value = Precision::Bf16;
  for (Precision each : {Precision::Fp32, Precision::Fp8})
    if (*precision == toString(each))
      training.precision.value = each;
  training.precision.loc = precision.loc;
  training.precision.given = precision.given;
  Field<std::string> reduce = reader.word("training.grad_reduce_dtype");
  training.gradReduceDtype.value =
      *reduce == "bf16" ? GradReduceDtype::Bf16 : GradReduceDtype::Fp32;
  training.gradReduceDtype.loc = reduce.loc;
  training.gradReduceDtype.given = reduce.given;
  training.optimizer = readOptimizer(reader);
  training.lrSchedule =
      readSchedule(reader, *training.trainSteps, *training.optimizer.lr);
  training.seed = reader.integer("training.seed");
  training.data = readData(reader);
  training.checkpoint = readCheckpoint(reader);
  return training;
}

} // namespace reckon
