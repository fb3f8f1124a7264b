"""Shared by the tests under Slurm: a cluster of four nodes of its own.

main() ends with 77 (skipped, with the reason) where Slurm or root is missing.
"""

import glob
import json
import os
import socket
import subprocess
import sys
import unittest

from harness import LAYOUTS, ROOT, RUN, Workspace, tiny

CLUSTER = os.path.join(ROOT, "tests", "slurm-cluster.sh")


def free_ports(count):
    """The first of `count` ports in a row that nobody listens on, below the
    range from which the kernel takes those of outgoing connections."""
    for base in range(27000, 29990, count):
        held = []
        try:
            for port in range(base, base + count):
                held.append(socket.socket())
                held[-1].bind(("127.0.0.1", port))
            return base
        except OSError:
            continue
        finally:
            for taken in held:
                taken.close()
    raise RuntimeError("no free ports")


def two_nodes(**more):
    """tp 2 in each of two pipeline stages, a stage a node."""
    spec = tiny(**LAYOUTS["tp2-pp2"], **more)
    spec["cluster"].update(nodes=2, gpus_per_node=2)
    return spec


def statuses(where):
    """The ranks' status files by rank."""
    found = {}
    for path in glob.glob(os.path.join(where, "status-*.json")):
        with open(path) as data:
            status = json.load(data)
        found[status["rank"]] = status
    return found


class Cluster(unittest.TestCase):
    """A test with a cluster of its own, and a plan for two of its nodes."""

    @classmethod
    def setUpClass(cls):
        cls.work = Workspace().__enter__()
        cls.addClassCleanup(cls.work.__exit__, None, None, None)
        # Clients of other users must reach the socket of munge.
        os.chmod(cls.work.path, 0o711)
        cls.folder = cls.work.file("slurm")
        environment = {**os.environ, "BASE_PORT": str(free_ports(5))}
        cls.addClassCleanup(subprocess.run,
                            ["bash", CLUSTER, "stop", cls.folder],
                            stdout=subprocess.DEVNULL, timeout=300)
        done = subprocess.run(["bash", CLUSTER, "start", cls.folder],
                              capture_output=True, text=True, timeout=600,
                              env=environment)
        if done.returncode == 77:
            raise unittest.SkipTest(done.stdout.strip())
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        cls.environment = {
            **os.environ, "OMP_NUM_THREADS": "1",
            "SLURM_CONF": os.path.join(cls.folder, "slurm.conf"),
            "PATH": os.path.dirname(RUN) + ":" + os.environ["PATH"]}
        cls.plan = cls.work.compile(two_nodes(), "plan")

    def call(self, *arguments, env=None, timeout=300):
        return subprocess.run(arguments, cwd=self.work.path,
                              capture_output=True, text=True, timeout=timeout,
                              env={**self.environment, **(env or {})})

    def srun(self, name, *more, nodes=2, tasks=2, kill=1, env=None,
             command=None, plan=None):
        where = self.work.file(name + ".run")
        done = self.call("srun", f"-N{nodes}", f"--ntasks-per-node={tasks}",
                         f"-K{kill}", *(command or [RUN]), plan or self.plan,
                         "--device", "cpu", "--run-dir", where, *more, env=env)
        return where, done


def main():
    result = unittest.main(verbosity=2, exit=False).result
    ran = result.testsRun - len(result.skipped)
    for _, reason in result.skipped:
        print("skipped:", reason)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(0 if ran > 0 else 77)
