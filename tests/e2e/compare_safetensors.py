#!/usr/bin/env python3
"""Compares the tensors of two safetensors files by their norms.

A tensor g agrees with the expected g' when

  ||g - g'|| <= tolerance * max(||g'||, floor * global norm of the expected)

with Frobenius norms in float64. The floor lets tensors pass whose true value
is zero, or nearly so: what they hold is rounding error of the others.

With --baseline FILE both sides are first reduced by that file's tensors, so
that weights after some optimizer steps are compared by what the steps did.

Needs only Python's standard library. Exit code: 0 all agree, 1 some tensor
differs or is missing, 2 bad usage or a file that cannot be read.
"""

import argparse
import array
import json
import math
import struct
import sys

# safetensors dtype -> (code of array.array, bytes per element)
DTYPES = {"F32": ("f", 4), "F64": ("d", 8)}
HEADER_LIMIT = 100 * 1000 * 1000  # the format's own limit, in bytes


class FormatError(Exception):
    """The file is not one that this reader can use; says why."""


class Tensor:
    """shape: tuple of int; values: array of float, row-major."""

    def __init__(self, shape, values):
        self.shape = shape
        self.values = values


def read_safetensors(path):
    """Returns {name: Tensor}. Raises FormatError or OSError."""
    with open(path, "rb") as file:
        data = file.read()

    def check(condition, text):
        if not condition:
            raise FormatError(f"{path}: {text}")

    check(len(data) >= 8, f"expected at least 8 bytes, got {len(data)}")
    (size,) = struct.unpack_from("<Q", data)
    check(size <= HEADER_LIMIT and 8 + size <= len(data),
          f"header of {size} bytes does not fit a file of {len(data)}")
    try:
        header = json.loads(data[8:8 + size])
    except ValueError as error:
        raise FormatError(f"{path}: header is not JSON: {error}") from error
    check(isinstance(header, dict), "header is not a JSON object")
    body = memoryview(data)[8 + size:]
    tensors, covered = {}, 0
    header.pop("__metadata__", None)
    try:
        entries = [(tuple(e["data_offsets"]), name, e["dtype"],
                    tuple(e["shape"])) for name, e in header.items()]
        entries.sort()
    except (TypeError, KeyError) as error:
        raise FormatError(f"{path}: malformed header entry: {error}") from error
    for (begin, end), name, dtype, shape in entries:
        check(dtype in DTYPES,
              f"{name}: expected dtype F32 or F64, got {dtype}")
        code, width = DTYPES[dtype]
        check(begin == covered, f"{name}: expected to begin at byte {covered} "
              f"of the data, got {begin}")
        check(end - begin == width * math.prod(shape) and end <= len(body),
              f"{name}: bytes {begin} to {end} do not hold {dtype} {shape}")
        covered = end
        values = array.array(code)
        values.frombytes(body[begin:end])
        if sys.byteorder == "big":
            values.byteswap()
        tensors[name] = Tensor(shape, values)
    check(covered == len(body),
          f"{len(body) - covered} bytes after the last tensor")
    return tensors


def subtract(values, base):
    return array.array("d", (a - b for a, b in zip(values, base)))


def norm(values):
    return math.sqrt(math.fsum(x * x for x in values))


class Comparison:
    """failures: one line each; rows: (ratio to the limit, name, text)."""

    def __init__(self):
        self.failures = []
        self.rows = []
        self.global_norm = 0.0


def compare(got, expected, baseline=None, tolerance=1e-5, floor=1e-3):
    """Compares two {name: Tensor}; see the module's docstring."""
    result = Comparison()
    for name in sorted(got.keys() - expected.keys()):
        result.failures.append(f"{name}: not expected")
    pairs = {}
    for name in sorted(expected):
        want = expected[name]
        shapes = {"got": got.get(name)}
        if baseline is not None:
            shapes["baseline"] = baseline.get(name)
        for side, tensor in shapes.items():
            if tensor is None:
                result.failures.append(f"{name}: missing in the {side} file")
            elif tensor.shape != want.shape:
                result.failures.append(
                    f"{name}: expected shape {list(want.shape)}, {side} file "
                    f"has {list(tensor.shape)}")
        left, right = got.get(name), want.values
        if baseline is not None and name in baseline:
            right = subtract(right, baseline[name].values)
        # The expected norms count even where nothing can be compared, so that
        # a missing tensor does not tighten the limits of the others.
        pairs[name] = (None, right)
        if all(t is not None and t.shape == want.shape
               for t in shapes.values()):
            left = left.values
            if baseline is not None:
                left = subtract(left, baseline[name].values)
            pairs[name] = (left, right)
    norms = {name: norm(right) for name, (_, right) in pairs.items()}
    result.global_norm = math.sqrt(math.fsum(n * n for n in norms.values()))
    for name, (left, right) in pairs.items():
        if left is None:
            continue
        distance = norm(subtract(left, right))
        scale = max(norms[name], floor * result.global_norm)
        limit = tolerance * scale
        text = (f"distance {distance:.3e}, limit {limit:.3e} "
                f"(tolerance {tolerance:g} * {scale:.3e}; "
                f"expected norm {norms[name]:.3e})")
        # A NaN compares false with everything, and an infinite expectation
        # makes an infinite limit: both must land on this side.
        if not (distance <= limit and math.isfinite(limit)):
            result.failures.append(f"{name}: {text}")
        ratio = distance / limit if limit > 0 else (
            0.0 if distance == 0 else math.inf)
        result.rows.append((ratio if math.isfinite(ratio) else math.inf, name,
                            text))
    result.rows.sort(key=lambda row: (-row[0], row[1]))
    if not expected:
        result.failures.append("the expected file holds no tensors")
    return result


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description="Compare the tensors of two safetensors files.")
    parser.add_argument("got")
    parser.add_argument("expected")
    parser.add_argument("--baseline", metavar="FILE",
                        help="compare what was added to these tensors")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--floor", type=float, default=1e-3,
                        help="smallest scale, as a part of the global norm")
    parser.add_argument("--worst", type=int, default=5, metavar="N",
                        help="how many of the largest distances to print")
    options = parser.parse_args(arguments)
    try:
        got = read_safetensors(options.got)
        expected = read_safetensors(options.expected)
        baseline = (read_safetensors(options.baseline)
                    if options.baseline else None)
    except (FormatError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    result = compare(got, expected, baseline, options.tolerance,
                     options.floor)
    print(f"{len(expected)} tensors, global norm of the expected "
          f"{result.global_norm:.6g}; largest distances:")
    for ratio, name, text in result.rows[:options.worst]:
        print(f"  {100 * ratio:8.2f} % of its limit  {name}: {text}")
    for failure in result.failures:
        print(f"FAIL {failure}")
    if result.failures:
        print(f"{len(result.failures)} of {len(expected)} tensors do not "
              f"agree: {options.got} against {options.expected}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
