"""Drops every wait of a finished plan in turn: verify-plan must refuse each.

usage: drop_waits.py PLAN.mlir

Shows two things: plan-elide-events leaves no wait that could go, and
verify-plan, which does not know how events were inserted, misses none.
"""

import re
import subprocess
import sys


def variants(lines):
    """(line number, text) of the plan with one wait less."""
    for i, line in enumerate(lines):
        if "plan.wait" in line:
            yield i, lines[:i] + lines[i + 1 :]
        waits = re.search(r" waits \[([\d, ]+)\]", line)
        if waits:
            events = waits[1].split(", ")
            for k in range(len(events)):
                rest = events[:k] + events[k + 1 :]
                text = " waits [%s]" % ", ".join(rest) if rest else ""
                yield i, lines[:i] + [line.replace(waits[0], text)] + lines[i + 1 :]


def verify(text):
    return subprocess.run(
        ["reckon-opt", "-verify-plan", "-o", "/dev/null"],
        input=text, capture_output=True, text=True)


def main():
    with open(sys.argv[1]) as file:
        lines = file.read().split("\n")
    whole = verify("\n".join(lines))
    if whole.returncode != 0:
        sys.exit("the plan itself is refused:\n" + whole.stderr)
    dropped = 0
    for i, text in variants(lines):
        result = verify("\n".join(text))
        ordered = ("is not ordered behind it", "before the fragment does",
                   "ends before its work")
        if result.returncode == 0 or not any(o in result.stderr for o in ordered):
            sys.exit("without the wait of line %d the plan passes or fails "
                     "otherwise:\n%s\n%s" % (i + 1, lines[i], result.stderr))
        dropped += 1
    print("%d waits dropped, each missed" % dropped)


if __name__ == "__main__":
    main()
