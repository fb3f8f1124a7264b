#!/usr/bin/env python3
"""Every layout trains like one process, runs its schedule and allocates what
was predicted.

For each layout: loss and gradient norm of 8 steps against one process; the
actions that each rank executed, from its trace, against the schedule's CSV; the
bytes that each rank allocated against the plan's arena and the planner's sum.
"""

import csv
import io
import os
import re

import harness
from harness import LAYOUTS, RECKON, Workspace, call, metrics, relative, tiny
import unittest

# fp32 sums in another order: 2e-5 of a loss near 5.5 over 8 steps.
LOSS, NORM = 2e-5, 1e-4


def schedule_rows(work, plan):
    """Compute cells of each stage, in order, without the idle ones."""
    done = call([RECKON, "show", plan, "--what", "schedule", "--format",
                 "csv"], work.path)
    return [[cell.strip() for cell in row
             if re.fullmatch(r"\s*\d+[FB]\d+\s*", cell)]
            for row in csv.reader(io.StringIO(done.stdout))]


def trace(where, rank, step):
    """Compute actions that a rank executed in one step."""
    with open(os.path.join(where, f"trace-{rank:05d}.csv")) as data:
        return [row["label"] for row in csv.DictReader(data)
                if int(row["step"]) == step and
                re.fullmatch(r"\d+[FB]\d+", row["label"])]


def allocated(where, rank):
    with open(os.path.join(where, f"rank-{rank:05d}.log")) as log:
        return int(re.search(r"arena (\d+) bytes", log.read()).group(1))


class Layouts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()
        cls.references = {}

    @classmethod
    def tearDownClass(cls):
        cls.work.__exit__()

    def reference(self, changes):
        same = harness.reference_changes(changes)
        key = repr(sorted(same.items()))
        if key not in self.references:
            name = f"one{len(self.references)}"
            plan = self.work.compile(tiny(**same), name)
            where, _ = self.work.run(plan, name, 1)
            self.references[key] = metrics(where)
            losses = [m["loss"] for m in self.references[key]]
            self.assertLess(losses[-1], losses[0])
        return self.references[key]

    def check(self, name, changes):
        spec = tiny(**changes)
        ranks = harness.world(spec)
        plan = self.work.compile(spec, name)
        where, _ = self.work.run(plan, name, ranks,
                                 env={"RECKON_TRACE": "1"})
        want, got = self.reference(changes), metrics(where)
        self.assertEqual(len(got), 8)
        for a, b in zip(got, want):
            self.assertLessEqual(relative(a["loss"], b["loss"]), LOSS)
            self.assertLessEqual(relative(a["grad_norm"], b["grad_norm"]),
                                 NORM)

        rows = schedule_rows(self.work, plan)
        per_stage = ranks // spec["parallelism"]["pipeline_parallel"]
        for rank in range(ranks):
            for step in (1, 8):
                self.assertEqual(trace(where, rank, step),
                                 rows[rank // per_stage],
                                 f"rank {rank}, step {step}")
        self.check_memory(spec, name, where)

    def check_memory(self, spec, name, where):
        """Predicted and allocated bytes of every rank, both printed."""
        candidate = self.work.plan_json(spec, name)["candidates"][0]
        predicted = [stage["total"] - stage["reserve"]
                     for stage in candidate["memory"]["stages"]]
        ranks = harness.world(spec)
        per_stage = ranks // spec["parallelism"]["pipeline_parallel"]
        got = [allocated(where, rank) for rank in range(ranks)]
        want = [predicted[rank // per_stage] for rank in range(ranks)]
        print(f"  {name} {spec['training']['precision']}: predicted by stage "
              f"{predicted}, allocated by rank {got}")
        self.assertEqual(got, want)

    def check_bytes(self, name, changes, precision):
        spec = tiny(**{**changes, "training.precision": precision})
        name += "-" + precision
        plan = self.work.compile(spec, name)
        where, _ = self.work.run(plan, name, harness.world(spec),
                                 "--steps", "1")
        self.check_memory(spec, name, where)


for layout, changes in LAYOUTS.items():
    def case(self, layout=layout, changes=changes):
        self.check(layout, changes)
    setattr(Layouts, "test_" + layout.replace("-", "_"), case)

    for precision in ("bf16", "fp8"):
        def memory(self, layout=layout, changes=changes, precision=precision):
            self.check_bytes(layout, changes, precision)
        setattr(Layouts, f"test_memory_{precision}_" +
                layout.replace("-", "_"), memory)


if __name__ == "__main__":
    harness.main()
