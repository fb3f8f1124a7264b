#!/usr/bin/env python3
"""Gradients of every parameter agree with Hugging Face transformers.

A 2-layer GQA Llama with scaled rotary frequencies, the fixture of
fixtures/llama2l, compared by rule 15: per tensor, ||g - g'|| <= 1e-5 *
max(||g'||, 1e-3 * global norm). In one process, under TP2 x PP2, under DP2 with
ZeRO-1, and with full recomputation; also the weights after 1 and 3 AdamW
steps. Each mutation below must make the comparison fail.
"""

import json
import os
import re
import subprocess
import sys
import unittest

import harness
from harness import FIXTURE, RECKON, Workspace, call

COMPARE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "compare_safetensors.py")
CASES = {
    "one process": {},
    "tp2-pp2": {"tensor_parallel": 2, "pipeline_parallel": 2},
    "dp2-zero1": {"data_parallel": 2, "zero_stage": 1},
    "dp2-tp2-recompute": {"data_parallel": 2, "tensor_parallel": 2,
                          "recompute": "full"},
    "sp": {"tensor_parallel": 2, "sequence_parallel": True},
    "sp-dp2-zero1-recompute": {"tensor_parallel": 2, "data_parallel": 2,
                               "sequence_parallel": True, "zero_stage": 1,
                               "recompute": "full"},
    "pp2-gpipe": {"pipeline_parallel": 2, "pipeline_schedule": "gpipe"},
}


def settings(changes):
    ranks = 1
    more = []
    changes = {"sequence_parallel": "false", **changes}
    for key, value in changes.items():
        more += ["--set", f"parallelism.{key}={value}"]
        if key in ("tensor_parallel", "pipeline_parallel", "data_parallel"):
            ranks *= value
    more += ["--set", f"cluster.gpus_per_node={ranks}",
             "--set", "constraints.max_bubble=10"]
    return ranks, more


def compare(got, want, *more):
    return subprocess.run([sys.executable, COMPARE, got,
                           os.path.join(FIXTURE, want), *more],
                          capture_output=True, text=True)


class Gradients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.work.__exit__()

    def dump(self, name, changes, step, *compile_more):
        """Trains to `step` from the fixture's weights; the dump's folder."""
        ranks, more = settings(changes)
        plan = self.work.file(name + ".plan")
        call([RECKON, "compile", os.path.join(FIXTURE, "spec.yaml"), *more,
              *compile_more, "-o", plan], self.work.path)
        dump = self.work.file(f"{name}.dump{step}")
        where, _ = self.work.run(
            plan, f"{name}.{step}", ranks, "--steps", str(step), "--data",
            os.path.join(FIXTURE, "corpus.txt"), "--init-weights",
            os.path.join(FIXTURE, "weights.safetensors"), "--dump",
            f"{step}:weights,gradients", dump)
        return where, dump

    def test_gradients(self):
        with open(os.path.join(FIXTURE, "expected.json")) as data:
            expected = json.load(data)
        for name, changes in CASES.items():
            with self.subTest(name):
                where, dump = self.dump(name.replace(" ", "-"), changes, 1)
                done = compare(os.path.join(dump, "gradients.safetensors"),
                               "gradients.safetensors")
                self.assertEqual(done.returncode, 0,
                                 done.stdout + done.stderr)
                print(f"  {name}: {done.stdout.strip().splitlines()[-1]}")
                loss = harness.metrics(where)[0]["loss"]
                want = expected["loss"][0]
                self.assertLessEqual(harness.relative(loss, want), 2e-6)
                done = compare(os.path.join(dump, "weights.safetensors"),
                               "weights-step1.safetensors", "--baseline",
                               os.path.join(FIXTURE, "weights.safetensors"),
                               "--tolerance", "1e-3")
                self.assertEqual(done.returncode, 0,
                                 done.stdout + done.stderr)

    def test_three_steps(self):
        for name in ("one process", "dp2-zero1", "tp2-pp2"):
            with self.subTest(name):
                _, dump = self.dump(name.replace(" ", "-") + "-3",
                                    CASES[name], 3)
                done = compare(os.path.join(dump, "weights.safetensors"),
                               "weights-step3.safetensors", "--baseline",
                               os.path.join(FIXTURE, "weights.safetensors"),
                               "--tolerance", "1e-3")
                self.assertEqual(done.returncode, 0,
                                 done.stdout + done.stderr)

    # --- Mutations: each must be caught -----------------------------------

    def mutated(self, name, changes, edit):
        """The dump of a plan whose 40-partitioned snapshot was edited."""
        _, more = settings(changes)
        folder = self.work.file(name + ".ir")
        call([RECKON, "compile", os.path.join(FIXTURE, "spec.yaml"), *more,
              "--compile-to", "partitioned", "--dump-ir", folder],
             self.work.path)
        path = os.path.join(folder, "40-partitioned.mlir")
        with open(path) as data:
            before = data.read()
        after = edit(before)
        self.assertNotEqual(after, before, "the mutation changed nothing")
        with open(path, "w") as out:
            out.write(after)
        # The proofs refuse it; what follows is for the day they do not look.
        done = subprocess.run(
            [RECKON, "compile", os.path.join(FIXTURE, "spec.yaml"), *more,
             "--from-ir", path, "-o", self.work.file(name + ".refused")],
            cwd=self.work.path, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("not proved", done.stderr)
        _, dump = self.dump(name, changes, 1, "--unproved", "--from-ir", path)
        return compare(os.path.join(dump, "gradients.safetensors"),
                       "gradients.safetensors")

    def assertCaught(self, done):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    @staticmethod
    def drop_collective(kind, axis, text, which=0):
        """Uses a collective's operand where its result was used."""
        found = list(re.finditer(
            rf'^ *(%[\w.]+)(?::\d+)? = dist\.{kind} (%[^a]*?) '
            rf'axes \["{axis}"\].*\n', text, re.M))
        match = found[which]
        operands = match[2].split(", ")
        # Values are named by region: replace up to the region's end.
        rest = text[match.end():]
        end = re.search(r"^      } :|^    }", rest, re.M).start()
        body = rest[:end]
        for i, operand in enumerate(operands):
            result = match[1] + (f"#{i}" if len(operands) > 1 else "")
            body = re.sub(re.escape(result) + r"(?![\w.#])", operand, body)
        return text[:match.start()] + body + rest[end:]

    def test_dropped_tensor_all_reduce_is_caught(self):
        # The reduction of the attention output in the first layer.
        self.assertCaught(self.mutated(
            "no-tp-reduce", {"tensor_parallel": 2},
            lambda text: self.drop_collective("all_reduce", "tp", text, 1)))

    def test_dropped_norm_gradient_reduction_is_caught(self):
        # Under sequence parallelism each rank has seen half of the tokens: the
        # update sums the norms' gradients over tp.
        def drop(text):
            update = text.index("train.update")
            return text[:update] + self.drop_collective(
                "all_reduce", "tp", text[update:])
        self.assertCaught(self.mutated(
            "no-norm-reduce", {"tensor_parallel": 2,
                               "sequence_parallel": True}, drop))

    def test_wrong_loss_scale_is_caught(self):
        def double(text):
            # 8 sequences of 64 tokens: 1 / 512 becomes 1 / 256.
            return re.sub(r"scale = 0.001953125|scale = 1\.953125[0-9]*e-03",
                          "scale = 3.906250e-03", text)
        self.assertCaught(self.mutated("scale", {}, double))

    def test_wrong_rotation_direction_is_caught(self):
        self.assertCaught(self.mutated(
            "rope", {}, lambda text: text.replace("inverse, ", "", 1)))

    def test_missing_rope_scaling_is_caught(self):
        _, dump = self.dump("no-scaling", {}, 1, "--set",
                            "model.rope_scaling.factor=1.0")
        self.assertCaught(compare(
            os.path.join(dump, "gradients.safetensors"),
            "gradients.safetensors"))


if __name__ == "__main__":
    harness.main()
