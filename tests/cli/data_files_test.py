#!/usr/bin/env python3
"""Training on files of the user's own, good ones and others.

    data_files_test.py PATH_OF_CONVOY [test names...]

Needs nothing but Python's standard library.
"""

import gzip
import struct

import cli_testing
from cli_testing import CliTest


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
    cli_testing.main(__doc__)
