//===- Certify.cpp - Z3's word on the schedule of a plan -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What the solver is asked is whether start times exist (CertifyClauses). Its
// answer is read back and judged by model::checkClaim.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/Certify.h"

#include "passes/model/schedule/Checker.h"
#include "passes/search/schedule/CertifyClauses.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

using namespace reckon;
using namespace reckon::search;
using model::PipelineOrders;
using model::StageDurations;
using model::Timetable;

namespace {

class Certifier {
public:
  explicit Certifier(const CertifyQuery &query);

  void run();
  /// The solver's question; null when there is none.
  std::unique_ptr<CertifyClauses> clauses() const;
  std::string comment() const;

  Certificate certificate;

private:
  Status judge(const Timetable &found) const;
  bool small() const { return instance_.actions() <= kMostActions; }

  const CertifyQuery &query_;
  std::vector<StageDurations> durations_;
  Ticks ticks_;
  CertifyInstance instance_;
  int64_t horizon_ = 0; ///< of the instance, in ticks
};

/// Fills everything but the answer.
Certifier::Certifier(const CertifyQuery &query)
    : query_(query), durations_(query.durations) {
  Certificate &c = certificate;
  c.shape = query_.shape;
  c.slots = query_.slots;
  if (durations_.empty())
    durations_.resize(query_.shape.stages());
  ticks_ = inTicks(durations_, query_.transfer);
  c.tick = ticks_.length;
  instance_ = certifyInstance(query_, ticks_);

  std::vector<double> work(query_.shape.p, 0);
  for (int64_t s = 0; s < query_.shape.stages(); ++s)
    work[instance_.orders.rankOfStage[s]] +=
        durations_[s].forward + durations_[s].backward;
  c.busiestWork = static_cast<double>(query_.shape.m) *
                  *std::max_element(work.begin(), work.end());
  c.horizon = (1 + query_.maxBubble) * c.busiestWork;
  horizon_ = ticks_.floor(c.horizon);
  c.method = "all micro-batches";
  c.instance = instance_.orders.m;
  if (const auto &repeat = instance_.repeat) {
    horizon_ -= instance_.runs * repeat->length;
    c.method = "repeating block";
    c.blockMicroBatches = repeat->microBatches;
    c.blockLength = static_cast<double>(repeat->length) * ticks_.length;
    c.blockRuns = instance_.runs + 1;
  }
  if (instance_.shape.kind != query_.shape.kind)
    c.method += std::string(" of ") + model::scheduleName(instance_.shape.kind);
  if (!small())
    c.method += ", checker";
  c.makespan = static_cast<double>(instance_.makespan()) * ticks_.length;
  c.bubble = (c.makespan - c.busiestWork) / c.busiestWork;
}

std::unique_ptr<CertifyClauses> Certifier::clauses() const {
  if (!small() || static_cast<int64_t>(instance_.earliest.makespan) > horizon_)
    return nullptr;
  auto made = std::make_unique<CertifyClauses>(instance_, ticks_, query_.slots,
                                               horizon_);
  made->times().setBudget(query_.budget);
  return made;
}

/// Runs the block of a timetable as often as the step needs it (up to three
/// times, which shows every seam) and asks the checker.
Status Certifier::judge(const Timetable &found) const {
  const PipelineOrders &orders = instance_.orders;
  model::ClaimTerms terms;
  terms.durations = ticks_.durations;
  terms.rankOfStage = orders.rankOfStage;
  terms.transfer = static_cast<double>(ticks_.transfer);
  terms.slots = query_.slots;
  terms.tolerance = 0;
  StartTable table = startTable(orders, found);
  int64_t more = 0;
  if (instance_.repeat) {
    if (!inOrder(table) || !repeats(table, *instance_.repeat))
      return makeError(ExitCode::Internal, "expected a block that repeats");
    more = std::min<int64_t>(3, instance_.runs);
    table = repeated(table, *instance_.repeat, more);
  }
  terms.horizon = static_cast<double>(
      horizon_ + (more ? more * instance_.repeat->length : 0));
  model::ScheduleClaim claim{orders.p, orders.stages(), table.microBatches, {}};
  for (int64_t stage = 0; stage < orders.stages(); ++stage)
    for (int64_t i = 0; i < table.microBatches; ++i)
      for (char pass : {'F', 'B', 'I', 'W'}) {
        if (pass != 'F' && (pass == 'B') != table.isWhole(stage, i))
          continue;
        double length = terms.durations[stage].of(pass);
        auto start =
            static_cast<double>(table.row(stage, pass == 'F'   ? 0
                                                 : pass == 'W' ? 2
                                                               : 1)[i]);
        claim.actions.push_back(
            {orders.rankOfStage[stage], stage, pass, i, start, start + length});
      }
  return model::checkClaim(claim, terms);
}

void Certifier::run() {
  Certificate &c = certificate;
  if (static_cast<int64_t>(instance_.earliest.makespan) > horizon_) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "the schedule's bubble is %.4f %%, max_bubble allows %.4f %%",
                  100 * c.bubble, 100 * query_.maxBubble);
    c.reason = text;
    return;
  }
  // What the solver found, and the earliest starts, which are among what it
  // could choose and are what will run.
  std::vector<Timetable> tables{instance_.earliest};
  if (std::unique_ptr<CertifyClauses> asked = clauses()) {
    c.variables = asked->times().variables();
    c.clauses = asked->times().clauses();
    StartTimes::Answer answer = asked->times().check();
    c.steps = asked->times().steps();
    if (answer != StartTimes::Answer::Yes) {
      c.reason = answer == StartTimes::Answer::Unknown
                     ? "the solver's budget is used up"
                     : "the order of the schedule does not fit into the slots "
                       "that the memory has";
      return;
    }
    tables.push_back(asked->found());
  }
  for (const Timetable &table : tables)
    if (Status status = judge(table); !status.ok()) {
      c.reason = status.error().message;
      return;
    }
  c.proved = true;
}

std::string Certifier::comment() const {
  const Certificate &c = certificate;
  std::string text = "Does a schedule of " + std::to_string(c.shape.p) +
                     " ranks and " + std::to_string(c.shape.v) +
                     " chunks a rank run " + std::to_string(c.instance) +
                     " micro-batches within its slots by tick " +
                     std::to_string(horizon_) +
                     "?\n1F2@30: stage 1 has started the forward of "
                     "micro-batch 2 by tick 30.";
  if (c.blockMicroBatches)
    text += "\nIts block of " + std::to_string(c.blockMicroBatches) +
            " micro-batches repeats; the whole step has " +
            std::to_string(c.shape.m) + ".";
  return text;
}

/// All that the answer depends on.
std::string keyOf(const CertifyQuery &query) {
  std::string key;
  auto put = [&](const auto &value) {
    key.append(reinterpret_cast<const char *>(&value), sizeof value);
  };
  put(static_cast<int64_t>(query.shape.kind));
  put(query.shape.p), put(query.shape.v), put(query.shape.m);
  put(query.shape.group), put(query.transfer), put(query.maxBubble);
  put(query.budget);
  put(query.durations.size());
  for (const StageDurations &stage : query.durations)
    put(stage.forward), put(stage.backward), put(stage.weight);
  put(query.slots.size());
  for (int64_t slots : query.slots)
    put(slots);
  if (query.orders)
    key += model::scheduleCsv(*query.orders);
  return key;
}

} // namespace

const Certificate &search::certify(const CertifyQuery &query) {
  static std::mutex mutex;
  static std::map<std::string, Certificate> known;
  std::string key = keyOf(query);
  {
    std::lock_guard lock(mutex);
    auto found = known.find(key);
    if (found != known.end())
      return found->second;
  }
  Certifier certifier(query);
  certifier.run();
  std::lock_guard lock(mutex);
  return known.emplace(key, std::move(certifier.certificate)).first->second;
}

std::string search::certifySmtLib(const CertifyQuery &query) {
  Certifier certifier(query);
  std::unique_ptr<CertifyClauses> asked = certifier.clauses();
  return asked ? asked->times().smtLib({}, certifier.comment()) : std::string();
}

std::string search::describe(const Certificate &c) {
  if (!c.proved)
    return "not certified: " + c.reason;
  char text[400];
  int64_t most = 0;
  for (int64_t slots : c.slots)
    most = std::max(most, slots);
  std::string held =
      c.slots.empty() ? ""
                      : "at most " + std::to_string(most) + " stashes a rank, ";
  const char *who = c.clauses ? "Z3 certifies" : "the checker certifies";
  std::snprintf(text, sizeof text,
                "%s a schedule with %sbubble %.2f %% of at most "
                "%.2f %% (%s, %llu clauses)",
                who, held.c_str(), 100 * c.bubble,
                100 * (c.horizon / c.busiestWork - 1), c.method.c_str(),
                static_cast<unsigned long long>(c.clauses));
  return text;
}
