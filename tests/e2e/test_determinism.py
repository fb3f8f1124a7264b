#!/usr/bin/env python3
"""Equal inputs give equal bits: plans, runs, and runs in another queue order.

The interpreter may take ready queues in any order that streams and events
allow; a missing event would show as another result under some seed.
"""

import filecmp
import glob
import os
import unittest

import harness
from harness import LAYOUTS, Workspace, numbers, tiny

SEEDS = 20


class Determinism(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.work.__exit__()

    def assertSameFiles(self, a, b):
        names = sorted(os.path.basename(p) for p in
                       glob.glob(os.path.join(a, "*")))
        self.assertIn("manifest.json", names)
        self.assertIn("stage-000.rkplan", names)
        for name in names:
            if os.path.isfile(os.path.join(a, name)):
                self.assertTrue(
                    filecmp.cmp(os.path.join(a, name), os.path.join(b, name),
                                shallow=False), name)

    def test_compiling_twice_gives_equal_bytes(self):
        spec = tiny(**LAYOUTS["dp2-tp2-pp2-zero1"])
        spec_a = self.work.compile(spec, "same")
        os.rename(spec_a, spec_a + ".first")
        self.assertSameFiles(spec_a + ".first",
                             self.work.compile(spec, "same"))

    def test_equal_runs_and_other_queue_orders(self):
        for name in ("tp2-pp2", "dp2-tp2-pp2-zero1", "pp4-gpipe"):
            with self.subTest(name):
                spec = tiny(**LAYOUTS[name])
                ranks = harness.world(spec)
                plan = self.work.compile(spec, name)
                first, _ = self.work.run(plan, name + ".a", ranks)
                again, _ = self.work.run(plan, name + ".b", ranks)
                want = numbers(first)
                self.assertEqual(len(want), 8)
                self.assertEqual(numbers(again), want)
                for seed in range(1, SEEDS + 1):
                    where, _ = self.work.run(
                        plan, f"{name}.{seed}", ranks, "--steps", "3",
                        env={"RECKON_QUEUE_SEED": str(seed)})
                    self.assertEqual(numbers(where), want[:3], f"seed {seed}")

    def test_eliding_nothing_changes_nothing(self):
        # Events and collectives are inserted by passes that are obviously
        # right; what removes the implied ones must not change results.
        for name in ("dp2-tp2-pp2-zero1", "sp-dp2-pp2-zero1"):
            with self.subTest(name):
                spec = tiny(**LAYOUTS[name])
                plan = self.work.compile(spec, "elided")
                full = self.work.compile(spec, "full", "--no-elision")
                elided, _ = self.work.run(plan, name, 8, "--steps", "3")
                kept, _ = self.work.run(full, name + ".kept", 8, "--steps",
                                        "3")
                self.assertEqual(numbers(elided), numbers(kept))


if __name__ == "__main__":
    harness.main()
