#!/usr/bin/env python3
"""The predicted timeline of a compiled plan as a trace for ui.perfetto.dev."""

import json
import os
import time
import unittest
from collections import Counter, defaultdict

from harness import RECKON, ROOT, Workspace, call, tiny

EXAMPLES = os.path.join(ROOT, "examples")
NUMBER = (int, float)

# What each phase of an event must have beside ph, name, pid and tid.
PHASES = {
    "M": {"args": dict},
    "X": {"ts": NUMBER, "dur": NUMBER, "cat": str},
    "C": {"ts": NUMBER, "args": dict},
    "s": {"ts": NUMBER, "id": int, "cat": str},
    "f": {"ts": NUMBER, "id": int, "cat": str, "bp": str},
}


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def faults(trace):
    """What is wrong with the events, as a list of sentences."""
    found = []
    slices = defaultdict(list)
    flows = defaultdict(dict)
    for event in trace["traceEvents"]:
        phase = PHASES.get(event.get("ph"))
        if phase is None:
            found.append(f"an unknown phase in {event}")
            continue
        missing = [key for key, kind in {"name": str, "pid": int, "tid": int,
                                         **phase}.items()
                   if not isinstance(event.get(key), kind)]
        if missing:
            found.append(f"no {missing} in {event}")
            continue
        if event["ph"] == "X":
            begin = nanoseconds(event["ts"])
            end = begin + nanoseconds(event["dur"])
            if begin < 0 or end < begin:
                found.append(f"a time that runs backwards in {event}")
            slices[event["pid"], event["tid"]].append(
                (begin, -end, event["name"]))
        elif event["ph"] in "sf":
            if event["ph"] in flows[event["id"]]:
                found.append(f"flow {event['id']} has two {event['ph']}")
            flows[event["id"]][event["ph"]] = event
    for place, spans in slices.items():
        open_ends = []
        for begin, end, name in sorted(spans):
            end = -end
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            # Within what is open, or after it: never across its end.
            if open_ends and end > open_ends[-1]:
                found.append(f"{name} overlaps another on {place}")
            open_ends.append(end)
    for number, ends in flows.items():
        if set(ends) != {"s", "f"}:
            found.append(f"flow {number} has one end")
        elif ends["f"]["ts"] < ends["s"]["ts"]:
            found.append(f"flow {number} arrives before it leaves")
    return found


def end_of(trace):
    return max(nanoseconds(event["ts"]) + nanoseconds(event["dur"])
               for event in trace["traceEvents"] if event["ph"] == "X")


class Timeline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.work.__exit__()

    def trace(self, plan, *arguments):
        text = call([RECKON, "show", plan, "--format", "perfetto",
                     *arguments], self.work.path).stdout
        return json.loads(text)

    def check(self, plan):
        """Checks the trace of all stages, and gives it."""
        trace = self.trace(plan)
        self.assertEqual(faults(trace), [])
        with open(os.path.join(plan, "manifest.json")) as handle:
            manifest = json.load(handle)
        facts = trace["otherData"]
        self.assertEqual(facts["model"], manifest["name"])
        self.assertEqual(facts["plan"], manifest["digest"])
        predicted = manifest["prediction"]
        self.assertAlmostEqual(end_of(trace) * 1e-9, predicted["step_s"],
                               delta=1e-8 * predicted["step_s"] + 2e-9)
        summary = json.loads(call([RECKON, "show", plan, "--format", "json"],
                                  self.work.path).stdout)
        self.assertEqual(summary["prediction"], predicted)
        self.assertAlmostEqual(
            predicted["pipeline_s"] + predicted["update_s"] +
            predicted["overhead_s"], predicted["step_s"],
            delta=1e-8 * predicted["step_s"])
        return trace

    def test_events_flows_and_ends(self):
        layouts = {
            "one": {},
            "tp2": {"tensor_parallel": 2},
            "pp4": {"pipeline_parallel": 4},
            "gpipe": {"pipeline_parallel": 4, "pipeline_schedule": "gpipe"},
            "all": {"tensor_parallel": 2, "pipeline_parallel": 2,
                    "data_parallel": 2, "zero_stage": 1,
                    "sequence_parallel": True, "recompute": "full"},
            "uneven": {"pipeline_parallel": 2, "pipeline_layout": [3, 5]},
        }
        for name, changes in layouts.items():
            with self.subTest(name):
                plan = self.work.compile(tiny(**changes), "line-" + name)
                trace = self.check(plan)
                stages = changes.get("pipeline_parallel", 1)
                micro = 16 // 2 // changes.get("data_parallel", 1)
                kinds = Counter(event["cat"] for event
                                in trace["traceEvents"] if "cat" in event)
                # Forwards, backwards and the update of each stage.
                self.assertEqual(kinds["action"], stages * (2 * micro + 1))
                # Slices of both ends of every message, and its arrow.
                messages = 2 * (stages - 1) * micro
                self.assertEqual(kinds["message"], 4 * messages)
                self.assertEqual(kinds["overhead"], stages)
                self.assertGreater(kinds["instruction"],
                                   10 * kinds["action"])

    def test_plans_of_one_stage_are_not_scaled(self):
        plan = self.work.compile(tiny(tensor_parallel=2), "flat")
        facts = self.check(plan)["otherData"]
        self.assertAlmostEqual(facts["pipeline_scale"], 1, places=6)

    def test_every_rank(self):
        plan = self.work.compile(
            tiny(tensor_parallel=2, pipeline_parallel=2, data_parallel=2),
            "ranks")
        whole = self.check(plan)

        def slices(trace, process):
            return Counter(
                (event["tid"], event["ts"], event["dur"], event["name"])
                for event in trace["traceEvents"]
                if event["ph"] == "X" and event["pid"] == process)

        for rank in range(8):
            trace = self.trace(plan, "--rank", str(rank))
            self.assertEqual(faults(trace), [])
            self.assertEqual({event["pid"] for event in trace["traceEvents"]},
                             {rank})
            self.assertEqual(slices(trace, rank), slices(whole, rank // 4))
        stage = self.trace(plan, "--stage", "1")
        self.assertEqual(slices(stage, 1), slices(whole, 1))
        call([RECKON, "show", plan, "--format", "perfetto", "--rank", "8"],
             self.work.path, expect=2)
        call([RECKON, "show", plan, "--format", "perfetto", "--what",
              "memory"], self.work.path, expect=2)

    def test_slots_are_those_of_the_memory_view(self):
        plan = self.work.compile(tiny(pipeline_parallel=2), "slots")
        trace = self.check(plan)
        memory = json.loads(call([RECKON, "show", plan, "--what", "memory",
                                  "--format", "json"], self.work.path).stdout)
        for stage in memory["stages"]:
            allocated = sum(entry["bytes"] for entry in stage["entries"]
                            if entry["kind"] == "slots")
            self.assertGreater(allocated, 0)
            used = [event["args"]["bytes"] for event in trace["traceEvents"]
                    if event["ph"] == "C" and event["pid"] == stage["stage"]]
            self.assertLessEqual(max(used), allocated)
            self.assertGreater(max(used), allocated // 2)
            self.assertGreaterEqual(min(used), 0)

    def test_the_check_notices_faults(self):
        plan = self.work.compile(tiny(pipeline_parallel=2), "broken")
        good = self.trace(plan)

        def broken(change):
            trace = json.loads(json.dumps(good))
            change(trace["traceEvents"])
            return faults(trace)

        def slices(events):
            return [e for e in events if e.get("cat") == "action"]

        self.assertEqual(broken(lambda events: None), [])
        for change in (
                lambda events: slices(events)[1].update(ts=0),
                lambda events: slices(events)[0].update(dur=-1),
                lambda events: slices(events)[0].pop("ts"),
                lambda events: events[0].update(ph="Q"),
                lambda events: events.remove(
                    next(e for e in events if e["ph"] == "f")),
                lambda events: next(
                    e for e in events if e["ph"] == "f").update(ts=0.0),
        ):
            self.assertTrue(broken(change))

    def test_a_calibration_is_remembered(self):
        plain = self.work.compile(tiny(pipeline_parallel=2), "plain")
        path = self.work.file("calibration.yaml")
        with open(path, "w") as handle:
            handle.write("accelerator: cpu\nconstants:\n  eta: 0.05\n")
        slow = self.work.compile(
            tiny(pipeline_parallel=2,
                 **{"cluster.calibration": "calibration.yaml"}), "slow")
        os.remove(path)
        call([RECKON, "verify", slow], self.work.path)
        quick, slow = self.check(plain), self.check(slow)
        self.assertGreater(end_of(slow), 1.2 * end_of(quick))

        # The constant makes products longer, and nothing else of a pass.
        def share(trace):
            seconds = Counter()
            for event in trace["traceEvents"]:
                if event.get("cat") == "instruction":
                    seconds[event["name"]] += event["dur"]
            return seconds["linear"] / seconds["rms_norm"]

        self.assertGreater(share(slow), 1.2 * share(quick))

    def test_manifests_without_a_prediction_are_refused(self):
        plan = self.work.compile(tiny(), "old")
        path = os.path.join(plan, "manifest.json")
        with open(path) as handle:
            manifest = json.load(handle)
        del manifest["prediction"]
        with open(path, "w") as handle:
            json.dump(manifest, handle)
        done = call([RECKON, "show", plan, "--format", "perfetto"],
                    self.work.path, expect=2)
        self.assertIn("compile the plan again", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_70b_on_1024(self):
        plan = self.work.file("70b")
        call([RECKON, "compile",
              os.path.join(EXAMPLES, "models", "llama-70b.yaml"),
              os.path.join(EXAMPLES, "clusters", "h100-1024.yaml"),
              os.path.join(EXAMPLES, "70b-1024", "train.yaml"),
              "-o", plan], self.work.path)
        begin = time.monotonic()
        text = call([RECKON, "show", plan, "--format", "perfetto"],
                    self.work.path).stdout
        seconds = time.monotonic() - begin
        trace = json.loads(text)
        print(f"70B on 1024: {len(trace['traceEvents']):,} events, "
              f"{len(text) / 1e6:.1f} MB in {seconds:.2f} s, pipeline_scale "
              f"{trace['otherData']['pipeline_scale']:.4f}")
        self.assertEqual(faults(trace), [])
        self.assertLess(seconds, 60)
        self.assertLess(len(text), 50e6)
        # A replay of the plan and the planner's formula are near each other.
        self.assertAlmostEqual(trace["otherData"]["pipeline_scale"], 1,
                               delta=0.05)


if __name__ == "__main__":
    unittest.main()
