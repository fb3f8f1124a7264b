#!/usr/bin/env python3
"""Solves every neighbour that `reckon plan` lists, and asks --why-not.

Each neighbour's parallelism, fixed with --set, must give the step time and the
peak that the table says, or end with 3 when it says that a limit breaks.

Usage: RECKON_BIN=build/bin neighbours.py
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

RECKON = os.path.join(os.environ.get("RECKON_BIN", "build/bin"), "reckon")
SPEC = """
model: {architecture: llama, vocab_size: 128256, hidden_size: 4096,
        intermediate_size: 14336, num_hidden_layers: 32,
        num_attention_heads: 32, num_key_value_heads: 8}
cluster: {accelerator: h100-sxm, nodes: 2, gpus_per_node: 8}
training: {sequence_length: 8192, global_batch_size: 64}
parallelism: {pipeline_parallel: [1, 2, 4]}
constraints: {max_bubble: 0.2}
"""


def plan(path, *arguments):
    done = subprocess.run([RECKON, "plan", path, "--format", "json", "--top",
                           "1", *arguments], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def settings(parallelism):
    """What fixes a choice: no key that has no meaning for it."""
    fixed = dict(parallelism)
    for key in ("pipeline_layout", "num_micro_batches", "data_parallel"):
        fixed.pop(key)
    if fixed["tensor_parallel"] == 1:
        fixed.pop("sequence_parallel")
    if fixed["context_parallel"] == 1:
        fixed.pop("context_parallel_method")
    if fixed["pipeline_parallel"] == 1:
        fixed.pop("pipeline_schedule")
    for key, value in fixed.items():
        yield "--set"
        yield f"parallelism.{key}={str(value).lower()}"


def check_neighbours(path):
    code, report = plan(path, "--set", "parallelism.pipeline_parallel=2")
    assert code == 0
    solved = broken = 0
    keys = set()
    for n in report["neighbours"]:
        keys.add(n["key"])
        if "impossible" in n:
            continue
        code, other = plan(path, *settings(n["parallelism"]))
        if n["breaks"]:
            assert code == 3, (n, code)
            broken += 1
            continue
        assert code == 0, (n, code)
        best = other["candidates"][0]
        assert abs(best["time"]["step_s"] - n["step_s"]) < 1e-9, n
        stage = best["memory"]["stages"][best["memory"]["peak_stage"]]
        assert stage["total"] - stage["reserve"] == n["peak_arena_bytes"], n
        solved += 1
    print(f"{solved} neighbours solved, {broken} break a limit")
    assert solved >= 8 and len(keys) >= 6, sorted(keys)


def check_why_not(path):
    code, report = plan(path, "--why-not", "tensor_parallel=4")
    assert code == 0
    why = report["why_not"]
    best = report["candidates"][0]
    _, other = plan(path, "--set", "parallelism.tensor_parallel=4")
    slower = (other["candidates"][0]["time"]["step_s"] -
              best["time"]["step_s"])
    assert abs(why["more_s"] - slower) < 1e-9 and slower >= 0, why
    assert abs(sum(why["time"].values()) - slower) < 1e-9, why
    # Not a divisor of the heads: the spec itself refuses it.
    _, report = plan(path, "--why-not", "tensor_parallel=3")
    assert "num_attention_heads" in report["why_not"]["problem"]
    # Sixteen sequences of 8192 tokens at once, nothing recomputed.
    _, report = plan(path, "--why-not", "micro_batch_size=32", "--why-not",
                     "recompute=none", "--why-not", "tensor_parallel=1",
                     "--why-not", "context_parallel=1")
    why = report["why_not"]
    assert any(c.startswith("memory_limit") for c in why["conflict"]), why
    assert why["shortfall_bytes"] > 0


def check_pareto(path):
    _, report = plan(path, "--pareto")
    rows = report["pareto"]
    # 2 nodes: 1/2 to 8 times as many, 1/8 and 1/4 of a node do not exist.
    assert [row["nodes"] for row in rows] == [1, 2, 4, 8, 16], rows
    fit = [row for row in rows if row["feasible"]]
    for row in fit:
        _, other = plan(path, "--set", f"cluster.nodes={row['nodes']}")
        step = other["candidates"][0]["time"]["step_s"]
        assert abs(step - row["step_s"]) < 1e-9, row
        # 1000 steps over goodput; $2.5 an hour and device.
        assert abs(row["train_s"] - 1000 * step / row["goodput"]) < 1e-3
        dollars = row["train_s"] / 3600 * 2.5 * row["gpus"]
        assert abs(row["train_dollars"] - dollars) < 1e-6 * dollars
        better = [o for o in fit if o["train_s"] <= row["train_s"] and
                  o["train_dollars"] <= row["train_dollars"] and
                  (o["train_s"], o["train_dollars"]) !=
                  (row["train_s"], row["train_dollars"])]
        assert row["dominated"] == bool(better), row
    assert len(fit) >= 3 and not all(row["dominated"] for row in fit)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "spec.yaml"
        path.write_text(SPEC)
        check_neighbours(str(path))
        check_why_not(str(path))
        check_pareto(str(path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
