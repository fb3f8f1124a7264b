#!/usr/bin/env python3
"""Plans under srun and sbatch, on a Slurm cluster of four nodes of its own.

Exit code 77 (skipped, with the reason) where Slurm or root is missing.
"""

import glob
import os
import shutil
import subprocess
import time

from harness import RUN, metrics, numbers
from slurm import Cluster, free_ports, main, statuses, two_nodes


class Slurm(Cluster):
    def only_rank(self, rank, here, elsewhere='exec "$0" "$@"'):
        """A command that does something else on one rank."""
        return ["bash", "-c",
                f'if [ $SLURM_PROCID = {rank} ]; then {here}; fi; {elsewhere}',
                RUN]

    # --- Running ------------------------------------------------------------

    def test_two_nodes_equal_one(self):
        local, _ = self.work.run(self.plan, "local", 4)
        where, done = self.srun("two")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(numbers(where), numbers(local))
        found = statuses(where)
        self.assertEqual(sorted(found), [0, 1, 2, 3])
        for rank, status in found.items():
            self.assertEqual(
                (status["exit_code"], status["dead_rank"], status["step"]),
                (0, None, 8))
            # A stage's two ranks share a node.
            self.assertEqual(status["host"], found[rank ^ 1]["host"])
        self.assertNotEqual(found[0]["host"], found[2]["host"])

    def test_a_master_that_is_given_wins(self):
        where, done = self.srun("master", "--steps", "1", env={
            "RECKON_MASTER_ADDR": "127.0.0.1",
            "RECKON_MASTER_PORT": str(free_ports(5))})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(metrics(where)), 1)
        # 192.0.2.1 is reserved for documentation: nobody answers there.
        _, done = self.srun("nobody", "--steps", "1", env={
            "RECKON_MASTER_ADDR": "192.0.2.1", "RECKON_MASTER_PORT": "9",
            "RECKON_MEET_LIMIT_S": "2"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("192.0.2.1", done.stderr)

    def test_launch_script(self):
        script = os.path.join(self.plan, "launch.sbatch")
        done = self.call("sbatch", "--test-only", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, options, before in (
                ("plain", [], script),
                ("relative", [], os.path.relpath(script, self.work.path)),
                ("named", ["--export=ALL,RECKON_PLAN_DIR=" + self.plan],
                 shutil.copy(script, self.work.file("copy.sh")))):
            with self.subTest(name):
                folder = self.work.file(name + ".sbatch")
                os.mkdir(folder)
                done = self.call("sbatch", "--wait", "--chdir", folder,
                                 *options, before, "--steps", "2")
                self.assertEqual(done.returncode, 0, done.stderr)
                (where,) = glob.glob(os.path.join(folder, "runs", "*"))
                self.assertEqual(len(metrics(where)), 2)

    def test_launch_script_takes_the_specs_options(self):
        spec = two_nodes()
        spec["cluster"]["slurm"] = {
            "partition": "test", "time": "5",
            "setup": ["export RECKON_RUN=" + RUN, "echo set up in $PWD"],
            "srun_args": ["--label", "--cpu-bind=none"],
            "extra": ["--output=out-%j.txt", "--comment='two words'"]}
        plan = self.work.compile(spec, "options")
        done = self.call("sbatch", "--wait",
                         os.path.join(plan, "launch.sbatch"), "--steps", "1",
                         env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, 0, done.stderr)
        (path,) = glob.glob(self.work.file("out-*.txt"))
        with open(path) as data:
            text = data.read()
        self.assertIn("set up in " + self.work.path, text)
        self.assertIn("0: done; see", text)  # --label

    def test_gpu_plans_are_accepted(self):
        # 70B on 128 GPUs cannot run here, but Slurm can judge its script.
        spec = two_nodes()
        spec["cluster"]["accelerator"] = "h100-sxm"
        plan = self.work.compile(spec, "gpu")
        script = os.path.join(plan, "launch.sbatch")
        with open(script) as data:
            text = data.read()
        self.assertIn("#SBATCH --gpus-per-node=2\n#SBATCH --exclusive\n", text)
        done = self.call("sbatch", "--test-only", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.plan, "launch.sbatch")) as data:
            text = data.read()
        self.assertNotIn("--gpus", text)
        self.assertNotIn("--exclusive", text)

    # --- Refusals -----------------------------------------------------------

    def test_a_wrong_task_count_is_refused_at_once(self):
        begin = time.monotonic()
        where, done = self.srun("wrong", tasks=1, kill=0)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(done.returncode, 4, done.stderr)
        for rank in (0, 1):  # each of them says so
            self.assertIn(f"rank {rank}: {self.plan} needs 4 ranks, got 2 "
                          "tasks from Slurm; use srun -N 2 "
                          "--ntasks-per-node=2", done.stderr)
            self.assertEqual(statuses(where)[rank]["exit_code"], 4)

    def test_tasks_on_the_wrong_nodes_are_refused(self):
        for nodes, tasks in ((1, 4), (4, 1)):
            _, done = self.srun("placed", nodes=nodes, tasks=tasks, kill=0)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("2 on each node (cluster.gpus_per_node), got "
                          f"{tasks} task", done.stderr)

    def test_absent_ranks_are_named_with_their_nodes(self):
        where, done = self.srun(
            "absent", kill=0, env={"RECKON_MEET_LIMIT_S": "3"},
            command=self.only_rank(3, "sleep 6; exit 0"))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertRegex(done.stderr, r"rank 3 on n\d did not come")
        self.assertEqual({s["exit_code"] for s in statuses(where).values()},
                         {5})

    def test_a_rank_of_another_run_is_refused(self):
        # Long enough for the stray to start on a busy machine and be met.
        _, done = self.srun(
            "stray", kill=0, env={"RECKON_MEET_LIMIT_S": "12"},
            command=self.only_rank(2, "export RECKON_RUN_NONCE=other"))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertRegex(done.stderr, r"rank 2 on n\d did not come")
        self.assertIn("another run", done.stderr)

    def test_ranks_agree_on_the_plan(self):
        other = self.work.compile(two_nodes(**{"training.seed": 8}), "other")
        where, done = self.srun(
            "plans", kill=0,
            command=self.only_rank(1, f'exec "$0" {other} "${{@:2}}"'))
        self.assertEqual(done.returncode, 41, done.stderr)
        self.assertRegex(done.stderr, "same plan on all ranks, got .* on "
                         "ranks 0, 2, 3 but .* on rank 1;")
        self.assertEqual([s["exit_code"] for s in statuses(where).values()],
                         [41] * 4)

    def test_ranks_agree_on_the_program(self):
        odd = self.work.file("reckon-run-odd")
        shutil.copy(RUN, odd)
        with open(odd, "ab") as out:
            out.write(b"\0")
        where, done = self.srun(
            "programs", kill=0,
            command=self.only_rank(2, f'exec {odd} "$@"'))
        self.assertEqual(done.returncode, 41, (done, statuses(where)))
        self.assertRegex(done.stderr, "same program on all ranks, got .* on "
                         "ranks 0, 1, 3 but .* on rank 2;")

    # --- Interrupts ---------------------------------------------------------

    def test_a_cancelled_step_is_interrupted(self):
        where = self.work.file("cancel.run")
        child = subprocess.Popen(
            ["srun", "-N2", "--ntasks-per-node=2", "-K0", "--job-name=cancel",
             RUN, self.plan, "--device", "cpu", "--run-dir", where, "--steps",
             "100000"], cwd=self.work.path, env=self.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = os.path.join(where, "metrics.jsonl")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (
                os.path.exists(path) and os.path.getsize(path)):
            time.sleep(0.05)
        self.call("scancel", "--name=cancel")
        child.wait(timeout=120)
        found = statuses(where)
        self.assertEqual(sorted(found), [0, 1, 2, 3])
        for status in found.values():
            self.assertEqual((status["exit_code"], status["dead_rank"]),
                             (21, None), status)


if __name__ == "__main__":
    main()
