#!/usr/bin/env python3
"""A job that cannot go on ends, soon, with its reason and the right code."""

import os
import signal
import subprocess
import time
import unittest

import harness
from harness import LAYOUTS, RUN, Workspace, metrics, tiny


class Failures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()
        cls.plan = cls.work.compile(tiny(**LAYOUTS["tp2-pp2"]), "plan")

    @classmethod
    def tearDownClass(cls):
        cls.work.__exit__()

    def test_a_killed_rank_ends_the_job_with_its_name(self):
        for rank in range(4):
            with self.subTest(rank=rank):
                begin = time.monotonic()
                _, done = self.work.run(
                    self.plan, f"kill{rank}", 4, expect=42, timeout=60,
                    env={"RECKON_FAULT": f"kill@rank={rank},step=3"})
                self.assertIn(f"rank {rank}", done.stderr)
                self.assertLess(time.monotonic() - begin, 30)

    def test_killed_at_any_moment_of_a_step(self):
        for at in (1, 7, 40, 120, 300):
            with self.subTest(at=at):
                _, done = self.work.run(
                    self.plan, f"kill-at-{at}", 4, expect=42, timeout=60,
                    env={"RECKON_FAULT": f"kill@rank=1,step=2,at={at}"})
                self.assertIn("rank 1", done.stderr)

    def test_a_bad_fault_is_bad_usage(self):
        self.work.run(self.plan, "badfault", 4, expect=2,
                      env={"RECKON_FAULT": "explode@rank=1"})

    def test_interrupt_ends_all_ranks(self):
        where = self.work.file("interrupt.run")
        child = subprocess.Popen(
            [RUN, self.plan, "--device", "cpu", "--local", "4", "--run-dir",
             where, "--steps", "100000"], cwd=self.work.path,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"})
        deadline = time.monotonic() + 60
        path = os.path.join(where, "metrics.jsonl")
        while time.monotonic() < deadline:
            if os.path.exists(path) and os.path.getsize(path) > 0:
                break
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, text = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 21, text)
        with open(path) as data:
            self.assertTrue(data.read().endswith("}\n"), "a torn line")
        self.assertGreaterEqual(len(metrics(where)), 1)
        # None of the ranks is left.
        left = subprocess.run(["pgrep", "-f", self.work.path],
                              capture_output=True, text=True)
        self.assertEqual(left.stdout.strip(), "")

    def test_a_wrong_process_count_is_refused_with_both_numbers(self):
        done = subprocess.run(
            [RUN, self.plan, "--device", "cpu", "--local", "3"],
            cwd=self.work.path, capture_output=True, text=True, timeout=60)
        self.assertIn(done.returncode, (2, 4))
        self.assertIn("3", done.stderr)
        self.assertIn("4", done.stderr)

    def test_missing_data_names_the_remedy(self):
        _, done = self.work.run(self.plan, "nodata", 4, "--data",
                                "/nonexistent/corpus.txt", expect=5)
        self.assertIn("/nonexistent/corpus.txt", done.stderr)

    def test_a_missing_plan_and_a_damaged_one(self):
        self.work.run(self.work.file("nothing.plan"), "noplan", 1, expect=5)
        path = os.path.join(self.plan, "stage-001.rkplan")
        with open(path, "rb") as data:
            good = data.read()
        for at in (0, 5, len(good) // 3, len(good) - 9):
            with self.subTest(at=at):
                bad = bytearray(good)
                bad[at] ^= 0x41
                with open(path, "wb") as out:
                    out.write(bad)
                try:
                    _, done = self.work.run(self.plan, "damaged", 4, expect=6)
                    self.assertIn("stage-001.rkplan", done.stderr)
                finally:
                    with open(path, "wb") as out:
                        out.write(good)

    def test_bf16_plans_run(self):
        plan = self.work.compile(
            tiny(**{**LAYOUTS["tp2-pp2"], "training.precision": "bf16"}),
            "bf16")
        where, _ = self.work.run(plan, "bf16", 4)
        losses = [m["loss"] for m in metrics(where)]
        self.assertEqual(len(losses), 8)
        self.assertLess(losses[-1], losses[0])


if __name__ == "__main__":
    harness.main()
