#!/usr/bin/env python3
"""What people get wrong, and what the program says to it: words, numbers, files and options that do not go together.

    mistakes_test.py PATH_OF_CONVOY [test names...]

Needs nothing but Python's standard library.
"""

import json
import os
import stat
import subprocess

import cli_testing
from cli_testing import SMALL, CliTest
from tensor_files import write_npy


class Words(CliTest):
    def test_commands_of_commands_are_suggested(self):
        self.refused(2, ['bench: unknown command "stp"', 'did you mean "step"?', "step, comm, conv, data"], "bench", "stp", "lenet5")
        self.refused(2, ['data: unknown command "shw"', 'did you mean "show"?', "`convoy data --help`"], "data", "shw", "mnist")
        self.refused(2, ["bench: say which of step, comm, conv, data"], "bench")
        self.refused(2, ['unexpected argument "lenet5"', 'did you mean "plan show"?'], "plan", "shw", "lenet5")

    def test_help_is_that_of_the_command_itself(self):
        self.refused(2, ["KIND is required", "`convoy data make --help`"], "data", "make")
        self.refused(2, ["--bath", "did you mean --batch?", "`convoy bench step --help`"], "bench", "step", "lenet5", "--bath", "3")
        self.refused(2, ["--verson", "did you mean --version?"], "--verson")

    def test_empty_words(self):
        for arguments in (["train", "lenet5", "--plan", ""], ["info", "--json", ""], ["show", ""], ["train", "lenet5", "--run-dir", ""]):
            self.refused(2, ["empty"], *arguments)

    def test_what_is_there_but_no_model(self):
        (self.dir / "notes.txt").write_text("here")
        self.refused(2, ["it is a directory"], "show", self.dir)
        self.refused(2, ["notes.txt", ".onnx"], "show", self.dir / "notes.txt")
        (self.dir / "lenet5").mkdir()  # a model's name is a model, whatever lies around
        self.succeeds("show", "lenet5", cwd=self.dir)

    def test_directories_that_are_no_runs(self):
        self.refused(1, ["there is no run directory", "none"], "train", "--resume", self.dir / "none")
        self.refused(1, ["is no run directory", "config.json"], "train", "--resume", self.dir)


class Numbers(CliTest):
    def test_too_large_for_anything(self):
        for option in ("--batch", "--threads", "--classes", "--micro-batches"):
            for value in ("2147483648", "9223372036854775807", "99999999999999999999"):
                self.refused(2, [option, "at most", value], "show", "lenet5", option, value)
        self.refused(2, ["--threads", "at most 4096"], "show", "lenet5", "--threads", "5000")
        self.refused(2, ["--seed", "at most"], "show", "lenet5", "--seed", "18446744073709551615")
        self.json("show", "lenet5", "--seed", "123456789012345678")

    def test_shapes_past_counting(self):
        self.refused(1, ["lenet5", "2^48"], "show", "lenet5", "--input", "1x1000000000x1000000000")
        shown = self.json("show", "lenet5", "--batch", "1000000000")
        self.assertGreater(shown["memory"]["training"]["arena_bytes"], 10**12)

    def test_ranks_that_no_process_has(self):
        self.refused(2, ["100000 ranks", "at most 1024", "mpirun"], "train", "lenet5", *SMALL, "--run-dir", self.dir / "r", "--ranks", "100000")
        self.refused(2, ["5000 ranks"], "check", "lenet5", "--plan", "sample:5000", "--batch", "5000")
        self.assertFalse((self.dir / "r").exists())

    def test_a_device_of_a_backend_without_devices(self):
        self.refused(2, ["--device", "cpu"], "show", "lenet5", "--backend", "cpu", "--device", "3")

    def test_a_type_that_nothing_here_computes_in(self):
        cuda = next(b for b in self.json("info")["backends"] if b["name"] == "cuda")
        if not cuda["ready"]:
            self.refused(1, ["bf16", "cuda: " + cuda["detail"], "cpu: "], "show", "lenet5", "--dtype", "bf16")

    def test_simulations(self):
        simulate = ["simulate", "lenet5", "--machine", "v100"]
        self.refused(2, ["--slow", '"5:2"', "0 to 1"], *simulate, "--ranks", "1,2", "--slow", "5:2")
        self.refused(2, ["2 ranks", "divided by 3", "the nearest that can is 3\n"], *simulate, "--ranks", "2", "--plan", "sample:*,height:3")
        self.refused(2, ["the nearest that can is 3 or 6\n"], *simulate, "--ranks", "5", "--plan", "sample:*,height:3")
        for value in ("0", "x", "99999999999", "-1"):
            self.refused(2, ["--ranks"], *simulate, "--ranks", value)

    def test_memory_and_micro_batches_of_plans(self):
        plan = ["plan", "lenet5", "--machine", "v100", "--ranks", "2", "--batch"]
        done = self.refused(1, ["1.00 KiB", "what would do: --memory"], *plan, "32", "--memory", "1KiB")
        enough = done.stderr.split("--memory ")[1].strip()
        self.succeeds(*plan, "32", "--memory", enough)
        self.refused(1, ["7", "3 micro-batches", "--micro-batches 1, or --micro-batches 7"], *plan, "7", "--micro-batches", "3")
        for size in ("0.1", "1e30TiB", "nan", "-1GiB"):
            self.refused(2, ["--memory"], *plan, "32", "--memory", size)


class Idle(CliTest):
    """Options that would be ignored in silence."""

    def test_of_train(self):
        for parts, arguments in (
            (["--momentum", "adam"], ["--optimizer", "adam", "--momentum", "0.5"]),
            (["--gamma", "--schedule step"], ["--gamma", "0.5"]),
            (["--step-epochs", "--schedule step"], ["--schedule", "cosine", "--step-epochs", "2"]),
            (["--trace-steps", "--trace"], ["--trace-steps", "2"]),
            (["--machine", "--plan auto"], ["--machine", "v100"]),
            (["--data-dir", "synthetic"], ["--data-dir", self.dir]),
            (["--address", "--rendezvous"], ["--address", "127.0.0.1"]),
        ):
            self.refused(2, parts, "train", "lenet5", *SMALL, "--run-dir", self.dir / "r", *arguments)
        self.assertFalse((self.dir / "r").exists())

    def test_of_made_data(self):
        self.refused(2, ["--quality", "shapes"], "data", "make", "cells", self.dir / "d", "--quality", "50")
        self.refused(2, ["--channels", "fields"], "data", "make", "shapes", self.dir / "d", "--channels", "2")


class Files(CliTest):
    def setUp(self):
        super().setUp()
        self.x, self.t = self.dir / "x.npy", self.dir / "t.npy"
        write_npy(self.x, [2, 1, 28, 28], [i % 7 / 7 for i in range(2 * 784)], "f4")
        write_npy(self.t, [2], [1, 2], "i8")

    def test_inputs_are_not_overwritten(self):
        before = self.x.read_bytes()
        self.refused(2, ["--output", "--input-file"], "run", "lenet5", "--input-file", self.x, "--output", self.x)
        self.refused(2, ["--json", "--input-file"], "run", "lenet5", "--input-file", self.x, "--output", self.dir / "y", "--json", self.dir / "./x.npy")
        self.refused(2, ["--output and --json"], "run", "lenet5", "--input-file", self.x, "--output", self.dir / "y", "--json", self.dir / "y")
        self.refused(2, ["--output", "--target"], "grad", "lenet5", "--input-file", self.x, "--target", self.t, "--output", self.t)
        self.assertEqual(self.x.read_bytes(), before)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["t.npy", "x.npy"])

    def test_results_that_cannot_be_written_are_said_before_the_work(self):
        self.refused(1, ["it is a directory"], "info", "--json", self.dir)
        for command in (["plan", "lenet5", "--machine", "v100", "--ranks", "2", "--output"], ["simulate", "lenet5", "--machine", "v100", "--picture"],
                        ["simulate", "lenet5", "--machine", "v100", "--trace"], ["run", "lenet5", "--input-file", self.x, "--output"],
                        ["export", "lenet5", "--output"]):
            for path in (self.dir / "none" / "file", self.dir):
                self.assertEqual(self.refused(1, [str(path)], *command, path).stdout, "")

    def test_pipes_and_devices_are_not_replaced(self):
        pipe = self.dir / "pipe"
        os.mkfifo(pipe)
        child = subprocess.Popen([cli_testing.CONVOY, "info", "--json", str(pipe)], stdout=subprocess.DEVNULL)
        self.assertIn("backends", json.loads(pipe.read_text()))
        self.assertEqual(child.wait(timeout=30), 0)
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))

    def test_gradients_that_are_no_numbers(self):
        write_npy(self.x, [2, 1, 28, 28], [float("nan")] * (2 * 784), "f4")
        self.refused(1, ["finite"], "grad", "lenet5", "--input-file", self.x, "--target", self.t, "--output", self.dir / "g", "--backend", "reference")
        self.refused(1, ["conv1", "nan"], "grad", "lenet5", "--input-file", self.x, "--target", self.t, "--output", self.dir / "g", "--backend", "cpu")
        self.assertFalse((self.dir / "g").exists())

    def test_places_that_cannot_be(self):
        done = self.refused(1, ["x.npy/d"], "data", "make", "cells", self.x / "d")
        self.assertNotIn("internal", done.stderr)

    def test_names_that_are_not_utf8(self):
        odd = os.fsencode(self.dir) + b"/\xff"
        for arguments in ([b"--run-dir", odd], [b"--data", odd], [b"--init", odd]):
            done = subprocess.run([cli_testing.CONVOY, "train", "lenet5", *SMALL, *arguments], capture_output=True, timeout=60, cwd=self.dir)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"UTF-8", done.stderr)
            self.assertNotIn(b"internal", done.stderr)

    def test_documents_that_are_something_else(self):
        (self.dir / "text").write_text("not JSON")
        (self.dir / "deep").write_text("[" * 100000)
        (self.dir / "list").write_text("[]")
        (self.dir / "grids").write_text('{"grids": [{"axes": 3}]}')
        for name in ("text", "deep", "list", "grids"):
            for command in (["report", self.dir / name], ["plan", "lenet5", "--ranks", "2", "--machine", self.dir / name],
                            ["plan", "show", "lenet5", "--plan", self.dir / name]):
                done = self.refused(1, [name], *command)
                self.assertNotIn("json.exception", done.stderr)

    def test_a_run_is_no_prediction(self):
        self.train(self.dir / "run", "--epochs", "1")
        self.refused(1, ["is a run", "convoy simulate"], "report", self.dir / "run", "--predicted", self.dir / "run")
        done = self.succeeds("train", "--resume", self.dir / "run")
        self.assertIn("nothing is left to do", done.stdout)


if __name__ == "__main__":
    cli_testing.main(__doc__)
