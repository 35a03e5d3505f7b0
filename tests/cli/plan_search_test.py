#!/usr/bin/env python3
"""`convoy plan` and `--plan auto` as a user meets them: what is found, written, explained and refused; and whether found plans compute what one process computes.

    plan_search_test.py PATH_OF_CONVOY [test names...]
"""
import json
import os
import tempfile
import unittest

import cli_testing
from cli_testing import convoy

SMALL = ["--input", "3x32x32", "--classes", "10"]


class PlanSearch(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def find(self, *arguments):
        done = convoy("plan", *arguments, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, *arguments):
        done = convoy(*arguments)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stderr.count("convoy: error:"), 1, done.stderr)
        return done.stderr

    def test_found_plans_compute_what_one_process_computes(self):
        full = os.environ.get("CONVOY_TEST_FULL") == "1"
        for model, flags, counts in (("lenet5", [], (2, 4)), ("resnet18", SMALL, (2, 4) if full else (4,))):
            for ranks in counts:
                plan = self.path(f"{model}-{ranks}.json")
                found = self.find(model, *flags, "--batch", 4, "--machine", "v100", "--ranks", ranks, "--output", plan)
                with open(plan, encoding="utf-8") as file:
                    self.assertEqual(json.load(file), found["plan"])
                done = convoy("check", model, *flags, "--batch", 4, "--plan", plan, "--ranks", ranks, "--dtype", "f64", "--threads", 1, "--json", "-")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(json.loads(done.stdout)["pass"], f"{model} on {ranks}: {done.stdout}")

    def test_document(self):
        found = self.find("alexnet", *SMALL, "--input", "3x64x64", "--batch", 64, "--machine", "v100", "--ranks", 4)
        for field in ("step_ms", "data_parallel_step_ms", "memory", "memory_limit", "plan", "plans", "layers", "limit", "exact"):
            self.assertIn(field, found)
        self.assertLessEqual(found["step_ms"], found["data_parallel_step_ms"] * (1 + 1e-9))
        names = {plan["name"] for plan in found["plans"]}
        self.assertTrue({"data", "zero", "hybrid-fc", "spatial", "channel:4@x", "channel:4@y"} <= names, names)
        for plan in found["plans"]:
            if plan["fits"]:
                self.assertLessEqual(found["step_ms"], plan["step_ms"] * (1 + 1e-9), plan["name"])
        for layer in found["layers"]:
            self.assertIn(layer["limit"], ("compute", "bandwidth", "latency", "gradients", "memory"))
            self.assertTrue(layer["choice"])

    def test_words(self):
        done = convoy("plan", "lenet5", "--batch", 64, "--machine", "v100", "--ranks", 2, "--what-if")
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("step", "memory", "limited by", "next best", "conv2", "What if"):
            self.assertIn(word, done.stdout)

    def test_lists_and_objectives(self):
        for objective in ("time", "samples", "cost", "energy"):
            found = self.find("lenet5", "--batch", "64,256", "--micro-batches", "1,2", "--ranks", "1,2", "--machine", "v100", "--objective", objective)
            self.assertEqual(len(found["cases"]), 8)

    def test_show_is_still_there(self):
        done = convoy("plan", "show", "lenet5", "--plan", "sample:2", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("unfollowed", json.loads(done.stdout))

    def test_what_does_not_fit_is_refused_with_what_would(self):
        text = self.refused("plan", "alexnet", *SMALL, "--input", "3x64x64", "--batch", 64, "--machine", "v100", "--ranks", 2, "--memory", "250MiB")
        self.assertIn("does not fit at any split", text)
        self.assertIn("what would do: --", text)

    def test_ranks_that_nothing_can_use(self):
        text = self.refused("plan", "lenet5", "--batch", 8, "--machine", "v100", "--ranks", 521)
        self.assertIn("521 ranks cannot share", text)
        self.assertIn("--ranks 512", text)

    def test_machines_that_make_no_sense(self):
        self.assertIn('did you mean "v100"', self.refused("plan", "lenet5", "--machine", "v10", "--ranks", 2))
        machine = self.path("machine.json")
        for text in ("{", "{}", '{"name": "x", "devices": []}'):
            with open(machine, "w", encoding="utf-8") as out:
                out.write(text)
            self.assertIn("machine.json", self.refused("plan", "lenet5", "--machine", machine, "--ranks", 2))

    def test_options_that_make_no_sense(self):
        for arguments in (["--ranks", "0"], ["--ranks", "two"], ["--memory", "much"], ["--objective", "fun"], ["--batch", "4,,8"]):
            done = convoy("plan", "lenet5", "--machine", "v100", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
        self.assertEqual(convoy("plan").returncode, 2)
        self.assertIn("did you mean", convoy("plan", "lenet").stderr)

    def test_training_finds_its_plan(self):
        run = self.path("run")
        done = convoy("train", "lenet5", "--data", "synthetic", "--train-samples", 64, "--test-samples", 32, "--batch", 16, "--ranks", 2, "--plan", "auto", "--machine",
                      "cpu10g", "--threads", 1, "--run-dir", run)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Plan found for machine cpu10g", done.stdout)
        with open(os.path.join(run, "config.json"), encoding="utf-8") as file:
            self.assertEqual(len(json.loads(json.load(file)["plan"])["grids"][0]["ranks"]), 2)
        self.assertIn("train and simulate", self.refused("check", "lenet5", "--plan", "auto", "--ranks", 2))


if __name__ == "__main__":
    cli_testing.main(__doc__)
