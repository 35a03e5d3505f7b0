#!/usr/bin/env python3
"""Runs the program as a user does: what its commands say of themselves, of the machine and of models, and what they refuse.

    cli_test.py PATH_OF_CONVOY [test names...]

Needs nothing but Python's standard library.
"""

import json
import os
import subprocess

import cli_testing
from cli_testing import SMALL, CliTest


class CommandLine(CliTest):
    def test_help_of_every_command_has_examples(self):
        self.assertIn("train", self.succeeds().stdout)
        self.assertIn("train", self.succeeds("--help").stdout)
        for command in ("train", "eval", "show", "run", "grad", "info"):
            text = self.succeeds(command, "--help").stdout
            self.assertIn("Examples:", text)
            self.assertIn(f"convoy {command} ", text)
            for option in ("--json",) if command == "info" else ("--json", "--threads", "--backend", "--dtype", "--seed", "--input", "--classes", "--batch"):
                self.assertIn(option, text)

    def test_version(self):
        self.assertRegex(self.succeeds("--version").stdout, r"^convoy \d+\.\d+")
        self.assertEqual(self.succeeds("version").stdout, self.succeeds("--version").stdout)
        self.assertIn("version", self.json("version"))

    def test_what_is_unknown_is_answered_with_a_suggestion(self):
        self.refused(2, ['"trian"', 'did you mean "train"?'], "trian", "lenet5")
        self.refused(2, ["--epohcs", "did you mean --epochs?"], "train", "lenet5", "--epohcs", "3")
        self.refused(2, ["--inputfile", "did you mean --input-file?"], "run", "lenet5", "--inputfile", "x.npy")
        self.refused(2, ['"lenet"', 'did you mean "lenet5"?'], "show", "lenet")
        self.refused(2, ['"lenet4"', 'did you mean "lenet5"?'], "train", "lenet4", "--run-dir", self.dir / "r")
        self.refused(2, ["--optimizer", 'did you mean "adam"?'], "train", "lenet5", "--optimizer", "adm")
        self.refused(2, ["--backend", 'did you mean "reference"?'], "show", "lenet5", "--backend", "referense")
        self.refused(1, ['"mnits"', 'did you mean "mnist"?'], "train", "lenet5", "--data", "mnits", "--run-dir", self.dir / "r")
        self.refused(2, ["unexpected", '"more"'], "show", "lenet5", "more")

    def test_numbers_that_make_no_sense_are_refused(self):
        for option, value in (("--epochs", "0"), ("--epochs", "-1"), ("--batch", "0"), ("--batch", "many"), ("--lr", "-0.1"), ("--lr", "nan"),
                              ("--lr", "0"), ("--threads", "0"), ("--seed", "-1"), ("--input", "3x"), ("--input", "0x3x3"), ("--classes", "0"),
                              ("--dtype", "f31"), ("--label-smoothing", "1.5"), ("--clip-norm", "-1"), ("--micro-batches", "0")):
            self.refused(2, [option], "train", "lenet5", option, value, "--run-dir", self.dir / "r")
        self.assertFalse((self.dir / "r").exists())

    def test_a_json_file_that_cannot_be_written_is_said_before_the_work(self):
        self.refused(1, ["no-such-directory"], "train", "lenet5", *SMALL, "--run-dir", self.dir / "r", "--json", self.dir / "no-such-directory/x.json")
        self.assertFalse((self.dir / "r").exists())


class Reports(CliTest):
    def test_info(self):
        info = self.json("info")
        self.assertEqual({b["name"] for b in info["backends"]}, {"reference", "cpu", "cuda"})
        self.assertTrue([b for b in info["backends"] if b["name"] == "reference"][0]["ready"])
        self.assertTrue({"oneDNN", "MPI", "ONNX", "HDF5", "CUDA"} <= set(info["libraries"]))
        self.assertGreaterEqual(info["default_threads"], 1)
        self.assertGreater(info["memory_bytes"], 0)
        absent = [b["detail"] for b in info["backends"] if not b["ready"]]
        text = self.succeeds("info").stdout
        for part in ("reference", "memory", "mnist", *absent):
            self.assertIn(part, text)

    def test_info_sees_the_affinity_mask(self):
        cpu = min(os.sched_getaffinity(0))
        done = subprocess.run(["taskset", "-c", str(cpu), cli_testing.CONVOY, "info", "--json", "-"], capture_output=True, text=True)
        self.assertEqual(json.loads(done.stdout)["allowed_cpus"], 1)

    def test_show_lists_models(self):
        names = [m["name"] for m in self.json("show")["models"]]
        for name in ("lenet5", "alexnet", "resnet18", "resnet18_cifar", "unet3d"):
            self.assertIn(name, names)

    def test_show_counts_what_is_known_of_lenet5(self):
        shown = self.json("show", "lenet5")
        self.assertEqual((shown["work"], shown["depth"]), (421248, 42))
        self.assertEqual(sum(layer["parameters"] for layer in shown["layers"]), shown["parameters"])
        self.assertEqual(shown["layers"][-1]["output"], "1x10")
        for key in ("arena_bytes", "state_bytes", "unshared_bytes"):
            self.assertGreater(shown["memory"]["training"][key], 0)
            self.assertGreaterEqual(shown["memory"]["training"][key], shown["memory"]["evaluation"][key])

    def test_show_program(self):
        shown = self.json("show", "lenet5", "--batch", "8", "--program")
        instructions = shown["program"]["instructions"]
        self.assertEqual(sum(i["bytes"] for i in instructions), shown["program"]["bytes"])
        self.assertEqual({"forward", "backward", "update"}, {i["phase"] for i in instructions})
        self.assertIn("update", self.succeeds("show", "lenet5", "--program").stdout)
        evaluated = self.json("show", "lenet5", "--program", "--evaluation")
        self.assertEqual({"forward"}, {i["phase"] for i in evaluated["program"]["instructions"]})

    def test_json_file(self):
        path = self.dir / "show.json"
        done = self.succeeds("show", "lenet5", "--json", path)
        self.assertIn("parameters", done.stdout)
        self.assertEqual(json.loads(path.read_text())["model"], "lenet5")
        self.assertEqual(list(self.dir.iterdir()), [path])

    def test_a_shape_that_does_not_fit_the_model(self):
        self.refused(1, ["alexnet", "3x16x16"], "show", "alexnet", "--input", "3x16x16")
        self.refused(1, ["lenet5", "dims"], "show", "lenet5", "--input", "28x28")


if __name__ == "__main__":
    cli_testing.main(__doc__)
