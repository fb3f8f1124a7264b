#!/usr/bin/env python3
"""Runs a fuzz target from real seeds: the example specs, a compiled plan.

usage: fuzz.py spec|plan [--seconds N | --cpu-seconds N] [--corpus DIR]

--cpu-seconds counts processor time, which a busy machine does not shorten: one
run of 60 s after another, each with a seed of its own, from what those before
it found. Without --corpus what is found is thrown away at the end. Exit 0 when
nothing crashed; libFuzzer prints the input that did.
"""

import argparse
import glob
import os
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("RECKON_BIN",
                                     os.path.join(ROOT, "build", "bin")))


def seeds(target, folder):
    """Copies or makes the inputs to start from."""
    if target == "spec":
        for path in glob.glob(os.path.join(ROOT, "examples", "**", "*.yaml"),
                              recursive=True):
            shutil.copy(path, folder)
        return
    spec = os.path.join(ROOT, "tests", "e2e", "fixtures", "llama2l",
                        "spec.yaml")
    plan = os.path.join(folder, "plan")
    subprocess.run([os.path.join(BIN, "reckon"), "compile", spec, "-o", plan],
                   check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    for path in glob.glob(os.path.join(plan, "*")):
        if os.path.isfile(path):
            shutil.move(path, folder)
    shutil.rmtree(plan)


def fuzz(target, folders, seconds, seed, cwd):
    """Whether nothing crashed."""
    return subprocess.run(
        [os.path.join(BIN, "reckon-fuzz-" + target), *folders,
         f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=10",
         "-rss_limit_mb=2048", "-max_len=65536", "-print_final_stats=1",
         "-verbosity=0"], cwd=cwd).returncode == 0


def spent():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=["spec", "plan"])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--cpu-seconds", type=int)
    parser.add_argument("--corpus")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reckon-fuzz-") as work:
        start = os.path.join(work, "seeds")
        corpus = options.corpus or os.path.join(work, "corpus")
        os.makedirs(start)
        os.makedirs(corpus, exist_ok=True)
        folders = [os.path.abspath(corpus), start]
        seeds(options.target, start)
        if not options.cpu_seconds:
            good = fuzz(options.target, folders, options.seconds, 1, work)
            return 0 if good else 1
        before, seed, good = spent(), 0, True
        while good and spent() - before < options.cpu_seconds:
            seed += 1
            good = fuzz(options.target, folders, 60, seed, work)
            print(f"fuzz: {spent() - before:.0f} s of processor time, "
                  f"{len(os.listdir(corpus))} inputs kept", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
