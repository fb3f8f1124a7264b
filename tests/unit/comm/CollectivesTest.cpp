//===- CollectivesTest.cpp - collectives against a naive reference --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Inputs are small integers, so that every sum is exact in every type and the
// reference does not depend on the order; order itself is tested with values
// whose sum does depend on it.
//
//===----------------------------------------------------------------------===//

#include "tests/unit/comm/Worlds.h"

#include "runtime/comm/Reduce.h"

#include <cmath>
#include <gtest/gtest.h>

namespace reckon::comm {
namespace {

double read(const void *data, size_t i, DType type) {
  switch (type) {
  case DType::F32:
    return static_cast<const float *>(data)[i];
  case DType::BF16:
    return fromBf16(static_cast<const uint16_t *>(data)[i]);
  case DType::F16:
    return fromF16(static_cast<const uint16_t *>(data)[i]);
  case DType::F64:
    return static_cast<const double *>(data)[i];
  case DType::I32:
    return static_cast<const int32_t *>(data)[i];
  case DType::I64:
    return static_cast<double>(static_cast<const int64_t *>(data)[i]);
  case DType::U8:
    return static_cast<const uint8_t *>(data)[i];
  }
  return 0;
}

void write(void *data, size_t i, DType type, double value) {
  switch (type) {
  case DType::F32:
    static_cast<float *>(data)[i] = static_cast<float>(value);
    break;
  case DType::BF16:
    static_cast<uint16_t *>(data)[i] = toBf16(static_cast<float>(value));
    break;
  case DType::F16:
    static_cast<uint16_t *>(data)[i] = toF16(static_cast<float>(value));
    break;
  case DType::F64:
    static_cast<double *>(data)[i] = value;
    break;
  case DType::I32:
    static_cast<int32_t *>(data)[i] = static_cast<int32_t>(value);
    break;
  case DType::I64:
    static_cast<int64_t *>(data)[i] = static_cast<int64_t>(value);
    break;
  case DType::U8:
    static_cast<uint8_t *>(data)[i] = static_cast<uint8_t>(value);
    break;
  }
}

/// Element `i` of rank `rank`'s input: an integer from 0 to 11.
double input(int rank, size_t i) {
  return static_cast<double>(mix(i * 64 + static_cast<size_t>(rank)) % 12);
}

/// `total` elements cut into segments of uneven size, with an empty one.
struct Tensors {
  std::vector<std::vector<char>> memory;
  std::vector<Segment> segments;
  DType type;

  Tensors(size_t total, size_t blocks, DType dtype) : type(dtype) {
    size_t first = total / 3, second = total / 2;
    std::vector<size_t> cuts{first, 0, second - first, total - second};
    for (size_t count : cuts) {
      memory.emplace_back(count * blocks * elementBytes(type) + 1);
      segments.push_back({memory.back().data(), count * blocks});
    }
  }
  /// The index within the whole of element i of segment s.
  template <typename F> void forEach(size_t blocks, F &&f) {
    size_t prefix = 0;
    for (Segment &segment : segments) {
      size_t count = segment.count / blocks;
      for (size_t b = 0; b < blocks; ++b)
        for (size_t i = 0; i < count; ++i)
          f(segment.data, b * count + i, b, prefix + i);
      prefix += count;
    }
  }
};

struct Case {
  size_t count;
  DType type;
  Reduction reduction;
};

double reduced(int world, size_t i, Reduction reduction) {
  double result = input(0, i);
  for (int r = 1; r < world; ++r)
    result = reduction == Reduction::Sum ? result + input(r, i)
                                         : std::max(result, input(r, i));
  return result;
}

Error wrong(const char *what, const Case &c, size_t i, double want,
            double got) {
  return makeError(ExitCode::Internal,
                   std::string(what) + " of " + std::to_string(c.count) + " " +
                       comm::name(c.type) + " " + comm::name(c.reduction) +
                       ": element " + std::to_string(i) + " is " +
                       std::to_string(got) + ", not " + std::to_string(want));
}

Status checkAllReduce(Communicator &comm, GroupId group, const Case &c,
                      bool inPlace) {
  Tensors in(c.count, 1, c.type), out(c.count, 1, c.type);
  in.forEach(1, [&](void *data, size_t at, size_t, size_t i) {
    write(data, at, c.type, input(comm.rank(), i));
  });
  Tensors &result = inPlace ? in : out;
  auto ticket =
      comm.allReduce(group, in.segments, result.segments, c.type, c.reduction);
  RECKON_TRY(ticket);
  RECKON_TRY(comm.wait(*ticket));
  Status status;
  result.forEach(1, [&](void *data, size_t at, size_t, size_t i) {
    double want = reduced(comm.worldSize(), i, c.reduction);
    double got = read(data, at, c.type);
    if (got != want && status)
      status = wrong("all_reduce", c, i, want, got);
  });
  return status;
}

Status checkReduceScatter(Communicator &comm, GroupId group, const Case &c,
                          bool inPlace) {
  auto n = static_cast<size_t>(comm.worldSize());
  auto me = static_cast<size_t>(comm.rank());
  Tensors in(c.count, n, c.type), out(c.count, 1, c.type);
  in.forEach(n, [&](void *data, size_t at, size_t b, size_t i) {
    write(data, at, c.type, input(comm.rank(), b * c.count + i));
  });
  if (inPlace)
    for (size_t s = 0; s < in.segments.size(); ++s)
      out.segments[s].data = static_cast<char *>(in.segments[s].data) +
                             me * out.segments[s].count * elementBytes(c.type);
  auto ticket =
      comm.reduceScatter(group, in.segments, out.segments, c.type, c.reduction);
  RECKON_TRY(ticket);
  RECKON_TRY(comm.wait(*ticket));
  Status status;
  out.forEach(1, [&](void *data, size_t at, size_t, size_t i) {
    double want = reduced(comm.worldSize(), me * c.count + i, c.reduction);
    double got = read(data, at, c.type);
    if (got != want && status)
      status = wrong("reduce_scatter", c, i, want, got);
  });
  // The other blocks of the input are not scratch.
  in.forEach(n, [&](void *data, size_t at, size_t b, size_t i) {
    double want = input(comm.rank(), b * c.count + i);
    double got = read(data, at, c.type);
    if (b != me && got != want && status)
      status = wrong("reduce_scatter's input", c, i, want, got);
  });
  return status;
}

Status checkAllGather(Communicator &comm, GroupId group, const Case &c,
                      bool inPlace) {
  auto n = static_cast<size_t>(comm.worldSize());
  auto me = static_cast<size_t>(comm.rank());
  Tensors in(c.count, 1, c.type), out(c.count, n, c.type);
  if (inPlace)
    for (size_t s = 0; s < in.segments.size(); ++s)
      in.segments[s].data = static_cast<char *>(out.segments[s].data) +
                            me * in.segments[s].count * elementBytes(c.type);
  in.forEach(1, [&](void *data, size_t at, size_t, size_t i) {
    write(data, at, c.type, input(comm.rank(), i));
  });
  auto ticket = comm.allGather(group, in.segments, out.segments, c.type);
  RECKON_TRY(ticket);
  RECKON_TRY(comm.wait(*ticket));
  Status status;
  out.forEach(n, [&](void *data, size_t at, size_t b, size_t i) {
    double want = input(static_cast<int>(b), i);
    double got = read(data, at, c.type);
    if (got != want && status)
      status = wrong("all_gather", c, i, want, got);
  });
  return status;
}

Status checkEverything(Communicator &comm, const std::vector<size_t> &counts) {
  auto group = comm.createGroup("world", allRanks(comm.worldSize()));
  RECKON_TRY(group);
  RECKON_TRY(comm.start());
  for (size_t count : counts)
    for (DType type : {DType::F32, DType::BF16, DType::F16, DType::F64,
                       DType::I32, DType::I64, DType::U8})
      for (Reduction reduction : {Reduction::Sum, Reduction::Max})
        for (bool inPlace : {false, true}) {
          Case c{count, type, reduction};
          RECKON_TRY(checkAllReduce(comm, *group, c, inPlace));
          RECKON_TRY(checkReduceScatter(comm, *group, c, inPlace));
          RECKON_TRY(checkAllGather(comm, *group, c, inPlace));
        }
  return comm.finish();
}

class Collectives : public testing::TestWithParam<std::tuple<Transport, int>> {
};

TEST_P(Collectives, EqualTheReferenceInThreads) {
  auto [transport, world] = GetParam();
  auto results = runThreads(world, transport, [](Communicator &comm) {
    return checkEverything(comm, {0, 1, 2, 3, 4, 64, 100, 1000, 10000});
  });
  for (const Status &status : results)
    EXPECT_TRUE(status) << status.error().message;
}

TEST_P(Collectives, EqualTheReferenceInProcesses) {
  auto [transport, world] = GetParam();
  WorldOptions options;
  options.transport = transport;
  auto exits = runProcesses(world, options, [](Communicator &comm) {
    return checkEverything(comm, {1, 100, 10000});
  });
  for (const Exit &exit : exits)
    EXPECT_EQ(exit.status, 0) << exit.message;
}

std::string
caseName(const testing::TestParamInfo<std::tuple<Transport, int>> &info) {
  return std::string(comm::name(std::get<0>(info.param))) +
         std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Worlds, Collectives,
                         testing::Combine(testing::Values(Transport::Ring,
                                                          Transport::Socket,
                                                          Transport::Tcp),
                                          testing::Values(1, 2, 3, 4, 5)),
                         caseName);

Status checkLarge(Communicator &comm) {
  auto group = comm.createGroup("world", allRanks(comm.worldSize()));
  RECKON_TRY(group);
  RECKON_TRY(comm.start());
  for (DType type : {DType::F32, DType::BF16}) {
    Case c{1000003, type, Reduction::Sum};
    RECKON_TRY(checkAllReduce(comm, *group, c, true));
    RECKON_TRY(checkReduceScatter(comm, *group, c, false));
    RECKON_TRY(checkAllGather(comm, *group, c, false));
  }
  return comm.finish();
}

TEST(LargeCollectives, EqualTheReference) {
  for (Transport transport :
       {Transport::Ring, Transport::Socket, Transport::Tcp}) {
    WorldOptions options;
    options.transport = transport;
    for (const Exit &exit : runProcesses(3, options, checkLarge))
      EXPECT_EQ(exit.status, 0) << exit.message;
  }
}

TEST(ManyRanks, ExchangeAndRingWorkBeyondAPowerOfTwo) {
  for (int world : {6, 9}) {
    auto results = runThreads(world, Transport::Socket, [](Communicator &comm) {
      return checkEverything(comm, {5, 3001});
    });
    for (const Status &status : results)
      EXPECT_TRUE(status) << status.error().message;
  }
}

/// Values of very different size: their sum depends on the order.
float rough(int rank, size_t i) {
  uint64_t bits = mix(i * 8 + static_cast<size_t>(rank) + 77);
  return static_cast<float>(static_cast<int64_t>(bits % 2000) - 1000) *
         std::exp2(static_cast<float>((bits >> 20) % 24));
}

TEST(Order, AllRanksAndAllRunsObtainTheSameBits) {
  constexpr int kWorld = 4;
  for (size_t count : {3u, 1000u, 70001u}) {
    std::vector<std::vector<float>> seen;
    bool orderMatters = false;
    for (Transport transport :
         {Transport::Ring, Transport::Ring, Transport::Socket}) {
      std::vector<std::vector<float>> out(kWorld, std::vector<float>(count));
      auto results =
          runThreads(kWorld, transport, [&](Communicator &comm) -> Status {
            auto group = comm.createGroup("world", allRanks(kWorld));
            RECKON_TRY(group);
            RECKON_TRY(comm.start());
            auto &mine = out[static_cast<size_t>(comm.rank())];
            for (size_t i = 0; i < count; ++i)
              mine[i] = rough(comm.rank(), i);
            // Ranks come at different times, so that timing could show.
            std::this_thread::sleep_for(
                std::chrono::milliseconds(3 * (comm.rank() * 7 % 4)));
            Segment segment{mine.data(), count};
            auto ticket = comm.allReduce(*group, {&segment, 1}, {&segment, 1},
                                         DType::F32, Reduction::Sum);
            RECKON_TRY(ticket);
            RECKON_TRY(comm.wait(*ticket));
            return comm.finish();
          });
      for (const Status &status : results)
        ASSERT_TRUE(status) << status.error().message;
      for (auto &values : out)
        seen.push_back(std::move(values));
    }
    for (const auto &values : seen)
      ASSERT_EQ(std::memcmp(values.data(), seen[0].data(), count * 4), 0);
    for (size_t i = 0; i < count && !orderMatters; ++i) {
      float forward = ((rough(0, i) + rough(1, i)) + rough(2, i)) + rough(3, i);
      float backward =
          ((rough(3, i) + rough(2, i)) + rough(1, i)) + rough(0, i);
      orderMatters = forward != backward;
    }
    EXPECT_TRUE(orderMatters || count < 10) << "the test could not fail";
  }
}

TEST(Order, SmallSumsRunInGroupOrder) {
  constexpr int kWorld = 4;
  std::vector<int> ranks{2, 0, 3, 1};
  auto results =
      runThreads(kWorld, Transport::Ring, [&](Communicator &comm) -> Status {
        auto group = comm.createGroup("shuffled", ranks);
        RECKON_TRY(group);
        RECKON_TRY(comm.start());
        for (size_t i = 0; i < 200; ++i) {
          float value = rough(comm.rank(), i), sum = 0;
          Segment in{&value, 1}, out{&sum, 1};
          auto ticket = comm.allReduce(*group, {&in, 1}, {&out, 1}, DType::F32,
                                       Reduction::Sum);
          RECKON_TRY(ticket);
          RECKON_TRY(comm.wait(*ticket));
          float want =
              ((rough(2, i) + rough(0, i)) + rough(3, i)) + rough(1, i);
          if (sum != want)
            return makeError(ExitCode::Internal, "the order differs");
        }
        return comm.finish();
      });
  for (const Status &status : results)
    EXPECT_TRUE(status) << status.error().message;
}

TEST(Groups, AdvanceIndependentlyWithManyOperationsOutstanding) {
  // Two groups that cross, tens of operations posted before any wait, in an
  // order that differs between the ranks: only the order within a group counts.
  constexpr int kWorld = 4, kRounds = 40;
  for (Transport transport : {Transport::Ring, Transport::Socket}) {
    auto results =
        runThreads(kWorld, transport, [](Communicator &comm) -> Status {
          int r = comm.rank();
          auto rows = comm.createGroup("row", {r / 2 * 2, r / 2 * 2 + 1});
          auto columns = comm.createGroup("column", {r % 2, r % 2 + 2});
          RECKON_TRY(rows);
          RECKON_TRY(columns);
          RECKON_TRY(comm.start());
          constexpr size_t kCount = 5000;
          std::vector<std::vector<float>> a(kRounds), b(kRounds);
          std::vector<Ticket> tickets;
          for (int i = 0; i < kRounds; ++i) {
            a[static_cast<size_t>(i)].assign(kCount, static_cast<float>(r + i));
            b[static_cast<size_t>(i)].assign(kCount, static_cast<float>(r * i));
          }
          for (int half = 0; half < 2; ++half)
            for (auto &data : (half == 0) == (r % 2 == 0) ? a : b) {
              Segment segment{data.data(), data.size()};
              auto ticket = comm.allReduce(
                  &data >= a.data() && &data < a.data() + kRounds ? *rows
                                                                  : *columns,
                  {&segment, 1}, {&segment, 1}, DType::F32, Reduction::Sum);
              RECKON_TRY(ticket);
              tickets.push_back(*ticket);
            }
          for (Ticket ticket : tickets)
            RECKON_TRY(comm.wait(ticket));
          for (int i = 0; i < kRounds; ++i) {
            int other = r % 2 == 0 ? r + 1 : r - 1, across = (r + 2) % 4;
            if (a[static_cast<size_t>(i)][kCount - 1] !=
                    static_cast<float>(r + other + 2 * i) ||
                b[static_cast<size_t>(i)][kCount - 1] !=
                    static_cast<float>((r + across) * i))
              return makeError(ExitCode::Internal, "wrong sum");
          }
          return comm.finish();
        });
    for (const Status &status : results)
      EXPECT_TRUE(status) << status.error().message;
  }
}

} // namespace
} // namespace reckon::comm
