#!/usr/bin/env python3
"""Whenever a rank is killed, all others end within five seconds and say who.

Every rank at twenty moments of a step, from its first instruction to its last.
"""

import json
import os
import unittest

import harness
from harness import LAYOUTS, Workspace, tiny

MOMENTS = 20


class Kills(unittest.TestCase):
    def test_every_rank_at_twenty_moments(self):
        with Workspace() as work:
            plan = work.compile(tiny(**LAYOUTS["tp2-pp2"]), "plan")
            where, _ = work.run(plan, "count", 4, "--steps", "1")
            slowest = 0
            for rank in range(4):
                with open(os.path.join(
                        where, f"rank-{rank:05d}.log")) as data:
                    # "N actions a step, M instructions and messages, ..."
                    work_items = int(data.read().split(
                        " actions a step, ")[1].split()[0])
                for moment in range(MOMENTS):
                    at = moment * (work_items - 1) // (MOMENTS - 1)
                    with self.subTest(rank=rank, at=at):
                        slowest = max(slowest, self.kill(work, plan, rank, at))
            print(f"{4 * MOMENTS} deaths, the last status {slowest:.2f} s "
                  "after the death at the latest", flush=True)

    def kill(self, work, plan, rank, at):
        run, done = work.run(
            plan, "kill", 4, expect=42, timeout=120,
            env={"RECKON_FAULT": f"kill@rank={rank},step=2,at={at}"})
        self.assertIn(f"rank {rank} ", done.stderr)
        # Its log was last written before the step in which it died.
        died = os.path.getmtime(os.path.join(run, f"rank-{rank:05d}.log"))
        last = 0
        for other in range(4):
            path = os.path.join(run, f"status-{other:05d}.json")
            if other == rank:
                self.assertFalse(os.path.exists(path))
                continue
            with open(path) as data:
                status = json.load(data)
            self.assertEqual((status["exit_code"], status["dead_rank"]),
                             (42, rank), status)
            last = max(last, status["time"] - died)
        self.assertLess(last, 5)
        return last


if __name__ == "__main__":
    harness.main()
