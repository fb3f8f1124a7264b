//===- Calibration.cpp ----------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Calibration.h"

#include "frontends/spec/Scalars.h"
#include "frontends/spec/Yaml.h"

namespace reckon {

std::vector<std::pair<std::string, double>>
parseCalibration(const std::string &file, std::string_view text,
                 std::string_view accelerator,
                 std::vector<Diagnostic> &errors) {
  std::vector<std::pair<std::string, double>> constants;
  std::optional<Node> tree = parseYaml(file, text, errors);
  if (!tree)
    return constants;
  const Entry *measured = tree->isMap() ? tree->find("constants") : nullptr;
  if (!measured || !measured->value.isMap()) {
    errors.push_back(
        errorAt(measured ? measured->value.loc : tree->loc,
                "expected a map of measured numbers under constants, got " +
                    (measured ? measured->value.describe() : tree->describe()) +
                    "; make the file with reckon calibrate -o"));
    return constants;
  }
  if (const Entry *device = tree->find("accelerator");
      device && device->value.text != accelerator)
    errors.push_back(errorAt(device->value.loc,
                             "expected a calibration of cluster.accelerator, " +
                                 quoteForMessage(accelerator) +
                                 ", got one of " + device->value.describe() +
                                 "; measure that device or name its file"));
  for (const Entry &entry : measured->value.entries) {
    std::optional<double> value;
    if (entry.value.isScalar() && !entry.value.quoted)
      value = parseReal(entry.value.text);
    if (!value || *value < 0) {
      errors.push_back(errorAt(entry.value.loc,
                               "expected a number of at least 0 for " +
                                   quoteForMessage(entry.key) + ", got " +
                                   entry.value.describe() +
                                   "; make the file with reckon calibrate -o"));
      continue;
    }
    constants.emplace_back(entry.key, *value);
  }
  return constants;
}

} // namespace reckon
