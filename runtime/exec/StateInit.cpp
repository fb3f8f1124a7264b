//===- StateInit.cpp - the first values of a rank's states ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/StateInit.h"

#include "runtime/device/RopeTable.h"
#include "runtime/device/kernels/CounterRng.h"
#include "runtime/exec/StatePart.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace reckon::exec {

using namespace plan;

namespace {

/// Produces elements [first, first + count) of a flattened global tensor.
using Values = std::function<void(int64_t first, int64_t count, float *out)>;

/// Round to nearest even, as hardware does; NaN stays NaN.
uint16_t toBf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

class Initializer {
public:
  Initializer(const StagePlanT &plan, const Coord &coord,
              device::Device &device, std::byte *arena,
              const SafetensorsFile *weights)
      : plan_(plan), coord_(coord), device_(device), arena_(arena),
        weights_(weights) {}

  Status run() {
    for (const auto &state : plan_.states) {
      // Padding of flat states too, and what no initial value is given.
      RECKON_TRY(device_.zero(arena_ + state->offset,
                              static_cast<int64_t>(state->bytes)));
      switch (state->role) {
      case Role::parameter:
      case Role::main_weight: {
        if (const InitT *init = drawn(*state)) {
          RECKON_TRY(draw(*state, *init));
          break;
        }
        Result<Values> values = parameterValues(*state);
        if (!values)
          return values.error();
        RECKON_TRY(fill(*state, *values));
        break;
      }
      case Role::buffer:
        RECKON_TRY(buffer(*state));
        break;
      case Role::gradient:
      case Role::momentum:
      case Role::variance:
      case Role::scalars:
      case Role::metrics:
        break;
      }
    }
    return device_.synchronize();
  }

private:
  /// The Init of a main weight is that of its parameter when it has none.
  const InitT *initOf(const StateT &state) const {
    if (state.init && state.init->kind != InitKind::none)
      return state.init.get();
    for (const auto &other : plan_.states)
      if (other->role == Role::parameter && other->init &&
          other->name == parameterName(state.name))
        return other->init.get();
    return nullptr;
  }

  /// The Init of a state that starts with random numbers, or null.
  const InitT *drawn(const StateT &state) const {
    const InitT *init = weights_ ? nullptr : initOf(state);
    return init && init->kind == InitKind::normal ? init : nullptr;
  }

  /// Random numbers are made where they are needed: a host takes minutes for
  /// the parameters of a GPU.
  Status draw(const StateT &state, const InitT &init) {
    RECKON_TRY(isFloat(state));
    auto normal = device::normalStream(plan_.seed, parameterName(state.name),
                                       init.stddev);
    auto dtype = static_cast<device::DType>(state.dtype);
    int64_t size = dtypeSize(state.dtype);
    Status status;
    partOf(state, *plan_.mesh, coord_)
        .forEachRun([&](int64_t from, int64_t to, int64_t count) {
          if (status.ok())
            status = device_.fillNormal(arena_ + state.offset + to * size,
                                        dtype, normal, from, count);
        });
    return status;
  }

  static Status isFloat(const StateT &state) {
    if (state.dtype == DType::f32 || state.dtype == DType::bf16)
      return Status::success();
    return makeError(ExitCode::Incompatible, "state " + state.name +
                                                 ": cannot initialise dtype " +
                                                 EnumNameDType(state.dtype));
  }

  Result<Values> parameterValues(const StateT &state) const {
    std::string name = parameterName(state.name);
    if (weights_) {
      const TensorEntry *entry = weights_->find(name);
      if (!entry)
        return makeError(ExitCode::Incompatible,
                         weights_->path() + ": expected a tensor " + name +
                             " of shape " + shapeText(state.global_shape) +
                             ", found none: use weights of the plan's model");
      if (entry->shape != state.global_shape)
        return makeError(ExitCode::Incompatible,
                         weights_->path() + ": expected shape " +
                             shapeText(state.global_shape) + " for tensor " +
                             name + ", found " + shapeText(entry->shape) +
                             ": use weights of the plan's model");
      if (!SafetensorsFile::isFloat(*entry))
        return makeError(ExitCode::Incompatible,
                         weights_->path() + ": expected a float tensor " +
                             name + ", found " + entry->dtype);
      const SafetensorsFile *file = weights_;
      return Values([file, entry](int64_t first, int64_t count, float *out) {
        file->read(*entry, first, count, out);
      });
    }
    const InitT *init = initOf(state);
    switch (init ? init->kind : InitKind::none) {
    case InitKind::ones:
      return Values([](int64_t, int64_t count, float *out) {
        std::fill(out, out + count, 1.0f);
      });
    case InitKind::none:
    case InitKind::zeros:
      return Values([](int64_t, int64_t count, float *out) {
        std::fill(out, out + count, 0.0f);
      });
    case InitKind::normal: // drawn by the device
    case InitKind::rope:
      break;
    }
    return makeError(ExitCode::Incompatible,
                     "state " + state.name +
                         ": a rotary table cannot initialise a parameter");
  }

  Status fill(const StateT &state, const Values &values) {
    RECKON_TRY(isFloat(state));
    Status status;
    partOf(state, *plan_.mesh, coord_)
        .forEachRun([&](int64_t from, int64_t to, int64_t count) {
          for (int64_t done = 0; done < count && status.ok();) {
            int64_t n = std::min<int64_t>(count - done, kChunk);
            values(from + done, n, floats_.data());
            status = store(state, to + done, n);
            done += n;
          }
        });
    return status;
  }

  /// Converts `count` values in floats_ and copies them to the device.
  Status store(const StateT &state, int64_t first, int64_t count) {
    int64_t size = dtypeSize(state.dtype);
    std::byte *target = arena_ + state.offset + first * size;
    if (state.dtype == DType::f32)
      return device_.copyToDevice(target, floats_.data(), count * size);
    std::transform(floats_.begin(), floats_.begin() + count, halves_.begin(),
                   toBf16);
    return device_.copyToDevice(target, halves_.data(), count * size);
  }

  Status buffer(const StateT &state) {
    if (!state.init || state.init->kind != InitKind::rope)
      return Status::success();
    if (state.dtype != DType::f32 || state.global_shape.size() != 2)
      return makeError(ExitCode::Incompatible,
                       "state " + state.name +
                           ": a rotary table is f32 and has two dimensions");
    int64_t positions = state.global_shape[0];
    int64_t width = state.global_shape[1];
    const std::vector<double> &rope = state.init->rope;
    std::vector<float> table(static_cast<size_t>(positions * width));
    device::ropeTable(table.data(), positions, width,
                      {rope[0], rope[1], rope[2], rope[3], rope[4]});
    return fill(state, [&](int64_t first, int64_t count, float *out) {
      std::copy_n(table.begin() + first, count, out);
    });
  }

  static constexpr int64_t kChunk = 1 << 16;

  const StagePlanT &plan_;
  Coord coord_;
  device::Device &device_;
  std::byte *arena_;
  const SafetensorsFile *weights_;
  std::vector<float> floats_ = std::vector<float>(kChunk);
  std::vector<uint16_t> halves_ = std::vector<uint16_t>(kChunk);
};

} // namespace

Status initStates(const StagePlanT &plan, const Coord &coord,
                  device::Device &device, std::byte *arena,
                  const SafetensorsFile *weights) {
  return Initializer(plan, coord, device, arena, weights).run();
}

} // namespace reckon::exec
