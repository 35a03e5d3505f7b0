#!/usr/bin/env python3
"""`convoy run` and `convoy grad`: arrays in, answers and gradients out.

    arrays_test.py PATH_OF_CONVOY [test names...]

Needs nothing but Python's standard library.
"""

import random
import struct

import cli_testing
from cli_testing import CliTest
from tensor_files import read_npy, read_safetensors, write_npy, write_safetensors


class Arrays(CliTest):
    def setUp(self):
        super().setUp()
        self.x, self.t = self.dir / "x.npy", self.dir / "t.npy"
        self.random = random.Random(1)
        self.values = [self.random.uniform(-1, 1) for _ in range(3 * 784)]
        write_npy(self.x, [3, 1, 28, 28], self.values, "f8")
        write_npy(self.t, [3], [3, 0, 9], "i8")

    def grad(self, out, *arguments):
        done = self.json("grad", "lenet5", "--input-file", self.x, "--target", self.t, "--output", self.dir / out, "--dtype", "f64", *arguments)
        return done, read_safetensors(self.dir / out)

    def test_run(self):
        done = self.json("run", "lenet5", "--input-file", self.x, "--output", self.dir / "y.npy", "--dtype", "f64")
        shape, y = read_npy(self.dir / "y.npy")
        self.assertEqual(shape, (3, 10))
        self.assertEqual(done["output"], "3x10")
        # One input alone gives the same answer, and f32 nearly the same.
        write_npy(self.dir / "x1.npy", [1, 1, 28, 28], self.values[784 : 2 * 784], "f4")
        self.json("run", "lenet5", "--input-file", self.dir / "x1.npy", "--output", self.dir / "y1.npy")
        shape, y1 = read_npy(self.dir / "y1.npy")
        self.assertEqual(shape, (1, 10))
        for a, b in zip(y[10:20], y1):
            self.assertAlmostEqual(a, b, places=5)

    def test_the_gradient_is_the_loss_s_derivative(self):
        done, gradients = self.grad("g.safetensors")
        shown = self.json("show", "lenet5")
        self.assertEqual(sum(len(data) // 8 for _, _, data in gradients.values()), shown["parameters"])
        # Weights moved along the gradient: the loss changes by |g|^2 times the step.
        unpack = lambda data: [v for (v,) in struct.iter_unpack("<d", data)]
        square = sum(v * v for _, _, data in gradients.values() for v in unpack(data))
        self.assertAlmostEqual(square**0.5, done["gradient_norm"], places=9)
        start = {name: ("F64", shape, struct.pack(f"<{len(data) // 8}d", *[self.random.uniform(-0.1, 0.1) for _ in range(len(data) // 8)]))
                 for name, (_, shape, data) in gradients.items()}
        write_safetensors(self.dir / "w.safetensors", start)
        done, gradients = self.grad("g.safetensors", "--weights", self.dir / "w.safetensors")
        square = sum(v * v for _, _, data in gradients.values() for v in unpack(data))
        losses = []
        for step in (1e-6, -1e-6):
            moved = {}
            for name, (kind, shape, data) in start.items():
                values = [w + step * g for w, g in zip(unpack(data), unpack(gradients[name][2]))]
                moved[name] = (kind, shape, struct.pack(f"<{len(values)}d", *values))
            write_safetensors(self.dir / "moved.safetensors", moved)
            losses.append(self.grad("g2.safetensors", "--weights", self.dir / "moved.safetensors")[0]["loss"])
        self.assertAlmostEqual((losses[0] - losses[1]) / 2e-6 / square, 1, places=5)

    def test_training_mode_with_and_without_dropout(self):
        write_npy(self.x, [2, 3, 64, 64], [((i * 31) % 89) / 44 - 1 for i in range(2 * 3 * 64 * 64)], "f4")
        write_npy(self.t, [2], [1, 4], "i8")
        losses = []
        for flags in (["--training"], ["--training", "--no-dropout"], []):
            done = self.json("grad", "alexnet", "--classes", "5", "--input-file", self.x, "--target", self.t, "--output", self.dir / "g", *flags)
            losses.append(done["loss"])
        self.assertNotEqual(losses[0], losses[1])
        self.assertAlmostEqual(losses[1], losses[2], places=5)  # AlexNet has no batch norm: only dropout differs

    def test_bad_targets(self):
        files = lambda: ["grad", "lenet5", "--input-file", self.x, "--target", self.t, "--output", self.dir / "g"]
        write_npy(self.t, [3], [3, 10, 1], "i8")
        self.refused(1, ["t.npy", "label 10", "[1]", "0..9"], *files())
        write_npy(self.t, [3], [3, 1, -1], "i8")
        self.refused(1, ["label -1", "[2]"], *files())
        write_npy(self.t, [2], [3, 1], "i8")
        self.refused(1, ["t.npy", "are 2", "expected 3"], *files())
        write_npy(self.t, [3], [3, 1, 1], "f4")
        self.refused(1, ["t.npy", "f32", "integers"], *files())
        self.assertFalse((self.dir / "g").exists())

    def test_bad_inputs(self):
        command = ["run", "lenet5", "--output", self.dir / "y.npy", "--input-file"]
        self.refused(1, ["nothing.npy"], *command, self.dir / "nothing.npy")
        (self.dir / "cut.npy").write_bytes(self.x.read_bytes()[:-5])
        self.refused(1, ["cut.npy"], *command, self.dir / "cut.npy")
        write_npy(self.dir / "flat.npy", [784], [0] * 784, "f4")
        self.refused(1, ["flat.npy", "784", "4 dims"], *command, self.dir / "flat.npy")
        write_npy(self.dir / "small.npy", [1, 1, 3, 3], [0] * 9, "f4")
        self.refused(1, ["lenet5", "1x3x3"], *command, self.dir / "small.npy")
        self.refused(1, ["--batch"], *command, self.x, "--batch", "2")
        self.refused(1, ["--input"], *command, self.x, "--input", "1x32x32")
        self.assertFalse((self.dir / "y.npy").exists())

    def test_weights_that_do_not_fit(self):
        _, gradients = self.grad("g.safetensors")
        command = ["run", "lenet5", "--input-file", self.x, "--output", self.dir / "y.npy", "--weights", self.dir / "w"]
        name = sorted(gradients)[0]
        write_safetensors(self.dir / "w", {n: t for n, t in gradients.items() if n != name})
        self.refused(1, [name, "w"], *command)
        write_safetensors(self.dir / "w", {**gradients, "stranger": ("F32", [1], b"\0\0\0\0")})
        self.refused(1, ["stranger"], *command)
        kind, shape, data = gradients[name]
        write_safetensors(self.dir / "w", {**gradients, name: (kind, [len(data) // 8, 1, 1, 1, 1], data)})
        self.refused(1, [name], *command)
        (self.dir / "w").write_bytes((self.dir / "g.safetensors").read_bytes()[:-3])
        self.refused(1, ["w"], *command)
        write_safetensors(self.dir / "w", {**gradients, "optimizer.x.momentum": ("F32", [1], b"\0\0\0\0")})
        self.succeeds(*command)


if __name__ == "__main__":
    cli_testing.main(__doc__)
