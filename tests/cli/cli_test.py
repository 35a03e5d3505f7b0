#!/usr/bin/env python3
"""Runs the program as a user does: what it prints, writes and refuses, and its exit codes.

    cli_test.py PATH_OF_CONVOY [test names...]

Needs nothing but Python's standard library.
"""

import gzip
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

CONVOY = ""

# A run that takes a second: small synthetic images, two epochs of 16 steps.
SMALL = ["--data", "synthetic", "--train-samples", "256", "--test-samples", "64", "--batch", "16", "--epochs", "2", "--threads", "1"]


def convoy(*arguments, cwd=None, timeout=60):
    return subprocess.run([CONVOY, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=timeout)


def write_npy(path, shape, values, kind):
    """kind: f4, f8 or i8, as NumPy names them."""
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': ({''.join(f'{n}, ' for n in shape)}), }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    code = {"f4": "f", "f8": "d", "i8": "q"}[kind]
    Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values))


def read_npy(path):
    data = Path(path).read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10 : 10 + size].decode())  # a dict literal of our own making
    code = {"<f4": "f", "<f8": "d"}[header["descr"]]
    return header["shape"], [v for (v,) in struct.iter_unpack("<" + code, data[10 + size :])]


def read_safetensors(path):
    """Tensors by name, as (dtype, shape, bytes)."""
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    return {n: (t["dtype"], t["shape"], body[slice(*t["data_offsets"])]) for n, t in header.items() if n != "__metadata__"}


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def idx(dims, body, kind=8):
    return struct.pack(">HBB", 0, kind, len(dims)) + b"".join(struct.pack(">I", n) for n in dims) + bytes(body)


def write_idx_data(directory, images=None, labels=None, count=20, size=28, compressed=False):
    """A directory with both splits of `count` images; `images` and `labels` replace the training files' bytes."""
    directory.mkdir()
    for split in ("train", "t10k"):
        pixels = idx([count, size, size], [(7 * i) % 256 for i in range(count * size * size)])
        classes = idx([count], [i % 10 for i in range(count)])
        if split == "train":
            pixels, classes = images or pixels, labels or classes
        for name, data in ((f"{split}-images-idx3-ubyte", pixels), (f"{split}-labels-idx1-ubyte", classes)):
            if compressed:
                (directory / (name + ".gz")).write_bytes(gzip.compress(data))
            else:
                (directory / name).write_bytes(data)
    return directory


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
        for part in ("reference", "not in this build", "memory", "mnist"):
            self.assertIn(part, self.succeeds("info").stdout)

    def test_info_sees_the_affinity_mask(self):
        cpu = min(os.sched_getaffinity(0))
        done = subprocess.run(["taskset", "-c", str(cpu), CONVOY, "info", "--json", "-"], capture_output=True, text=True)
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


class Training(CliTest):
    def test_train_then_eval(self):
        run = self.dir / "run"
        done = self.train(run)
        for key in ("test_accuracy", "loss", "samples_per_s", "run_dir", "steps"):
            self.assertIn(key, done)
        self.assertEqual((done["steps"], done["epochs"]), (32, 2))
        self.assertGreater(done["test_accuracy"], 0.5)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(len([line for line in lines if line["kind"] == "epoch"]), 2)
        self.assertEqual((run / "curves.png").read_bytes()[:4], b"\x89PNG")

        again = self.json("eval", run)
        self.assertEqual((again["accuracy"], again["samples"]), (done["test_accuracy"], 64))
        self.assertAlmostEqual(again["loss"], done["test_loss"], delta=1e-6)  # other batches, which a matrix product may sum in another order
        weights = newest_checkpoint(run) / "state.safetensors"
        shape = ["--data", "synthetic", "--samples", "64", "--batch", "16"]
        by_file = convoy("eval", "lenet5", "--data", "synthetic", "--weights", weights, "--json", "-")
        self.assertEqual(by_file.returncode, 0, by_file.stderr)
        self.json("eval", "lenet5", *shape, "--checkpoint", run)
        self.refused(1, ["lenet5", "resnet20"], "eval", "resnet20", "--checkpoint", run)
        self.refused(2, ["more than once"], "eval", run, "--checkpoint", run)
        self.refused(2, ["--data"], "eval", "lenet5", "--weights", weights)
        self.refused(2, ['did you mean "lenet5"?'], "eval", "lenet6", "--data", "synthetic")

        self.refused(1, [str(run), "--resume"], "train", "lenet5", *SMALL, "--run-dir", run)
        # A checkpoint of another model, and other settings than the run began with.
        self.refused(1, ["resnet20", "lenet5"], "train", "resnet20", "--resume", run, "--epochs", "3")
        self.refused(1, ["batch"], "train", "--resume", run, "--batch", "8", "--epochs", "3")
        self.refused(1, [str(self.dir / "none")], "train", "--resume", self.dir / "none")
        self.refused(2, ["--resume"], "train", "lenet5", "--resume")
        more = self.json("train", "--resume", run, "--epochs", "3")
        self.assertEqual(more["epochs"], 3)

    def test_processes_that_meet_by_a_file(self):
        shared = ["--ranks", "2", "--plan", "sample:2", "--rendezvous", self.dir / "meet", "--hang-timeout", "30"]
        command = [CONVOY, "train", "lenet5", *SMALL, "--run-dir", self.dir / "by-file", *shared, "--json", "-"]
        ranks = [subprocess.Popen([*map(str, command), "--rank", str(r)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for r in (1, 0)]
        ended = [(rank.communicate(timeout=60), rank.returncode) for rank in ranks]
        self.assertEqual([code for _, code in ended], [0, 0], ended)
        self.assertEqual(ended[0][0], ("", ""))  # only the first rank speaks
        done = json.loads(ended[1][0][0])
        threads = self.json("train", "lenet5", *SMALL, "--run-dir", self.dir / "by-threads", "--ranks", "2", "--plan", "sample:2")
        self.assertAlmostEqual(done["test_loss"], threads["test_loss"], delta=1e-5)
        self.assertFalse((self.dir / "meet").exists())
        self.assertIsNone(done["joules"])
        self.assertIn("meter", done["energy_source"])
        self.refused(2, ["--rank", "--ranks"], "train", "lenet5", *SMALL, "--rendezvous", self.dir / "meet")
        self.refused(2, ["--rank says 2"], "train", "lenet5", *SMALL, *shared, "--rank", "2")
        self.refused(1, ["rank 0 waited 0.2 s", "meet for rank 1"], "train", "lenet5", *SMALL, *shared[:-1], "0.2", "--rank", "0")
        self.refused(1, ["NCCL carries traffic between GPUs", "cpu"], "train", "lenet5", *SMALL, "--backend", "cpu", "--ranks", "2", "--transport", "nccl")

    def test_plain_output_ends_with_a_summary(self):
        done = self.succeeds("train", "lenet5", *SMALL, "--run-dir", self.dir / "run")
        for part in ("epoch 2/2", "Test accuracy", "What to try next", "convoy eval", "--resume"):
            self.assertIn(part, done.stdout)
        self.assertNotIn("\r", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_default_run_directories_differ(self):
        for _ in range(2):
            self.succeeds("train", "lenet5", *SMALL, "--epochs", "1", cwd=self.dir)
        self.assertEqual(len(list((self.dir / "runs").iterdir())), 2)

    def test_a_bar_on_a_terminal(self):
        leader, follower = os.openpty()
        child = subprocess.Popen([CONVOY, "train", "lenet5", *SMALL, "--run-dir", self.dir / "run"], stdout=follower, stderr=subprocess.PIPE)
        os.close(follower)
        text = b""
        try:
            while data := os.read(leader, 4096):
                text += data
        except OSError:
            pass  # the terminal is gone: the program has ended
        os.close(leader)
        self.assertEqual(child.wait(timeout=60), 0, child.stderr.read())
        child.stderr.close()
        self.assertIn(b"\r", text)
        for part in (b"epoch 1/2 [", b"samples/s", b"ETA", b"Test accuracy"):
            self.assertIn(part, text)

    def start(self, run, *arguments):
        """A long run in the background, in the middle of its first epoch when this returns."""
        command = [CONVOY, "train", "lenet5", *SMALL, "--run-dir", run, "--checkpoint-every", "20", "--train-samples", "4096", *arguments]
        child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while not list((run / "checkpoints").glob("step-*")) and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        if child.poll() is not None:
            self.fail("the run ended before it could be interrupted: " + child.communicate()[1])
        return child

    def finished_weights(self, run, *arguments):
        done = self.json("train", "lenet5", *SMALL, "--run-dir", run, "--checkpoint-every", "20", "--train-samples", "4096", *arguments)
        self.assertEqual(done["steps"], 512)
        return (newest_checkpoint(run) / "state.safetensors").read_bytes()

    def test_a_killed_run_goes_on_bit_for_bit(self):
        whole = self.finished_weights(self.dir / "whole", "--optimizer", "adam")
        child = self.start(self.dir / "killed", "--optimizer", "adam")
        child.kill()
        child.communicate()
        step = int(newest_checkpoint(self.dir / "killed").name.split("-")[1])
        self.assertLess(step, 256)  # in the middle of the first epoch
        self.json("train", "--resume", self.dir / "killed")
        self.assertEqual((newest_checkpoint(self.dir / "killed") / "state.safetensors").read_bytes(), whole)

    def test_an_interrupt_ends_with_a_checkpoint(self):
        run = self.dir / "run"
        child = self.start(run, "--json", self.dir / "result.json")
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 130, errors)
        self.assertIn("finishing this step, writing a checkpoint", errors)
        result = json.loads((self.dir / "result.json").read_text())
        self.assertTrue(result["stopped_early"])
        self.assertEqual(newest_checkpoint(run).name, f"step-{result['steps']:08}")
        self.json("train", "--resume", run, "--run-dir", run)

    def test_a_loss_that_is_not_finite(self):
        done = self.refused(1, ["step", "not finite"], "train", "lenet5", *SMALL, "--lr", "1e30", "--run-dir", self.dir / "run", "--json", "-")
        self.assertEqual(done.stdout, "")

    def test_run_directories_that_cannot_be(self):
        (self.dir / "file").write_text("here")
        self.refused(1, ["file"], "train", "lenet5", *SMALL, "--run-dir", self.dir / "file")
        self.refused(1, ["file/run"], "train", "lenet5", *SMALL, "--run-dir", self.dir / "file/run")
        self.refused(1, ["/proc/run"], "train", "lenet5", *SMALL, "--run-dir", "/proc/run")
        if os.geteuid() != 0:  # root may write anywhere
            (self.dir / "locked").mkdir(mode=0o555)
            self.refused(1, ["locked"], "train", "lenet5", *SMALL, "--run-dir", self.dir / "locked/run")
        self.assertEqual((self.dir / "file").read_text(), "here")

    def test_damaged_checkpoints(self):
        run = self.dir / "run"
        self.train(run)
        good, last = sorted((run / "checkpoints").glob("step-*"))[-2:]
        state = last / "state.safetensors"
        state.write_bytes(state.read_bytes()[:-100])
        self.refused(1, ["state.safetensors"], "eval", last)
        done = self.succeeds("eval", run)  # the one before it is used, and said
        self.assertIn(last.name, done.stderr)
        self.assertIn(good.name, done.stderr)
        resumed = self.json("train", "--resume", run)
        self.assertEqual(resumed["steps"], 32)
        for checkpoint in (run / "checkpoints").glob("step-*"):
            (checkpoint / "checkpoint.json").write_text("{")
        self.refused(1, ["checkpoint"], "train", "--resume", run)
        self.refused(1, ["checkpoint"], "eval", run)


class Data(CliTest):
    def trains_on(self, directory, *arguments):
        return ["train", "lenet5", "--data", directory, "--batch", "10", "--run-dir", self.dir / "run", "--threads", "1", *arguments]

    def test_a_directory_with_idx_files(self):
        write_idx_data(self.dir / "plain")
        write_idx_data(self.dir / "zipped", compressed=True)
        plain = self.json(*self.trains_on(self.dir / "plain"))
        self.assertEqual(plain["steps"], 2)
        zipped = self.json("train", "lenet5", "--data", self.dir / "zipped", "--batch", "10", "--threads", "1", "--run-dir", self.dir / "run2")
        self.assertEqual(plain["loss"], zipped["loss"])

    def test_files_that_are_not_what_they_should_be(self):
        whole = idx([20, 28, 28], [0] * (20 * 784))
        labels = idx([20], [0] * 20)
        cases = {
            "truncated": (dict(images=whole[:-1]), ["train-images-idx3-ubyte"]),
            "magic": (dict(images=b"\x01" + whole[1:]), ["train-images-idx3-ubyte"]),
            "short": (dict(images=whole[:7]), ["train-images-idx3-ubyte"]),
            "range": (dict(labels=idx([20], [0] * 19 + [10])), ["train-labels-idx1-ubyte", "10", "19"]),
            "fewer": (dict(labels=idx([19], [0] * 19)), ["train-labels-idx1-ubyte", "19", "20"]),
            "swapped": (dict(images=labels), ["train-images-idx3-ubyte"]),
            "text": (dict(labels=b"these are not labels"), ["train-labels-idx1-ubyte"]),
        }
        for name, (files, parts) in cases.items():
            with self.subTest(name):
                self.refused(1, parts, *self.trains_on(write_idx_data(self.dir / name, **files)))
        cut = write_idx_data(self.dir / "gzip", compressed=True) / "train-images-idx3-ubyte.gz"
        cut.write_bytes(cut.read_bytes()[:-20])
        self.refused(1, ["train-images-idx3-ubyte.gz"], *self.trains_on(self.dir / "gzip"))
        (self.dir / "empty").mkdir()
        self.refused(1, ["empty", "-images-idx3-ubyte"], *self.trains_on(self.dir / "empty"))

    def test_data_that_do_not_fit_the_model(self):
        data = write_idx_data(self.dir / "tiny", size=4)
        self.refused(1, ["lenet5", "4x4"], *self.trains_on(data))
        self.refused(1, ["1x4x4", "1x28x28"], *self.trains_on(data, "--input", "1x28x28"))
        self.refused(1, ["label"], *self.trains_on(write_idx_data(self.dir / "few"), "--classes", "5"))
        self.refused(1, ["unet3d"], "train", "unet3d", "--data", write_idx_data(self.dir / "flat"), "--run-dir", self.dir / "r")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    CONVOY = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
