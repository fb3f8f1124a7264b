#!/usr/bin/env python3
"""Large models are compiled and accounted to the byte; small ones stay in the
memory that was promised while they run.

`reckon compile` itself refuses to write a plan whose arena differs from the
planner's prediction, so every compile here is such a comparison.
"""

import json
import os
import subprocess
import time
import unittest

import harness
from harness import LAYOUTS, RECKON, ROOT, RUN, Workspace, call, metrics, tiny

EXAMPLES = os.path.join(ROOT, "examples")
LLAMA_70B = 70553706496


class Accounting(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.work.__exit__()

    def test_every_layout_in_every_precision(self):
        for name, changes in LAYOUTS.items():
            for precision in ("fp32", "bf16", "fp8"):
                for recompute in ("none", "full"):
                    with self.subTest(name, precision=precision,
                                      recompute=recompute):
                        spec = tiny(**{**changes,
                                       "training.precision": precision,
                                       "recompute": recompute})
                        self.work.compile(spec, "layout")

    def test_70b_on_1024(self):
        files = [os.path.join(EXAMPLES, "models", "llama-70b.yaml"),
                 os.path.join(EXAMPLES, "clusters", "h100-1024.yaml"),
                 os.path.join(EXAMPLES, "70b-1024", "train.yaml")]
        report = json.loads(call([RECKON, "plan", *files, "--format", "json"],
                                 self.work.path).stdout)
        self.assertEqual(report["model"]["parameters"], LLAMA_70B)
        chosen = report["candidates"][0]
        self.assertEqual(chosen["parallelism"]["pipeline_parallel"], 4)
        # (p - 1) / m = 3 / 16 for batch 512 = 1 x 16 x 32.
        self.assertAlmostEqual(chosen["bubble_fraction"], 3 / 16, places=6)
        # 2 bytes bf16 weights, 4 fp32 gradients, 12 optimizer over dp 32; a
        # rank of a middle stage has 20 of 80 layers, a 1/8 of each matrix.
        matrices = 2 * 8192 * 8192 + 2 * 1024 * 8192 + 3 * 8192 * 28672
        rank = 20 * (matrices // 8 + 2 * 8192)
        middle = chosen["memory"]["stages"][1]
        self.assertEqual(middle["parameters"], 2 * rank)
        self.assertEqual(middle["gradients"], 4 * rank)
        self.assertEqual(middle["optimizer"], 12 * rank // 32)
        begin = time.monotonic()
        call([RECKON, "compile", *files, "-o", self.work.file("70b.plan")],
             self.work.path)
        print(f"  70B compiled in {time.monotonic() - begin:.1f} s")

    def test_405b_on_16384(self):
        files = [os.path.join(EXAMPLES, "models", "llama-405b.yaml"),
                 os.path.join(EXAMPLES, "clusters", "h100-16384.yaml")]
        sets = []
        for key, value in {
                "training.sequence_length": 8192,
                "training.global_batch_size": 2048,
                "parallelism.tensor_parallel": 8,
                "parallelism.pipeline_parallel": 16,
                "parallelism.data_parallel": 128,
                "parallelism.zero_stage": 1,
                "parallelism.micro_batch_size": 1,
                "parallelism.recompute": "full",
                "constraints.max_bubble": 1}.items():
            sets += ["--set", f"{key}={value}"]
        begin = time.monotonic()
        call([RECKON, "compile", *files, *sets, "-o",
              self.work.file("405b.plan")], self.work.path)
        print(f"  405B compiled in {time.monotonic() - begin:.1f} s")

    def resident(self, launcher):
        """Resident bytes of the launcher's ranks, by process id."""
        with open(f"/proc/{launcher}/task/{launcher}/children") as data:
            ranks = data.read().split()
        sizes = {}
        for rank in ranks:
            with open(f"/proc/{rank}/statm") as data:
                sizes[rank] = int(data.read().split()[1]) * 4096
        return sizes

    def test_resident_memory_is_flat_over_200_steps(self):
        spec = tiny(**{**LAYOUTS["tp2-pp2"], "model.num_hidden_layers": 2,
                       "training.train_steps": 220})
        plan = self.work.compile(spec, "flat")
        where = self.work.file("flat.run")
        run = subprocess.Popen(
            [RUN, plan, "--device", "cpu", "--local", "4", "--run-dir",
             where], cwd=self.work.path, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"})
        samples = []
        while run.poll() is None:
            try:
                steps = len(metrics(where))
                samples.append((steps, self.resident(run.pid)))
            except (OSError, ValueError, IndexError):
                pass  # not started, or ending
            time.sleep(0.02)
        self.assertEqual(run.returncode, 0)
        self.assertEqual(len(metrics(where)), 220)
        # The first steps touch pages for the first time.
        flat = [sizes for steps, sizes in samples
                if 20 <= steps < 220 and len(sizes) == 4]
        self.assertGreater(len(flat), 5, "too fast to be watched")
        for rank in flat[0]:
            grown = max(s[rank] for s in flat) - flat[0][rank]
            self.assertLessEqual(grown, 256 << 10, f"process {rank}")
        print(f"  resident: {sorted(flat[-1].values())} bytes, "
              f"{len(flat)} samples")


if __name__ == "__main__":
    harness.main()
