#!/usr/bin/env python3
"""Under srun too, whenever a rank is killed, all others end and say who.

Every rank at RECKON_MOMENTS (20) moments of a step, from its first instruction
to its last, and each in three ways: with -K0, where Slurm leaves the others
alone; with -K1, where Slurm tells them to end; and with a TERM that reaches
them at the moment of the death. The verdict is that of the death all the same.
Exit code 77 (skipped, with the reason) where Slurm or root is missing.
"""

import os

from harness import RUN
from slurm import Cluster, main, statuses

MOMENTS = int(os.environ.get("RECKON_MOMENTS", "20"))

# Every rank notes its process. The victim's shell ends the others when the
# victim has died, and notes how many of them there still were.
WITH_TERM = """
echo $$ >pid-$SLURM_PROCID
if [ $SLURM_PROCID != $VICTIM ]; then exec "$0" "$@"; fi
"$0" "$@"
code=$?
for rank in 0 1 2 3; do
  pid=$(<pid-$rank) # one that has ended but was not reaped has no program
  if [ $rank != $VICTIM ] && [ -e /proc/$pid/exe ] && kill -TERM $pid; then
    echo $rank >>reached
  fi
done 2>/dev/null
exit $code
"""


class SlurmKills(Cluster):
    def test_every_rank_at_many_moments(self):
        where, done = self.srun("count", "--steps", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        ways = {"-K0": (0, None), "-K1": (1, None),
                "a TERM": (0, ["bash", "-c", WITH_TERM, RUN])}
        slowest, deaths = dict.fromkeys(ways, 0), 0
        for rank in range(4):
            with open(os.path.join(where, f"rank-{rank:05d}.log")) as data:
                # "N actions a step, M instructions and messages, ..."
                work_items = int(data.read().split(
                    " actions a step, ")[1].split()[0])
            for moment in range(MOMENTS):
                at = moment * (work_items - 1) // (MOMENTS - 1)
                for way, (kill, command) in ways.items():
                    with self.subTest(rank=rank, at=at, way=way):
                        slowest[way] = max(
                            slowest[way], self.kill(rank, at, kill, command))
                        deaths += 1
        with open(self.work.file("reached")) as data:
            reached = len(data.readlines())
        print(f"{deaths} deaths; the last status after " + ", ".join(
            f"{seconds:.2f} s with {way}" for way, seconds in slowest.items())
            + f" at the latest; TERM reached {reached} ranks before their end",
            flush=True)
        self.assertGreater(reached, 0)

    def kill(self, rank, at, kill, command):
        """Seconds from the death to the last status file of the others."""
        where, done = self.srun(
            "kill", kill=kill, command=command,
            env={"RECKON_FAULT": f"kill@rank={rank},step=2,at={at}",
                 "VICTIM": str(rank)})
        self.assertNotEqual(done.returncode, 0)
        # Its log was last written before the step in which it died.
        died = os.path.getmtime(os.path.join(where, f"rank-{rank:05d}.log"))
        found = statuses(where)
        self.assertEqual(sorted(found), [r for r in range(4) if r != rank],
                         done.stderr)
        for status in found.values():
            self.assertEqual((status["exit_code"], status["dead_rank"]),
                             (42, rank), status)
            # A stage's two ranks share a node.
            self.assertEqual(status["dead_host"], found[rank ^ 1]["host"])
        last = max(status["time"] for status in found.values()) - died
        self.assertLess(last, 5)
        return last


if __name__ == "__main__":
    main()
