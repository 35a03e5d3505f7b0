#!/usr/bin/env python3
"""Runs ranks under mpirun: every collective is right, and a rank that fails, stops or never comes ends the whole run with its name.

    mpi_test.py PATH_OF_MPIRUN PATH_OF_COMM_RANKS [test names...]
"""

import os
import subprocess
import sys
import time
import unittest

MPIRUN = RANKS = ""
LIMIT = 2.0  # seconds that a rank waits in these tests


def is_open_mpi():
    return "Open" in subprocess.run([MPIRUN, "--version"], capture_output=True, text=True).stdout  # "Open MPI", "OpenRTE"


def launcher(ranks):
    """mpirun with what Open MPI wants for more ranks than cores, as root, unbound; MPICH's needs none of it."""
    extra = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"] if is_open_mpi() else []
    return [MPIRUN, *extra, "-n", str(ranks)]


def left_behind():
    """Processes of the ranks' program that still exist."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(RANKS):
                found.append(pid)
        except OSError:
            pass
    return found


def run(ranks, program, limit=LIMIT, timeout=120, per_node=None, unreachable=False):
    start = time.monotonic()
    nodes = [str(per_node or 0), *(["unreachable"] if unreachable else [])]
    done = subprocess.run([*launcher(ranks), RANKS, program, str(limit), *nodes], capture_output=True, text=True, timeout=timeout)
    assert "ThreadSanitizer" not in done.stderr, done.stderr
    return done, time.monotonic() - start


class Collectives(unittest.TestCase):
    def check(self, ranks, per_node=None, unreachable=False):
        done, _ = run(ranks, "collectives", limit=60, timeout=900, per_node=per_node, unreachable=unreachable)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("every collective is right"), ranks)
        return done.stderr

    def test_two_ranks(self):
        self.check(2)

    def test_three_ranks(self):
        self.check(3)

    def test_four_ranks(self):
        self.check(4)

    def test_three_nodes_of_one_rank(self):
        said = self.check(3, per_node=1)
        self.assertEqual(said.count("messages between 3 machines go by sockets"), 1, said)

    def test_nodes_that_sockets_do_not_reach(self):
        said = self.check(3, per_node=1, unreachable=True)
        self.assertEqual(said.count("messages between 3 machines go by MPI"), 1, said)

    def test_two_nodes_of_two_ranks(self):
        self.check(4, per_node=2)


class Endings(unittest.TestCase):
    def ends(self, program, *texts, ranks=3, within=LIMIT + 10, per_node=None):
        done, seconds = run(ranks, program, per_node=per_node)
        self.assertNotEqual(done.returncode, 0)
        for text in texts:
            self.assertIn(text.lower(), (done.stderr + done.stdout).lower().replace("signal: ", "signal "))
        self.assertNotIn("came through", done.stdout)
        self.assertLess(seconds, within)
        deadline = time.monotonic() + 5
        while left_behind() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(left_behind(), [])

    def test_a_rank_that_does_not_come(self):
        where = 'waited 2 s in all_reduce of layer "layer3" on the gradient queue (ranks 0, 1, 2); not arrived: rank 1\n'
        self.ends("missing", "rank 0 " + where, "rank 2 " + where)

    def test_a_rank_that_is_stopped(self):
        where = 'waited 2 s in all_reduce of layer "layer3" on the gradient queue (ranks 0, 1, 2); not arrived: rank 1 (not responding)'
        self.ends("stopped", "rank 0 " + where, "rank 2 " + where)
        self.ends("stopped", "rank 0 " + where, "rank 2 " + where, per_node=1)

    def test_a_rank_that_is_killed(self):
        self.ends("killed", "signal 9", *self.where_killed())  # the launcher says the first
        self.ends("killed", "signal 9", *self.where_killed(), per_node=1)

    @staticmethod
    def where_killed():
        """What the others say in the time that Open MPI's launcher leaves them."""
        return ["rank 1", 'in all_reduce of layer "layer3" on the gradient queue (ranks 0, 1, 2)'] if is_open_mpi() else []

    def test_a_rank_that_does_not_open_a_group(self):
        where = "waited 2 s while opening groups (ranks 0, 1, 2 on the gradient queue); not arrived: rank 1"
        self.ends("opening", "rank 0 " + where + "\n", "rank 2 " + where + "\n")
        self.ends("opening", "rank 0 " + where + "\n", "rank 2 " + where + "\n", per_node=1)
        self.ends("opening-stopped", "rank 0 " + where + " (not responding)", "rank 2 " + where + " (not responding)")

    def test_a_rank_that_does_not_come_to_the_end(self):
        where = "waited 2 s for all ranks to end; not arrived: rank 1"
        self.ends("ending", "rank 0 " + where + "\n", "rank 2 " + where + "\n")
        self.ends("ending-stopped", "rank 0 " + where + " (not responding)", "rank 2 " + where + " (not responding)")

    def test_a_rank_that_fails(self):
        self.ends("failing", "rank 1 ended the run: the disk is full", within=LIMIT + 8)

    def test_a_launcher_of_another_mpi(self):
        variable = "PMI_SIZE" if is_open_mpi() else "OMPI_COMM_WORLD_SIZE"  # to this MPI the process is alone
        done = subprocess.run([RANKS, "busy", "1"], capture_output=True, text=True, timeout=60, env={**os.environ, variable: "3"})
        self.assertNotEqual(done.returncode, 0)
        for text in ("the launcher started 3 processes", "the world has 1", "another MPI"):
            self.assertIn(text, done.stderr)

    def test_a_message_that_does_not_come(self):
        self.ends("transfer", 'rank 0 waited 2 s in a transfer of layer "halo" on the activation queue for a message from rank 1\n', ranks=2)


if __name__ == "__main__":
    MPIRUN, RANKS = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
