#!/usr/bin/env python3
"""Tunes as a user does: the cache between runs, caches that do not fit, many at once, limits that are obeyed.

    tune_test.py PATH_OF_CONVOY [PATH_OF_MPIEXEC] [test names...]
"""

import json
import os
import subprocess
import sys
import unittest
import unittest.mock
from pathlib import Path

import cli_testing
import ranks_test
from cli_testing import SMALL
from ranks_test import RanksTest

SMALL_STEP = ["lenet5", "--batch", "8", "--threads", "1"]


class TuneTest(RanksTest):
    def setUp(self):
        super().setUp()
        self.cache = self.dir / "cache"
        patch = unittest.mock.patch.dict(os.environ, {"CONVOY_CACHE": str(self.cache)})
        patch.start()
        self.addCleanup(patch.stop)

    def tune(self, *arguments):
        done = self.succeeds("tune", *SMALL_STEP, "--json", "-", *arguments)
        return json.loads(done.stdout), done.stderr

    def kept(self):
        files = list(self.cache.glob("kernels-*.json"))
        self.assertEqual(len(files), 1, files)
        return files[0]

    def test_a_second_time_takes_no_measuring(self):
        first, _ = self.tune()
        self.assertGreater(first["measured"], 0)
        self.assertEqual(first["known"], 0)
        self.assertTrue(first["choices"])
        second, _ = self.tune()
        self.assertEqual(second["measured"], 0)
        self.assertLess(second["seconds"], 1)
        for field in ("uses_tuned", "tuned_step_ms", "choices"):
            self.assertEqual(second[field], first[field])
        step = json.loads(self.succeeds("bench", "step", *SMALL_STEP, "--tune", "--profile", "--seconds", "0.1", "--json", "-").stdout)
        self.assertEqual(step["tuned"], first["uses_tuned"])
        self.assertGreater(step["conv_ms"], 0)
        self.assertGreater(step["conv_best_alone_ms"], 0)

    def test_a_cache_that_does_not_fit_is_ignored_with_one_line(self):
        self.tune()
        whole = self.kept().read_text()
        for text in (whole[: len(whole) // 2], "", whole.replace("convoy", "another processor; convoy")):
            self.kept().write_text(text)
            result, heard = self.tune()
            self.assertGreater(result["measured"], 0)
            ignored = [line for line in heard.splitlines() if "is ignored" in line]
            self.assertEqual(len(ignored), 1, heard)
        result, heard = self.tune()  # and it is whole again
        self.assertEqual(result["measured"], 0)
        self.assertNotIn("ignored", heard)

    def test_eight_at_once_spoil_nothing(self):
        command = [cli_testing.CONVOY, "tune", *SMALL_STEP, "--json", "-"]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(8)]
        for process in running:
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
            self.assertTrue(json.loads(out)["choices"])
            self.assertNotIn("ignored", err)
        self.assertEqual(json.loads(self.kept().read_text())["threads"], 1)
        # What the eight found together may lead to another choice, with a copy that none of them measured. After that everything is known.
        for _ in range(3):
            result, heard = self.tune()
            self.assertNotIn("ignored", heard)
            if result["measured"] == 0:
                break
            self.assertLess(result["measured"], 10)
        self.assertEqual(result["measured"], 0)

    def test_ranks_agree(self):
        step = ["lenet5", "--batch", "8", "--threads", "1", "--plan", "sample:4,height:2"]
        self.succeeds("check", *step, "--tune", "--dtype", "f32", "--steps", "1")
        self.assertEqual(self.succeeds("tune", *step).stdout.count(" 0 kernels and copies measured"), 1)
        done = self.mpirun(2, "tune", "lenet5", "--batch", "8", "--threads", "1", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["ranks"], 2)

    def test_limits_are_obeyed(self):
        exact, _ = self.tune("--numerics", "exact")
        for choice in exact["choices"]:
            for name in ("winograd", "fft"):
                self.assertNotIn(name, choice["tuned"])
        listing = self.succeeds("check", "lenet5", "--workspace-limit", "0", "--dtype", "f32", "--steps", "1", "--tune")
        self.assertIn("PASS", listing.stdout)
        for more in ([], ["--tune"], ["--numerics", "exact", "--backend", "reference"]):
            run = self.dir / f"run{len(more)}"
            self.succeeds("train", "lenet5", *SMALL, "--epochs", "1", "--workspace-limit", "0", "--run-dir", run, *more)
            config = json.loads((run / "config.json").read_text())
            self.assertEqual(config["workspace_limit"], 0)

    def test_a_run_goes_on_as_it_was_tuned(self):
        one, two = self.dir / "one", self.dir / "two"
        train = ["train", "lenet5", *SMALL, "--tune"]
        self.succeeds(*train, "--run-dir", one)
        self.succeeds(*train, "--epochs", "1", "--run-dir", two)
        (self.kept()).unlink()
        self.succeeds("train", "--resume", two, "--epochs", "2")
        last = sorted((one / "checkpoints").iterdir())[-1].name
        for file in (one / "checkpoints" / last).glob("*.safetensors"):
            self.assertEqual(file.read_bytes(), (two / "checkpoints" / last / file.name).read_bytes(), file.name)


if __name__ == "__main__":
    cli_testing.take_program(__doc__)
    if len(sys.argv) > 1 and Path(sys.argv[1]).is_file():
        ranks_test.MPIEXEC = sys.argv.pop(1)
    unittest.main()
