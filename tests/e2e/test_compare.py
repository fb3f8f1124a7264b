"""Tests of compare_safetensors.py and of the fixture that it is used with."""

import array
import contextlib
import io
import json
import math
import pathlib
import struct
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import compare_safetensors as tool  # noqa: E402

FIXTURE = HERE / "fixtures" / "llama2l"


def encode(tensors, dtype="F32", header=None, tail=b""):
    """The bytes of a file with {name: (shape, values)}."""
    code, _ = tool.DTYPES[dtype]
    entries, body = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, values) in tensors.items():
        begin = len(body)
        body += array.array(code, values).tobytes()
        entries[name] = {"dtype": dtype, "shape": shape,
                         "data_offsets": [begin, len(body)]}
    text = json.dumps(entries if header is None else header).encode()
    return struct.pack("<Q", len(text)) + text + body + tail


class CompareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, tensors, **options):
        path = self.folder / name
        path.write_bytes(encode(tensors, **options))
        return str(path)

    def run_tool(self, *arguments):
        """Returns (exit code, stdout and stderr together)."""
        text = io.StringIO()
        with contextlib.redirect_stdout(text), \
                contextlib.redirect_stderr(text):
            code = tool.main([str(a) for a in arguments])
        return code, text.getvalue()

    def check(self, got, expected, *options):
        return self.run_tool(self.write("got", got),
                             self.write("expected", expected), *options)

    def test_equal_tensors_agree(self):
        tensors = {"a": ([2, 2], [1, 2, 3, 4]), "s": ([], [5])}
        code, text = self.check(tensors, tensors)
        self.assertEqual(code, 0, text)

    def test_distance_just_inside_and_just_outside(self):
        # ||a|| = 5, so the limit is 5e-5; float64, so that the steps are exact
        # enough. a is by far the largest: the floor plays no part.
        expected = {"a": ([2], [3.0, 4.0])}
        path = self.write("expected", expected, dtype="F64")
        for step, code in ((4.9e-5, 0), (5.1e-5, 1)):
            got = self.write("got", {"a": ([2], [3.0, 4.0 + step])},
                             dtype="F64")
            self.assertEqual(self.run_tool(got, path)[0], code, step)

    def test_failing_tensor_is_named(self):
        expected = {"good": ([1], [1.0]), "bad": ([2], [1.0, 1.0])}
        got = {"good": ([1], [1.0]), "bad": ([2], [1.0, 1.1])}
        code, text = self.check(got, expected)
        self.assertEqual(code, 1)
        self.assertRegex(text, r"(?m)^FAIL bad: distance 1\.000e-01, limit ")
        self.assertNotIn("FAIL good", text)
        self.assertIn("1 of 2 tensors do not agree", text)

    def test_floor_accepts_noise_in_zero_tensors_only_so_far(self):
        # Global norm 10: the scale of z is 1e-3 * 10, its limit 1e-7.
        expected = {"big": ([1], [10.0]), "z": ([1], [0.0])}
        for value, code in ((0.9e-7, 0), (1.1e-7, 1)):
            got = {"big": ([1], [10.0]), "z": ([1], [value])}
            self.assertEqual(self.check(got, expected)[0], code, value)

    def test_all_zero_expectation_needs_zero(self):
        zero = {"a": ([1], [0.0])}
        self.assertEqual(self.check(zero, zero)[0], 0)
        self.assertEqual(self.check({"a": ([1], [1e-30])}, zero)[0], 1)

    def test_nan_and_infinity_fail(self):
        for value in (math.nan, math.inf):
            got, expected = {"a": ([1], [value])}, {"a": ([1], [1.0])}
            self.assertEqual(self.check(got, expected)[0], 1)
            self.assertEqual(self.check(expected, got)[0], 1)
            self.assertEqual(self.check(got, got)[0], 1)

    def test_missing_extra_and_misshapen_tensors_fail(self):
        a, b = ([2], [1.0, 2.0]), ([2, 1], [1.0, 2.0])
        cases = [({}, {"a": a}, "a: missing in the got file"),
                 ({"a": a, "b": b}, {"a": a}, "b: not expected"),
                 ({"a": b}, {"a": a}, "expected shape [2], got file has"),
                 ({}, {}, "holds no tensors")]
        for got, expected, line in cases:
            code, text = self.check(got, expected)
            self.assertEqual(code, 1, text)
            self.assertIn(line, text)

    def test_baseline_compares_updates(self):
        # The weights differ by 1e-6 of their norm, the updates by 10 %.
        base = self.write("base", {"a": ([1], [1.0])}, dtype="F64")
        got = self.write("got", {"a": ([1], [1.0 + 1.1e-5])}, dtype="F64")
        expected = self.write("want", {"a": ([1], [1.0 + 1e-5])}, dtype="F64")
        self.assertEqual(self.run_tool(got, expected)[0], 0)
        code, text = self.run_tool(got, expected, "--baseline", base,
                                   "--tolerance", "1e-2")
        self.assertEqual(code, 1, text)
        self.assertEqual(self.run_tool(got, expected, "--baseline", base,
                                       "--tolerance", "0.11")[0], 0)

    def test_dtypes_may_differ(self):
        values = {"a": ([2], [0.5, 0.25])}
        got = self.write("got", values, dtype="F64")
        self.assertEqual(
            self.run_tool(got, self.write("expected", values))[0], 0)

    def test_unreadable_files_exit_2_and_say_why(self):
        good = self.write("good", {"a": ([1], [1.0])})

        def entry(**changes):
            fields = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
            return {"a": {**fields, **changes}}

        one = {"a": ([1], [1.0])}
        cases = {
            "at least 8 bytes": b"1234",
            "does not fit": struct.pack("<Q", 1000) + b"{}",
            "not JSON": struct.pack("<Q", 2) + b"{x",
            "not a JSON object": struct.pack("<Q", 2) + b"[]",
            "malformed header entry": encode(one, header={"a": {}}),
            "expected dtype F32 or F64": encode(
                one, header=entry(dtype="BF16")),
            "do not hold": encode(one, header=entry(shape=[2])),
            "expected to begin at byte 0": encode(
                one, header=entry(data_offsets=[4, 8])),
            "1 bytes after the last": encode(one, tail=b"x"),
        }
        for line, data in cases.items():
            path = self.folder / "broken"
            path.write_bytes(data)
            code, text = self.run_tool(path, good)
            self.assertEqual(code, 2, text)
            self.assertIn(line, text)
        self.assertEqual(self.run_tool(self.folder / "absent", good)[0], 2)


class FixtureTest(unittest.TestCase):
    """What the gradient tests rely on; arithmetic in the comments."""

    @classmethod
    def setUpClass(cls):
        cls.expected = json.loads((FIXTURE / "expected.json").read_text())
        cls.files = {p.stem: tool.read_safetensors(p)
                     for p in FIXTURE.glob("*.safetensors")}

    def test_files_hold_the_same_tensors(self):
        self.assertEqual(set(self.files), {"weights", "gradients",
                                           "weights-step1", "weights-step3"})
        shapes = {n: t.shape for n, t in self.files["weights"].items()}
        # 9 tensors a layer, embedding, final norm, head.
        self.assertEqual(len(shapes), 2 * 9 + 3)
        # 2 * 256*64 + 2 * (2*64*64 + 2*32*64 + 3*176*64 + 2*64) + 64
        self.assertEqual(sum(map(math.prod, shapes.values())), 125248)
        for name, tensors in self.files.items():
            self.assertEqual({n: t.shape for n, t in tensors.items()}, shapes,
                             name)

    def test_gradients_have_the_stated_norms(self):
        gradients = self.files["gradients"]
        total = 0.0
        for name, norm in self.expected["gradient_norms"].items():
            self.assertAlmostEqual(tool.norm(gradients[name].values), norm)
            total += norm * norm
            # Above the floor of the comparison, else it would prove nothing.
            self.assertGreater(norm, 1e-3 * self.expected["grad_norm"][0])
        self.assertAlmostEqual(math.sqrt(total),
                               self.expected["grad_norm"][0], places=5)

    def test_first_step_is_adamw(self):
        # After one step the bias corrections cancel the betas:
        # w1 = w - lr * wd * w - lr * c*g / (|c*g| + eps), c = 1 / (norm + 1e-6)
        c = 1 / (self.expected["grad_norm"][0] + 1e-6)
        self.assertLess(c, 1)  # clipping acts
        start, end = self.files["weights"], self.files["weights-step1"]
        for name, tensor in start.items():
            decay = 0.1 if len(tensor.shape) > 1 else 0.0
            worst = 0.0
            for w, g, w1 in zip(tensor.values,
                                self.files["gradients"][name].values,
                                end[name].values):
                step = 1e-3 * (decay * w + c * g / (abs(c * g) + 1e-8))
                worst = max(worst, abs(w - step - w1))
            self.assertLess(worst, 3e-7, name)  # an ulp or two of 1 + 0.2 x

    def test_batch_is_the_corpus_in_eight_windows(self):
        corpus = (FIXTURE / "corpus.txt").read_bytes()
        self.assertEqual(len(corpus), 8 * 64 + 1)
        for i in range(8):
            window = list(corpus[64 * i:64 * i + 65])
            self.assertEqual(self.expected["tokens"][i], window[:-1])
            self.assertEqual(self.expected["targets"][i], window[1:])


if __name__ == "__main__":
    unittest.main()
