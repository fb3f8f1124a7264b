#!/usr/bin/env python3
"""The check of registers and spills finds what it is for."""

import os
import subprocess
import tempfile
import unittest

import ptxas

# As nvcc 13.0 prints it.
REPORT = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN2rc3addIfEEvPT_' for 'sm_90a'
ptxas info    : Function properties for _ZN2rc3addIfEEvPT_
    {stack} bytes stack frame, {spills} bytes spill stores, {spills} bytes spill loads
ptxas info    : Used {registers} registers, used 0 barriers, 384 bytes cmem[0]
ptxas info    : Compile time = 34.910 ms
"""

# Keeps 64 sums alive at once, which 24 registers cannot hold.
HUNGRY = """\
__global__ void hungry(float *x, int n) {
  float sum[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) sum[i] = x[i * 32 + threadIdx.x];
  for (int k = 0; k < n; ++k)
#pragma unroll
    for (int i = 0; i < 64; ++i) sum[i] = sum[i] * x[k] + sum[(i + 7) % 64];
#pragma unroll
  for (int i = 0; i < 64; ++i) x[i * 32 + threadIdx.x] = sum[i];
}
"""


def faults(bounds="add 40", targets=("sm_90a",), registers=32, spills=0,
           stack=0):
    text = REPORT.format(registers=registers, spills=spills, stack=stack)
    return ptxas.check(ptxas.parse(text), ptxas.read_bounds(bounds), targets)


class Check(unittest.TestCase):
    def test_accepts_what_is_within_its_bound(self):
        self.assertEqual(faults(registers=40), [])

    def test_refuses_one_register_more(self):
        self.assertEqual(faults(registers=41), [
            "add on sm_90a: expected at most 40 registers, got 41"])

    def test_refuses_a_spill(self):
        self.assertEqual(faults(spills=4),
                         ["add on sm_90a: spills 8 bytes a thread"])

    def test_refuses_local_memory(self):
        self.assertEqual(faults(stack=16), [
            "add on sm_90a: keeps 16 bytes a thread in local memory"])

    def test_refuses_a_kernel_without_a_bound(self):
        self.assertEqual(faults(bounds="# none"), [
            "add on sm_90a: has no bound; it needs 32 registers"])

    def test_refuses_a_bound_without_a_kernel(self):
        self.assertEqual(faults(bounds="add 40\nsub 40"), [
            "sub: has a bound, but there is no such kernel"])

    def test_refuses_a_target_that_was_left_out(self):
        self.assertEqual(faults(targets=("sm_90a", "sm_100f")),
                         ["add: not compiled for sm_100f"])

    def test_names(self):
        symbols = [
            "_ZN6reckon4cuda12_GLOBAL__N_18addPacksINS0_4Bf16EEEvPKT_S5_PS3_l",
            "_ZN6reckon4cuda5plainEPf", "hungry"]
        self.assertEqual(list(ptxas.names(symbols).values()),
                         ["addPacks", "plain", "hungry"])

    @unittest.skipUnless(os.environ.get("RECKON_NVCC"), "no nvcc")
    def test_sees_a_kernel_that_does_spill(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "hungry.cu")
            with open(source, "w") as data:
                data.write(HUNGRY)
            reports = [subprocess.run(
                [os.environ["RECKON_NVCC"], "-arch=sm_90a", "-cubin",
                 "-Xptxas=-v", *options, source, "-o", source + "bin"],
                capture_output=True, text=True, check=True).stderr
                for options in ((), ("-maxrregcount=24",))]
        free, tight = (ptxas.parse(report)[0] for report in reports)
        self.assertEqual(free.spills, 0)
        self.assertGreater(free.registers, 64)
        self.assertGreater(tight.spills, 0)
        self.assertEqual(ptxas.check([free], {"hungry": 255}, ()), [])
        self.assertIn(f"hungry on sm_90a: spills {tight.spills} bytes a thread",
                      ptxas.check([tight], {"hungry": 255}, ()))


if __name__ == "__main__":
    unittest.main()
