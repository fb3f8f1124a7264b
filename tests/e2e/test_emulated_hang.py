#!/usr/bin/env python3
"""What `reckon verify` refuses as a deadlock really blocks on NCCL's semantics.

A plan that only buffered sends would let end is run unverified on the emulated
device. It ends by the deadline, with exit code 40, and every rank says in which
actions it is blocked: those in which the plan blocks when it is only played.
"""

import os
import re
import time
import unittest

import harness
from harness import BIN, LAYOUTS, RUN, Workspace, call, numbers, tiny

REORDER = os.path.join(BIN, "reckon-reorder")
LIMIT = 3  # seconds


class EmulatedHang(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.work.__exit__()

    def small(self, layout):
        changes = {**LAYOUTS[layout], "model.num_hidden_layers": 4,
                   "training.train_steps": 2}
        return tiny(**changes)

    def reordered(self, layout, order):
        plan = self.work.compile(self.small(layout), layout)
        out = self.work.file(f"{layout}-{order}.plan")
        os.mkdir(out)
        done = call([REORDER, plan, out, "--order", order], self.work.path)
        return plan, out, done.stdout

    def run_emulated(self, plan, layout, name, expect=0):
        where = self.work.file(name + ".run")
        done = call([RUN, plan, "--device", "cuda-emulated", "--local",
                     str(harness.world(self.small(layout))), "--run-dir",
                     where], self.work.path, expect=expect,
                    env={"RECKON_HANG_LIMIT_S": str(LIMIT)})
        return where, done

    def test_a_refused_plan_blocks_and_every_rank_says_where(self):
        for layout in ("pp2", "pp4"):
            with self.subTest(layout=layout):
                _, out, text = self.reordered(layout, "one-stream")
                blocked = re.search(r"waiting sends: .*; blocked: (.*)", text)
                blocked = blocked[1].split(", ")
                begin = time.monotonic()
                _, done = self.run_emulated(out, layout, layout + "-hang", 40)
                self.assertLess(time.monotonic() - begin, 60)
                self.assertIn("RECKON_HANG_LIMIT_S", done.stderr)
                lines = done.stderr.splitlines()
                for stage in range(harness.world(self.small(layout))):
                    own = [line for line in lines if f"rank {stage}: " in line]
                    self.assertEqual(len(own), 1, done.stderr)
                    here = own[0].rsplit("this rank is blocked in ", 1)[1]
                    for action in blocked:
                        if action.startswith(str(stage)):
                            self.assertIn(f"{action} (stream ", here)
                    print(f"{layout}: rank {stage} blocked in "
                          f"{here.split('; run')[0]}")

    def test_a_proved_order_of_the_same_messages_ends(self):
        plan, out, _ = self.reordered("pp2", "two-streams")
        before, _ = self.run_emulated(plan, "pp2", "before")
        after, _ = self.run_emulated(out, "pp2", "after")
        self.assertEqual(numbers(before), numbers(after))


if __name__ == "__main__":
    unittest.main()
