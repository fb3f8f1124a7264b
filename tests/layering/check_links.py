#!/usr/bin/env python3
"""Checks that a program carries no library that it must do without.

Refuses MLIR, LLVM, Z3, yaml-cpp and CUDA's libraries among the shared libraries
that the program needs, directly or through another library, and among the
symbols of the program itself, where a static library would show. A program for
compute nodes has none of them; none has CUDA's, which only plugins need. Needs
ldd, readelf and nm.

Usage: check_links.py PROGRAM [LIBRARY...]. Looks for the named ones only, if
any are named. Exit code 1 if something is found, 2 if the program cannot be
examined.
"""

import re
import subprocess
import sys

# The soname and the mangled names by which each library is recognised. The
# namespaces llvm and mlir also occur as substrings of template arguments, so
# only names that begin with them, definitions and references, are counted.
LIBRARIES = {
    "MLIR": (r"libMLIR", r"_ZNK?4mlir|mlir[A-Z]\w+$"),
    "LLVM": (r"libLLVM|libclang", r"_ZNK?4llvm|LLVM[A-Z]\w+$"),
    "Z3": (r"libz3", r"Z3_\w+$"),
    "yaml-cpp": (r"libyaml", r"_ZNK?4YAML"),
    "CUDA": (r"lib(cuda|cublas|cudart|cudnn|nccl|nvrtc|nvJitLink)",
             r"(cu(da|blas|dnn)|nccl|nvrtc)[A-Z]\w+$"),
}


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True,
                            check=False)
    if result.returncode != 0:
        print(f"error: {' '.join(command)}: {result.stderr.strip()}",
              file=sys.stderr)
        sys.exit(2)
    return result.stdout


def needed(program):
    """Names of all shared libraries: the program's own, then the rest."""
    own = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", program))
    every = [line.split()[0].rpartition("/")[2]
             for line in run("ldd", program).splitlines() if line.strip()]
    return own, every


def symbols(program):
    text = run("nm", "-P", program) + run("nm", "-P", "-D", program)
    return {line.split()[0] for line in text.splitlines() if line.strip()}


def check(program, libraries=tuple(LIBRARIES)):
    """Returns a list of findings, each a line of text."""
    own, every = needed(program)
    names = symbols(program)
    found = []
    for library in libraries:
        soname, symbol = LIBRARIES[library]
        for name in every:
            if re.match(soname, name):
                how = "needs" if name in own else "needs, through another,"
                found.append(f"{how} {name}: that is {library}")
        hits = sorted(n for n in names if re.match(symbol, n))
        if hits:
            found.append(f"has {len(hits)} symbols of {library}, such as "
                         f"{hits[0]}")
    return found


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(LIBRARIES):
        print(__doc__, file=sys.stderr)
        return 2
    libraries = sys.argv[2:] or list(LIBRARIES)
    found = check(sys.argv[1], libraries)
    for text in found:
        print(f"{sys.argv[1]}: {text}")
    if not found:
        print(f"{sys.argv[1]}: no {', '.join(libraries)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
