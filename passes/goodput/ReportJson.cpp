//===- ReportJson.cpp - reckon goodput --format json ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Analysis.h"

#include <nlohmann/json.hpp>

using namespace reckon;
using namespace reckon::goodput;
using Json = nlohmann::ordered_json;

static Json sharesJson(const Shares &shares) {
  return {{"useful", shares.useful},   {"rollback", shares.rollback},
          {"save", shares.save},       {"detect", shares.detect},
          {"restart", shares.restart}, {"load", shares.load}};
}

static Json optional(const std::optional<double> &value) {
  return value ? Json(*value) : Json(nullptr);
}

static Json inputsJson(const Inputs &in) {
  return {{"gpus", in.gpus},
          {"gpu_mtbf_hours", in.gpuMtbfHours},
          {"price_per_gpu_hour", in.pricePerGpuHour},
          {"bytes_per_parameter", in.bytesPerParameter},
          {"checkpoint_bytes", in.checkpointBytes},
          {"bytes_per_gpu", in.bytesPerGpu},
          {"checkpoint_bandwidth_gbs", in.storageBandwidth / 1e9},
          {"copy_bandwidth_gbs", in.copyBandwidth / 1e9},
          {"async", in.async},
          {"write_s", in.writeSeconds},
          {"copy_s", in.copySeconds},
          {"step_s", in.plan.stepSeconds},
          {"mtbf_s", in.terms.mtbf},
          {"delta_s", in.terms.delta},
          {"detect_s", in.terms.detect},
          {"restart_s", in.terms.restart},
          {"load_s", in.terms.load},
          {"recovery_s", in.terms.recovery()}};
}

std::string goodput::analysisJson(const Analysis &a) {
  Json json = {{"schema", "reckon.goodput/1"},
               {"inputs", inputsJson(a.inputs)},
               {"forward_progress", a.interval.has_value()},
               {"interval",
                {{"used_s", optional(a.interval)},
                 {"best_s", optional(bestInterval(a.inputs.terms))},
                 {"young_s", youngInterval(a.inputs.terms)},
                 {"least_s", a.inputs.leastInterval()}}},
               {"least_waste", leastWaste(a.inputs.terms)}};
  json["goodput"] = a.interval ? Json(a.shares.useful) : Json(0.0);
  json["shares"] = a.interval ? sharesJson(a.shares) : Json(nullptr);
  json["goodput_exact"] = a.interval ? Json(a.renewal) : Json(0.0);
  Json simulations = Json::array();
  for (const Simulation &s : a.simulations)
    simulations.push_back({{"failures", s.failures},
                           {"checkpoints", s.checkpoints},
                           {"wall_s", s.wall},
                           {"goodput", s.shares.useful},
                           {"shares", sharesJson(s.shares)}});
  json["simulations"] = simulations;
  Json gains = Json::array();
  for (const Gain &gain : a.gains)
    gains.push_back({{"term", gain.term},
                     {"from_s", gain.from},
                     {"to_s", gain.to},
                     {"points", gain.points},
                     {"points_per_second", gain.perSecond},
                     {"dollars_per_30_days", gain.dollarsPer30Days}});
  json["gains"] = gains;
  Json sizes = Json::array();
  for (const SizeRow &row : a.sizes)
    sizes.push_back({{"gpus", row.gpus},
                     {"mtbf_h", row.mtbfHours},
                     {"interval_s", optional(row.interval)},
                     {"goodput", row.goodput}});
  json["by_size"] = sizes;
  json["money"] = {{"dollars_per_30_days", a.dollarsPer30Days},
                   {"lost_per_30_days", a.lostPer30Days}};
  if (a.mfuPoint) {
    const MfuPoint &p = *a.mfuPoint;
    json["money"]["mfu_point"] = {
        {"mfu_percent", p.mfu},
        {"days", p.days},
        {"derivative",
         {{"days", p.derivativeDays}, {"dollars", p.derivativeDollars()}}},
        {"step", {{"days", p.stepDays}, {"dollars", p.stepDollars()}}}};
  }
  json["training"] = {{"steps", a.inputs.trainSteps},
                      {"productive_s", a.training.productiveSeconds},
                      {"wall_s", optional(a.training.wallSeconds)},
                      {"dollars", a.training.dollars}};
  return json.dump(2) + "\n";
}
