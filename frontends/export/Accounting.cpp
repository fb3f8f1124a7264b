//===- Accounting.cpp - bytes and traffic, theirs beside ours -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/Export.h"

#include "passes/model/account/Accountant.h"
#include "passes/model/time/TimeModel.h"

#include <cstdio>
#include <map>

using namespace reckon;
using namespace reckon::exports;

namespace {

struct Row {
  const char *name;
  uint64_t model::StageMemory::*bytes;
};

constexpr Row kRows[] = {{"parameters", &model::StageMemory::parameters},
                         {"gradients", &model::StageMemory::gradients},
                         {"optimizer", &model::StageMemory::optimizer},
                         {"activations", &model::StageMemory::activations},
                         {"logits", &model::StageMemory::logits},
                         {"communication", &model::StageMemory::communication},
                         {"workspace", &model::StageMemory::workspace},
                         {"reserve", &model::StageMemory::reserve}};

std::string line(const std::string &name, const std::string &theirs,
                 const std::string &ours) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), "  %-32s %20s %20s\n", name.c_str(),
                theirs.c_str(), ours.c_str());
  return buffer;
}

std::string bytes(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.0f", value);
  std::string digits = buffer, text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return text;
}

/// Bytes that a rank sends in a step, by dimension and collective.
std::map<std::string, double> traffic(const model::Job &job,
                                      const model::Choice &choice) {
  std::map<std::string, double> sums;
  for (const model::CommunicationTime &item :
       model::TimeModel(job).step(choice).communication)
    sums[item.dimension + " " + item.collective] += item.bytesPerStep;
  return sums;
}

} // namespace

std::string exports::accountingText(Target target, const ExportInput &input) {
  model::Job theirs = input.job(target), ours = theirs;
  ours.representation = Representation::Reckon;
  const model::Choice &choice = input.choice;
  model::Accountant their(theirs), our(ours);
  int64_t rank = their.peak(choice).ppRank;
  model::StageMemory theirMemory = their.memory(choice, rank);
  model::StageMemory ourMemory = our.memory(choice, rank);
  std::string text = "resident bytes of a device on pipeline rank " +
                     std::to_string(rank) + ", the fullest\n";
  text += line("", toString(target), "reckon");
  for (const Row &row : kRows)
    text += line(row.name, bytes(static_cast<double>(theirMemory.*row.bytes)),
                 bytes(static_cast<double>(ourMemory.*row.bytes)));
  text += line("total", bytes(static_cast<double>(theirMemory.total())),
               bytes(static_cast<double>(ourMemory.total())));

  std::map<std::string, double> theirTraffic = traffic(theirs, choice);
  std::map<std::string, double> ourTraffic = traffic(ours, choice);
  std::map<std::string, double> all = theirTraffic;
  all.insert(ourTraffic.begin(), ourTraffic.end());
  text += "bytes that a device sends in a step\n";
  text += line("", toString(target), "reckon");
  for (const auto &[name, unused] : all)
    text += line(name, bytes(theirTraffic[name]), bytes(ourTraffic[name]));
  return text;
}
