#!/usr/bin/env python3
"""Programs start, and train on the CPU, where CUDA's libraries are not; doctor
says what is missing.

The folders of CUDA's libraries are covered by empty ones in a mount namespace,
which needs root or user namespaces.
"""

import os
import re
import subprocess
import unittest

import harness
from harness import BIN, LAYOUTS, RECKON, RUN, Workspace, call, metrics, tiny

PLUGIN = os.path.join(os.path.dirname(BIN), "lib", "libreckon_cuda.so")
CUDA = re.compile(r"lib(cuda|cublas|cublasLt|cudart|cudnn|nccl)\.so")
# Folders that hold far more than CUDA, and of CUDA at most the driver.
SHARED = {"/lib", "/usr/lib", "/lib/x86_64-linux-gnu", "/usr/local/lib",
          "/usr/lib/x86_64-linux-gnu"}


def cuda_folders():
    """Where the dynamic linker finds CUDA's libraries here."""
    text = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True,
                          text=True, check=True).stdout
    names = [line.rpartition("=> ")[2].strip() for line in text.splitlines()
             if CUDA.search(line.split("(")[0])]
    if os.path.isfile(PLUGIN):
        dump = subprocess.run(["objdump", "-p", PLUGIN], capture_output=True,
                              text=True, check=True).stdout
        path = re.search(r"R(?:UN)?PATH\s+(\S+)", dump)[1]
        names += [os.path.join(folder, "libcublasLt.so")
                  for folder in path.split(":") if folder[0] == "/"]
    folders = {os.path.dirname(os.path.realpath(name)) for name in names}
    return sorted(folder for folder in folders - SHARED
                  if os.path.isdir(folder))


def namespace():
    """The command that begins a mount namespace, or None."""
    for command in (["unshare", "--mount"],
                    ["unshare", "--map-root-user", "--mount"]):
        try:
            if subprocess.run([*command, "mount", "-t", "tmpfs", "none",
                               "/mnt"], capture_output=True,
                              check=False).returncode == 0:
                return command
        except FileNotFoundError:
            return None
    return None


FOLDERS = cuda_folders()
NAMESPACE = namespace()


def hidden(command):
    """`command` where the folders are empty."""
    covers = "".join(f"mount -t tmpfs none '{folder}' && "
                     for folder in FOLDERS)
    return [*NAMESPACE, "sh", "-c", covers + 'exec "$@"', "sh", *command]


def doctor(command):
    """What doctor says, by its first words."""
    environment = {key: value for key, value in os.environ.items()
                   if key != "LD_LIBRARY_PATH"}
    text = subprocess.run(command, capture_output=True, text=True, check=True,
                          env=environment).stdout
    return dict(re.findall(r"^(\S+(?: \S+)?) +(.*)$", text, re.M)), text


@unittest.skipUnless(NAMESPACE, "skipped: neither root nor user namespaces, so "
                     "CUDA's folders cannot be hidden")
class WithoutCuda(unittest.TestCase):
    def test_the_folders_are_hidden(self):
        for folder in FOLDERS:
            self.assertTrue(os.listdir(folder), folder)
            found = subprocess.run(hidden(["ls", "-A", folder]), check=True,
                                   capture_output=True, text=True).stdout
            self.assertEqual(found, "", folder)

    def test_programs_start(self):
        for program in ("reckon", "reckon-run", "reckon-calibrate"):
            done = subprocess.run(hidden([os.path.join(BIN, program),
                                          "--help"]),
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_doctor_says_what_is_missing(self):
        seen, text = doctor(hidden([RECKON, "doctor"]))
        library = "libcublasLt" if os.path.isfile(PLUGIN) else "libreckon_cuda"
        self.assertRegex(seen["CUDA"], f"{library}.*cannot open shared object",
                         text)
        self.assertEqual(seen["auto"], "--device auto takes the CPU", text)

    @unittest.skipUnless(os.path.isfile(PLUGIN), "skipped: the plugin is not "
                         "built here")
    def test_doctor_finds_what_is_there(self):
        seen, text = doctor([RECKON, "doctor"])
        self.assertEqual(seen["CUDA"], "the plugin loads", text)
        self.assertRegex(seen["cuBLASLt"], r"^\d+\.\d+\.\d+$", text)
        self.assertRegex(seen["CUDA runtime"], r"^\d+\.\d+", text)
        for name in ("driver", "cuDNN", "NCCL"):
            self.assertIn(name, seen, text)

    def test_trains_on_the_cpu(self):
        with Workspace() as work:
            plan = work.compile(tiny(**LAYOUTS["pp2"]), "plan")
            for device in ([], ["--device", "cpu"], ["--device", "auto"]):
                where = work.file("run" + "-".join(device))
                call(hidden([RUN, plan, "--run-dir", where, "--steps", "2",
                             *device]), work.path)
                self.assertEqual(len(metrics(where)), 2)

    def test_asking_for_cuda_fails_with_the_reason(self):
        with Workspace() as work:
            plan = work.compile(tiny(), "plan")
            done = subprocess.run(
                hidden([RUN, plan, "--run-dir", work.file("run"), "--steps",
                        "1", "--device", "cuda"]),
                capture_output=True, text=True, cwd=work.path)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("cannot open shared object", done.stderr)


if __name__ == "__main__":
    harness.main()
