#!/usr/bin/env python3
"""The self-test of a device: what it prints and writes, and the bundle that
carries it to a machine without this project."""

import json
import os
import re
import subprocess
import tarfile
import unittest

import harness
from harness import BIN, ROOT, RUN, Workspace, call

BUILD = os.environ.get("RECKON_BUILD", os.path.dirname(BIN))
CMAKE = os.environ.get("RECKON_CMAKE", "cmake")
TARGET = "cuda-emulated"
LIMIT = 64 << 20

NUMBER = (int, float)
SPEED = {"step_s": NUMBER, "tokens_per_s": NUMBER, "tflops": NUMBER,
         "mfu": NUMBER}
# Every member, with the types that it may have.
SCHEMA = {
    "schema": str, "reckon": str, "target": str, "device": str,
    "reference": str, "sizes": str, "seed": int, "passed": bool,
    "not_run": int,
    "seconds": {"kernels": NUMBER, "plans": NUMBER, "stacks": NUMBER},
    "kernels": [{"kernel": str, "dtype": str, "sizes": str, "error": NUMBER,
                 "passed": bool, "fault": str}],
    "plans": [{"name": str, "precision": str, "recompute": str,
               "arena_bytes": int, "planned_bytes": int, "losses": [NUMBER],
               "expected_losses": [NUMBER], "loss_error": NUMBER,
               "loss_tolerance": NUMBER, "gradient_error": NUMBER,
               "gradient_tolerance": NUMBER, "worst_gradient": str,
               "seconds": NUMBER, "passed": bool, "fault": str}],
    "stacks": [{"name": str, "precision": str, "accelerator": str,
                "layers": int, "tokens_per_step": int, "arena_bytes": int,
                "planned_bytes": int,
                "beside_arena": [{"name": str, "bytes": int}],
                "beside_arena_bytes": int, "reserve_bytes": int,
                "set_up_s": NUMBER, "steps": int, "loss": NUMBER,
                "measured": SPEED, "predicted": SPEED,
                "kernels": [{"kernel": str, "call": str, "per_step": int,
                             "s": NUMBER, "roofline_s": NUMBER}],
                "seconds": NUMBER, "passed": bool, "fault": str}],
}


def misfits(value, schema, place="$"):
    """Where the value is not what the schema says."""
    if isinstance(schema, dict):
        if not isinstance(value, dict) or set(value) != set(schema):
            return [f"{place}: expected {sorted(schema)}, got {value!r:.200}"]
        return [text for key in schema
                for text in misfits(value[key], schema[key], f"{place}.{key}")]
    if isinstance(schema, list):
        if not isinstance(value, list):
            return [f"{place}: expected a list, got {value!r:.200}"]
        return [text for i, each in enumerate(value)
                for text in misfits(each, schema[0], f"{place}[{i}]")]
    fits = isinstance(value, schema) and (schema is bool or
                                          not isinstance(value, bool))
    return [] if fits else [f"{place}: expected {schema}, got {value!r:.200}"]


def lines_of(text, word):
    return [line for line in text.splitlines() if word in line]


class Reports(unittest.TestCase):
    def check_report(self, path):
        with open(path) as data:
            report = json.load(data)
        self.assertEqual(misfits(report, SCHEMA), [])
        self.assertEqual(report["schema"], "reckon.selftest/1")
        self.assertTrue(report["passed"])
        self.assertEqual(report["not_run"], 0)
        for section, least in (("kernels", 200), ("plans", 6), ("stacks", 2)):
            self.assertGreaterEqual(len(report[section]), least)
            for each in report[section]:
                self.assertTrue(each["passed"], each)
        for plan in report["plans"]:
            self.assertEqual(plan["arena_bytes"], plan["planned_bytes"])
            self.assertEqual(len(plan["losses"]), len(plan["expected_losses"]))
        self.assertEqual({plan["recompute"] for plan in report["plans"]},
                         {"none", "full"})
        self.assertLessEqual({"fp32", "bf16", "fp8"},
                             {plan["precision"] for plan in report["plans"]})
        return report


class SelfTest(Reports):
    def test_the_schema_check_sees_what_is_missing(self):
        self.assertTrue(misfits({}, SCHEMA))
        self.assertTrue(misfits({"a": True}, {"a": int}))
        self.assertTrue(misfits({"a": [1, "2"]}, {"a": [int]}))
        self.assertFalse(misfits({"a": [1, 2.5]}, {"a": [NUMBER]}))

    def test_emulated_device(self):
        with Workspace() as work:
            out = work.file("report.json")
            done = call([RUN, "--selftest", TARGET, "--selftest-sizes",
                         "small", "--selftest-seed", "7", "--selftest-out",
                         out], work.path, timeout=240)
            report = self.check_report(out)
            self.assertEqual(report["target"], TARGET)
            self.assertEqual(report["seed"], 7)
            # Two devices, not one with itself.
            self.assertGreater(max(k["error"] for k in report["kernels"]), 0)
            self.assertIn("\npassed\n", done.stdout)
            self.assertIn("seed 7", done.stdout)
            for word in ("measured", "predicted", "arena", "attention_grad"):
                self.assertTrue(lines_of(done.stdout, word), word)

    def test_a_section_alone(self):
        with Workspace() as work:
            done = call([RUN, "--selftest", "cpu", "--selftest-sizes", "small",
                         "--selftest-sections", "plans", "--selftest-out",
                         "report.json"], work.path)
            with open(work.file("report.json")) as data:
                report = json.load(data)
            self.assertEqual(report["kernels"], [])
            self.assertEqual(report["stacks"], [])
            self.assertTrue(report["plans"])
            self.assertNotIn("attention_grad", done.stdout)

    def test_what_is_missing_is_said(self):
        with Workspace() as work:
            done = call([RUN, "--selftest", "cpu", "--selftest-sizes", "small",
                         "--selftest-sections", "plans", "--selftest-plans",
                         work.path], work.path, expect=5)
            self.assertIn("plans", done.stderr)
            # A machine without a GPU, whatever this one has.
            done = call([RUN, "--selftest", "cuda"], work.path, expect=5,
                        env={"CUDA_VISIBLE_DEVICES": ""})
            self.assertRegex(done.stderr, "pass |install|doctor")
            self.assertFalse(os.path.exists(work.file("selftest.json")))
            done = call([RUN], work.path, expect=2)
            self.assertIn("--selftest", done.stderr)


class Bundle(Reports):
    def test_runs_on_a_bare_machine(self):
        with Workspace() as work:
            file = work.file("bundle.tar.gz")
            call([os.path.join(ROOT, "cmake", "selftest-bundle.sh"), BUILD,
                  file], work.path, env={"CMAKE": CMAKE})
            self.assertLess(os.path.getsize(file), LIMIT)
            with tarfile.open(file) as bundle:
                names = bundle.getnames()
                bundle.extractall(work.file("elsewhere"))
            top = work.file("elsewhere/reckon-selftest")
            for name in ("bin/reckon-run", "bin/reckon", "selftest.sh",
                         "lib/libreckon_cuda_emulated.so"):
                self.assertIn(f"reckon-selftest/{name}", names)
            if os.path.exists(os.path.join(BUILD, "lib", "libreckon_cuda.so")):
                self.assertIn("reckon-selftest/lib/libreckon_cuda.so", names)
            for program in ("reckon", "reckon-run"):
                text = call(["objdump", "-p",
                             os.path.join(top, "bin", program)],
                            work.path).stdout
                self.assertEqual(re.findall(r"R(?:UN)?PATH\s+(\S*)", text),
                                 ["$ORIGIN/../lib"])
            # Nothing of the build or of this environment is at hand.
            where = work.file("where")
            os.mkdir(where)
            done = subprocess.run(
                ["/usr/bin/env", "-i", "PATH=/usr/bin:/bin",
                 os.path.join(top, "selftest.sh"), TARGET, "--selftest-sizes",
                 "small"], cwd=where, capture_output=True, text=True,
                timeout=300)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.check_report(os.path.join(where, f"selftest-{TARGET}.json"))
            with open(os.path.join(where, f"selftest-{TARGET}.log")) as data:
                log = data.read()
            self.assertIn("GNU_LIBC_VERSION", log)
            self.assertIn("bin/reckon doctor", log)
            self.assertIn("exit code 0", log)
            self.assertIn("\npassed\n", log)
            # A run that fails says so by its code too.
            done = subprocess.run(
                ["/usr/bin/env", "-i", "PATH=/usr/bin:/bin",
                 "CUDA_VISIBLE_DEVICES=", os.path.join(top, "selftest.sh")],
                cwd=where, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 5, done.stdout)


if __name__ == "__main__":
    harness.main()
