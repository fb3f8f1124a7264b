"""Scores the proofs by mutants: compiles small plans, then runs reckon-mutate.

  score.py                      30 mutants of each of 9 kinds on 8 plans
  score.py --plans tp2 pp4-gpipe --count 6 --verbose

Every other option goes to reckon-mutate. Plans are those of
tests/e2e/harness.py, with 4 layers. RECKON_BIN names the folder of the
programs. The exit code is reckon-mutate's.
"""

import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, "e2e"))
import harness  # noqa: E402

PLANS = ("tp2", "pp4", "pp4-gpipe", "dp4-zero1", "tp2-dp2",
         "dp2-tp2-pp2-zero1", "sp-dp2-pp2-zero1", "sp-pp2-recompute")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plans", nargs="+", default=PLANS,
                        choices=sorted(harness.LAYOUTS), metavar="NAME")
    options, more = parser.parse_known_args()
    with harness.Workspace() as work:
        plans = []
        for name in options.plans:
            changes = dict(harness.LAYOUTS[name])
            changes["model.num_hidden_layers"] = 4
            changes.pop("pipeline_layout", None)
            plans.append(work.compile(harness.tiny(**changes), name))
        done = subprocess.run(
            [os.path.join(harness.BIN, "reckon-mutate"),
             *(os.path.basename(plan) for plan in plans), *more],
            cwd=work.path, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
