#!/usr/bin/env python3
"""Ranks that die, stop or lose their link in the middle of a step: the run ends in time, says who and where, and leaves no process behind.

    failures_test.py PATH_OF_CONVOY [PATH_OF_MPIEXEC] [test names...]
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

CONVOY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "convoy"
MPIEXEC = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isfile(sys.argv[1]) else "mpirun"
LIMIT = 4  # seconds of --hang-timeout
END = 60   # everything must be over by then
# A rank may be caught between two steps too, where it talks of no layer.
PLACE = r"\w[\w ]* (of layer \"[^\"]+\"|between steps) on the \w+ queue"
WAITED = r"waited \d+ s in " + PLACE
LAYER = r"\w[\w ]* of layer \"[^\"]+\" on the \w+ queue"
GONE = r"rank 1 is gone: .*; rank [02] was in (.* and in )?" + PLACE
# Where the ranks share a machine they learn of a death from the launcher alone.
TOLD = r"rank [02] was told to end \(SIGTERM\) after [\d.e-]+ s in " + PLACE + r" \(.*\); not responding: rank 1\n"


def why_not_open_mpi():
    """Why the tests under Open MPI's launcher cannot run, or None. That of another MPI ends its ranks without leaving them time to speak."""
    try:
        version = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError as error:
        return f"there is no {MPIEXEC}: {error}"
    return None if "Open" in version else f"{MPIEXEC} is not Open MPI's"


def why_no_hosts():
    return why_not_open_mpi() or hosts.missing()


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
        return subprocess.Popen([MPIEXEC, "--oversubscribe", "--bind-to", "none", "-x", "CONVOY_RUN_TAG", "-n", str(count)] + self.command,
                                stdout=self.log, stderr=subprocess.STDOUT, env=self.environment, start_new_session=True)

    def wait_for_metrics(self):
        """Until the first rank has written metrics: it is in the middle of an epoch then."""
        metrics = os.path.join(self.run_directory, "metrics.jsonl")
        begin = time.time()
        while not os.path.exists(metrics) or os.path.getsize(metrics) == 0:
            self.assertLess(time.time() - begin, END, f"the ranks did not start: {ranks_of(self.tag)}\n{self.output()}")
            time.sleep(0.2)

    def wait_for_steps(self, count):
        self.wait_for_metrics()
        self.assertEqual(len(ranks_of(self.tag)), count)
        return ranks_of(self.tag)

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

    def expect_layer(self, kill):
        """Kills a rank up to three times until a survivor was caught inside a step, where there is a layer to name."""
        for attempt in range(3):
            self.run_directory = os.path.join(self.directory.name, f"run{attempt}")
            self.command[-1] = self.run_directory
            said = kill()
            if re.search(f"({GONE}|{TOLD})".replace(PLACE, LAYER), said):
                return
        self.fail(f"no survivor names a layer:\n{said}")

    def kill_rank_1(self, process, count):
        ranks = self.wait_for_steps(count)
        begin = time.time()
        os.kill(ranks[1], signal.SIGKILL)
        self.expect_end(begin, f"({GONE}|{TOLD})")
        self.expect_failure(process)
        return self.output()

    @unittest.skipIf(why_not_open_mpi(), why_not_open_mpi())
    def test_a_killed_rank_is_named_with_the_layer(self):
        self.expect_layer(lambda: self.kill_rank_1(self.start(3), 3))

    @unittest.skipIf(why_no_hosts(), f"no hosts here: {why_no_hosts()}")
    def test_a_killed_rank_of_another_machine_is_named_with_the_layer(self):
        def kill():
            with hosts.Hosts(2) as two:
                process = two.popen(["-x", "CONVOY_RUN_TAG", "-x", "OMP_WAIT_POLICY"] + self.command, stdout=self.log, stderr=subprocess.STDOUT,
                                    env=self.environment)
                return self.kill_rank_1(process, 2)
        self.expect_layer(kill)

    def test_a_killed_rank_of_a_rendezvous_is_named_with_the_layer(self):
        self.expect_layer(self.kill_rank_1_of_a_rendezvous)

    def kill_rank_1_of_a_rendezvous(self):
        meeting = os.path.join(self.directory.name, "meet")
        processes = [subprocess.Popen(self.command + ["--ranks", "3", "--rendezvous", meeting, "--rank", str(rank)], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, env=self.environment) for rank in range(3)]
        said = ""
        try:
            self.wait_for_metrics()
            begin = time.time()
            processes[1].kill()
            for rank in (0, 2):
                text = processes[rank].communicate(timeout=END)[1]
                self.assertEqual(processes[rank].returncode, 1, text)
                self.assertLess(time.time() - begin, LIMIT + 30)
                self.assertRegex(text, GONE.replace("[02]", str(rank)))
                said += text
        finally:
            for process in processes:
                process.kill()
                process.wait()
                process.stderr.close()
        return said

    @unittest.skipIf(why_not_open_mpi(), why_not_open_mpi())
    def test_a_stopped_rank_is_named_with_the_layer(self):
        process = self.start(3)
        ranks = self.wait_for_steps(3)
        begin = time.time()
        os.kill(ranks[1], signal.SIGSTOP)
        self.expect_end(begin, WAITED, r"rank 1")
        self.expect_failure(process)

    @unittest.skipIf(why_no_hosts(), f"no hosts here: {why_no_hosts()}")
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

    @unittest.skipIf(why_no_hosts(), f"no hosts here: {why_no_hosts()}")
    def test_a_plan_is_checked_across_hosts(self):
        with hosts.Hosts(2, "1gbit") as two:
            check = [CONVOY, "check", "lenet5", "--plan", "sample:2", "--batch", "6", "--threads", "1", "--hang-timeout", "60"]
            process = two.popen(check, stdout=self.log, stderr=subprocess.STDOUT, env=self.environment)
            self.assertEqual(process.wait(timeout=END), 0, self.output())


if __name__ == "__main__":
    unittest.main()
