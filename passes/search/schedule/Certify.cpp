//===- Certify.cpp - Z3's word on the schedule of a plan -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The order of every rank is the named schedule's. What the solver is asked is
// whether start times exist: it is given two for every action, the earliest
// that the order allows and the latest that the horizon allows, and all clauses
// on them. Its answer is read back and judged by model::checkClaim.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/Certify.h"

#include "passes/model/schedule/Checker.h"
#include "passes/search/schedule/Repeat.h"
#include "passes/search/schedule/StartTimes.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

using namespace reckon;
using namespace reckon::search;
using model::ComputeAction;
using model::PipelineOrders;
using model::ScheduleKind;
using model::ScheduleShape;
using model::StageDurations;
using model::Timetable;

namespace {

/// Actions that the solver is given with all their freedom; larger instances
/// get one candidate an action, so that it checks clauses and need not choose.
constexpr int64_t kFreeActions = 4000;
/// Larger instances are left to the checker.
constexpr int64_t kMostActions = 60000;

struct Instance {
  PipelineOrders orders;
  std::optional<Repeat> repeat;
  int64_t runs = 0; ///< of the block beyond the one in the instance
  Timetable earliest;
};

class Certifier {
public:
  explicit Certifier(const CertifyQuery &query) : query_(query) {}

  /// Fills everything but the answer. False: there is nothing to ask.
  bool prepare();
  void ask();
  std::string smtLib() {
    return times_ ? times_->smtLib({}, comment()) : std::string();
  }

  Certificate certificate;

private:
  std::optional<Instance> makeInstance();
  Instance whole(const ScheduleShape &shape);
  void latest();
  void encode();
  void encodeRepeat();
  Status judge(const Timetable &found);
  std::string comment() const;

  int64_t length(int64_t rank, const ComputeAction &action) const {
    return ticks_.of(instance_.orders.stage(rank, action.chunk), action.pass);
  }
  int64_t start(int64_t rank, int64_t position) const {
    return static_cast<int64_t>(instance_.earliest.ranks[rank][position].start);
  }
  template <typename Body> void forDependencies(Body body) const;
  int64_t &id(int64_t stage, int64_t pass, int64_t microBatch) {
    return ids_[(stage * 3 + pass) * instance_.orders.m + microBatch];
  }
  int64_t id(int64_t stage, int64_t pass, int64_t microBatch) const {
    return ids_[(stage * 3 + pass) * instance_.orders.m + microBatch];
  }
  /// The number of an action over all ranks.
  int64_t number(int64_t rank, int64_t position) const {
    return offsets_[rank] + position;
  }

  const CertifyQuery &query_;
  std::vector<StageDurations> durations_;
  Ticks ticks_;
  Instance instance_;
  int64_t horizon_ = 0; ///< of the instance, in ticks
  std::vector<int64_t> offsets_, ids_;
  std::vector<int64_t> lengths_, earliest_, latest_;
  std::unique_ptr<StartTimes> times_;
};

Instance Certifier::whole(const ScheduleShape &shape) {
  Instance made;
  made.orders = query_.orders ? *query_.orders : model::makeOrders(shape);
  Result<Timetable> table = model::simulateOrders(
      made.orders, ticks_.durations, static_cast<double>(ticks_.transfer));
  RECKON_CHECK(table.ok());
  made.earliest = std::move(*table);
  return made;
}

/// The shortest step of the same schedule that has a repeating block; the whole
/// step when that is short itself or nothing repeats.
std::optional<Instance> Certifier::makeInstance() {
  ScheduleShape shape = query_.shape;
  int64_t passes = model::splitsBackward(shape.kind) ? 3 : 2;
  int64_t perMicroBatch = passes * shape.stages();
  if (query_.orders) {
    if (query_.orders->m * perMicroBatch > kMostActions)
      return std::nullopt;
    return whole(shape);
  }
  int64_t period = 1;
  if (shape.v > 1 && (shape.kind == ScheduleKind::Interleaved ||
                      shape.kind == ScheduleKind::ZbH1)) {
    if (!shape.group)
      shape.group = model::defaultGroup(shape.p, shape.m);
    period = shape.group;
  }
  bool repeatable =
      shape.kind != ScheduleKind::GPipe && shape.kind != ScheduleKind::Bfs;
  int64_t most = kMostActions / perMicroBatch;
  if (repeatable && shape.m > shape.p + 2) {
    ScheduleShape shorter = shape;
    // Warm-up and cool-down need some multiple of p micro-batches.
    for (int64_t m = period + shape.m % period;
         m < shape.m && m <= std::min(most, 8 * (shape.p + period));
         m += period) {
      shorter.m = m;
      if (m < shape.p || !model::whyNotSchedule(shorter).empty())
        continue;
      Instance made = whole(shorter);
      StartTable table = startTable(made.orders, made.earliest);
      if (!inOrder(table))
        break;
      made.repeat = findRepeat(table, ticks_, period);
      if (!made.repeat || (shape.m - m) % made.repeat->microBatches)
        continue;
      made.runs = (shape.m - m) / made.repeat->microBatches;
      return made;
    }
  }
  if (shape.m > most)
    return std::nullopt;
  return whole(shape);
}

bool Certifier::prepare() {
  certificate.shape = query_.shape;
  certificate.slots = query_.slots;
  durations_ = query_.durations;
  if (durations_.empty())
    durations_.resize(query_.shape.stages());
  ticks_ = inTicks(durations_, query_.transfer);
  certificate.tick = ticks_.length;
  std::optional<Instance> made = makeInstance();
  if (!made) {
    certificate.reason = "the step has no repeating block and is too long to "
                         "be given to the solver whole";
    return false;
  }
  instance_ = std::move(*made);

  std::vector<double> work(query_.shape.p, 0);
  for (int64_t s = 0; s < query_.shape.stages(); ++s)
    work[instance_.orders.rankOfStage[s]] +=
        durations_[s].forward + durations_[s].backward;
  certificate.busiestWork = static_cast<double>(query_.shape.m) *
                            *std::max_element(work.begin(), work.end());
  certificate.horizon = (1 + query_.maxBubble) * certificate.busiestWork;
  horizon_ = ticks_.floor(certificate.horizon);
  certificate.method = "all micro-batches";
  certificate.instance = instance_.orders.m;
  if (const auto &repeat = instance_.repeat) {
    horizon_ -= instance_.runs * repeat->length;
    certificate.method = "repeating block";
    certificate.blockMicroBatches = repeat->microBatches;
    certificate.blockLength =
        static_cast<double>(repeat->length) * ticks_.length;
    certificate.blockRuns = instance_.runs + 1;
  }
  double makespan = instance_.earliest.makespan;
  if (const auto &repeat = instance_.repeat)
    makespan += static_cast<double>(instance_.runs * repeat->length);
  certificate.makespan = makespan * ticks_.length;
  certificate.bubble = (certificate.makespan - certificate.busiestWork) /
                       certificate.busiestWork;
  if (static_cast<int64_t>(instance_.earliest.makespan) > horizon_) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "the schedule's bubble is %.4f %%, max_bubble allows %.4f %%",
                  100 * certificate.bubble, 100 * query_.maxBubble);
    certificate.reason = text;
    return false;
  }
  encode();
  certificate.variables = times_->variables();
  certificate.clauses = times_->clauses();
  return true;
}

/// Calls body(later, earlier, delay) with numbers of actions for all that one
/// action must wait for: its input, what runs before it on its rank, and a free
/// slot.
template <typename Body> void Certifier::forDependencies(Body body) const {
  const PipelineOrders &orders = instance_.orders;
  for (int64_t rank = 0; rank < orders.p; ++rank) {
    const auto &order = orders.ranks[rank];
    std::vector<int64_t> released; // by what, in order
    int64_t taken = 0;
    for (int64_t i = 0; i < std::ssize(order); ++i) {
      const ComputeAction &action = order[i];
      int64_t stage = orders.stage(rank, action.chunk);
      int64_t self = number(rank, i), mb = action.microBatch;
      auto needs = [&](int64_t from, int64_t pass) {
        int64_t earlier = id(from, pass, mb);
        int64_t transfer =
            orders.rankOfStage[from] == rank ? 0 : ticks_.transfer;
        body(self, earlier, lengths_[earlier] + transfer);
      };
      if (i > 0)
        body(self, self - 1, lengths_[self - 1]);
      if (action.pass == 'F') {
        if (stage > 0)
          needs(stage - 1, 0);
        if (!query_.slots.empty()) {
          int64_t free = query_.slots[rank] - taken++;
          // The stash that was given back first is taken first. When none has
          // been given back by now, none ever is in time.
          if (free <= 0) {
            int64_t which = -free;
            int64_t by = which < std::ssize(released) ? released[which] : -1;
            body(self, by < 0 ? self : by, by < 0 ? 1 : lengths_[by]);
          }
        }
      } else if (action.pass == 'W') {
        needs(stage, 1);
      } else {
        needs(stage, 0);
        if (stage + 1 < orders.stages())
          needs(stage + 1, 1);
      }
      if (action.pass == 'B' || action.pass == 'W')
        released.push_back(self);
    }
  }
}

/// Latest starts by the horizon, the order and the dependencies.
void Certifier::latest() {
  int64_t count = std::ssize(lengths_);
  struct Edge {
    int64_t later, earlier, delay;
  };
  std::vector<Edge> edges;
  forDependencies([&](int64_t later, int64_t earlier, int64_t delay) {
    if (later != earlier)
      edges.push_back({later, earlier, delay});
  });
  // Every edge points back in time, so that one pass in the order of earliest
  // starts, latest first, settles all; stable to keep a rank's own order.
  std::stable_sort(edges.begin(), edges.end(),
                   [&](const Edge &a, const Edge &b) {
                     return earliest_[a.later] > earliest_[b.later];
                   });
  latest_.resize(count);
  for (int64_t i = 0; i < count; ++i)
    latest_[i] = horizon_ - lengths_[i];
  // Passes that take no time share a start; a few rounds settle those.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge &edge : edges) {
      int64_t bound = latest_[edge.later] - edge.delay;
      if (bound < latest_[edge.earlier]) {
        latest_[edge.earlier] = bound;
        changed = true;
      }
    }
  }
}

void Certifier::encode() {
  const PipelineOrders &orders = instance_.orders;
  int64_t count = 0;
  ids_.assign(3 * orders.stages() * orders.m, -1);
  for (int64_t rank = 0; rank < orders.p; ++rank) {
    offsets_.push_back(count);
    for (int64_t i = 0; i < std::ssize(orders.ranks[rank]); ++i, ++count) {
      const ComputeAction &action = orders.ranks[rank][i];
      int64_t stage = orders.stage(rank, action.chunk);
      lengths_.push_back(length(rank, action));
      earliest_.push_back(start(rank, i));
      switch (action.pass) {
      case 'F':
        id(stage, 0, action.microBatch) = count;
        break;
      case 'I':
        id(stage, 1, action.microBatch) = count;
        break;
      case 'W':
        id(stage, 2, action.microBatch) = count;
        break;
      default:
        id(stage, 1, action.microBatch) = count;
        id(stage, 2, action.microBatch) = count;
      }
    }
  }
  bool free = count <= kFreeActions;
  if (free)
    latest();
  times_ = std::make_unique<StartTimes>(StartTimes::Style::Complete);
  times_->setBudget(query_.budget);
  int64_t end = 0;
  if (instance_.repeat)
    end = instance_.repeat->begin + instance_.repeat->length;
  for (int64_t rank = 0; rank < orders.p; ++rank)
    for (int64_t i = 0; i < std::ssize(orders.ranks[rank]); ++i) {
      const ComputeAction &action = orders.ranks[rank][i];
      int64_t self = number(rank, i), at = earliest_[self];
      std::vector<int64_t> candidates{at};
      // The two ends of the block stay what they are.
      bool fixed = !free || (instance_.repeat && at < end);
      if (!fixed && latest_[self] > at)
        candidates.push_back(latest_[self]);
      int64_t stage = orders.stage(rank, action.chunk);
      times_->add(std::to_string(stage) + action.pass +
                      std::to_string(action.microBatch),
                  std::move(candidates));
    }
  forDependencies([&](int64_t later, int64_t earlier, int64_t delay) {
    times_->after(later, earlier, delay);
  });
  // All end in time.
  for (int64_t i = 0; i < count; ++i)
    times_->clause({times_->by(i, horizon_ - lengths_[i])});
  if (instance_.repeat)
    encodeRepeat();
}

/// The block is one: Repeat's definition as clauses.
void Certifier::encodeRepeat() {
  const Repeat &repeat = *instance_.repeat;
  int64_t end = repeat.begin + repeat.length, m = instance_.orders.m;
  StartTable table = startTable(instance_.orders, instance_.earliest);
  for (int64_t stage = 0; stage < table.stages; ++stage)
    for (int64_t pass = 0; pass < 3; ++pass) {
      const int64_t *starts = table.row(stage, pass);
      int64_t first =
          std::lower_bound(starts, starts + m, repeat.begin) - starts;
      int64_t past = first + repeat.microBatches;
      // Exactly `microBatches` start in the block.
      auto bounded = [&](int64_t i, int64_t time) {
        if (i > 0)
          times_->clause({times_->by(id(stage, pass, i - 1), time - 1)});
        if (i < m)
          times_->clause(
              {StartTimes::negation(times_->by(id(stage, pass, i), time - 1))});
      };
      bounded(first, repeat.begin);
      bounded(past, end);
      for (int64_t i = first - 1;
           i >= 0 && starts[i] >= repeat.begin - repeat.guard; --i)
        times_->shifted(id(stage, pass, i + repeat.microBatches),
                        id(stage, pass, i), repeat.length);
    }
}

/// Runs the block of a timetable as often as the step needs it (up to three
/// times, which shows every seam) and asks the checker.
Status Certifier::judge(const Timetable &found) {
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

void Certifier::ask() {
  StartTimes::Answer answer = times_->check();
  certificate.steps = times_->steps();
  if (answer == StartTimes::Answer::Unknown) {
    certificate.reason = "the solver's budget is used up";
    return;
  }
  if (answer == StartTimes::Answer::No) {
    certificate.reason = "the order of the schedule does not fit into the "
                         "slots that the memory has";
    return;
  }
  // What the solver found, and the earliest starts, which are among what it
  // could choose and are what will run.
  Timetable found = instance_.earliest;
  for (int64_t rank = 0; rank < instance_.orders.p; ++rank)
    for (int64_t i = 0; i < std::ssize(found.ranks[rank]); ++i) {
      auto &timed = found.ranks[rank][i];
      timed.start = static_cast<double>(times_->start(number(rank, i)));
      timed.end = timed.start + static_cast<double>(length(rank, timed.action));
    }
  for (const Timetable &table : {found, instance_.earliest})
    if (Status status = judge(table); !status.ok()) {
      certificate.reason = status.error().message;
      return;
    }
  certificate.proved = true;
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
  if (certifier.prepare())
    certifier.ask();
  std::lock_guard lock(mutex);
  return known.emplace(key, std::move(certifier.certificate)).first->second;
}

std::string search::certifySmtLib(const CertifyQuery &query) {
  Certifier certifier(query);
  return certifier.prepare() ? certifier.smtLib() : std::string();
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
  std::snprintf(text, sizeof text,
                "Z3 certifies a schedule with %sbubble %.2f %% of at most "
                "%.2f %% (%s, %llu clauses)",
                held.c_str(), 100 * c.bubble,
                100 * (c.horizon / c.busiestWork - 1), c.method.c_str(),
                static_cast<unsigned long long>(c.clauses));
  return text;
}
