"""Shared by the end-to-end tests: a tiny spec, compiling, running, reading.

Python's standard library only. RECKON_BIN names the folder of the programs
(default: build/bin below the project's root).
"""

import copy
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("RECKON_BIN",
                                     os.path.join(ROOT, "build", "bin")))
RECKON = os.path.join(BIN, "reckon")
RUN = os.path.join(BIN, "reckon-run")
FIXTURE = os.path.join(ROOT, "tests", "e2e", "fixtures", "llama2l")

TEXT = ("A job's state is four things: parameters, gradients, optimizer "
        "state, activations. Reckon first, then try. ") * 400

TINY = {
    "model": {"name": "tiny", "architecture": "llama", "vocab_size": 256,
              "hidden_size": 64, "intermediate_size": 176,
              "num_hidden_layers": 8, "num_attention_heads": 4,
              "num_key_value_heads": 2, "tie_word_embeddings": False,
              "rope_theta": 10000.0},
    "cluster": {"accelerator": "cpu", "nodes": 1, "gpus_per_node": 1},
    "training": {"sequence_length": 64, "global_batch_size": 16,
                 "train_steps": 8, "precision": "fp32",
                 "optimizer": {"name": "adamw", "lr": 1.0e-3,
                               "betas": [0.9, 0.95], "weight_decay": 0.1,
                               "clip_grad": 1.0},
                 "lr_schedule": {"type": "constant"}, "seed": 7,
                 "data": {"format": "text", "path": "corpus.txt",
                          "tokenizer": "byte"}},
    "parallelism": {"tensor_parallel": 1, "sequence_parallel": False,
                    "pipeline_parallel": 1,
                    "data_parallel": 1, "pipeline_schedule": "1f1b",
                    "zero_stage": 0, "micro_batch_size": 2,
                    "recompute": "none"},
    "constraints": {"max_bubble": 10.0},
}

# Layouts that every property is checked on, by name. `model.` and `training.`
# keys change the reference too.
LAYOUTS = {
    "dp2": {"data_parallel": 2},
    "dp4-zero1": {"data_parallel": 4, "zero_stage": 1},
    "tp2": {"tensor_parallel": 2},
    "tp2-dp2": {"tensor_parallel": 2, "data_parallel": 2},
    "pp2": {"pipeline_parallel": 2},
    "pp4": {"pipeline_parallel": 4},
    "pp4-gpipe": {"pipeline_parallel": 4, "pipeline_schedule": "gpipe"},
    "tp2-pp2": {"tensor_parallel": 2, "pipeline_parallel": 2},
    "dp2-tp2-pp2-zero1": {"data_parallel": 2, "tensor_parallel": 2,
                          "pipeline_parallel": 2, "zero_stage": 1},
    "full-recompute": {"pipeline_parallel": 2, "recompute": "full"},
    "uneven": {"pipeline_parallel": 2, "pipeline_layout": [3, 5]},
    "odd-layers": {"model.num_hidden_layers": 7, "pipeline_parallel": 4},
    "sp": {"tensor_parallel": 2, "sequence_parallel": True},
    "sp-pp2-recompute": {"tensor_parallel": 2, "sequence_parallel": True,
                         "pipeline_parallel": 2, "recompute": "full"},
    "sp-dp2-pp2-zero1": {"data_parallel": 2, "tensor_parallel": 2,
                         "sequence_parallel": True, "pipeline_parallel": 2,
                         "zero_stage": 1},
    "dp3-zero1": {"training.global_batch_size": 12, "data_parallel": 3,
                  "zero_stage": 1},
}


def world(spec):
    parallel = spec["parallelism"]
    return (parallel["tensor_parallel"] * parallel["pipeline_parallel"] *
            parallel["data_parallel"])


def tiny(**changes):
    """The tiny spec with keys changed: plain keys are parallelism's, others
    are dotted."""
    spec = copy.deepcopy(TINY)
    for key, value in changes.items():
        section, _, last = key.rpartition(".")
        node = spec
        for part in (section or "parallelism").split("."):
            node = node[part]
        node[last] = value
    spec["cluster"]["gpus_per_node"] = world(spec)
    return spec


def reference_changes(changes):
    """The part of a layout's changes that one process needs too."""
    return {key: value for key, value in changes.items() if "." in key}


class Failed(Exception):
    """A program ended with a code that was not expected."""


def call(arguments, cwd, expect=0, env=None, timeout=300):
    done = subprocess.run(arguments, cwd=cwd, capture_output=True, text=True,
                          errors="replace", timeout=timeout,
                          env={**os.environ, "OMP_NUM_THREADS": "1",
                               **(env or {})})
    if done.returncode != expect:
        raise Failed(f"{' '.join(arguments[:3])}: exit {done.returncode}, "
                     f"expected {expect}\n{done.stdout[-800:]}\n"
                     f"{done.stderr[-1200:]}")
    return done


class Workspace:
    """A temporary folder with a corpus; removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="reckon-e2e-")
        with open(os.path.join(self.path, "corpus.txt"), "w") as out:
            out.write(TEXT)
        return self

    def __exit__(self, *unused):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.path, name)

    def spec(self, spec, name):
        path = self.file(name + ".yaml")
        with open(path, "w") as out:
            json.dump(spec, out)  # JSON is YAML
        return path

    def compile(self, spec, name, *more):
        plan = self.file(name + ".plan")
        call([RECKON, "compile", self.spec(spec, name), "-o", plan, *more],
             self.path)
        return plan

    def run(self, plan, name, ranks, *more, expect=0, env=None, timeout=300,
            device="cpu"):
        where = self.file(name + ".run")
        done = call([RUN, plan, "--device", device, "--local", str(ranks),
                     "--run-dir", where, *more], self.path, expect=expect,
                    env=env, timeout=timeout)
        return where, done

    def plan_json(self, spec, name):
        done = call([RECKON, "plan", self.spec(spec, name), "--format",
                     "json"], self.path)
        return json.loads(done.stdout)


def metrics(where):
    with open(os.path.join(where, "metrics.jsonl")) as data:
        return [json.loads(line) for line in data if line.strip()]


def numbers(where):
    """What must be bit-equal between equal runs: no times."""
    return [(m["step"], m["loss"], m["grad_norm"], m["lr"], m["tokens"])
            for m in metrics(where)]


def relative(a, b):
    return abs(a - b) / max(abs(a), abs(b), 1e-30)


def main():
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
