#!/usr/bin/env python3
"""Runs the program with many ranks, as threads and under mpirun: the numbers of one process, one voice, clear refusals.

    ranks_test.py PATH_OF_CONVOY [PATH_OF_MPIEXEC] [test names...]
"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock
from pathlib import Path

import cli_testing
from cli_testing import SMALL, CliTest, convoy

MPIEXEC = None
FULL = os.environ.get("CONVOY_TEST_FULL") == "1"

# A few hundred digits; batches of 48 leave 12 for the last one.
DIGITS = ["--data", "mnist", "--train-samples", "300", "--test-samples", "70", "--batch", "48", "--dtype", "f64", "--threads", "1", "--log-every", "1"]

# Plans for two ranks, of every kind.
PLANS_2D = ["sample:2", "height:2", "channel:2@x", "channel:2@y", "zero", "hybrid-fc"]


def digits():
    """MNIST, or synthetic data of the same shape where it is not to be had."""
    found = json.loads(convoy("info", "--json", "-").stdout)["mnist"]
    return DIGITS if found else ["synthetic" if word == "mnist" else word for word in DIGITS]


def curve(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(line["kind"], line["step"], line["loss"], line.get("test_loss", 0)) for line in lines]


class RanksTest(CliTest):
    def expect_same_curve(self, expected, run):
        found = curve(run)
        self.assertEqual([e[:2] for e in expected], [f[:2] for f in found])
        for e, f in zip(expected, found):
            self.assertAlmostEqual(e[2], f[2], delta=1e-9, msg=str(e[:2]))
            self.assertAlmostEqual(e[3], f[3], delta=1e-9, msg=str(e[:2]))

    def mpirun(self, ranks, *arguments, timeout=100):
        if MPIEXEC is None:
            self.skipTest("this build has no MPI")
        command = [MPIEXEC, "-n", ranks, cli_testing.CONVOY, *arguments]
        as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        crowded = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
        environment = {**os.environ, **as_root, **crowded}
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=timeout, env=environment)


class Measuring(RanksTest):
    def test_bench_comm_keeps_what_is_fastest(self):
        cache = self.dir / "cache"
        measure = ["bench", "comm", "--sizes", "512,64K", "--seconds", "0.01", "--json", "-"]
        with unittest.mock.patch.dict(os.environ, {"CONVOY_CACHE": str(cache)}):
            result = json.loads(self.succeeds(*measure, "--ranks", "4").stdout)
            kept = json.loads((cache / "collectives-thread-4.json").read_text())
            self.assertEqual(Path(result["cache"]), cache / "collectives-thread-4.json")
            self.assertEqual({row["ranks"] for row in result["training"]}, {2, 4})
            self.assertEqual({row["bytes"] for row in result["measured"]}, {512, 65536})
            self.assertGreater(len({row["algorithm"] for row in result["measured"]}), 3)
            self.assertEqual(len(kept["entries"]), 3 * 2 * 2)
            self.succeeds("check", "lenet5", "--plan", "sample:4", "--steps", "1")
            (cache / "collectives-thread-4.json").write_text("{")
            torn = self.succeeds("check", "lenet5", "--plan", "sample:4", "--steps", "1")
            self.assertIn("is ignored", torn.stderr)
            (cache / "collectives-thread-4.json").write_text(json.dumps({**kept, "machine": "another"}))
            self.assertIn("measured on \"another\"", self.succeeds("check", "lenet5", "--plan", "sample:4", "--steps", "1").stderr)
            self.succeeds(*measure, "--ranks", "2", "--no-save")
            self.assertFalse((cache / "collectives-thread-2.json").exists())

    def test_bench_comm_refuses_what_it_cannot_measure(self):
        self.refused(2, ["at least 2 ranks"], "bench", "comm")
        self.refused(2, ["12X"], "bench", "comm", "--ranks", "2", "--sizes", "12X")
        self.refused(1, ["all_redice", "all_reduce"], "bench", "comm", "--ranks", "2", "--collectives", "all_redice")
        self.refused(1, ["rung", "ring"], "bench", "comm", "--ranks", "2", "--algorithms", "rung")

    def test_bench_comm_under_mpirun(self):
        with unittest.mock.patch.dict(os.environ, {"CONVOY_CACHE": str(self.dir)}):
            result = self.mpirun(2, "bench", "comm", "--sizes", "64K", "--seconds", "0.01", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["transport"], "mpi")
        self.assertTrue((self.dir / "collectives-mpi-2.json").exists())


class Training(RanksTest):
    def test_threads_have_the_curve_of_one_process(self):
        self.succeeds("train", "lenet5", *digits(), "--run-dir", self.dir / "one")
        for ranks, plan in ((2, []), (4, ["--plan", "sample:2,height:2"]), (2, ["--plan", "channel:2@x"]), (2, ["--plan", "zero"])):
            with self.subTest(f"{ranks} ranks {plan}"):
                run = self.dir / f"{ranks}{'-'.join(plan)}".replace(",", "-")
                done = self.json("train", "lenet5", *digits(), "--ranks", ranks, *plan, "--run-dir", run)
                self.assertEqual(done["ranks"], ranks)
                self.expect_same_curve(curve(self.dir / "one"), run)

    def test_a_run_changes_its_plan_on_the_way(self):
        self.succeeds("train", "lenet5", *digits(), "--epochs", "6", "--run-dir", self.dir / "one")
        run = self.dir / "run"
        self.succeeds("train", "lenet5", *digits(), "--epochs", "2", "--run-dir", run, "--plan", "sample:2,height:2")
        kept = self.json("train", "--resume", run, "--epochs", "3")  # goes on as it was
        self.assertEqual((kept["ranks"], kept["plan"]), (4, "sample:2,height:2"))
        self.succeeds("train", "--resume", run, "--epochs", "5", "--plan", "channel:2@x")
        alone = self.json("train", "--resume", run, "--epochs", "6", "--ranks", "1")
        self.assertEqual((alone["ranks"], alone["plan"]), (1, ""))
        self.expect_same_curve(curve(self.dir / "one"), run)
        expected = self.json("eval", self.dir / "one")
        for plan in ("sample:3", "height:2"):
            found = self.json("eval", run, "--plan", plan)
            self.assertAlmostEqual(found["loss"], expected["loss"], delta=1e-9)
            self.assertEqual(found["accuracy"], expected["accuracy"])

    def test_only_one_rank_speaks(self):
        done = self.succeeds("train", "lenet5", *digits(), "--plan", "sample:2,height:2", "--run-dir", self.dir / "run")
        self.assertEqual(done.stdout.count("epoch 1/1  train loss"), 1)
        self.assertEqual(done.stdout.count("could not follow"), 1)
        self.assertIn("fc1, fc2, fc3", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_an_interrupt_stops_all_ranks(self):
        run = self.dir / "run"
        command = [cli_testing.CONVOY, "train", "lenet5", *SMALL, "--run-dir", run, "--checkpoint-every", "20", "--train-samples", "8192", "--plan", "sample:2"]
        child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while not list((run / "checkpoints").glob("step-*")) and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 130, errors)
        self.assertEqual(errors.count("writing a checkpoint"), 1)

    def test_a_loss_that_is_not_finite(self):
        self.refused(1, ["rank", "step", "the loss is"], "train", "lenet5", *SMALL, "--lr", "1e30", "--run-dir", self.dir / "run", "--ranks", "2")


class Checking(RanksTest):
    def passes(self, model, plan, *shape):
        with self.subTest(f"{model} {plan}"):
            done = self.json("check", model, *shape, "--plan", plan, "--ranks", "2", "--threads", "1")
            self.assertTrue(done["pass"])
            self.assertLess(done["max_error"], 1e-9)
            self.assertGreater(done["max_error"], 0)
            self.assertEqual(done["worst"], done["layers"][0])

    def test_plans_compute_what_one_process_computes(self):
        for plan in PLANS_2D:
            self.passes("lenet5", plan, "--batch", "5")

    def test_batch_norm_and_shortcuts(self):
        for plan in PLANS_2D if FULL else ["height:2"]:
            self.passes("resnet18_cifar", plan, "--input", "3x8x8", "--batch", "3", "--steps", "2")

    def test_three_dimensions(self):
        for plan in ["sample:2", "depth:2", "channel:2@x", "channel:2@y", "zero"] if FULL else ["depth:2"]:
            self.passes("unet3d", plan, "--input", "1x16x16x16", "--batch", "2" if FULL else "1", "--steps", "1")

    def test_the_real_kernels(self):
        done = self.json("check", "lenet5", "--plan", "sample:2,height:2", "--dtype", "f32", "--threads", "1")
        self.assertTrue(done["pass"])
        self.assertGreater(done["max_error"], 1e-9)
        self.assertEqual(done["worst"]["limit"], 1e-4)

    def test_a_plan_that_computes_something_else_fails(self):
        plan = self.json("plan", "show", "resnet20", "--plan", "sample:2")["plan"]
        for entry in plan["layers"]:
            entry["batch_norm"] = "local"
        (self.dir / "local.json").write_text(json.dumps(plan))
        done = convoy("check", "resnet20", "--input", "3x8x8", "--plan", self.dir / "local.json", "--threads", "1", "--json", self.dir / "result.json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("FAIL", done.stdout)
        result = json.loads((self.dir / "result.json").read_text())
        self.assertFalse(result["pass"])
        self.assertGreater(result["max_error"], 1e-7)


class Plans(RanksTest):
    def test_show_explains(self):
        text = self.succeeds("plan", "show", "lenet5", "--plan", "channel:2@x", "--batch", "3").stdout
        for part in ("grid channel:2", "filters/2", "inputs/2", "2 ranks", "memory of a rank", "one process", "1 input channels on 2 ranks"):
            self.assertIn(part, text)
        shown = self.json("plan", "show", "lenet5", "--plan", "channel:2@x", "--batch", "4")
        conv2 = [layer for layer in shown["layers"] if layer["layer"] == "conv2"][0]
        # Stationary-x: the sums over channels go out once forwards, dy comes in once backwards: half of 4x16x10x10 floats each.
        self.assertEqual(conv2["activation_bytes_sent"], 2 * (4 * 16 * 10 * 10 * 4) // 2)
        self.assertEqual(conv2["gradient_bytes_sent"], 0)
        self.assertEqual(len(shown["ranks"]), 2)
        self.assertLess(shown["ranks"][0]["state_bytes"], 0.6 * shown["one_process"]["state_bytes"])

    def test_a_shown_plan_is_a_plan(self):
        shown = self.json("plan", "show", "lenet5", "--plan", "sample:2,height:2")
        (self.dir / "plan.json").write_text(json.dumps(shown["plan"]))
        again = self.json("plan", "show", "lenet5", "--plan", self.dir / "plan.json")
        self.assertEqual(again["layers"], shown["layers"])
        self.assertTrue(self.json("check", "lenet5", "--plan", self.dir / "plan.json", "--threads", "1", "--steps", "1")["pass"])

    def test_wrong_plans_are_refused_with_the_reason(self):
        for command in (["plan", "show", "lenet5"], ["check", "lenet5"], ["train", "lenet5", *SMALL, "--run-dir", self.dir / "r"]):
            self.refused(1, ["sample:4", "4 ranks", "2"], *command, "--plan", "sample:4", "--ranks", "2")
            self.refused(1, ["--ranks"], *command, "--plan", "data")
            self.refused(1, ["hieght", 'did you mean "height"?'], *command, "--plan", "hieght:2")
            self.refused(1, ["@x, @y or @w"], *command, "--plan", "channel:2")
            self.refused(1, ["none.json"], *command, "--plan", self.dir / "none.json")
        plan = self.json("plan", "show", "lenet5", "--plan", "sample:2")["plan"]
        conv1 = [entry for entry in plan["layers"] if entry["layers"] == "conv1"][0]
        conv1["weight"] = [{"split": 2}]
        (self.dir / "wrong.json").write_text(json.dumps(plan))
        self.refused(1, ["conv1", "cannot have", "what works"], "check", "lenet5", "--plan", self.dir / "wrong.json")
        conv1["layers"] = "konv1"
        (self.dir / "wrong.json").write_text(json.dumps(plan))
        self.refused(1, ["konv1", 'did you mean "conv1"?'], "check", "lenet5", "--plan", self.dir / "wrong.json")
        (self.dir / "wrong.json").write_text("[")
        self.refused(1, ["wrong.json", "JSON"], "plan", "show", "lenet5", "--plan", self.dir / "wrong.json")
        for option, value in (("--ranks", "0"), ("--ranks", "two"), ("--hang-timeout", "0")):
            self.refused(2, [option], "check", "lenet5", option, value)


class Launched(RanksTest):
    def test_check(self):
        done = self.mpirun(2, "check", "lenet5", "--plan", "sample:2", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["pass"])
        self.assertEqual(done.stderr.count("PASS"), 1)

    def test_train_and_eval(self):
        run = self.dir / "run"
        self.succeeds("train", "lenet5", *SMALL, "--dtype", "f64", "--log-every", "1", "--run-dir", self.dir / "one")
        done = self.mpirun(2, "train", "lenet5", *SMALL, "--dtype", "f64", "--log-every", "1", "--run-dir", run, "--plan", "height:2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("epoch 2/2  train loss"), 1)
        self.expect_same_curve(curve(self.dir / "one"), run)
        done = self.mpirun(2, "eval", run, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["samples"], 64)

    def test_errors_are_said_once(self):
        for arguments, part in ((["--plan", "sample:4"], "4 ranks"), (["--ranks", "3"], "--ranks says 3")):
            done = self.mpirun(2, "check", "lenet5", *arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count(part), 1, done.stderr)
        done = self.mpirun(2, "train", "lenet5", *SMALL, "--lr", "1e30", "--run-dir", self.dir / "run")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("the loss is"), 1, done.stderr)


if __name__ == "__main__":
    cli_testing.take_program(__doc__)
    if len(sys.argv) > 1 and Path(sys.argv[1]).is_file():
        MPIEXEC = sys.argv.pop(1)
    unittest.main()
