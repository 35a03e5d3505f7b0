#!/usr/bin/env python3
"""`convoy train` and `convoy eval`: what they print and write; runs that are killed, interrupted, damaged and resumed.

    training_test.py PATH_OF_CONVOY [test names...]

Needs nothing but Python's standard library.
"""

import json
import os
import signal
import subprocess
import time

import cli_testing
from cli_testing import SMALL, CliTest, convoy, newest_checkpoint


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
        command = [cli_testing.CONVOY, "train", "lenet5", *SMALL, "--run-dir", self.dir / "by-file", *shared, "--json", "-"]
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
        child = subprocess.Popen([cli_testing.CONVOY, "train", "lenet5", *SMALL, "--run-dir", self.dir / "run"], stdout=follower, stderr=subprocess.PIPE)
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
        command = [cli_testing.CONVOY, "train", "lenet5", *SMALL, "--run-dir", run, "--checkpoint-every", "20", "--train-samples", "4096", *arguments]
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

    def test_it_keeps_its_name_among_the_processes(self):
        child = self.start(self.dir / "run")
        with open(f"/proc/{child.pid}/comm", encoding="utf-8") as name:
            self.assertEqual(name.read().strip(), "convoy")
        child.terminate()
        child.communicate(timeout=30)

    def test_a_terminal_that_goes_away_ends_with_a_checkpoint(self):
        run = self.dir / "run"
        child = self.start(run)
        child.send_signal(signal.SIGHUP)
        self.assertIn("writing a checkpoint", child.communicate(timeout=30)[1])
        self.assertEqual(child.returncode, 129)
        self.json("train", "--resume", run)

    def test_a_reader_that_goes_away_ends_with_a_checkpoint(self):
        run = self.dir / "run"
        command = [cli_testing.CONVOY, "train", "lenet5", *SMALL, "--run-dir", str(run), "--train-samples", "4096", "--log-every", "1"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.stdout.close()
        errors = child.stderr.read()
        child.stderr.close()
        self.assertEqual(child.wait(timeout=30), 141, errors)
        self.assertIn("writing a checkpoint", errors)
        step = int(newest_checkpoint(run).name.split("-")[1])
        self.assertLess(step, 512)
        self.assertEqual(self.json("train", "--resume", run)["steps"], 512)

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


if __name__ == "__main__":
    cli_testing.main(__doc__)
