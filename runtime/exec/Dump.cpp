//===- Dump.cpp - whole tensors by global name ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Dump.h"

#include "runtime/exec/Safetensors.h"
#include "runtime/exec/StatePart.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>
#include <utility>
#include <vector>

namespace reckon::exec {

using namespace plan;
using Json = nlohmann::json;

Result<DumpRequest> parseDump(const std::string &what,
                              const std::string &directory) {
  auto refuse = [&](const std::string &why) {
    return makeError(ExitCode::BadSpec,
                     "--dump: expected STEP:weights,gradients DIR, got \"" +
                         what + "\" (" + why + ")");
  };
  DumpRequest request;
  request.directory = directory;
  size_t colon = what.find(':');
  if (colon == 0 || colon == std::string::npos || colon > 15 ||
      what.find_first_not_of("0123456789") != colon)
    return refuse("no step before a colon");
  request.step = std::stoll(what.substr(0, colon));
  std::stringstream kinds(what.substr(colon + 1));
  for (std::string kind; std::getline(kinds, kind, ',');) {
    if (kind == "weights")
      request.weights = true;
    else if (kind == "gradients")
      request.gradients = true;
    else
      return refuse("unknown kind \"" + kind + "\"");
  }
  if (!request.weights && !request.gradients)
    return refuse("nothing to dump");
  if (request.gradients && request.step == 0)
    return refuse("there are no gradients before step 1");
  if (directory.empty())
    return refuse("no directory");
  return request;
}

Status agreeOnStatus(comm::Communicator &communicator, const Status &mine,
                     int *rank) {
  std::string text;
  if (!mine.ok())
    text = std::to_string(static_cast<int>(mine.error().code)) + " " +
           mine.error().message;
  auto all = communicator.allGatherBytes(text, /*timeout=*/0);
  if (!all)
    return all.error();
  for (size_t i = 0; i < all->size(); ++i) {
    const std::string &other = (*all)[i];
    if (other.empty())
      continue;
    if (rank)
      *rank = static_cast<int>(i);
    size_t space = other.find(' ');
    return makeError(static_cast<ExitCode>(std::atoi(other.c_str())),
                     other.substr(space + 1));
  }
  return Status::success();
}

namespace {

struct Piece {
  std::string name;
  const StateT *state = nullptr;
  StatePart part;
};

const StateT *findState(const StagePlanT &plan, const std::string &parameter,
                        Role role) {
  for (const auto &state : plan.states)
    if (state->role == role && parameterName(state->name) == parameter)
      return state.get();
  return nullptr;
}

/// What this rank contributes to the file.
std::vector<Piece> piecesOf(DumpKind kind, const StagePlanT &plan,
                            const Coord &coord) {
  std::vector<Piece> pieces;
  for (const auto &parameter : plan.states) {
    if (parameter->role != Role::parameter)
      continue;
    std::string name = parameterName(parameter->name);
    if (kind == DumpKind::Weights) {
      const StateT *main = findState(plan, name, Role::main_weight);
      const StateT *state = main ? main : parameter.get();
      if (ownsState(*state, coord))
        pieces.push_back({name, state, partOf(*state, *plan.mesh, coord)});
      continue;
    }
    const StateT *gradient = findState(plan, name, Role::gradient);
    const StateT *momentum = findState(plan, name, Role::momentum);
    if (!gradient)
      continue;
    // Which range of the reduced gradient is this rank's is what its
    // optimizer states say: the gradient itself is a whole accumulator.
    StateT reduced = *gradient;
    if (momentum) {
      reduced.flat_axes = momentum->flat_axes;
      reduced.flat_elements = momentum->flat_elements;
      reduced.replica_axes = momentum->replica_axes;
    }
    if (ownsState(reduced, coord))
      pieces.push_back({name, gradient, partOf(reduced, *plan.mesh, coord)});
  }
  return pieces;
}

/// The whole file's tensors, from every rank's pieces. All ranks compute the
/// same.
Result<std::map<std::string, TensorEntry>>
gatherTensors(const std::vector<Piece> &pieces,
              comm::Communicator &communicator) {
  Json mine = Json::array();
  for (const Piece &piece : pieces)
    mine.push_back({piece.name, piece.state->global_shape, piece.part.count});
  auto all = communicator.allGatherBytes(mine.dump(), /*timeout=*/0);
  if (!all)
    return all.error();
  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, int64_t> covered;
  for (const std::string &text : *all)
    for (const Json &entry : Json::parse(text)) {
      std::string name = entry[0].get<std::string>();
      tensors[name].shape = entry[1].get<std::vector<int64_t>>();
      covered[name] += entry[2].get<int64_t>();
    }
  for (const auto &[name, entry] : tensors)
    if (covered[name] != elementCount(entry.shape))
      return makeError(ExitCode::Internal,
                       "dump: the ranks hold " + std::to_string(covered[name]) +
                           " elements of " + name + " " +
                           shapeText(entry.shape) + ": report this");
  return tensors;
}

Error fileError(const std::string &path, int reason) {
  return makeError(ExitCode::Environment, path + ": cannot write (" +
                                              std::strerror(reason) +
                                              "): choose another directory");
}

/// A descriptor that closes itself.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

Status writeAt(int fd, const std::string &path, const void *data, size_t bytes,
               uint64_t offset) {
  const auto *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t n = pwrite(fd, from, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return fileError(path, errno);
    from += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return Status::success();
}

Status createFile(const std::string &path, const std::string &header,
                  uint64_t size) {
  Descriptor file;
  file.fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file.fd < 0 || ftruncate(file.fd, static_cast<off_t>(size)) != 0)
    return fileError(path, errno);
  return writeAt(file.fd, path, header.data(), header.size(), 0);
}

Status writePieces(const std::vector<Piece> &pieces,
                   const std::map<std::string, TensorEntry> &tensors,
                   device::Device &device, const std::byte *arena,
                   const std::string &path) {
  if (pieces.empty())
    return Status::success();
  Descriptor file;
  file.fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file.fd < 0)
    return fileError(path, errno);
  constexpr int64_t kChunk = 1 << 16;
  std::vector<float> values(kChunk);
  std::vector<uint16_t> halves(kChunk);
  for (const Piece &piece : pieces) {
    const StateT &state = *piece.state;
    if (state.dtype != DType::f32 && state.dtype != DType::bf16)
      return makeError(ExitCode::Incompatible, "dump: cannot convert " +
                                                   state.name + " of dtype " +
                                                   EnumNameDType(state.dtype));
    uint64_t start = tensors.at(piece.name).begin;
    int64_t size = dtypeSize(state.dtype);
    Status status;
    piece.part.forEachRun([&](int64_t to, int64_t from, int64_t count) {
      for (int64_t done = 0; done < count && status.ok();) {
        int64_t n = std::min(count - done, kChunk);
        const std::byte *source = arena + state.offset + (from + done) * size;
        bool wide = state.dtype == DType::f32;
        status = device.copyToHost(wide ? static_cast<void *>(values.data())
                                        : halves.data(),
                                   source, n * size);
        for (int64_t i = 0; !wide && i < n; ++i)
          values[i] = std::bit_cast<float>(uint32_t(halves[i]) << 16);
        if (status.ok())
          status = writeAt(file.fd, path, values.data(), n * sizeof(float),
                           start + (to + done) * sizeof(float));
        done += n;
      }
    });
    RECKON_TRY(status);
  }
  return Status::success();
}

} // namespace

Status dumpStates(DumpKind kind, const StagePlanT &plan, const Coord &coord,
                  device::Device &device, const std::byte *arena,
                  comm::Communicator &communicator, const std::string &path) {
  std::vector<Piece> pieces = piecesOf(kind, plan, coord);
  auto tensors = gatherTensors(pieces, communicator);
  if (!tensors)
    return tensors.error();
  std::string header = safetensorsHeader(*tensors);
  uint64_t size = header.size();
  for (const auto &[name, entry] : *tensors)
    size = std::max(size, entry.end);

  // Readers see the file under its name only when it is whole.
  std::string temporary = path + ".partial";
  Status status;
  if (communicator.rank() == 0)
    status = createFile(temporary, header, size);
  RECKON_TRY(agreeOnStatus(communicator, status));
  status = writePieces(pieces, *tensors, device, arena, temporary);
  RECKON_TRY(agreeOnStatus(communicator, status));
  if (communicator.rank() == 0 &&
      std::rename(temporary.c_str(), path.c_str()) != 0)
    status = fileError(path, errno);
  return agreeOnStatus(communicator, status);
}

} // namespace reckon::exec
