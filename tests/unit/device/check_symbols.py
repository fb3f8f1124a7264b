"""Fails if an object defines a symbol outside its instruction set's namespace.

Usage: check_symbols.py NM ISA OBJECT...
"""

import subprocess
import sys


def main():
    nm, isa, objects = sys.argv[1], sys.argv[2], sys.argv[3:]
    own = f"reckon::device::{isa}::"
    faults, own_symbols = [], 0
    for path in objects:
        listing = subprocess.run(
            [nm, "-C", "--defined-only", "--extern-only", path],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for line in listing.splitlines():
            _, kind, name = line.split(maxsplit=2)
            # Sanitizers and the exception personality bring data of their own.
            if kind in "Vv" and name.startswith("DW.ref."):
                continue
            if own in name:
                own_symbols += 1
            else:
                faults.append(f"{path}: {name}")
    if not own_symbols:
        faults.append(f"no object defines anything in {own[:-2]}")
    for fault in faults:
        print(f"error: expected only symbols of {own[:-2]}, got {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
