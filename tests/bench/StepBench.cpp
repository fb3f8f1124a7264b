//===- StepBench.cpp - how fast whole training steps are ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// reckon-step-bench STEPS TEXT PLAN...
//
// Runs compiled plans of one rank in this process: tokens/s, the share of a
// step that each kernel has, and the model's FLOP/s as a fraction of the best
// square matrix product of 512 to 4096 in the same precision, measured before
// and after the steps with the same threads. step.sh compiles the plans and
// calls it.
//
// Every figure is the best of several. Beside wall time stands processor time,
// divided by the threads: it says what the machine would do if nothing else ran
// on it, but it does not see a thread that waits for another.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/Rendezvous.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/exec/Trainer.h"
#include "runtime/plan/PlanIO.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <sys/resource.h>
#include <vector>

using namespace reckon;

namespace {

[[noreturn]] void fail(const Error &error) {
  std::fprintf(stderr, "reckon-step-bench: %s\n", error.message.c_str());
  std::exit(static_cast<int>(error.code));
}

template <typename T> T need(Result<T> result) {
  if (!result)
    fail(result.error());
  return std::move(*result);
}
void need(const Status &status) {
  if (!status.ok())
    fail(status.error());
}

struct Seconds {
  double wall = 0.0;
  double processor = 0.0; // of all threads together
};

double seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename Body> Seconds measure(Body body) {
  double wall = seconds(CLOCK_MONOTONIC);
  double processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
  body();
  return {seconds(CLOCK_MONOTONIC) - wall,
          seconds(CLOCK_PROCESS_CPUTIME_ID) - processor};
}

void keepBest(Seconds &best, const Seconds &now) {
  best.wall = std::min(best.wall, now.wall);
  best.processor = std::min(best.processor, now.processor);
}
constexpr Seconds never{1e300, 1e300};

/// FLOP/s of the best square product so far, by both clocks.
struct Peak {
  double wall = 0.0, processor = 0.0;

  void measure(device::Device &device, device::DType dtype) {
    for (int64_t n : {512, 1024, 2048, 4096}) {
      int64_t bytes = n * n * device::dtypeBytes(dtype);
      std::vector<std::vector<char>> memory(3, std::vector<char>(bytes));
      // Zeroes do: a product takes as long whatever it multiplies, unless
      // denormal numbers come up.
      device::Operand operand{dtype, n * n};
      device::Operand inputs[] = {operand, operand}, outputs[] = {operand};
      int64_t args[] = {n, n};
      auto product = need(
          device.prepare(device::Kernel::Linear, {inputs, outputs, args, {}}));
      void *pointers[] = {memory[0].data(), memory[1].data(), memory[2].data()};
      Seconds best = never;
      int least = n > 2048 ? 2 : 5;
      for (int i = 0; i < least; ++i)
        keepBest(best, ::measure([&] { need(product->run(pointers)); }));
      double flops = 2.0 * static_cast<double>(n * n) * static_cast<double>(n);
      wall = std::max(wall, flops / best.wall);
      processor =
          std::max(processor, flops * device.threads() / best.processor);
    }
  }
};

void printKernels(const exec::StepTimes &times, double wall) {
  struct Line {
    int kernel;
    exec::KernelTime time;
  };
  std::vector<Line> lines;
  for (int i = 0; i < device::kernelCount; ++i)
    if (times.kernels[i].calls > 0)
      lines.push_back({i, times.kernels[i]});
  std::sort(lines.begin(), lines.end(), [](const Line &a, const Line &b) {
    return a.time.nanoseconds > b.time.nanoseconds;
  });
  double left = wall;
  for (const Line &line : lines) {
    double spent = 1e-9 * static_cast<double>(line.time.nanoseconds);
    left -= spent;
    std::printf(
        "  %-21s %5ld calls %9.1f ms %6.1f %%\n",
        device::kernelSignature(static_cast<device::Kernel>(line.kernel))
            ->name.data(),
        line.time.calls, 1e3 * spent, 100.0 * spent / wall);
  }
  std::printf("  %-21s %11s %9.1f ms %6.1f %%\n", "beside kernels", "",
              1e3 * left, 100.0 * left / wall);
}

void run(const std::string &directory, const std::string &text, int64_t steps,
         const std::string &scratch) {
  auto manifest = need(plan::readPlanManifest(systemFiles(), directory));
  auto stage = need(plan::readPlanStage(systemFiles(), directory, manifest, 0));
  auto world = need(comm::makeLocalWorld(plan::worldSize(manifest.mesh), {}));
  if (world.size() != 1)
    fail(makeError(ExitCode::BadSpec, directory +
                                          ": expected a plan for 1 "
                                          "rank, got " +
                                          std::to_string(world.size())));
  auto device = need(device::makeCpuDevice());
  bool bf16 = std::any_of(
      stage->states.begin(), stage->states.end(),
      [](const auto &state) { return state->dtype == plan::DType::bf16; });
  auto dtype = bf16 ? device::DType::BF16 : device::DType::F32;
  Peak peak;
  peak.measure(*device, dtype);

  exec::TrainOptions options;
  options.planDirectory = directory;
  options.runDirectory = scratch;
  options.data = text;
  exec::Trainer trainer(manifest, *stage, *world[0], *device, systemFiles(),
                        systemClock(), options);
  need(trainer.setUp());
  Seconds best = never;
  exec::StepTimes times;
  for (int64_t step = 1; step <= steps + 1; ++step) {
    Seconds now = measure([&] { need(trainer.step(step)); });
    if (step == 1)
      continue; // warms up
    if (now.wall < best.wall)
      times = trainer.executor().times();
    keepBest(best, now);
  }
  peak.measure(*device, dtype);

  int threads = device->threads();
  double tokens =
      double(stage->global_batch_size) * double(stage->sequence_length);
  double flops = tokens * stage->model_flops_per_token;
  double ideal = best.processor / threads;
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%s, %s, %s\n", directory.c_str(), bf16 ? "bf16" : "fp32",
              device->name().c_str());
  std::printf("  loss %.4f after %ld steps of %.0f tokens\n", trainer.loss(),
              static_cast<long>(steps) + 1, tokens);
  std::printf("  arena %.1f MiB, kernel workspace %.1f MiB, resident at most "
              "%.1f MiB\n",
              double(device->arenaBytes()) / (1 << 20),
              double(device->workspaceBytes()) / (1 << 20),
              double(usage.ru_maxrss) / 1024);
  std::printf("  %-27s %14s %14s\n", "", "wall", "processor");
  std::printf("  %-27s %14.3f %14.3f\n", "step, s", best.wall, ideal);
  std::printf("  %-27s %14.1f %14.1f\n", "tokens/s", tokens / best.wall,
              tokens / ideal);
  std::printf("  %-27s %14.1f %14.1f\n", "model GFLOP/s",
              1e-9 * flops / best.wall, 1e-9 * flops / ideal);
  std::printf("  %-27s %14.1f %14.1f\n", "best square product, GFLOP/s",
              1e-9 * peak.wall, 1e-9 * peak.processor);
  std::printf("  %-27s %14.3f %14.3f\n", "fraction of it",
              flops / best.wall / peak.wall, flops / ideal / peak.processor);
  printKernels(times, best.wall);
}

} // namespace

int main(int argc, char **argv) {
  int64_t steps = argc > 3 ? std::atoll(argv[1]) : 0;
  if (steps < 1) {
    std::fprintf(stderr, "usage: reckon-step-bench STEPS TEXT PLAN...\n");
    return static_cast<int>(ExitCode::BadSpec);
  }
  char scratch[] = "/tmp/reckon-step-bench-XXXXXX";
  if (!mkdtemp(scratch))
    fail(makeError(ExitCode::Environment, "/tmp: cannot make a folder"));
  for (int i = 3; i < argc; ++i)
    run(argv[i], argv[2], steps, scratch);
  return 0;
}
