#!/usr/bin/env python3
"""What the adjustment of the global constants is worth on runs it has not seen.

usage: nested.py --scorer PATH --runs CSV [--table CSV] [--by model|source]
                 [--folds 5] [--steps 0.25,0.1]

The models (or the sources) are dealt to folds by a hash of their names. For
each fold the constants whose source in the table says "adjusted" start again
from the value that it names ("from 0.35", "from 8 us") and are moved by
coordinate descent to lower the error on the other folds, whose factors are
fitted as fit.py does; then the fold is priced. Printed: the errors on the rows
of the fits and on the rows held out, before and after the adjustment. Python
3.9, standard library only; about a minute of one core a fold.
"""
import argparse
import hashlib
import os
import re
import statistics
import tempfile

import fit

UNITS = {"us": 1e-6, "ms": 1e-3, None: 1.0}
FROM = re.compile(r"\bfrom (\d[\d.e]*)(?: (us|ms)\b)?")
CAP = 0.5      # an error beyond it is a row that no constant explains
SHARE = 1.0    # shares stay below it
WIDTH = 2.5    # a constant stays within this factor of its start


class Constant:
    def __init__(self, line):
        self.line = line
        self.value = float(line[3])
        named = FROM.search(line[6])
        if named:
            self.value = float(named[1]) * UNITS[named[2]]
        self.start = self.value

    def options(self, step):
        """Values to try; a start of 0 has no factor to move by."""
        tries = ([self.value + step, self.value - step] if self.start == 0 else
                 [self.value * (1 + step), self.value / (1 + step)])
        low, high = ((0, SHARE) if self.start == 0 else
                     (self.start / WIDTH, self.start * WIDTH))
        if 0 < self.start <= SHARE and self.start > 0.01:
            high = min(high, SHARE)
        return [v for v in tries if low <= v <= high]


class Pricer:
    """Prices all rows with the present values of the constants."""

    def __init__(self, args):
        self.args = args
        self.lines = fit.read_table(args.table)
        self.constants = [Constant(line) for line in self.lines
                          if "adjusted on all published runs" in line[-1]]

    def rows(self):
        table = [list(line) for line in self.lines]
        values = {tuple(c.line[:3]): c.value for c in self.constants}
        for line in table:
            if tuple(line[:3]) in values:
                line[3] = f"{values[tuple(line[:3])]:.9g}"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "constants.csv")
            fit.write_table(path, table)
            return fit.predictions(self.args.scorer, self.args.runs, path)


def errors(rows, factors):
    return [fit.error(r, fit.factor_of(r.key, factors)) for r in rows]


def cost(rows):
    factors = fit.fit(rows)
    return statistics.mean(min(abs(e), CAP) for e in errors(rows, factors))


def descend(pricer, mine, steps):
    """Moves every constant while it lowers the cost of the rows of `mine`."""
    def price():
        return cost([r for r in pricer.rows() if mine(r)])
    best = price()
    for step in steps:
        for constant in pricer.constants:
            kept = constant.value
            for value in constant.options(step):
                constant.value = value
                found = price()
                if found < best * (1 - 1e-4):
                    best, kept = found, value
                    break
                constant.value = kept


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scorer", required=True)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--table", default=fit.TABLE)
    parser.add_argument("--by", choices=["model", "source"], default="model")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--steps", default="0.25,0.1")
    args = parser.parse_args()
    steps = [float(s) for s in args.steps.split(",")]

    def fold(row):
        name = getattr(row, args.by)
        return int(hashlib.sha256(name.encode()).hexdigest(), 16) % args.folds

    results = {name: [] for name in ("before, fitted", "before, held out",
                                     "after, fitted", "after, held out")}
    for held in range(args.folds):
        pricer = Pricer(args)
        for when in ("before", "after"):
            if when == "after":
                descend(pricer, lambda r: fold(r) != held, steps)
            rows = pricer.rows()
            factors = fit.fit([r for r in rows if fold(r) != held])
            for part, test in (("fitted", False), ("held out", True)):
                results[f"{when}, {part}"] += errors(
                    [r for r in rows if (fold(r) == held) == test], factors)
        print(f"fold {held}: {sum(fold(r) == held for r in rows)} rows held "
              "out", flush=True)
    print(f"{args.folds} folds by {args.by}; global constants:")
    for name, found in results.items():
        fit.report(name, found)


if __name__ == "__main__":
    main()
