#!/usr/bin/env python3
"""Plans that only buffered sends would survive are refused, and no others.

reckon-reorder puts receives right before their consumers. With all messages of
a rank on one stream, a send then waits for a receive behind another send, in
every schedule but GPipe; with a stream each for sends and receives 1F1B ends.
Both orders compute what the plan computed, so what ends is also proved.
"""

import os
import re
import unittest

import harness
from harness import BIN, LAYOUTS, RECKON, Workspace, call, numbers, tiny

REORDER = os.path.join(BIN, "reckon-reorder")


def ended(text, sends):
    """How many actions end, of how many."""
    found = re.search(sends + r" sends: (\d+) of (\d+) actions end", text)
    return int(found[1]), int(found[2])


class BufferedSends(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.work.__exit__()

    def reordered(self, layout, order):
        plan = self.work.compile(tiny(**LAYOUTS[layout]), layout)
        out = self.work.file(f"{layout}-{order}.plan")
        os.mkdir(out)
        done = call([REORDER, plan, out, "--order", order], self.work.path)
        return plan, out, done.stdout

    def test_one_stream_needs_buffered_sends(self):
        for layout in ("pp2", "pp4", "tp2-pp2", "full-recompute", "odd-layers",
                       "dp2-tp2-pp2-zero1", "sp-dp2-pp2-zero1"):
            with self.subTest(layout=layout):
                _, out, text = self.reordered(layout, "one-stream")
                waiting, actions = ended(text, "waiting")
                self.assertLess(waiting, actions)
                self.assertEqual(ended(text, "buffered"), (actions, actions))
                done = call([RECKON, "verify", out], self.work.path, expect=41)
                self.assertIn("not proved: no deadlock: the plan deadlocks",
                              done.stderr)
                # The cycle: sends that end with receives behind sends.
                self.assertRegex(done.stderr,
                                 r"action \dSEND_\w\d+ [^;]*, which ends with "
                                 r"rank \d [^;]*, action \dRECV_\w\d+")
                print(f"{layout}: {waiting} of {actions} actions end without "
                      "buffers; refused")

    def test_what_needs_no_buffers_is_proved_and_runs(self):
        for layout, order in (("pp4", "two-streams"), ("pp2", "two-streams"),
                              ("pp4-gpipe", "one-stream")):
            with self.subTest(layout=layout, order=order):
                plan, out, text = self.reordered(layout, order)
                waiting, actions = ended(text, "waiting")
                self.assertEqual(waiting, actions)
                call([RECKON, "verify", out], self.work.path)
                ranks = harness.world(tiny(**LAYOUTS[layout]))
                before, _ = self.work.run(plan, layout + order, ranks)
                after, _ = self.work.run(out, layout + order + "2", ranks)
                self.assertEqual(numbers(before), numbers(after))


if __name__ == "__main__":
    unittest.main()
