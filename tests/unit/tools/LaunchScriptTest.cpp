//===- LaunchScriptTest.cpp - launch.sbatch -------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What Slurm makes of the script is tested by tests/e2e/test_slurm.py; here its
// options, and how it finds the plan from what Slurm tells it.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/LaunchScript.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace reckon {
namespace {

namespace fs = std::filesystem;

ClusterSpec cluster(const char *accelerator, int64_t nodes, int64_t perNode) {
  ClusterSpec out;
  out.accelerator.value = *findAccelerator(accelerator);
  out.nodes.value = nodes;
  out.gpusPerNode.value = perNode;
  return out;
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(LaunchScript, AsksForTheNodes) {
  std::string text = launchScript(cluster("h100-sxm", 16, 8), "llama");
  EXPECT_EQ(text.rfind("#!/bin/bash\n", 0), 0u);
  for (const char *line :
       {"#SBATCH --job-name=llama\n", "#SBATCH --nodes=16\n",
        "#SBATCH --ntasks-per-node=8\n", "#SBATCH --gpus-per-node=8\n",
        "#SBATCH --exclusive\n", "--nodes=16 --ntasks-per-node=8"})
    EXPECT_TRUE(has(text, line)) << line << text;
  text = launchScript(cluster("cpu", 1, 4), "llama");
  EXPECT_FALSE(has(text, "gpus-per-node"));
  EXPECT_FALSE(has(text, "exclusive"));
  EXPECT_FALSE(has(text, "--partition"));
}

// The runtime sets what a plan needs and records it; a script that sets it too
// would hide a change of the one behind the other. Nor does it bind GPUs: NCCL
// would not find those of its peers.
TEST(LaunchScript, SetsNothingThatTheRuntimeSets) {
  for (const char *accelerator : {"cpu", "h100-sxm", "gb200-nvl72"}) {
    std::string text = launchScript(cluster(accelerator, 2, 4), "llama");
    for (const char *part :
         {"export", "NCCL_", "CUDA_", "OMP_", "MASTER_ADDR",
          "RANK=", "WORLD_SIZE", "gpus-per-task", "gpu-bind", "--gres"})
      EXPECT_FALSE(has(text, part)) << part << text;
  }
  ClusterSpec spec = cluster("h100-sxm", 2, 8);
  spec.slurm.setup.value = "export NCCL_DEBUG=INFO";
  EXPECT_TRUE(has(launchScript(spec, "llama"), "export NCCL_DEBUG=INFO\n"));
}

TEST(LaunchScript, TakesTheSpecsTexts) {
  ClusterSpec spec = cluster("cpu", 2, 2);
  spec.slurm.partition.value = "big";
  spec.slurm.account.value = "team";
  spec.slurm.qos.value = "high";
  spec.slurm.time.value = "1-00:00:00";
  spec.slurm.setup.value = "module load x\nexport A=1";
  spec.slurm.srunArgs.value = {"--mpi=none", "--cpu-bind=none"};
  spec.slurm.extra.value = {"--requeue", "#SBATCH --mem=0"};
  std::string text = launchScript(spec, "a b\n$(id)");
  for (const char *part :
       {"#SBATCH --partition=big\n", "#SBATCH --account=team\n",
        "#SBATCH --qos=high\n", "#SBATCH --time=1-00:00:00\n",
        "#SBATCH --requeue\n#SBATCH --mem=0\n", "\nmodule load x\nexport A=1\n",
        "\n  --mpi=none \\\n  --cpu-bind=none \\\n",
        "#SBATCH --job-name=a_b___id_\n"})
    EXPECT_TRUE(has(text, part)) << part << text;
  // Slurm reads options only above the first command.
  EXPECT_LT(text.rfind("#SBATCH "), text.find("module load"));
}

/// Runs the script with stand-ins for scontrol and srun.
class Script : public testing::Test {
protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() /
            ("reckon-script-" + std::to_string(::getpid()));
    fs::create_directories(root_ / "my plan");
    fs::create_directories(root_ / "bin");
    std::ofstream(root_ / "my plan/manifest.json") << "{}";
    program("reckon-run", "");
    program("srun", "for a in \"$@\"; do echo \"[$a]\"; done");
    std::ofstream(root_ / "spool") << launchScript(cluster("cpu", 2, 2), "x");
  }
  void TearDown() override { fs::remove_all(root_); }

  void program(const char *name, const std::string &body) {
    fs::path path = root_ / "bin" / name;
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }

  /// Exit code; `out` has what srun was given.
  int run(const std::string &command, const std::string &environment = "") {
    program("scontrol",
            "echo 'JobId=7 JobName=x'\necho '   Command=" + command + "'");
    std::string line = "cd '" + root_.string() + "' && env PATH='" +
                       root_.string() + "/bin':/usr/bin:/bin SLURM_JOB_ID=7 " +
                       "SLURM_SUBMIT_DIR='" + root_.string() + "' " +
                       environment + " bash spool --steps 3 >out 2>&1";
    int status = std::system(line.c_str());
    std::ifstream in(root_ / "out");
    out.assign(std::istreambuf_iterator<char>(in), {});
    return WEXITSTATUS(status);
  }

  std::string plan() const { return "[" + (root_ / "my plan").string() + "]"; }

  fs::path root_;
  std::string out;
};

TEST_F(Script, FindsItsPlanThroughSlurmsRecord) {
  std::string given = (root_ / "my plan").string();
  for (const std::string &command :
       {given + "/launch.sbatch", given + "/launch.sbatch --steps 3",
        given + "/renamed.sh", std::string("my plan/launch.sbatch")}) {
    EXPECT_EQ(run(command), 0) << command << out;
    EXPECT_TRUE(has(out, plan() + "\n[--steps]\n[3]\n")) << out;
    EXPECT_TRUE(has(out, "[--kill-on-bad-exit=1]\n")) << out;
  }
}

TEST_F(Script, RefusesWithoutAPlanOrAProgram) {
  // As after `sbatch <launch.sbatch`.
  EXPECT_EQ(run("(null)"), 5);
  EXPECT_TRUE(has(out, "RECKON_PLAN_DIR")) << out;
  EXPECT_EQ(run("/nowhere/launch.sbatch"), 5);
  EXPECT_TRUE(has(out, "'/nowhere'")) << out;
  EXPECT_EQ(run("(null)", "RECKON_PLAN_DIR=" + (root_ / "'my plan'").string()),
            0)
      << out;
  EXPECT_TRUE(has(out, plan())) << out;
  EXPECT_EQ(run("(null)", "RECKON_PLAN_DIR='my plan' RECKON_RUN=/no/run"), 5);
  EXPECT_TRUE(has(out, "/no/run")) << out;
}

} // namespace
} // namespace reckon
