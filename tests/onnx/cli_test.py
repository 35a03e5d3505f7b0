#!/usr/bin/env python3
"""MODEL as an .onnx file in every command, and `convoy export`.

    tests/onnx/cli_test.py build/convoy
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = None


def npy(path, shape, values, code="<f4"):
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    letter = "f" if code == "<f4" else "q"
    Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}{letter}", *values))


class Onnx(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="convoy-onnx-"))
        cls.environment = dict(os.environ, CONVOY_CACHE=str(cls.folder / "cache"))
        cls.model = cls.folder / "lenet5.onnx"
        cls.run_(cls, "export", "lenet5", "--output", cls.model, "--seed", 3)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def run_(self, *arguments, code=0):
        result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder, env=self.environment)
        assert result.returncode == code, f"{arguments}: {result.returncode}, {result.stdout}{result.stderr}"
        return result.stdout if code == 0 else result.stderr

    def json(self, *arguments):
        return json.loads(self.run_(*arguments, "--json", "-"))

    def test_same_answers_as_the_model_it_came_from(self):
        npy(self.folder / "x.npy", (2, 1, 28, 28), [((i * 37) % 101) / 50 - 1 for i in range(2 * 784)])
        npy(self.folder / "t.npy", (2,), [3, 7], "<i8")
        self.run_("run", "lenet5", "--seed", 3, "--input-file", "x.npy", "--output", "a.npy")
        self.run_("run", self.model, "--input-file", "x.npy", "--output", "b.npy")
        self.assertEqual((self.folder / "a.npy").read_bytes(), (self.folder / "b.npy").read_bytes())
        losses = [self.json("grad", m, "--seed", 3, "--input-file", "x.npy", "--target", "t.npy", "--output", "g.safetensors", "--training")["loss"]
                  for m in ("lenet5", self.model)]
        self.assertAlmostEqual(losses[0], losses[1], places=5)

    def test_every_command_takes_it(self):
        self.assertIn("operator set 13", self.run_("show", self.model, "--batch", 4))
        self.assertGreater(self.json("show", self.model, "--batch", 4)["parameters"], 10000)
        self.run_("check", self.model, "--plan", "sample:2", "--batch", 4, "--steps", 1)
        self.run_("plan", "show", self.model, "--plan", "sample:2", "--batch", 4)
        result = self.json("eval", self.model, "--data", "synthetic", "--samples", 64)
        self.assertGreater(result["loss"], 0)

    def test_train_resume_and_export(self):
        common = ["--data", "synthetic", "--train-samples", 128, "--test-samples", 64, "--batch", 32, "--threads", 1]
        whole, parts = self.folder / "whole", self.folder / "parts"
        first = self.json("train", self.model, *common, "--epochs", 2, "--run-dir", whole)
        self.run_("train", self.model, *common, "--epochs", 1, "--run-dir", parts)
        self.assertTrue((parts / "model.onnx").exists())
        # The run is whole without the file that it began with, and in another place.
        moved = self.folder / "moved"
        parts.rename(moved)
        again = self.json("train", "--resume", moved, "--epochs", 2)
        self.assertEqual(first["loss"], again["loss"])
        self.assertEqual(first["test_accuracy"], again["test_accuracy"])
        self.run_("export", moved, "--output", "trained.onnx")
        a = self.json("eval", moved)
        b = self.json("eval", "trained.onnx", "--data", "synthetic", "--samples", a["samples"], "--seed", 1)
        self.assertEqual(self.json("eval", moved)["loss"], a["loss"])
        self.assertGreater(b["samples"], 0)

    def test_errors_say_what_is_wrong(self):
        (self.folder / "bad.onnx").write_bytes(self.model.read_bytes()[:5000])
        self.assertIn("it ends inside a field", self.run_("show", "bad.onnx", code=1))
        self.assertIn("cannot open", self.run_("show", "missing.onnx", code=1))
        self.assertIn("10 outputs, but 11 are wanted", self.run_("show", self.model, "--classes", 11, code=1))
        self.assertIn("no such file", self.run_("export", "lenet5", "--weights", "nothing.safetensors", "--output", "y.onnx", code=1))
        self.assertFalse((self.folder / "y.onnx").exists())


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
