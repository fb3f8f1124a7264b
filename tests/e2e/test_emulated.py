#!/usr/bin/env python3
"""Plans run on emulated CUDA devices as on the processor.

The sources of the CUDA device are those of the plugin: its kernels, run by
fibres, its streams, events and graphs, its NCCL communicator. Every layout
trains like one process on the CPU device and allocates what was predicted; the
order of threads, blocks and streams, which a seed chooses, changes no bit.
"""

import hashlib
import json
import os
import re
import subprocess
import unittest

import harness
from harness import (LAYOUTS, RUN, Failed, Workspace, call, metrics, numbers,
                     relative, tiny)

# Small enough for fibres: a step of one process takes them a tenth of a second.
SMALL = {"model.num_hidden_layers": 4, "model.hidden_size": 32,
         "model.intermediate_size": 48, "training.sequence_length": 16,
         "training.train_steps": 3}
# Other kernels sum in other orders than the CPU's; fp32.
LOSS, NORM = 2e-5, 1e-4
# bf16: both round the same values, which last bits of fp32 sums may push over
# an edge of rounding (2^-9 of one element). As between layouts on the CPU.
LOSS_BF16, NORM_BF16 = 1e-3, 5e-3
SEEDS = 20


def small(**changes):
    return tiny(**{**SMALL, **changes})


def file_digest(path):
    with open(path, "rb") as data:
        return hashlib.sha256(data.read()).hexdigest()


class Emulated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()
        cls.references = {}

    @classmethod
    def tearDownClass(cls):
        cls.work.__exit__()

    def run_on(self, device, plan, name, spec, *more, env=None, expect=0):
        return self.work.run(plan, f"{name}-{device}", harness.world(spec),
                             *more, env=env, device=device, expect=expect)

    def reference(self, spec_changes):
        """Metrics of one process on the CPU device."""
        same = harness.reference_changes(spec_changes)
        key = repr(sorted(same.items()))
        if key not in self.references:
            spec = small(**same)
            name = f"one{len(self.references)}"
            plan = self.work.compile(spec, name)
            where, _ = self.run_on("cpu", plan, name, spec)
            self.references[key] = metrics(where)
        return self.references[key]

    def compare(self, got, want, loss, norm):
        self.assertEqual(len(got), SMALL["training.train_steps"])
        self.assertEqual(len(want), len(got))
        for a, b in zip(got, want):
            self.assertLessEqual(relative(a["loss"], b["loss"]), loss)
            self.assertLessEqual(relative(a["grad_norm"], b["grad_norm"]),
                                 norm)

    def check_memory(self, spec, name, where):
        """Predicted bytes are the device's own count, and what NCCL and the
        context take is named apart."""
        candidate = self.work.plan_json(spec, name)["candidates"][0]
        stages = candidate["memory"]["stages"]
        per_stage = (harness.world(spec) //
                     spec["parallelism"]["pipeline_parallel"])
        for rank in range(harness.world(spec)):
            stage = stages[rank // per_stage]
            with open(os.path.join(where, f"rank-{rank:05d}.log")) as log:
                text = log.read()
            got = int(re.search(r"arena (\d+) bytes", text).group(1))
            self.assertEqual(got, stage["total"] - stage["reserve"],
                             f"rank {rank}")
            reserve = re.search(r"reserve: (.*)", text)
            self.assertIsNotNone(reserve, text)
            for what in ("context", "libraries", "NCCL"):
                self.assertIn(what, reserve.group(1))

    def check(self, name, changes):
        spec = small(**changes)
        plan = self.work.compile(spec, name)
        where, _ = self.run_on("cuda-emulated", plan, name, spec)
        self.compare(metrics(where), self.reference(changes), LOSS, NORM)
        self.check_memory(spec, name, where)

    def check_precision(self, precision, layout, loss, norm):
        changes = {**LAYOUTS.get(layout, {}), "training.precision": precision,
                   "model.hidden_size": 64, "model.intermediate_size": 64}
        spec = small(**changes)
        name = f"{layout}-{precision}"
        plan = self.work.compile(spec, name)
        where, _ = self.run_on("cuda-emulated", plan, name, spec)
        cpu, _ = self.run_on("cpu", plan, name, spec)
        self.compare(metrics(where), metrics(cpu), loss, norm)
        self.check_memory(spec, name, where)

    def test_bf16(self):
        for layout in ("one", "dp2-tp2-pp2-zero1", "sp-pp2-recompute"):
            with self.subTest(layout):
                self.check_precision("bf16", layout, LOSS_BF16, NORM_BF16)

    def test_20_orders_give_the_same_bits(self):
        for layout in ("dp2-tp2-pp2-zero1", "sp-pp2-recompute", "pp2"):
            spec = small(**{**LAYOUTS[layout], "model.num_hidden_layers": 2,
                            "training.train_steps": 2,
                            "training.global_batch_size": 8,
                            "micro_batch_size": 1})
            name = "seeds-" + layout
            plan = self.work.compile(spec, name)
            seen = {}
            for seed in range(SEEDS):
                dump = self.work.file(f"{name}-{seed}.dump")
                where, _ = self.run_on(
                    "cuda-emulated", plan, name, spec, "--dump",
                    "2:weights,gradients", dump,
                    env={"RECKON_QUEUE_SEED": str(seed + 1)})
                bits = (numbers(where),
                        file_digest(os.path.join(dump, "weights.safetensors")),
                        file_digest(os.path.join(dump,
                                                 "gradients.safetensors")))
                seen.setdefault(repr(bits), []).append(seed + 1)
            print(f"  {layout}: {SEEDS} seeds, {len(seen)} result(s)")
            self.assertEqual(len(seen), 1, f"{layout}: {seen.values()}")

    def test_every_fourth_event_is_needed(self):
        # docs/proofs.md has the count over all events of the plan.
        spec = small(**{**LAYOUTS["dp2-tp2-pp2-zero1"],
                        "model.num_hidden_layers": 2,
                        "training.global_batch_size": 8,
                        "micro_batch_size": 1})
        plan = self.work.compile(spec, "events")
        done = call([os.path.join(harness.BIN, "reckon-drop-events"), plan,
                     "--every", "4", "--seeds", "20"], self.work.path,
                    timeout=800)
        print("  " + "\n  ".join(done.stdout.splitlines()[-2:]))

    def test_graphs_change_nothing(self):
        spec = small(**LAYOUTS["sp-dp2-pp2-zero1"])
        plan = self.work.compile(spec, "graphs")
        bits = []
        for graphs in ("1", "0"):
            where, _ = self.run_on("cuda-emulated", plan, "graphs", spec,
                                   env={"RECKON_CUDA_GRAPHS": graphs})
            bits.append(numbers(where))
        self.assertEqual(bits[0], bits[1])

    def test_traces_and_profiles_are_written(self):
        spec = small(**LAYOUTS["pp2"])
        plan = self.work.compile(spec, "trace")
        where, _ = self.run_on("cuda-emulated", plan, "trace", spec,
                               env={"RECKON_TRACE": "1",
                                    "RECKON_PROFILE": "1"})
        cpu, _ = self.run_on("cpu", plan, "trace", spec,
                             env={"RECKON_TRACE": "1"})
        for rank in range(2):
            name = f"trace-{rank:05d}.csv"
            with open(os.path.join(where, name)) as a, \
                    open(os.path.join(cpu, name)) as b:
                self.assertEqual(sorted(a), sorted(b))
            with open(os.path.join(where, f"profile-{rank:05d}.jsonl")) as data:
                kernels = json.loads(data.readline())["kernels"]
            # 4 layers over 2 stages, 7 products each, 8 micro-batches.
            self.assertGreaterEqual(kernels["linear"]["calls"], 2 * 7 * 8)

    def test_a_missing_gpu_is_said_with_a_remedy(self):
        spec = small()
        plan = self.work.compile(spec, "missing")
        _, done = self.run_on("cuda", plan, "missing", spec, expect=5)
        self.assertIn("--device cpu", done.stderr)

    def test_auto_says_why_it_takes_the_cpu(self):
        spec = small()
        spec["cluster"]["accelerator"] = "h100-sxm"
        plan = self.work.compile(spec, "auto")
        _, done = self.run_on("auto", plan, "auto", spec, "--steps", "1")
        self.assertIn("running on the CPU: the plan is for h100-sxm, but",
                      done.stderr)

    def test_a_rank_that_dies_is_named(self):
        spec = small(**LAYOUTS["tp2-pp2"])
        plan = self.work.compile(spec, "kill")
        _, done = self.run_on("cuda-emulated", plan, "kill", spec,
                              env={"RECKON_FAULT": "kill@rank=3,step=2"},
                              expect=42)
        self.assertIn("rank 3", done.stderr)


for layout, changes in LAYOUTS.items():
    if "pipeline_layout" in changes:
        changes = {**changes, "pipeline_layout": [1, 3]}

    def case(self, layout=layout, changes=changes):
        self.check(layout, changes)
    setattr(Emulated, "test_" + layout.replace("-", "_"), case)


if __name__ == "__main__":
    harness.main()
