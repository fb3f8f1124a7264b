#!/usr/bin/env python3
"""Fits the one factor of each (chip, precision, framework family) and tests it
on runs that the fit has not seen.

usage: fit.py --scorer PATH --runs CSV [--table CSV] [--write] [--verbose]

The scorer (reckon-published --rows) prices every row with all factors at 1.
A step is factor * work + overhead, so each factor is the weighted median of
measured / predicted that minimises the sum of |predicted / measured - 1|.
Printed: the error with the factors of all rows (what the planner uses), with
factors from four fifths of the rows (5-fold), with a whole source left out and
with a whole model left out. A group that the training rows lack takes the
median of its chip's groups, then that of all. --write puts the factors, their number of
rows and the error bands into the table. Python 3.9, standard library only.
"""
import argparse
import collections
import csv
import hashlib
import io
import os
import statistics
import subprocess
import tempfile

OVERHEAD = 8e-3  # step_overhead, which the factor does not multiply
HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "../../passes/model/time/efficiency.csv")
Row = collections.namedtuple("Row", "id source model key framework predicted "
                                    "measured")


def read_table(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def write_table(path, lines):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    with open(path, "w") as file:
        file.write(text.getvalue())


def is_fitted(line):
    """Written by --write: the groups' factors, and one for all the others."""
    return line[0] == "factor" or line[:3] == ["global", "", "factor"]


UNFITTED = ["global", "", "factor", "1", "G", "", "no fit"]


def predictions(scorer, runs, table):
    """Rows with a measured step time, priced without factors."""
    lines = [line for line in read_table(table) if not is_fitted(line)]
    lines.append(UNFITTED)
    with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
        path = file.name
    write_table(path, lines)
    text = subprocess.run([scorer, "--runs", runs, "--rows", "--table", path],
                          check=True, capture_output=True, text=True).stdout
    os.unlink(path)
    rows = []
    for line in text.splitlines():
        cells = line.split("\t")
        if len(cells) == 9 and float(cells[6]) > 0:
            rows.append(Row(*cells[:5], float(cells[5]), float(cells[6])))
    return rows


def weighted_median(pairs):
    pairs = sorted(pairs)
    half = sum(weight for _, weight in pairs) / 2
    for value, weight in pairs:
        half -= weight
        if half <= 0:
            return value
    return 1.0


def fit(rows):
    """{key: factor} that minimises the summed relative error of each key."""
    groups = collections.defaultdict(list)
    for row in rows:
        work, measured = row.predicted - OVERHEAD, row.measured - OVERHEAD
        groups[row.key].append((measured / work, work / measured))
    return {key: weighted_median(pairs) for key, pairs in groups.items()}


def factor_of(key, factors):
    """The key's factor, else the median of its chip's, else of all."""
    if key in factors:
        return factors[key]
    chip = key.split("/")[0]
    same = [f for k, f in factors.items() if k.split("/")[0] == chip]
    return statistics.median(same or factors.values())


def error(row, factor):
    return (factor * (row.predicted - OVERHEAD) + OVERHEAD) / row.measured - 1


def left_out(rows, part_of):
    """Errors when the rows of one part are priced by a fit on the others."""
    errors = []
    parts = collections.defaultdict(list)
    for row in rows:
        parts[part_of(row)].append(row)
    for part, members in sorted(parts.items()):
        factors = fit([r for r in rows if part_of(r) != part])
        errors += [error(r, factor_of(r.key, factors)) for r in members]
    return errors


def fold(row):
    return int(hashlib.sha256(row.id.encode()).hexdigest(), 16) % 5


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def report(name, errors):
    size = [abs(e) for e in errors]
    print(f"{name:34s} n={len(size):3d} median {statistics.median(size):6.2%} "
          f"p90 {quantile(size, .9):6.2%} bias {statistics.median(errors):+.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scorer", required=True)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--table", default=TABLE)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    rows = predictions(args.scorer, args.runs, args.table)
    factors = fit(rows)
    report("no factor", [error(r, 1.0) for r in rows])
    report("factors of all rows", [error(r, factors[r.key]) for r in rows])
    report("5-fold", left_out(rows, fold))
    report("source left out", left_out(rows, lambda r: r.source))
    report("model left out", left_out(rows, lambda r: r.model))
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row.key].append(row)
    for key, members in sorted(groups.items(), key=lambda kv: -len(kv[1])):
        report(f"  {key} {factors[key]:.3f}",
               [error(r, factors[key]) for r in members])
        if args.verbose:
            for r in sorted(members, key=lambda r: error(r, factors[key])):
                print(f"      {1 + error(r, factors[key]):.2f} {r.id}")
    if args.write:
        lines = [line for line in read_table(args.table)
                 if not is_fitted(line)]
        others = statistics.median(factors[r.key] for r in rows)
        lines.append(["global", "", "factor", f"{others:.3f}", "G", "2026",
                      f"fit.py: median over {len(rows)} published runs"])
        for key, members in sorted(groups.items()):
            band = quantile([abs(error(r, factors[key])) for r in members], .9)
            source = f"fit.py over {len(members)} published runs"
            lines.append(["factor", key, "factor", f"{factors[key]:.3f}", "F",
                          "2026", source])
            lines.append(["factor", key, "error_band", f"{band:.2f}", "F",
                          "2026", source])
        write_table(args.table, lines)


if __name__ == "__main__":
    main()
