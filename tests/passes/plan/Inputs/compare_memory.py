"""Compares the memory of `reckon plan` with that of `reckon show`, both JSON.

usage: compare_memory.py PLAN.json SHOW.json
"""

import json
import sys

CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "logits",
              "communication", "workspace")


def main():
    with open(sys.argv[1]) as file:
        predicted = json.load(file)["candidates"][0]["memory"]["stages"]
    with open(sys.argv[2]) as file:
        planned = json.load(file)["stages"]
    if len(predicted) != len(planned):
        sys.exit("%d stages predicted, %d planned" %
                 (len(predicted), len(planned)))
    equal = 0
    for p, s in zip(predicted, planned):
        for category in CATEGORIES:
            if p[category] != s[category]:
                sys.exit("stage %d, %s: predicted %d bytes, planned %d" %
                         (p["stage"], category, p[category], s[category]))
            equal += 1
        if p["total"] - p["reserve"] != s["arena_bytes"]:
            sys.exit("stage %d: predicted %d bytes without the reserve, arena "
                     "%d" % (p["stage"], p["total"] - p["reserve"],
                             s["arena_bytes"]))
    print("%d stages, %d categories equal" % (len(planned), equal))


if __name__ == "__main__":
    main()
