//===- Calibration.h - the file that cluster.calibration names ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_CALIBRATION_H
#define RECKON_FRONTENDS_SPEC_CALIBRATION_H

#include "frontends/spec/Diagnostic.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon {

/// Reads the constants of a file that `reckon calibrate` wrote, in its order:
/// the map `constants` from names (those of passes/model/time/efficiency.csv,
/// which the time model checks) to numbers that are not negative. Everything
/// else in the file is for people. `accelerator`, when the file names one, must
/// be the spec's. Errors are located in the file.
std::vector<std::pair<std::string, double>>
parseCalibration(const std::string &file, std::string_view text,
                 std::string_view accelerator, std::vector<Diagnostic> &errors);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_CALIBRATION_H
