//===- Schedule.h - pipeline schedules as orders of compute actions -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A schedule is an order of forwards and backwards for every pipeline rank. All
// else (messages, slots, predicted times, the idle share) follows from the
// orders. Each schedule has its own file in passes/model/schedule.
//
// p ranks, v chunks a rank, S = p v virtual stages, m micro-batches.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_SCHEDULE_H
#define RECKON_PASSES_MODEL_SCHEDULE_H

#include "passes/model/Choice.h"
#include "runtime/base/Status.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::model {

/// The spec's names: `gpipe`, `1f1b`, `interleaved_1f1b`, ...
const char *scheduleName(ScheduleKind kind);
std::optional<ScheduleKind> parseSchedule(std::string_view name);

/// A named schedule for a pipeline.
struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::OneFOneB;
  int64_t p = 1; ///< ranks
  int64_t v = 1; ///< chunks a rank
  int64_t m = 1; ///< micro-batches
  /// Micro-batches that an interleaved schedule runs through one chunk before
  /// it turns to the next; 0 for defaultGroup().
  int64_t group = 0;

  int64_t stages() const { return p * v; }
  auto operator<=>(const ScheduleShape &) const = default;
};

ScheduleShape shapeOf(const Choice &choice);

/// Whether backwards are split into the gradient of the inputs and that of the
/// weights.
bool splitsBackward(ScheduleKind kind);
/// Whether chunk 0 of rank r is stage r and chunk 1 stage 2p-1-r, so that rank
/// 0 has the first and the last stage.
bool isVShaped(ScheduleKind kind);
/// Placement of virtual stages. V-shaped: see above; all others: stage
/// chunk * p + rank. `synthesized` is placed like the latter.
int64_t rankOfStage(ScheduleKind kind, int64_t p, int64_t v, int64_t stage);
int64_t chunkOfStage(ScheduleKind kind, int64_t p, int64_t v, int64_t stage);
int64_t stageOfChunk(ScheduleKind kind, int64_t p, int64_t v, int64_t rank,
                     int64_t chunk);

/// The smallest group g in [p, m] that wastes nothing: m mod g is 0 or at
/// least p. This is p when p divides m.
int64_t defaultGroup(int64_t p, int64_t m);

/// Why the schedule is not defined for these sizes, as the end of a sentence
/// ("needs 2 chunks a rank, got 3"); empty when it is. `synthesized` and `csv`
/// have no order of their own and are never defined here.
std::string whyNotSchedule(const ScheduleShape &shape);

/// A forward ('F'), a whole backward ('B'), or one of its halves, the gradient
/// of the inputs ('I') or of the weights ('W'), of a chunk on a micro-batch.
struct ComputeAction {
  char pass = 'F';
  int64_t microBatch = 0;
  int64_t chunk = 0;
  bool operator==(const ComputeAction &) const = default;
};

/// What rank `rank` runs, in order. On virtual stage 0, which sends no
/// gradient on, an 'I' directly before its 'W' is one 'B'.
std::vector<ComputeAction> scheduleOrder(const ScheduleShape &shape,
                                         int64_t rank);
/// The same for one chunk a rank.
std::vector<ComputeAction> scheduleOrder(ScheduleKind kind, int64_t stages,
                                         int64_t microBatches, int64_t stage);

/// A schedule of any origin, spelt out.
struct PipelineOrders {
  int64_t p = 1;
  int64_t v = 1;
  int64_t m = 1;
  /// Virtual stage of chunk c of rank r at r v + c.
  std::vector<int64_t> stageOfChunk;
  /// Rank and chunk of every virtual stage.
  std::vector<int64_t> rankOfStage, chunkOfStage;
  std::vector<std::vector<ComputeAction>> ranks;

  int64_t stages() const { return p * v; }
  int64_t stage(int64_t rank, int64_t chunk) const {
    return stageOfChunk[rank * v + chunk];
  }
  /// Fills rankOfStage and chunkOfStage from stageOfChunk.
  void indexStages();
};

PipelineOrders makeOrders(const ScheduleShape &shape);

//===----------------------------------------------------------------------===//
// What is held
//===----------------------------------------------------------------------===//

/// Stashes of one chunk that exist at one moment. A whole backward ends the
/// first two at once and leaves nothing behind.
struct LiveStash {
  int64_t toInput = 0;  ///< F has started, I (or B) has not ended
  int64_t toWeight = 0; ///< F has started, W (or B) has not ended
  int64_t gradient = 0; ///< I has started, W has not ended

  auto operator<=>(const LiveStash &) const = default;
};

struct InFlight {
  int64_t peak = 0;        ///< most toWeight of all chunks at one moment
  int64_t peakToInput = 0; ///< most toInput of all chunks at one moment
  /// Moments that no other moment exceeds everywhere, v entries each, sorted.
  /// A rank's activations need the greatest of the sums of count times bytes.
  std::vector<std::vector<LiveStash>> maximal;
};

/// Of one rank's order of v chunks.
InFlight inFlight(const std::vector<ComputeAction> &order, int64_t v);
/// Of a rank of a named schedule; in a time that does not grow with m, and
/// remembered. Safe to call from several threads.
const InFlight &inFlight(const ScheduleShape &shape, int64_t rank);

/// The most micro-batches whose forward has run and whose backward has not:
/// m for GPipe, min(m, stages - stage) for 1F1B.
int64_t peakInFlight(const std::vector<ComputeAction> &order);

/// InFlight::peak by formula, in chunks: min(m, p-r) for 1F1B, p for ZB-H1, ...
int64_t peakFormula(const ScheduleShape &shape, int64_t rank);

//===----------------------------------------------------------------------===//
// When everything happens
//===----------------------------------------------------------------------===//

/// Durations of one virtual stage on a micro-batch, in seconds or any other
/// unit.
struct StageDurations {
  double forward = 1;
  double backward = 2; ///< whole
  /// The part of `backward` that 'W' takes; negative: half of it.
  double weight = -1;

  double weightGrad() const { return weight < 0 ? backward / 2 : weight; }
  double inputGrad() const { return backward - weightGrad(); }
  double of(char pass) const {
    return pass == 'F'   ? forward
           : pass == 'B' ? backward
           : pass == 'I' ? inputGrad()
                         : weightGrad();
  }
};

struct TimedAction {
  ComputeAction action;
  double start = 0;
  double end = 0;
};

/// When everything starts, each rank running its order as early as its inputs
/// allow.
struct Timetable {
  std::vector<std::vector<TimedAction>> ranks;
  double makespan = 0;
  std::vector<double> busy; ///< per rank
  /// Per rank, from its first start to its last end.
  std::vector<double> span;
  /// (makespan - busiest rank's work) / busiest rank's work: (p-1)/m for GPipe
  /// and 1F1B when all stages take equally long and messages take no time.
  double bubbleFraction = 0;
  /// The most that a rank idles within its own span; 0 for zero-bubble
  /// schedules with equal passes, whose ranks start and end staggered.
  double idleInSpan = 0;
};

/// Simulates one step. A message between ranks takes `transfer` and does not
/// hold up its sender; the turn of a V stays on its rank and takes no time.
/// `durations` has one entry a virtual stage. Orders that wait for each other
/// give an error that names what every rank waits for.
/// Without `keepActions` Timetable::ranks stays empty.
Result<Timetable> simulateOrders(const PipelineOrders &orders,
                                 std::span<const StageDurations> durations,
                                 double transfer = 0, bool keepActions = true);

Timetable simulateSchedule(const ScheduleShape &shape,
                           std::span<const StageDurations> durations,
                           double transfer = 0, bool keepActions = true);
/// The same with one chunk a rank and one entry of `durations` a stage.
Timetable simulateSchedule(ScheduleKind kind, int64_t microBatches,
                           std::span<const StageDurations> durations,
                           double transfer = 0);

/// Timetable::makespan in a time that does not grow with the micro-batches:
/// past some multiple of the stages every further group costs the same.
double scheduleMakespan(const ScheduleShape &shape,
                        std::span<const StageDurations> durations,
                        double transfer = 0);
double scheduleMakespan(ScheduleKind kind, int64_t microBatches,
                        std::span<const StageDurations> durations,
                        double transfer = 0);

/// The makespan by formula, for messages that take no time: linear in the
/// stages, because a search asks for it millions of times. Exact for GPipe and
/// breadth-first orders whatever the stages, and for all schedules that
/// idleFormula() knows when stages are alike; else near the simulation
/// (tests/unit/model/BubbleTest.cpp prints how near). At least m times the
/// busiest rank's work. Not for `synthesized` and `csv`.
double makespanFormula(const ScheduleShape &shape,
                       std::span<const StageDurations> stages);

/// At most makespanFormula() of any stages whose forwards and backwards of one
/// micro-batch sum to `work`, for all schedules. LeastMakespan.cpp.
double leastMakespan(const ScheduleShape &shape, double work);

/// The longest path of 1F1B through a rank with `own` passes, when the ranks
/// before it work `before` and the `ranksAfter` ones after it `after` on a
/// micro-batch; makespanFormula() is the longest of all ranks' paths.
double pathOf1F1B(const StageDurations &own, double before, double after,
                  int64_t ranksAfter, int64_t microBatches);

/// Seconds a micro-batch of a path of an interleaved schedule that changes
/// between the last rank and the first, given their chunks. The two follow each
/// other in the ring and run different chunks at a time: while one has slow
/// chunks, the other may have fast ones, and the ring runs at the pace of the
/// slower. Each change to and fro costs the path about a pass and a third.
/// makespanFormula() adds what this is above the busiest rank's work.
double ringOfEnds(int64_t p, std::span<const StageDurations> first,
                  std::span<const StageDurations> last);

/// What of a rank's passes on a micro-batch, all its chunks, the others idle
/// for at the ramps of a zero-bubble schedule; 0 for other schedules. The
/// bubble of makespanFormula() is at least the sum over the ranks but the
/// largest.
double rampPiece(ScheduleKind kind, double forward, double inputGrad,
                 double weightGrad);

/// m times the durations of the rank's chunks, for the busiest rank.
double busiestWork(const ScheduleShape &shape,
                   std::span<const StageDurations> durations);

/// Timetable::bubbleFraction for equal stages, F = I = W and messages that take
/// no time: (p-1)/m for GPipe and 1F1B, (p-1)/(v m) for interleaved and
/// breadth-first, (p-1)/(3 m v) for zero-bubble schedules with enough
/// micro-batches; simulated where no formula holds. This is the
/// `bubble_fraction` of reports and what `max_bubble` bounds.
double scheduleBubble(const ScheduleShape &shape);
double scheduleBubble(ScheduleKind kind, int64_t stages, int64_t microBatches);

/// Makespan minus work for equal stages and messages that take no time, where
/// a formula is known; durations are of a whole rank, so a chunk takes 1/v.
std::optional<double> idleFormula(const ScheduleShape &shape, double forward,
                                  double input, double weight);

//===----------------------------------------------------------------------===//
// Drawings and files
//===----------------------------------------------------------------------===//

/// The table of torch.distributed.pipelining: one row a rank, one column a
/// unit of time with F = I = W = 1 and B = 2, cells such as `0F3` that begin
/// with the virtual stage, empty where the rank idles; the second cell of a
/// backward is empty too.
std::string scheduleCsv(const ScheduleShape &shape);
std::string scheduleCsv(const PipelineOrders &orders);
std::string scheduleCsv(ScheduleKind kind, int64_t stages,
                        int64_t microBatches);

/// Reads such a table; overlapped pairs `(0F1;1B0)OVERLAP_F_B` become two
/// actions, communication cells are skipped. Refuses, with `file`, line and
/// column, cells that cannot be read, tables that lack or repeat an action, run
/// a stage on two ranks, give ranks different numbers of stages, or deadlock.
Result<PipelineOrders> readScheduleCsv(std::string_view text,
                                       const std::string &file);

/// A row a rank, `F` cells with the micro-batch's number and `B` cells twice
/// as wide; with several chunks a rank the virtual stage stands before the
/// letter. Cut to `maxColumns` characters, saying so.
std::string schedulePicture(const ScheduleShape &shape,
                            size_t maxColumns = 100);
std::string schedulePicture(const PipelineOrders &orders,
                            size_t maxColumns = 100);
std::string schedulePicture(ScheduleKind kind, int64_t stages,
                            int64_t microBatches, size_t maxColumns = 100);

/// A complete <svg> element, ranks by time: a box an action, coloured by pass
/// (chunks other than 0 paler), with the micro-batch's number where there is
/// room and names and times on hovering. Needs no style sheet.
std::string scheduleSvg(const PipelineOrders &orders, const Timetable &table,
                        double width = 1100);
/// Of a named schedule. A long step is drawn with fewer micro-batches, enough
/// for warm-up, two blocks and cool-down, and says so.
std::string scheduleSvg(const ScheduleShape &shape,
                        std::span<const StageDurations> durations,
                        double transfer = 0, double width = 1100);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_SCHEDULE_H
