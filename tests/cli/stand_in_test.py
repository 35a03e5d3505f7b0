#!/usr/bin/env python3
"""The GPU's path through the program on a stand-in for a GPU (src/kernels/cuda/stand_in): checks, training, resuming, what is refused.

    stand_in_test.py PATH_OF_CONVOY_ON_STAND_IN [test names...]

Needs nothing but Python's standard library.
"""

import os

import cli_testing
from cli_testing import CliTest, newest_checkpoint

# Eleven steps of 24 samples, the last of them smaller, in each epoch.
TRAIN = ["train", "lenet5", "--data", "synthetic", "--train-samples", "250", "--test-samples", "50", "--batch", "24", "--backend", "cuda", "--threads", "1"]


class StandIn(CliTest):
    def setUp(self):
        super().setUp()
        os.environ["CONVOY_CACHE"] = str(self.dir / "cache")

    def check(self, *arguments):
        done = self.succeeds("check", *arguments, "--backend", "cuda", "--threads", "1", timeout=300)
        self.assertIn("PASS", done.stdout)

    def test_it_is_found(self):
        self.assertIn("a stand-in for a GPU, 3.0 GiB", self.succeeds("info").stdout)
        self.refused(1, ["there is no GPU 3", "this machine has 1"], "bench", "step", "lenet5", "--backend", "cuda", "--device", "3")

    def test_checks_in_every_type(self):
        for dtype in ("f64", "f32", "tf32", "bf16"):
            self.check("lenet5", "--batch", "4", "--dtype", dtype)
        self.check("resnet20", "--input", "3x16x16", "--batch", "4", "--steps", "1", "--dtype", "bf16")

    def test_ranks_share_it(self):
        for plan in ("sample:2", "height:2", "channel:2@x"):
            self.check("resnet20", "--input", "3x8x8", "--batch", "4", "--steps", "1", "--dtype", "f32", "--plan", plan, "--ranks", "2")

    def test_a_resumed_run_equals_an_uninterrupted_one(self):
        for dtype in ("f32", "bf16"):
            whole, parts = self.dir / f"whole-{dtype}", self.dir / f"parts-{dtype}"
            done = self.json(*TRAIN, "--dtype", dtype, "--epochs", "2", "--run-dir", whole)
            self.assertEqual((done["steps"], done["backend"]), (22, "cuda"))
            self.json(*TRAIN, "--dtype", dtype, "--epochs", "1", "--run-dir", parts)
            self.json("train", "--resume", parts, "--epochs", "2")
            states = [(newest_checkpoint(run) / "state.safetensors").read_bytes() for run in (whole, parts)]
            self.assertEqual(*states)

    def test_what_does_not_fit_is_refused_before_anything_runs(self):
        parts = ["the GPU has 3.22 GB free", "GB are needed", "too little"]
        self.refused(1, parts, "bench", "step", "vgg16", "--batch", "256", "--backend", "cuda")


if __name__ == "__main__":
    cli_testing.main(__doc__)
