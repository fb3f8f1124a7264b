#!/usr/bin/env python3
"""Registers and spills of the CUDA kernels, as ptxas reported them.

The build keeps ptxas -v's report beside each object of libreckon_cuda.so
(cmake/ptxas-log.sh). A kernel that spills, or needs more registers than
registers.txt allows, is far slower on a GPU than its bytes and flops say; there
it would show only in a profile.

Usage: ptxas.py OBJECTS_FOLDER BOUNDS TARGET...

TARGET is an architecture such as sm_90a for which every kernel must have been
compiled. Prints one line a kernel; exit code 1 if something is wrong.
"""

import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FUNCTION = re.compile(r"Function properties for (\w+)")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, "
                    r"(\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


class Kernel(NamedTuple):
    """One kernel, compiled for one target."""
    symbol: str
    target: str
    registers: int
    stack: int      # bytes of local memory a thread
    spills: int     # bytes stored to it by spills


def parse(text):
    """Returns the kernels of one report of ptxas -v."""
    found = []
    symbol = target = None
    stack = spills = 0
    for line in text.splitlines():
        if match := ENTRY.search(line):
            symbol, target = match[1], match[2]
            stack = spills = 0
        elif symbol and (match := SPILLS.search(line)):
            # Also that of a function which the kernel calls.
            stack += int(match[1])
            spills += int(match[2]) + int(match[3])
        elif symbol and (match := REGISTERS.search(line)):
            found.append(Kernel(symbol, target, int(match[1]), stack, spills))
            symbol = None
    return found


def names(symbols):
    """Kernel names without namespaces and arguments, by their symbols."""
    if not symbols:
        return {}
    text = subprocess.run(["c++filt", *symbols], capture_output=True,
                          text=True, check=True).stdout
    # void reckon::cuda::(anonymous namespace)::add<float>(float const*, ...)
    plain = re.compile(r"(?:.*::)?(\w+)(?:<.*>)?\(")
    result = {}
    for symbol, line in zip(symbols, text.splitlines()):
        line = line.replace("(anonymous namespace)::", "")
        # Arguments hold :: and < too: look only at what precedes them.
        head = re.match(r"[^(]*?(?:<[^(]*>)?\(", line)
        outer = re.sub(r"<.*", "(", head[0]) if head else line + "("
        match = plain.match(outer)
        result[symbol] = match[1] if match else symbol
    return result


def read_bounds(text):
    """Returns {kernel: most registers} of a table such as registers.txt."""
    bounds = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        name, _, most = line.partition(" ")
        if not most.strip().isdigit() or name in bounds:
            raise ValueError(f"line {number}: expected one 'kernel registers' "
                             f"for each kernel, got '{line}'")
        bounds[name] = int(most)
    return bounds


def check(kernels, bounds, targets):
    """Returns what is wrong, each a line of text."""
    wrong = []
    called = names(sorted({k.symbol for k in kernels}))
    built = {}
    for kernel in kernels:
        name = called[kernel.symbol]
        where = f"{name} on {kernel.target}"
        built.setdefault(kernel.symbol, set()).add(kernel.target)
        if kernel.spills:
            wrong.append(f"{where}: spills {kernel.spills} bytes a thread")
        elif kernel.stack:
            wrong.append(f"{where}: keeps {kernel.stack} bytes a thread in "
                         "local memory")
        if name not in bounds:
            wrong.append(f"{where}: has no bound; it needs {kernel.registers} "
                         "registers")
        elif kernel.registers > bounds[name]:
            wrong.append(f"{where}: expected at most {bounds[name]} "
                         f"registers, got {kernel.registers}")
    for symbol, have in built.items():
        for target in targets:
            if target not in have:
                wrong.append(f"{called[symbol]}: not compiled for {target}")
    for name in sorted(set(bounds) - set(called.values())):
        wrong.append(f"{name}: has a bound, but there is no such kernel")
    return sorted(set(wrong))


def read(folder):
    """The kernels of every object below `folder`; raises if one has no report."""
    kernels = []
    for file in sorted(pathlib.Path(folder).rglob("*.cu.o")):
        report = pathlib.Path(f"{file}.ptxas")
        if not report.is_file():
            raise FileNotFoundError(f"{file} has no report of ptxas; delete it "
                                    "and build again")
        kernels += parse(report.read_text())
    return kernels


def main():
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    folder, table, targets = sys.argv[1], sys.argv[2], sys.argv[3:]
    kernels = read(folder)
    called = names(sorted({k.symbol for k in kernels}))
    most = {}
    for kernel in kernels:
        key = (called[kernel.symbol], kernel.target)
        old = most.get(key, (0, 0))
        most[key] = (max(old[0], kernel.registers), max(old[1], kernel.stack))
    for (name, target), (registers, stack) in sorted(most.items()):
        print(f"{name:32} {target:8} {registers:4} registers {stack:5} bytes "
              "of stack")
    wrong = check(kernels, read_bounds(pathlib.Path(table).read_text()),
                  targets)
    if not kernels:
        wrong.append(f"no kernel below {folder}")
    for text in wrong:
        print(f"error: {text}")
    print(f"{len(called)} kernels, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
