//===- Csv.cpp - tables of torch.distributed.pipelining -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

using namespace reckon;
using namespace reckon::model;

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string model::scheduleCsv(const PipelineOrders &orders) {
  std::vector<StageDurations> units(orders.stages());
  Result<Timetable> table = simulateOrders(orders, units);
  RECKON_CHECK(table.ok());
  auto columns = static_cast<size_t>(std::llround(table->makespan));
  std::string csv;
  for (int64_t rank = 0; rank < orders.p; ++rank) {
    std::vector<std::string> row(columns);
    for (const TimedAction &timed : table->ranks[rank])
      row[std::llround(timed.start)] =
          std::to_string(orders.stage(rank, timed.action.chunk)) +
          timed.action.pass + std::to_string(timed.action.microBatch);
    for (size_t column = 0; column < columns; ++column) {
      if (column)
        csv += ',';
      csv += row[column];
    }
    csv += '\n';
  }
  return csv;
}

std::string model::scheduleCsv(const ScheduleShape &shape) {
  return scheduleCsv(makeOrders(shape));
}

std::string model::scheduleCsv(ScheduleKind kind, int64_t stages,
                               int64_t microBatches) {
  return scheduleCsv(ScheduleShape{kind, stages, 1, microBatches});
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

struct Cell {
  int64_t stage = 0;
  char pass = 'F';
  int64_t microBatch = 0;
  size_t line = 0, column = 0;

  std::string name() const {
    return std::to_string(stage) + pass + std::to_string(microBatch);
  }
};

class Reader {
public:
  Reader(std::string_view text, const std::string &file)
      : text_(text), file_(file) {}

  Result<PipelineOrders> read() {
    RECKON_TRY(readRows());
    RECKON_TRY(placeStages());
    RECKON_TRY(checkComplete());
    PipelineOrders &orders = orders_;
    for (const std::vector<Cell> &row : rows_) {
      auto &rank = orders.ranks.emplace_back();
      for (const Cell &cell : row)
        rank.push_back(
            {cell.pass, cell.microBatch, orders.chunkOfStage[cell.stage]});
    }
    std::vector<StageDurations> units(orders.stages());
    Result<Timetable> table = simulateOrders(orders, units, 0, false);
    if (!table.ok())
      return makeError(ExitCode::BadSpec, file_ + ": " + table.error().message);
    return std::move(orders);
  }

private:
  Error fail(size_t line, size_t column, const std::string &what) const {
    return makeError(ExitCode::BadSpec, file_ + ":" + std::to_string(line) +
                                            ":" + std::to_string(column) +
                                            ": " + what);
  }

  static bool takeNumber(std::string_view &text, int64_t &value) {
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || value > (1 << 20))
      return false;
    text.remove_prefix(end - text.data());
    return true;
  }

  /// `0F3`, all of it.
  static bool parseAction(std::string_view text, Cell &cell) {
    if (!takeNumber(text, cell.stage) || text.empty() ||
        std::string_view("FBIW").find(text[0]) == std::string_view::npos)
      return false;
    cell.pass = text[0];
    text.remove_prefix(1);
    return takeNumber(text, cell.microBatch) && text.empty();
  }

  /// Messages, gathers and reductions follow from the computations.
  static bool isCommunication(std::string_view text) {
    int64_t stage = 0;
    if (!takeNumber(text, stage))
      return false;
    for (std::string_view name : {"SEND_F", "RECV_F", "SEND_B", "RECV_B",
                                  "UNSHARD", "RESHARD", "REDUCE_GRAD"})
      if (text.starts_with(name)) {
        text.remove_prefix(name.size());
        return text.empty() || (takeNumber(text, stage) && text.empty());
      }
    return false;
  }

  Status readCell(std::string_view text, size_t line, size_t column) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
      text.remove_prefix(1);
      ++column;
    }
    while (!text.empty() &&
           (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
      text.remove_suffix(1);
    if (text.empty() || isCommunication(text))
      return Status::success();
    Cell cell{0, 'F', 0, line, column};
    constexpr std::string_view overlap = ")OVERLAP_F_B";
    if (text.front() == '(' && text.ends_with(overlap)) {
      std::string_view both = text.substr(1, text.size() - 1 - overlap.size());
      size_t middle = both.find(';');
      Cell second = cell;
      if (middle != std::string_view::npos &&
          parseAction(both.substr(0, middle), cell) &&
          parseAction(both.substr(middle + 1), second)) {
        rows_.back().push_back(cell);
        rows_.back().push_back(second);
        return Status::success();
      }
    } else if (parseAction(text, cell)) {
      rows_.back().push_back(cell);
      return Status::success();
    }
    return fail(line, column,
                "expected an action such as 0F3, 1B0, 2I1 or 2W1, got '" +
                    std::string(text) +
                    "'; write the virtual stage, the pass and the "
                    "micro-batch, or nothing");
  }

  Status readRows() {
    std::string_view rest = text_;
    for (size_t line = 1; !rest.empty(); ++line) {
      size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view row = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (row.find_first_not_of(" \t\r,") == std::string_view::npos) {
        if (rest.find_first_not_of(" \t\r\n,") == std::string_view::npos)
          break;
        return fail(line, 1,
                    "expected the actions of rank " +
                        std::to_string(rows_.size()) +
                        ", got an empty row; delete the row");
      }
      rows_.emplace_back();
      size_t column = 0;
      while (true) {
        size_t comma = std::min(row.find(',', column), row.size());
        RECKON_TRY(
            readCell(row.substr(column, comma - column), line, column + 1));
        if (comma == row.size())
          break;
        column = comma + 1;
      }
    }
    if (rows_.empty())
      return fail(1, 1,
                  "expected one row a rank, got an empty file; write "
                  "actions such as 0F0,0B0");
    return Status::success();
  }

  Status placeStages() {
    std::map<int64_t, int64_t> rankOf;
    std::vector<std::set<int64_t>> stagesOf(rows_.size());
    int64_t last = 0;
    for (size_t rank = 0; rank < rows_.size(); ++rank)
      for (const Cell &cell : rows_[rank]) {
        auto [found, fresh] = rankOf.insert({cell.stage, rank});
        if (!fresh && found->second != static_cast<int64_t>(rank))
          return fail(cell.line, cell.column,
                      "expected stage " + std::to_string(cell.stage) +
                          " only on rank " + std::to_string(found->second) +
                          ", got it on rank " + std::to_string(rank) +
                          " too; keep a stage on one rank");
        stagesOf[rank].insert(cell.stage);
        last = std::max(last, cell.stage);
        orders_.m = std::max(orders_.m, cell.microBatch + 1);
      }
    orders_.p = static_cast<int64_t>(rows_.size());
    orders_.v = static_cast<int64_t>(stagesOf[0].size());
    for (size_t rank = 0; rank < rows_.size(); ++rank) {
      if (stagesOf[rank].size() != stagesOf[0].size())
        return fail(rank + 1, 1,
                    "expected " + std::to_string(stagesOf[0].size()) +
                        " stages as on rank 0, got " +
                        std::to_string(stagesOf[rank].size()) + " on rank " +
                        std::to_string(rank) +
                        "; give every rank as many stages");
      orders_.stageOfChunk.insert(orders_.stageOfChunk.end(),
                                  stagesOf[rank].begin(), stagesOf[rank].end());
    }
    if (last + 1 != orders_.stages())
      return fail(1, 1,
                  "expected stages 0 to " +
                      std::to_string(orders_.stages() - 1) + ", got stage " +
                      std::to_string(last) + "; number them without gaps");
    orders_.indexStages();
    return Status::success();
  }

  Status checkComplete() {
    std::set<std::tuple<int64_t, int64_t, char>> seen;
    for (const std::vector<Cell> &row : rows_)
      for (const Cell &cell : row) {
        auto has = [&](char pass) {
          return seen.count({cell.stage, cell.microBatch, pass}) > 0;
        };
        bool twice = has(cell.pass) || (cell.pass == 'B' && has('I')) ||
                     (cell.pass == 'I' && has('B')) ||
                     (cell.pass == 'W' && has('B'));
        if (twice)
          return fail(cell.line, cell.column,
                      "expected every pass of a stage on a micro-batch once, "
                      "got " +
                          cell.name() + " again; delete it");
        // The first stage has no gradient to send, and may leave out its I.
        if (cell.pass == 'W' && !has('I') && cell.stage != 0)
          return fail(cell.line, cell.column,
                      "expected the input gradient before " + cell.name() +
                          ", got none; put " + std::to_string(cell.stage) +
                          "I" + std::to_string(cell.microBatch) + " before it");
        seen.insert({cell.stage, cell.microBatch, cell.pass});
      }
    for (int64_t stage = 0; stage < orders_.stages(); ++stage)
      for (int64_t i = 0; i < orders_.m; ++i) {
        auto has = [&](char pass) { return seen.count({stage, i, pass}) > 0; };
        if (has('F') && (has('B') || has('W')))
          continue;
        return fail(orders_.rankOfStage[stage] + 1, 1,
                    "expected a forward and a backward of stage " +
                        std::to_string(stage) + " on micro-batch " +
                        std::to_string(i) + ", got " +
                        (has('F') ? "no backward" : "no forward") +
                        "; add the missing action to this row");
      }
    // Of the first stage, W alone is the whole backward.
    for (std::vector<Cell> &row : rows_)
      for (Cell &cell : row)
        if (cell.stage == 0 && cell.pass == 'W' &&
            !seen.count({0, cell.microBatch, 'I'}))
          cell.pass = 'B';
    return Status::success();
  }

  std::string_view text_;
  const std::string &file_;
  std::vector<std::vector<Cell>> rows_;
  PipelineOrders orders_;
};

} // namespace

Result<PipelineOrders> model::readScheduleCsv(std::string_view text,
                                              const std::string &file) {
  return Reader(text, file).read();
}
