#!/usr/bin/python3
"""PyTorch trained on IDX files as `convoy train` does it, one JSON line: the rival's side of bench/curves.

torch_train.py NET --data DIR --epochs E --batch B --lr X --seed S --threads T [--train-samples N]

The same normalisation, loss, optimizer (momentum 0.9) and cosine schedule, a smaller last batch, and a test after every epoch; its own data
order and its own draw of the first weights.
"""
import argparse
import gzip
import json
import math
import os
import struct
import sys
import time

OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
if OPENBLAS not in os.environ.get("LD_LIBRARY_PATH", ""):  # read when a process starts
    os.environ["LD_LIBRARY_PATH"] = OPENBLAS + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    os.execv(sys.executable, [sys.executable] + sys.argv)

import numpy  # noqa: E402  after the path of its BLAS is set
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import torch_nets  # noqa: E402

MEAN, DEVIATION = 0.1307, 0.3081  # what Convoy normalises IDX files with


def read_idx(folder, name):
    path = os.path.join(folder, name)
    opened = open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz", "rb")
    with opened as file:
        data = file.read()
    shape = struct.unpack(f">{data[3]}I", data[4:4 + 4 * data[3]])
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * data[3]).reshape(shape)


def read_split(folder, split, most):
    images = torch.from_numpy(read_idx(folder, f"{split}-images-idx3-ubyte")[:most].copy())
    labels = torch.from_numpy(read_idx(folder, f"{split}-labels-idx1-ubyte")[:most].astype(numpy.int64))
    return ((images.float() / 255 - MEAN) / DEVIATION).unsqueeze(1), labels


def make(net):
    module = torch_nets.make(net)[0]
    if net == "resnet18_cifar":  # grey images
        module.conv1 = torch.nn.Conv2d(1, 64, 3, 1, 1, bias=False)
    return module


def train_epoch(module, optimizer, schedule, x, y, batch):
    module.train()
    for indices in torch.randperm(len(x)).split(batch):
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(module(x[indices]), y[indices]).backward()
        optimizer.step()
        schedule.step()


@torch.no_grad()
def accuracy(module, x, y, batch):
    module.eval()
    return sum((module(part).argmax(1) == labels).sum().item() for part, labels in zip(x.split(batch), y.split(batch))) / len(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net")
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--train-samples", type=int)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    x, y = read_split(options.data, "train", options.train_samples)
    test = read_split(options.data, "t10k", None)
    module = make(options.net)
    optimizer = torch.optim.SGD(module.parameters(), lr=options.lr, momentum=0.9)
    steps = options.epochs * math.ceil(len(x) / options.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 + math.cos(math.pi * step / steps)) / 2)
    start, accuracies = time.perf_counter(), []
    for _ in range(options.epochs):
        train_epoch(module, optimizer, schedule, x, y, options.batch)
        accuracies.append(accuracy(module, *test, options.batch))
    print(json.dumps(dict(accuracies=accuracies, seconds=time.perf_counter() - start)))


if __name__ == "__main__":
    main()
