#!/usr/bin/env python3
"""Ranks that die, stop or lose their link in the middle of a step: the run ends in time, says who and where, and leaves no process behind.

    failures_test.py PATH_OF_CONVOY
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hosts  # noqa: E402

CONVOY = os.path.abspath(sys.argv.pop()) if len(sys.argv) > 1 else "convoy"
LIMIT = 4  # seconds of --hang-timeout
END = 60   # everything must be over by then
# A rank may be caught between two steps too, where it talks of no layer.
WAITED = r"waited \d+ s in \w+ (of layer \"[\w. ]+\"|between steps)"


def environment(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
    except OSError:
        return {}


def ranks_of(tag):
    """Process ids of a run's ranks, by rank; the run is known by a tag in its environment."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        env = environment(entry)
        if env.get(b"CONVOY_RUN_TAG") != tag.encode() or b"OMPI_COMM_WORLD_RANK" not in env:
            continue
        try:
            with open(f"/proc/{entry}/comm", encoding="utf-8") as file:
                if file.read().strip() == "convoy":
                    found[int(env[b"OMPI_COMM_WORLD_RANK"])] = int(entry)
        except OSError:
            pass
    return found


class Failures(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.tag = f"{os.getpid()}-{self.id()}"
        self.run_directory = os.path.join(self.directory.name, "run")
        self.command = [CONVOY, "train", "lenet5", "--data", "mnist", "--epochs", "1000", "--batch", "64", "--threads", "1", "--plan", "data",
                        "--hang-timeout", str(LIMIT), "--run-dir", self.run_directory]
        self.environment = {**os.environ, "CONVOY_RUN_TAG": self.tag, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMP_WAIT_POLICY": "passive"}
        self.log = open(os.path.join(self.directory.name, "log"), "w+", encoding="utf-8")

    def tearDown(self):
        for pid in ranks_of(self.tag).values():
            os.kill(pid, signal.SIGKILL)
        self.log.close()
        self.directory.cleanup()

    def output(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def start(self, count):
        return subprocess.Popen(["mpirun", "--oversubscribe", "--bind-to", "none", "-x", "CONVOY_RUN_TAG", "-n", str(count)] + self.command,
                                stdout=self.log, stderr=subprocess.STDOUT, env=self.environment, start_new_session=True)

    def wait_for_steps(self, count):
        """Until all ranks run and the first has written metrics: it is in the middle of an epoch then."""
        metrics = os.path.join(self.run_directory, "metrics.jsonl")
        begin = time.time()
        while time.time() - begin < END:
            if len(ranks_of(self.tag)) == count and os.path.exists(metrics) and os.path.getsize(metrics) > 0:
                return ranks_of(self.tag)
            time.sleep(0.2)
        self.fail(f"the ranks did not start: {ranks_of(self.tag)}")

    def expect_end(self, begin, *patterns):
        while ranks_of(self.tag) and time.time() - begin < END:
            time.sleep(0.2)
        self.assertEqual(ranks_of(self.tag), {}, f"ranks were left behind after {END} s:\n{self.output()}")
        self.assertLess(time.time() - begin, LIMIT + 30, self.output())
        # What they said comes through the launcher, which outlives them.
        while not all(re.search(pattern, self.output()) for pattern in patterns) and time.time() - begin < END:
            time.sleep(0.2)
        for pattern in patterns:
            self.assertRegex(self.output(), pattern)

    def expect_failure(self, process):
        try:
            self.assertNotEqual(process.wait(timeout=END), 0, self.output())
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            self.fail(f"the launcher still waits:\n{self.output()}")

    def test_a_killed_rank_ends_the_run(self):
        process = self.start(3)
        ranks = self.wait_for_steps(3)
        begin = time.time()
        os.kill(ranks[1], signal.SIGKILL)
        self.expect_end(begin, r"rank 1")
        self.expect_failure(process)

    def test_a_stopped_rank_is_named_with_the_layer(self):
        process = self.start(3)
        ranks = self.wait_for_steps(3)
        begin = time.time()
        os.kill(ranks[1], signal.SIGSTOP)
        self.expect_end(begin, WAITED, r"rank 1")
        self.expect_failure(process)

    @unittest.skipIf(hosts.missing(), f"no hosts here: {hosts.missing()}")
    def test_a_link_that_goes_down_is_noticed(self):
        # The launcher's own daemons cannot reach each other any more and may wait for ever; the ranks may not.
        with hosts.Hosts(2) as two:
            process = two.popen(["-x", "CONVOY_RUN_TAG", "-x", "OMP_WAIT_POLICY"] + self.command, stdout=self.log, stderr=subprocess.STDOUT,
                                env=self.environment)
            self.wait_for_steps(2)
            begin = time.time()
            two.set_link(1, "down")
            self.expect_end(begin, WAITED, r"rank 1 \(not responding\)")
        process.wait(timeout=END)

    @unittest.skipIf(hosts.missing(), f"no hosts here: {hosts.missing()}")
    def test_a_plan_is_checked_across_hosts(self):
        with hosts.Hosts(2, "1gbit") as two:
            check = [CONVOY, "check", "lenet5", "--plan", "sample:2", "--batch", "6", "--threads", "1", "--hang-timeout", "60"]
            process = two.popen(check, stdout=self.log, stderr=subprocess.STDOUT, env=self.environment)
            self.assertEqual(process.wait(timeout=END), 0, self.output())


if __name__ == "__main__":
    unittest.main()
