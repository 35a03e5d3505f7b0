"""What tests of the command line share: running the program, and what it should answer."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CONVOY = ""

# A run that takes a second: small synthetic images, two epochs of 16 steps.
SMALL = ["--data", "synthetic", "--train-samples", "256", "--test-samples", "64", "--batch", "16", "--epochs", "2", "--threads", "1"]


def convoy(*arguments, cwd=None, timeout=120):
    return subprocess.run([CONVOY, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=timeout)


def newest_checkpoint(run):
    return sorted((run / "checkpoints").glob("step-*"))[-1]


class CliTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.dir = Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def succeeds(self, *arguments, **options):
        done = convoy(*arguments, **options)
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def refused(self, code, parts, *arguments, **options):
        """The command fails with this code and one line on stderr that holds all of these parts."""
        done = convoy(*arguments, **options)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        lines = [line for line in done.stderr.splitlines() if line.startswith("convoy: error: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertNotIn("internal error", done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr[done.stderr.index("convoy: error: ") :])
        return done

    def json(self, *arguments, **options):
        done = self.succeeds(*arguments, "--json", "-", **options)
        return json.loads(done.stdout)  # nothing else may be on stdout

    def train(self, run, *arguments, **options):
        return self.json("train", "lenet5", *SMALL, "--run-dir", run, *arguments, **options)


def take_program(usage):
    """Takes the path of the program from the command line."""
    global CONVOY
    if len(sys.argv) < 2:
        sys.exit(usage)
    CONVOY = str(Path(sys.argv.pop(1)).resolve())


def main(usage):
    take_program(usage)
    unittest.main()
