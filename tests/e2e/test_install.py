#!/usr/bin/env python3
"""The installed runtime runs where it is put, and the container recipe asks
for the packages that are needed."""

import os
import re
import shutil
import subprocess
import unittest

import harness
from harness import BIN, LAYOUTS, ROOT, Workspace, call, metrics, tiny

BUILD = os.environ.get("RECKON_BUILD", os.path.dirname(BIN))
CMAKE = os.environ.get("RECKON_CMAKE", "cmake")
# Libraries of the C library, which an installed folder leaves to the machine.
GLIBC = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libpthread|libdl|librt|"
                   r"libresolv)\.so")


def libraries(program):
    """(name, path) of what the loader would take, with its own search only."""
    environment = {key: value for key, value in os.environ.items()
                   if key != "LD_LIBRARY_PATH"}
    text = subprocess.run(["ldd", program], capture_output=True, text=True,
                          check=True, env=environment).stdout
    return re.findall(r"(\S+) => (\S+)", text)


class Runtime(unittest.TestCase):
    def test_runs_wherever_it_lies(self):
        with Workspace() as work:
            first = work.file("first")
            call([CMAKE, "--install", BUILD, "--component", "runtime",
                  "--prefix", first], work.path)
            moved = shutil.move(first, work.file("moved"))
            self.assertEqual(sorted(os.listdir(moved)),
                             ["README", "bin", "lib"])
            self.assertEqual(os.listdir(os.path.join(moved, "bin")),
                             ["reckon-run"])
            program = os.path.join(moved, "bin", "reckon-run")
            # No empty entry, which would be the current directory, nor any
            # of the machine that built it.
            for path in (program, harness.RUN):
                text = call(["objdump", "-p", path], work.path).stdout
                self.assertEqual(re.findall(r"R(?:UN)?PATH\s+(\S*)", text),
                                 ["$ORIGIN/../lib"])
            for name, path in libraries(program):
                if not GLIBC.match(name):
                    self.assertTrue(os.path.realpath(path).startswith(
                        os.path.realpath(moved)), f"{name} => {path}")
            with open(os.path.join(moved, "README")) as data:
                text = data.read()
            for name in os.listdir(os.path.join(moved, "lib")):
                self.assertIn(name, text)
            plan = work.compile(tiny(**LAYOUTS["pp2"]), "plan")
            where = work.file("run")
            call([program, plan, "--run-dir", where, "--steps", "2"],
                 work.path)
            self.assertEqual(len(metrics(where)), 2)


class Container(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(ROOT, "examples", "Containerfile")) as data:
            cls.text = data.read().replace("\\\n", " ")

    def stage(self, name):
        found = re.search(rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM |\Z)",
                          self.text, re.M | re.S)
        self.assertIsNotNone(found, name)
        return found[1]

    def test_the_build_installs_what_building_needs(self):
        # Not a list of its own, which could differ from the script's.
        stage = self.stage("build")
        self.assertRegex(stage, r"RUN .*cmake/setup-debian\.sh")
        self.assertNotIn("apt-get install", stage)
        for name in ("compiler", "runtime"):
            self.assertIn(f"--component {name} ", stage)
            self.assertIn("COPY --from=build", self.stage(name))

    @unittest.skipUnless(shutil.which("dpkg-query"), "not on Debian")
    def test_the_compiler_image_has_its_libraries(self):
        installed = re.search(r"--no-install-recommends\s+([^&]*)",
                              self.stage("compiler"))[1].split()
        needed = set()
        for file in ("bin/reckon", "lib/libreckon_compiler.so"):
            path = os.path.join(os.path.dirname(BIN), file)
            names = subprocess.run(["objdump", "-p", path],
                                   capture_output=True, text=True,
                                   check=True).stdout
            direct = re.findall(r"NEEDED\s+(\S+)", names)
            for name, where in libraries(path):
                if name in direct and not GLIBC.match(name):
                    needed.add(self.owner(where))
        # Every Debian system has these two.
        needed -= {"libstdc++6", "libgcc-s1"}
        # libLLVM comes with libMLIR, which depends on it.
        needed -= {"libllvm22"}
        self.assertEqual(set(installed), needed)

    def owner(self, path):
        """The package that a file belongs to; merged /usr has two names."""
        real = os.path.realpath(path)
        for name in (real, path, real.removeprefix("/usr"), "/usr" + real):
            done = subprocess.run(["dpkg-query", "-S", name],
                                  capture_output=True, text=True)
            if done.returncode == 0:
                return done.stdout.split(":")[0]
        self.fail(f"{path} belongs to no package")


if __name__ == "__main__":
    harness.main()
