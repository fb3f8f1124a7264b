//===- reckon-mutate.cpp - how good are the proofs? -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Makes faults of every kind in plans, writes each mutant as a plan directory
// of its own (so that no digest gives it away), proves it from the files, and
// executes it: a mutant that is proved must give the bits of the original under
// every order of the queues. Prints the score; fails when a mutant was proved
// and behaved otherwise, or when a kind was never refused.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/PlanDirectory.h"
#include "runtime/plan/PlanIO.h"
#include "tests/mutation/RunPlan.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

using namespace reckon;
using namespace reckon::mutation;

namespace {

struct Arguments {
  std::vector<std::string> plans;
  std::string keep;
  std::vector<std::string> kinds;
  int count = 30, executeRefused = 2, queueSeeds = 2, steps = 2, jobs = 4;
  uint64_t seed = 1;
  double timeout = 8;
  bool verbose = false;
};

/// One line of the score.
struct Score {
  int made = 0;
  int damaged = 0; ///< refused by the reader: exit code 6
  int refused = 0; ///< refused by the proofs: exit code 41
  int equal = 0;   ///< proved, and the same bits
  int different = 0;
  int executed = 0; ///< of the refused ones
  int failing = 0;  ///< of these, other bits, an error or a hang
  int needless = 0; ///< of these, the same bits in every order

  void add(const Score &other) {
    made += other.made;
    damaged += other.damaged;
    refused += other.refused;
    equal += other.equal;
    different += other.different;
    executed += other.executed;
    failing += other.failing;
    needless += other.needless;
  }
};

void printHead() {
  std::printf("%-24s %5s %8s %8s %7s %10s | %9s %8s %9s\n", "kind", "made",
              "refused", "damaged", "equal", "DIFFERENT", "executed", "failing",
              "needless");
}

void printScore(const char *name, const Score &score) {
  std::printf("%-24s %5d %8d %8d %7d %10d | %9d %8d %9d\n", name, score.made,
              score.refused, score.damaged, score.equal, score.different,
              score.executed, score.failing, score.needless);
  std::fflush(stdout);
}

bool chosen(const Arguments &arguments, Kind kind) {
  const auto &kinds = arguments.kinds;
  return kinds.empty() ||
         std::find(kinds.begin(), kinds.end(), kindName(kind)) != kinds.end();
}

/// A folder that goes when it goes out of scope.
struct Folder {
  Folder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "reckon-mutant-XXXXXX")
            .string();
    path = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

class Trial {
public:
  Trial(const Arguments &arguments, std::string directory,
        prove::PlanDirectory plan)
      : arguments_(arguments), directory_(std::move(directory)),
        plan_(std::move(plan)) {}

  /// The original must be proved and give the same bits in every order.
  bool start() {
    if (auto proof = prove::provePlan(plan_.pointers(), plan_.intent); !proof) {
      std::fprintf(stderr, "%s: the original is %s\n", directory_.c_str(),
                   proof.error().message.c_str());
      return false;
    }
    original_ = runPlan(plan_.stages, arguments_.steps, {}, kPatience);
    if (original_.end != Outcome::Done) {
      std::fprintf(stderr, "%s: the original does not run: %s\n",
                   directory_.c_str(), original_.text.c_str());
      return false;
    }
    timeout_ = std::clamp(20 * original_.seconds, 2.0, arguments_.timeout);
    for (int i = 0; i < arguments_.queueSeeds; ++i)
      if (!(execute(plan_.stages, i, kPatience) == original_)) {
        std::fprintf(stderr, "%s: the original depends on the queues' order\n",
                     directory_.c_str());
        return false;
      }
    return true;
  }

  Score run(Kind kind) {
    Score score;
    std::mt19937_64 random(arguments_.seed * 1000 + static_cast<int>(kind));
    for (int attempt = 0;
         score.made < arguments_.count && attempt < 4 * arguments_.count;
         ++attempt) {
      Stages mutant = copyOf(plan_.stages);
      std::string what = mutate(mutant, kind, random);
      if (what.empty())
        break;
      if (sameBytes(mutant))
        continue; // the fault changed nothing
      ++score.made;
      judge(kind, mutant, what, score);
    }
    return score;
  }

private:
  bool sameBytes(const Stages &mutant) const {
    for (size_t i = 0; i < mutant.size(); ++i)
      if (plan::writeStagePlan(*mutant[i]) !=
          plan::writeStagePlan(*plan_.stages[i]))
        return false;
    return true;
  }

  /// In the usual order of the queues (seed -1) or a random one.
  Outcome execute(const Stages &stages, int seed, double timeout) const {
    std::optional<uint64_t> order;
    if (seed >= 0)
      order = arguments_.seed * 100 + static_cast<uint64_t>(seed);
    return runPlan(stages, arguments_.steps, order, timeout);
  }

  /// Writes the mutant and proves what was written.
  Status prove(const Stages &mutant, const std::string &directory) const {
    std::vector<const plan::StagePlanT *> pointers;
    for (const auto &stage : mutant)
      pointers.push_back(stage.get());
    auto written = plan::writePlanDirectory(systemFiles(), directory,
                                            plan_.manifest, pointers);
    RECKON_TRY(written.status());
    auto read = prove::readPlanDirectory(systemFiles(), directory);
    if (!read)
      return read.error();
    return prove::provePlan(read->pointers(), read->intent).status();
  }

  void judge(Kind kind, const Stages &mutant, const std::string &what,
             Score &score) {
    Folder folder;
    Status proved = prove(mutant, folder.path);
    bool damaged = !proved && proved.error().code == ExitCode::Corrupt;
    if (damaged) {
      ++score.damaged;
    } else if (!proved) {
      ++score.refused;
    }
    bool run =
        proved.ok() || (!damaged && score.executed < arguments_.executeRefused);
    Outcome worst = original_;
    for (int i = -1; run && i < arguments_.queueSeeds; ++i) {
      worst = execute(mutant, i, proved.ok() ? kPatience : timeout_);
      if (!(worst == original_))
        break;
    }
    bool same = worst == original_;
    std::string verdict;
    if (proved.ok()) {
      ++(same ? score.equal : score.different);
      verdict = same ? "proved, equal" : "PROVED, BUT " + ending(worst);
    } else if (run) {
      ++score.executed;
      ++(same ? score.needless : score.failing);
      verdict = same ? "refused, equal" : "refused, " + ending(worst);
    } else {
      verdict = damaged ? "damaged" : "refused";
    }
    if (arguments_.verbose || (proved.ok() && !same))
      std::printf("  %s: %s: %s%s%s\n", kindName(kind), what.c_str(),
                  verdict.c_str(), proved.ok() ? "" : ": ",
                  proved.ok() ? "" : proved.error().message.c_str());
    if (!arguments_.keep.empty() && proved.ok() && !same) {
      std::error_code ignored;
      std::filesystem::copy(folder.path,
                            arguments_.keep + "/" + std::to_string(++kept_),
                            std::filesystem::copy_options::recursive, ignored);
    }
  }

  /// Seconds after which a plan that was proved counts as hung: a hang is told
  /// from slowness, whatever the machine does beside. Refused ones hang often,
  /// and less is at stake.
  static constexpr double kPatience = 300;

  static std::string ending(const Outcome &outcome) {
    switch (outcome.end) {
    case Outcome::Done:
      return "other bits";
    case Outcome::Failed:
      return "fails: " + outcome.text;
    case Outcome::Hung:
      return "hangs";
    case Outcome::Crashed:
      break;
    }
    return "crashes";
  }

  const Arguments &arguments_;
  std::string directory_;
  prove::PlanDirectory plan_;
  Outcome original_;
  double timeout_ = 0;
  int kept_ = 0;
};

/// The scores of one plan, by kind.
using Scores = std::array<Score, std::size(kKinds)>;

int scorePlan(const Arguments &arguments, const std::string &directory,
              Scores &scores) {
  auto plan = prove::readPlanDirectory(systemFiles(), directory);
  if (!plan) {
    std::fprintf(stderr, "%s\n", plan.error().message.c_str());
    return static_cast<int>(plan.error().code);
  }
  Trial trial(arguments, directory, std::move(*plan));
  if (!trial.start())
    return 1;
  for (size_t i = 0; i < scores.size(); ++i)
    if (chosen(arguments, kKinds[i]))
      scores[i] = trial.run(kKinds[i]);
  return 0;
}

/// A process that works on one plan: hung mutants wait and cost nothing, so
/// several plans go at once.
struct Job {
  pid_t process = -1;
  int results = -1;
  std::string directory;
};

Job startJob(const Arguments &arguments, const std::string &directory) {
  Job job;
  job.directory = directory;
  int ends[2];
  if (pipe(ends) != 0)
    return job;
  job.results = ends[0];
  std::fflush(stdout);
  job.process = fork();
  if (job.process != 0) {
    close(ends[1]);
    return job;
  }
  Scores scores;
  int code = scorePlan(arguments, directory, scores);
  if (code == 0 && write(ends[1], &scores, sizeof scores) != sizeof scores)
    code = 1;
  std::fflush(stdout);
  _exit(code);
}

bool finishJob(const Job &job, Scores &scores) {
  ssize_t got = read(job.results, &scores, sizeof scores);
  close(job.results);
  int status = 0;
  waitpid(job.process, &status, 0);
  return got == sizeof scores;
}

int run(const Arguments &arguments) {
  Scores all;
  std::deque<Job> jobs;
  size_t next = 0;
  bool good = true;
  while (next < arguments.plans.size() || !jobs.empty()) {
    while (next < arguments.plans.size() &&
           jobs.size() < static_cast<size_t>(arguments.jobs))
      jobs.push_back(startJob(arguments, arguments.plans[next++]));
    Scores scores;
    Job job = jobs.front();
    jobs.pop_front();
    if (!finishJob(job, scores)) {
      good = false;
      continue;
    }
    std::printf("%s\n", job.directory.c_str());
    printHead();
    for (size_t i = 0; i < all.size(); ++i) {
      printScore(kindName(kKinds[i]), scores[i]);
      all[i].add(scores[i]);
    }
  }
  std::printf("all %zu plans\n", arguments.plans.size());
  printHead();
  Score total;
  for (size_t i = 0; i < all.size(); ++i) {
    printScore(kindName(kKinds[i]), all[i]);
    total.add(all[i]);
    good &= all[i].refused > 0 || !chosen(arguments, kKinds[i]);
  }
  printScore("in all", total);
  good &= total.different == 0 &&
          (total.failing > 0 || arguments.executeRefused == 0);
  std::printf("%s\n", good ? "every proved mutant gives the original's bits"
                           : "FAILED: see above");
  return good ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Scores the proofs by mutants of plans.");
  app.add_option("PLAN_DIR", arguments.plans, "plan directories")->required();
  app.add_option("--count", arguments.count, "mutants of a kind and plan");
  std::vector<std::string> kinds;
  for (Kind kind : kKinds)
    kinds.push_back(kindName(kind));
  app.add_option("--kinds", arguments.kinds,
                 "only these, such as \"drop a "
                 "layer\"")
      ->check(CLI::IsMember(kinds));
  app.add_option("--seed", arguments.seed, "chooses the places");
  app.add_option("--execute-refused", arguments.executeRefused,
                 "refused mutants of a kind and plan to execute as well");
  app.add_option("--queue-seeds", arguments.queueSeeds,
                 "random orders of the queues, beside the usual one");
  app.add_option("--jobs", arguments.jobs, "plans at once")
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", arguments.steps, "training steps of an execution");
  app.add_option("--timeout", arguments.timeout,
                 "most seconds until a refused mutant counts as hung");
  app.add_option("--keep", arguments.keep,
                 "existing folder for mutants that were wrongly proved");
  app.add_flag("--verbose", arguments.verbose, "one line for each mutant");
  CLI11_PARSE(app, argc, argv);
  return run(arguments);
}
