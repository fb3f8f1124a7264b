#!/usr/bin/env python3
"""What `reckon plan` predicts is what the compiled plan allocates, to the byte.

usage: planned_bytes.py [CASES [SEED]]   (RECKON_BIN names the folder of programs)

Draws small models, degrees, batches, precisions and schedules, with sizes that
alignment rounds up; plans and compiles each; and compares every category of
every stage and the arena. The planner's numbers come from closed forms, the
plan's from the IR.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

RECKON = os.path.join(os.path.abspath(os.environ.get("RECKON_BIN", "build/bin")), "reckon")
CATEGORIES = ["parameters", "gradients", "optimizer", "activations", "logits",
              "communication", "workspace"]


def draw(random):
    pick = random.choice
    tp, pp, dp = pick([1, 2]), pick([1, 2, 3, 4]), pick([1, 2, 3])
    b, m = pick([1, 2, 3]), pick([1, 2, 3, 5])
    return {
        "model": {"name": "drawn", "architecture": "llama",
                  "vocab_size": pick([256, 258, 1000]), "hidden_size": pick([60, 64, 96]),
                  "intermediate_size": pick([30, 100, 176]),
                  "num_hidden_layers": pick([pp, pp + 1, 2 * pp, 7]),
                  "num_attention_heads": pick([2, 6]), "num_key_value_heads": 2,
                  "head_dim": pick([10, 16, 32])},
        "cluster": {"accelerator": "cpu", "nodes": 1, "gpus_per_node": tp * pp * dp},
        "training": {"sequence_length": pick([33, 64, 128]), "global_batch_size": b * m * dp,
                     "precision": pick(["fp32", "bf16"])},
        "parallelism": {"tensor_parallel": tp, "pipeline_parallel": pp, "data_parallel": dp,
                        "micro_batch_size": b, "zero_stage": pick([0, 1]),
                        "recompute": pick(["none", "full"]),
                        "pipeline_schedule": pick(["gpipe", "1f1b"])},
        "constraints": {"max_bubble": 10.0},
    }


def reckon(*arguments):
    done = subprocess.run([RECKON, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"reckon {arguments[0]}: exit {done.returncode}: {done.stderr[-400:]}")
    return done.stdout


def differences(spec, folder):
    path, plan = os.path.join(folder, "spec.yaml"), os.path.join(folder, "plan")
    with open(path, "w") as out:
        json.dump(spec, out)  # JSON is YAML
    planned = json.loads(reckon("plan", path, "--format", "json"))
    planned = planned["candidates"][0]["memory"]["stages"]
    reckon("compile", path, "-o", plan)
    shown = json.loads(reckon("show", plan, "--what", "memory", "--format", "json"))["stages"]
    if len(planned) != len(shown):
        return [f"{len(planned)} stages planned, {len(shown)} compiled"]
    found = []
    for want, got in zip(planned, shown):
        pairs = [(key, want[key], got[key]) for key in CATEGORIES]
        pairs.append(("arena", want["total"] - want["reserve"], got["arena_bytes"]))
        found += [f"stage {want['stage']} {key}: planned {a}, compiled {b}"
                  for key, a, b in pairs if a != b]
    return found


def main():
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    source = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    failed = 0
    for case in range(cases):
        spec = draw(source)
        with tempfile.TemporaryDirectory(prefix="reckon-bytes-") as folder:
            try:
                found = differences(spec, folder)
            except RuntimeError as error:
                found = [str(error)]
        if found:
            failed += 1
            print(f"FAIL case {case}: {json.dumps(spec)}\n  " + "\n  ".join(found))
    print(f"{cases - failed} of {cases} agree to the byte")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
