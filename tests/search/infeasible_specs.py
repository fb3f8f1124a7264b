#!/usr/bin/env python3
"""Applies what `reckon plan` suggests for specs that have no solution.

For every infeasible/*.yaml: the program ends with 3 and names a conflict that
it has checked; the first suggestion, applied with --set, ends with 0; it asks
for nothing above the hardware; and with any of its settings one step nearer to
the spec nothing fits (3, or 2 where the smaller value contradicts the spec).

Usage: RECKON_BIN=build/bin infeasible_specs.py [NAME...]
"""

import json
import os
import pathlib
import subprocess
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
RECKON = os.path.join(os.environ.get("RECKON_BIN", "build/bin"), "reckon")
# Memory of the cards of these specs less the reserve of 2 GiB.
ROOM = {"h100-sxm": 78.0, "a100-sxm-40gb": 38.0, "a100-sxm-80gb": 78.0}
RECOMPUTE = ["none", "selective", "full"]
SCHEDULES = ["gpipe", "1f1b", "interleaved_1f1b", "bfs", "zb_h1", "zb_h2",
             "zbv", "dualpipe_v"]


def plan(path, settings=()):
    command = [RECKON, "plan", str(path), "--format", "json", "--top", "1"]
    for key, value in settings:
        command += ["--set", f"{key}={value}"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def domain(key, spec):
    """The values of a key in the order in which a step goes to the next."""
    name = key.split(".")[1]
    if name == "recompute":
        return RECOMPUTE
    if name == "pipeline_schedule":
        return SCHEDULES
    if name == "zero_stage":
        return [0, 1, 2, 3]
    if name == "micro_batch_size":
        return divisors(spec["training"]["global_batch_size"])
    if name == "virtual_pipeline":
        return list(range(1, 17))
    cluster = spec["cluster"]
    return divisors(cluster["nodes"] * cluster["gpus_per_node"])


def one_less(key, value, spec):
    """`value` one step nearer to what the spec has; None if it is a switch."""
    if key in ("constraints.memory_limit_gib",
               "constraints.host_memory_limit_gib"):
        return f"{value - 0.01:.2f}"
    if key == "constraints.max_bubble":
        return f"{value - 0.0001:.4f}"
    if key == "cluster.nodes":
        return value - 1
    if key == "training.global_batch_size":
        return value - spec["training"]["global_batch_size"]
    if key in ("parallelism.representation", "search.space",
               "parallelism.pipeline_layout", "parallelism.sequence_parallel"):
        return None
    values = domain(key, spec)
    now = spec["parallelism"][key.split(".")[1]]
    allowed = now if isinstance(now, list) else [now]
    at = values.index(value)
    nearest = min((values.index(a) for a in allowed),
                  key=lambda i: (abs(i - at), i))
    return values[at + (1 if nearest > at else -1)]


def check(path):
    spec = yaml.safe_load(path.read_text())
    code, out, err = plan(path)
    assert code == 3, f"expected exit code 3, got {code}: {err}"
    why = json.loads(out)["infeasible"]
    assert why["conflict"], "no conflict is named"
    assert why["checked"], f"the conflict {why['conflict']} does not hold"
    assert "nothing fits" in err
    if any(name.startswith("memory_limit") for name in why["conflict"]):
        assert why["shortfall_bytes"] > 0
    assert why["nearest"], "nothing is suggested"
    change = why["nearest"][0]["change"]
    settings = list(change.items())
    code, out, err = plan(path, settings)
    assert code == 0, f"{change} ends with {code}: {err}"
    found = json.loads(out)["candidates"][0]
    assert found["parallelism"] == \
        why["nearest"][0]["candidate"]["parallelism"], "another candidate"
    room = ROOM[spec["cluster"]["accelerator"]]
    assert change.get("constraints.memory_limit_gib", 0) <= room
    assert found["memory"]["peak_bytes"] <= (room + 2) * 2**30
    node = spec["cluster"].get("host_memory_gib", float("inf"))
    assert change.get("constraints.host_memory_limit_gib", 0) <= node
    for i, (key, value) in enumerate(settings):
        less = one_less(key, value, spec)
        if less is None:
            continue
        tried = settings[:i] + [(key, less)] + settings[i + 1:]
        code, _, _ = plan(path, tried)
        assert code in (2, 3), f"{key}={less} would do as well as {value}"
    return change


def main():
    names = sys.argv[1:]
    paths = [p for p in sorted((HERE / "infeasible").glob("*.yaml"))
             if not names or p.stem in names]
    failed = 0
    for path in paths:
        try:
            print(f"{path.stem}: {check(path)}")
        except (AssertionError, KeyError, ValueError) as error:
            failed += 1
            print(f"{path.stem}: FAILED: {error!r}")
    print(f"{len(paths) - failed} of {len(paths)} passed")
    return 1 if failed or len(paths) < (len(names) or 20) else 0


if __name__ == "__main__":
    sys.exit(main())
