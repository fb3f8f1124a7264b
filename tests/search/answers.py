#!/usr/bin/env python3
"""What is asked beside the choice, and what is said meanwhile."""

import json
import os
import re
import subprocess
import unittest

RECKON = os.path.join(os.environ["RECKON_BIN"], "reckon")
SPEC = """
model: {name: m, architecture: llama, vocab_size: 32000, hidden_size: 2048,
        intermediate_size: 8192, num_hidden_layers: 16,
        num_attention_heads: 16, num_key_value_heads: 8}
cluster: {accelerator: h100-sxm, nodes: 8, gpus_per_node: 8}
training: {sequence_length: 4096, global_batch_size: 128}
"""


def plan(path, *more, progress=None, expect=0):
    environment = dict(os.environ)
    environment.pop("RECKON_PROGRESS", None)
    if progress is not None:
        environment["RECKON_PROGRESS"] = progress
    done = subprocess.run([RECKON, "plan", path, *more], text=True,
                          capture_output=True, env=environment, check=False)
    assert done.returncode == expect, done.stderr
    return done


class Answers(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(os.environ.get("TMPDIR", "/tmp"),
                                 "answers-%d.yaml" % os.getpid())
        with open(self.path, "w", encoding="utf-8") as handle:
            handle.write(SPEC)

    def tearDown(self):
        os.remove(self.path)

    def test_progress_is_on_stderr_alone(self):
        more = ("--pareto", "--format", "json")
        silent = plan(self.path, *more, progress="0")
        told = plan(self.path, *more, progress="0.0001")
        self.assertEqual(silent.stderr, "")
        lines = told.stderr.splitlines()
        self.assertTrue(lines)
        for line in lines:
            self.assertRegex(line, r"^reckon plan: [0-9.]+ s: [a-z]")
        # Each comes twice as late as the one before.
        times = [float(line.split()[2]) for line in lines]
        self.assertEqual(times, sorted(set(times)))
        one, other = json.loads(silent.stdout), json.loads(told.stdout)
        for report in (one, other):
            del report["search"]["seconds"]
        self.assertEqual(one, other)

    def test_short_work_says_nothing(self):
        done = plan(self.path, "--set", "parallelism.tensor_parallel=8",
                    "--set", "parallelism.pipeline_parallel=1",
                    "--set", "parallelism.micro_batch_size=1",
                    progress="3600")
        self.assertEqual(done.stderr, "")

    def test_the_page_has_every_answer(self):
        done = plan(self.path, "--format", "html", "--pareto",
                    "--why-not", "tensor_parallel=4",
                    "--compare", "tensor_parallel=2,pipeline_parallel=2",
                    "--set", "search.objective=cost",
                    "--set", "parallelism.representation=megatron")
        # The namespace of the pictures is a name and loads nothing.
        page = done.stdout.replace('"http://www.w3.org/2000/svg"', '""')
        for part in ('id="pareto"', 'id="why-not"', 'id="compared"',
                     "<circle", "parallelism.tensor_parallel: 4",
                     "tensor_parallel=2, pipeline_parallel=2",
                     "Objective <code>cost</code>: $",
                     "chance to run out of memory"):
            self.assertIn(part, page)
        for loaded in ("<script", "src=", "http", "url("):
            self.assertNotIn(loaded, page)

    def test_objectives_have_a_value_with_its_unit(self):
        values = {}
        for objective, unit in (("step_time", "s"), ("time_to_train", "s"),
                                ("cost", "dollars"), ("memory", "bytes")):
            text = plan(self.path, "--set",
                        "search.objective=" + objective).stdout
            self.assertRegex(text, r"(?m)^Objective %s: \$?\d" % objective)
            told = json.loads(plan(self.path, "--format", "json", "--set",
                                   "search.objective=" + objective).stdout)
            best = told["candidates"][0]
            self.assertEqual(best["objective"]["name"], objective)
            self.assertEqual(best["objective"]["unit"], unit)
            values[objective] = best["objective"]["value"]
            self.assertEqual(told["search"]["proof"]["bound"],
                             values[objective])
            if objective == "time_to_train":
                self.assertAlmostEqual(best["training"]["wall_s"],
                                       values[objective])
                self.assertAlmostEqual(
                    best["training"]["goodput"] * values[objective],
                    1000 * best["time"]["step_s"], places=6)
        self.assertAlmostEqual(
            values["cost"],
            values["time_to_train"] / 3600 * 64 * 2.5, places=6)

    def test_risk_is_a_band_where_an_allocator_decides(self):
        for representation in ("reckon", "megatron", "deepspeed",
                               "torchtitan"):
            fixed = ("--set", "parallelism.representation=" + representation)
            text = plan(self.path, *fixed).stdout
            told = json.loads(plan(self.path, *fixed, "--format",
                                   "json").stdout)
            memory = told["candidates"][0]["memory"]
            if representation == "reckon":
                self.assertIsNone(memory["risk"])
                self.assertIn("Arenas are static", text)
                continue
            risk = memory["risk"]
            stage = memory["stages"][memory["peak_stage"]]
            self.assertAlmostEqual(
                risk["predicted_over_limit"],
                (stage["total"] - stage["reserve"]) / memory["limit_bytes"])
            self.assertLess(risk["least"], risk["probability"])
            self.assertLess(risk["probability"], risk["most"])
            self.assertRegex(text, r"out of memory is \d+ to \d+ %")
            self.assertTrue(re.search("2311.05610", text))


if __name__ == "__main__":
    unittest.main()
