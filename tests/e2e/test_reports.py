#!/usr/bin/env python3
"""The page beside a plan, and what show --against says about two."""

import json
import re
import unittest
from collections import Counter
from html.parser import HTMLParser

from harness import RECKON, Workspace, call, tiny


class Page(HTMLParser):
    """Text by section, and whatever the page would load."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.loads, self.now = {}, [], "head"
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        for key, value in attributes:
            if tag == "section" and key == "id":
                self.now = value
            if key in ("src", "data", "action") or (
                    key == "href" and not value.startswith("#")):
                self.loads.append((tag, value))
        if tag in ("script", "link", "iframe", "img", "object"):
            self.loads.append((tag, ""))

    def handle_endtag(self, tag):
        if tag not in ("meta", "br"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.sections[self.now] = self.sections.get(self.now, "") + data


def page(path):
    with open(path, encoding="utf-8") as handle:
        return Page(handle.read())


class Reports(unittest.TestCase):
    def test_compile_writes_the_page_of_its_choice(self):
        with Workspace() as work:
            spec = work.spec(tiny(tensor_parallel=2, pipeline_parallel=2),
                             "spec")
            plan, again = work.file("one"), work.file("two")
            for where in (plan, again):
                call([RECKON, "compile", spec, "-o", where], work.path)
            told = page(plan + "/report.html")
            self.assertEqual(told.open, [])
            self.assertEqual(told.loads, [])
            for name in ("choice", "limits", "memory", "schedule",
                         "memory-over-time", "time", "mfu", "communication",
                         "alternatives", "spec"):
                self.assertIn(name, told.sections)
            with open(plan + "/report.html") as a, \
                    open(again + "/report.html") as b:
                self.assertEqual(a.read(), b.read())
            with open(plan + "/report.html") as handle:
                text = handle.read()
            self.assertNotIn(work.path, text)

    def test_compile_writes_the_calls_of_every_instruction(self):
        with Workspace() as work:
            spec = work.spec(tiny(tensor_parallel=2, pipeline_parallel=2,
                                  data_parallel=2, zero_stage=1), "spec")
            plan, again = work.file("one"), work.file("two")
            for where in (plan, again):
                call([RECKON, "compile", spec, "-o", where], work.path)
            with open(plan + "/plan.cu.txt") as handle:
                text = handle.read()
            with open(again + "/plan.cu.txt") as handle:
                self.assertEqual(text, handle.read())
            self.assertNotIn(work.path, text)
            shown = call([RECKON, "show", plan, "--what", "program",
                          "--format", "cu"], work.path).stdout
            self.assertEqual(text, shown)

            # As many calls of each kind as the files have instructions.
            program = json.loads(call(
                [RECKON, "show", plan, "--what", "program", "--format",
                 "json"], work.path).stdout)
            of = {"record": "cudaEventRecord(e", "wait": "cudaStreamWaitEvent",
                  "all_reduce": "ncclAllReduce(",
                  "all_gather": "ncclAllGather(",
                  "reduce_scatter": "ncclReduceScatter(",
                  "fill_zero": "cudaMemsetAsync(",
                  "copy": "cudaMemcpyAsync(",
                  "linear": "cublasLtMatmul(",
                  "linear_grad_input": "cublasLtMatmul(",
                  "linear_grad_weight": "cublasLtMatmul("}
            expected, places = Counter(), Counter()
            for stage in program["stages"]:
                for fragment in stage["fragments"]:
                    for line in fragment["instructions"]:
                        name = line.split()[1]
                        expected[of.get(name, name + "<<<")] += 1
                        if name not in ("record", "wait"):
                            places[line.split()[-1]] += 1
            within, found, seen = False, Counter(), Counter()
            for line in text.splitlines():
                if not line.startswith(" "):
                    within = line.startswith("fragment ")
                elif within and re.match(r" *\d+  \[", line):
                    body = line[line.index("]") + 1:].strip()
                    body = re.sub(r"^ncclGroup of \d+ ", "", body)
                    found[next(key for key in expected
                               if body.startswith(key))] += 1
                    if not re.match("cudaEvent|cudaStreamWait", body):
                        seen[line.split()[-1]] += 1
            self.assertGreater(len(expected), 15)
            self.assertEqual(expected, found)
            self.assertEqual(places, seen)

    def test_plan_writes_the_page_when_nothing_fits_too(self):
        with Workspace() as work:
            spec = work.spec(tiny(**{"constraints.memory_limit_gib": 1e-4}),
                             "small")
            call([RECKON, "plan", spec, "--format", "html", "-o",
                  work.file("page.html")], work.path, expect=3)
            told = page(work.file("page.html"))
            self.assertIn("memory_limit", told.sections["infeasible"])

    def test_against_lists_what_differs_and_nothing_else(self):
        with Workspace() as work:
            # One file: its name is in every origin, and so in the digest.
            spec = work.spec(tiny(pipeline_parallel=2), "spec")

            def compiled(name, *more):
                plan = work.file(name)
                call([RECKON, "compile", spec, "-o", plan, *more], work.path)
                return plan

            one, same = compiled("one"), compiled("same")
            other = compiled("other", "--set", "training.seed=8")

            def against(a, b, *more, expect=0):
                return call([RECKON, "show", a, "--against", b, *more],
                            work.path, expect=expect)

            text = against(one, same).stdout
            self.assertRegex(text, r"^0 differ, \d+ are equal\n$")
            told = json.loads(against(one, other, "--format", "json").stdout)
            what = {entry["what"]: entry for entry in told["differences"]}
            # The seed alone: it is in the spec and so in the digest.
            self.assertEqual(set(what), {"spec.training.seed",
                                         "summary.digest"})
            self.assertEqual(what["spec.training.seed"]["b"], "8")
            wide = work.compile(tiny(tensor_parallel=2), "wide")
            text = against(one, wide).stdout
            self.assertRegex(text, r"(?m)^memory\.stages\[1\] +there +-$")
            self.assertRegex(text, r"(?m)^choice\.tensor_parallel +1 +2 ")

    def test_against_takes_reports_but_not_one_of_each(self):
        with Workspace() as work:
            spec = work.spec(tiny(pipeline_parallel=2), "spec")
            reports = []
            for limit in ("3", "4"):
                reports.append(work.file(limit + ".json"))
                call([RECKON, "plan", spec, "--format", "json", "-o",
                      reports[-1], "--set",
                      "constraints.memory_limit_gib=" + limit], work.path)
            told = call([RECKON, "show", reports[0], "--against", reports[1],
                         "--format", "json"], work.path).stdout
            what = {entry["what"] for entry in
                    json.loads(told)["differences"]}
            self.assertIn("memory.limit_bytes", what)
            self.assertFalse([w for w in what if re.match("time|choice", w)])
            plan = work.compile(tiny(pipeline_parallel=2), "plan")
            done = call([RECKON, "show", plan, "--against", reports[0]],
                        work.path, expect=2)
            self.assertIn("one of each", done.stderr)


if __name__ == "__main__":
    unittest.main()
