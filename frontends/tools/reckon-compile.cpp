//===- reckon-compile.cpp - reckon compile --------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The entry of libreckon_compiler.so, which `reckon compile` loads: choose,
// lower phase by phase, check the plan against the prediction, write it.
//
//===----------------------------------------------------------------------===//

#include "frontends/import/BuildTrain.h"
#include "frontends/spec/Compilable.h"
#include "frontends/spec/Load.h"
#include "frontends/tools/Commands.h"
#include "frontends/tools/LaunchScript.h"
#include "frontends/tools/PlanHtml.h"
#include "frontends/tools/Progress.h"
#include "passes/Pipelines.h"
#include "passes/listing/CudaListing.h"
#include "passes/model/Job.h"
#include "passes/model/time/ModelFlops.h"
#include "passes/plan/EmitPlan.h"
#include "passes/prove/Prove.h"
#include "passes/search/Report.h"
#include "passes/search/Search.h"
#include "runtime/base/Os.h"
#include "runtime/plan/PlanIO.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <unistd.h>

using namespace reckon;

namespace {

struct Arguments {
  std::vector<std::string> files, sets;
  std::string planDir, dumpDir, fromIr, compileTo = "planned";
  bool dump = false, elide = true, prove = true;
};

int fail(ExitCode code, const std::string &message) {
  std::fprintf(stderr, "reckon compile: error: %s\n", message.c_str());
  return static_cast<int>(code);
}

/// One line per step on a terminal or in a log: what, and how long it took.
class Steps {
public:
  void step(const std::string &what) {
    double now = systemClock().seconds();
    std::fprintf(stderr, "  %-42s %6.2f s\n", what.c_str(), now - last);
    last = now;
  }

private:
  double last = systemClock().seconds();
};

/// Prints IR with the YAML place behind each operation, in a form that
/// reckon-opt reads back.
std::string printModule(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(true, /*prettyForm=*/false);
  flags.useLocalScope();
  module->print(stream, flags);
  stream << "\n";
  return text;
}

/// Passes report at YAML places: `tiny.yaml:30:3: error: ...`.
void printDiagnostics(mlir::MLIRContext &context) {
  context.getDiagEngine().registerHandler([](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark)
      return;
    std::string place = "plan";
    diagnostic.getLocation()->walk([&](mlir::Location at) {
      auto file = mlir::dyn_cast<mlir::FileLineColLoc>(at);
      if (!file)
        return mlir::WalkResult::advance();
      place = file.getFilename().str() + ":" + std::to_string(file.getLine()) +
              ":" + std::to_string(file.getColumn());
      return mlir::WalkResult::interrupt();
    });
    std::fprintf(stderr, "%s: error: %s\n", place.c_str(),
                 diagnostic.str().c_str());
  });
}

/// The plan allocates what the planner predicted, on every stage, or the
/// compile fails: nothing that does not agree is ever written.
Status
checkPrediction(const std::vector<std::unique_ptr<plan::StagePlanT>> &stages,
                const search::Candidate &choice) {
  for (const auto &stage : stages) {
    uint64_t predicted = choice.stages[stage->stage].arena();
    if (stage->arena_bytes != predicted)
      return makeError(ExitCode::Internal,
                       "stage " + std::to_string(stage->stage) +
                           " was predicted to allocate " +
                           std::to_string(predicted) + " bytes, but its plan " +
                           "allocates " + std::to_string(stage->arena_bytes) +
                           "; please report this with the spec");
  }
  return Status();
}

/// A relative data path is relative to the file that names it; the plan records
/// the way from its own folder, so that both can move together.
void recordDataFolder(plan::StagePlanT &stage, const DataSpec &data,
                      const std::string &planDir) {
  if (!stage.data || !data.given)
    return;
  namespace fs = std::filesystem;
  std::error_code code;
  fs::path folder = fs::absolute(data.folder.empty() ? "." : data.folder, code);
  fs::path from = fs::absolute(planDir, code);
  stage.data->base = folder.lexically_normal()
                         .lexically_relative(from.lexically_normal())
                         .string();
}

/// Proves the plan before it is written; a compiler's fault, or a snapshot that
/// was edited, stops here.
Status checkProof(const std::vector<const plan::StagePlanT *> &stages,
                  const Spec &spec, bool required) {
  Result<prove::Proof> proof = prove::provePlan(stages, prove::intentOf(spec));
  if (proof)
    return Status::success();
  if (required)
    return makeError(ExitCode::Internal, proof.error().message);
  std::fprintf(stderr, "reckon compile: warning: %s\n",
               proof.error().message.c_str());
  return Status::success();
}

std::string gib(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB",
                static_cast<double>(bytes) / 1073741824.0);
  return text;
}

plan::Prediction predictionOf(const model::StepTime &time,
                              const model::Job &job) {
  plan::Prediction prediction;
  prediction.step = time.step;
  prediction.pipeline = time.pipeline;
  prediction.update = time.update;
  prediction.overhead = time.overhead;
  prediction.message = time.message;
  prediction.tokensPerSecond = time.tokensPerSecond;
  prediction.tflopsPerDevice = time.tflopsPerDevice;
  prediction.mfu = time.mfu;
  for (const model::StageDurations &stage : time.stages)
    prediction.stages.push_back({stage.forward, stage.backward});
  prediction.calibration = job.calibration;
  return prediction;
}

int compile(const Arguments &arguments, Phase last) {
  Steps steps;
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec(arguments.files, arguments.sets, errors);
  if (!spec) {
    std::fprintf(stderr, "%s\n", spec.error().message.c_str());
    return static_cast<int>(spec.error().code);
  }
  if (std::vector<Diagnostic> beyond = notCompilable(*spec); !beyond.empty()) {
    std::fprintf(stderr, "%s\n", joinDiagnostics(beyond).c_str());
    return static_cast<int>(ExitCode::BadSpec);
  }
  restrictToCompilable(*spec);
  for (const Diagnostic &warning : spec->warnings)
    std::fprintf(stderr, "%s\n", warning.str().c_str());

  spec->search.space.value = SearchSpace::Compilable;
  search::SearchResult found = [&] {
    Progress progress("reckon compile");
    return search::searchAndExplain(*spec, *spec->search.top);
  }();
  // No times: compiling twice gives the same files.
  search::ReportInput report{*spec, found, 0};
  if (found.infeasible) {
    std::fputs(search::infeasibleText(report).c_str(), stderr);
    return static_cast<int>(ExitCode::Infeasible);
  }
  const search::Candidate &best = found.candidates.front();
  steps.step("chose " + search::choiceLine(best.choice));

  mlir::DialectRegistry registry;
  registerReckonDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  printDiagnostics(context);
  model::Job job = model::makeJob(*spec);
  PlanFacts facts{
      model::modelFlops(job.model, model::AttentionFlops::Causal).total(),
      job.peakFlops()};
  mlir::OwningOpRef<mlir::ModuleOp> module =
      arguments.fromIr.empty()
          ? buildTrain(context, *spec, best.choice, facts)
          : mlir::parseSourceFile<mlir::ModuleOp>(arguments.fromIr, &context);
  if (!module)
    return fail(ExitCode::BadSpec, "cannot read " + arguments.fromIr +
                                       " as a snapshot of --dump-ir");

  std::string dumpDir =
      arguments.dumpDir.empty() ? arguments.planDir + "/ir" : arguments.dumpDir;
  Status dumped;
  PhaseOptions options;
  options.last = last;
  options.after = std::filesystem::path(arguments.fromIr).filename().string();
  options.recompute = toString(best.choice.recompute);
  options.elide = arguments.elide;
  options.snapshot = [&](const char *name, mlir::ModuleOp snapshot) {
    if (arguments.dump && dumped)
      dumped = systemFiles().write(dumpDir + "/" + name, printModule(snapshot));
    steps.step(std::string("reached ") + name);
  };
  if (arguments.dump)
    if (Status made = systemFiles().createDirectories(dumpDir); !made)
      return fail(made.error().code, made.error().message);
  if (mlir::failed(runPhases(*module, options)))
    return fail(ExitCode::Internal, "the spec could not be lowered");
  if (!dumped)
    return fail(dumped.error().code, dumped.error().message);
  if (last != Phase::Planned) {
    if (!arguments.dump)
      std::fputs(printModule(*module).c_str(), stdout);
    return 0;
  }

  auto stages = planir::emitPlan(*module);
  if (mlir::failed(stages))
    return fail(ExitCode::Internal, "the plan could not be written down");
  // Without elision there are more buffers than the planner counts.
  Status agrees = arguments.elide ? checkPrediction(*stages, best) : Status();
  if (!agrees)
    return fail(agrees.error().code, agrees.error().message);

  plan::Manifest manifest;
  manifest.name = *spec->model.name;
  manifest.mesh = *stages->front()->mesh;
  manifest.cluster = {spec->cluster.accelerator->name,
                      static_cast<uint32_t>(*spec->cluster.nodes),
                      static_cast<uint32_t>(*spec->cluster.gpusPerNode)};
  manifest.spec = spec->canonical;
  manifest.choice = search::choiceJson(best.choice);
  manifest.reckonVersion = RECKON_VERSION;
  manifest.prediction = predictionOf(best.time, job);
  std::vector<const plan::StagePlanT *> pointers;
  for (auto &stage : *stages) {
    recordDataFolder(*stage, spec->training.data, arguments.planDir);
    pointers.push_back(stage.get());
  }
  if (Status proved = checkProof(pointers, *spec, arguments.prove); !proved)
    return fail(proved.error().code, proved.error().message);
  steps.step("proved all " + std::to_string(plan::worldSize(manifest.mesh)) +
             " ranks");
  std::string script = arguments.planDir + "/" + kLaunchScript;
  Status launch = systemFiles().createDirectories(arguments.planDir);
  if (launch)
    launch =
        systemFiles().write(script, launchScript(spec->cluster, manifest.name));
  // Warnings name files of this machine.
  spec->warnings.clear();
  if (launch)
    launch = systemFiles().write(arguments.planDir + "/" + kReportPage,
                                 planHtml(report));
  if (launch)
    launch =
        systemFiles().write(arguments.planDir + "/" + listing::kCudaListing,
                            listing::cudaListing(manifest, pointers));
  if (!launch)
    return fail(launch.error().code, launch.error().message);
  Result<plan::Manifest> written = plan::writePlanDirectory(
      systemFiles(), arguments.planDir, manifest, pointers);
  if (!written)
    return fail(written.error().code, written.error().message);
  steps.step("wrote " + std::to_string(stages->size()) + " stage files");
  std::printf(
      "%s: %s; stage %lld allocates %s of %s a rank\n",
      arguments.planDir.c_str(), search::choiceLine(best.choice).c_str(),
      static_cast<long long>(best.peakStage), gib(best.peakArena()).c_str(),
      gib(spec->constraints.memoryLimitBytes()).c_str());
  return 0;
}

} // namespace

/// `reckon compile`; argv[0] is the command, the result the exit code.
extern "C" int reckonCompileMain(int argc, char **argv) {
  Arguments arguments;
  CLI::App app{"Chooses, lowers, verifies and writes a plan directory."};
  app.name("reckon compile");
  app.add_option("SPEC", arguments.files, "YAML files, merged left to right")
      ->required();
  app.add_option("--set", arguments.sets, "override one key: KEY=VALUE");
  app.add_option("-o,--output", arguments.planDir, "the plan directory");
  CLI::Option *dump =
      app.add_option("--dump-ir", arguments.dumpDir,
                     "write the numbered IR snapshots (default: PLAN_DIR/ir)")
          ->expected(0, 1);
  app.add_option("--from-ir", arguments.fromIr,
                 "go on from this snapshot (such as ir/40-partitioned.mlir, "
                 "edited or not) instead of the spec's own IR");
  app.add_option("--compile-to", arguments.compileTo,
                 "train, sharded, partitioned, scheduled or planned");
  app.add_flag("!--no-elision", arguments.elide,
               "keep events and collectives that others imply: slower, the "
               "same results (for tests)");
  app.add_flag("!--unproved", arguments.prove,
               "write the plan even if its proofs fail, with a warning (for "
               "tests of the tests)");
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;
  arguments.dump = dump->count() > 0;
  std::optional<Phase> last = parsePhase(arguments.compileTo);
  if (!last)
    return fail(ExitCode::BadSpec,
                "expected --compile-to train, sharded, partitioned, scheduled "
                "or planned, got " +
                    arguments.compileTo);
  if (arguments.planDir.empty() &&
      (*last == Phase::Planned ||
       (arguments.dump && arguments.dumpDir.empty())))
    return fail(ExitCode::BadSpec,
                "expected a plan directory; add -o PLAN_DIR");
  return compile(arguments, *last);
}
