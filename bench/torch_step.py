#!/usr/bin/python3
"""PyTorch's training step on the CPU (forward, backward, SGD with momentum), one JSON line: the rival's side of bench/run.

torch_step.py NET --batch B --threads T [--channels-last] [--seconds S] [--processes P]

With several processes: DistributedDataParallel over Gloo on the loopback interface, B samples in each process.
"""
import argparse
import json
import os
import resource
import sys
import time

# PyTorch at its best: glibc keeps freed memory instead of returning it every step, and OpenBLAS stands in for the reference BLAS. Both are
# read when a process starts, hence the restart.
FAST = dict(MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_="17179869184", MALLOC_TOP_PAD_="268435456", GLIBC_TUNABLES="glibc.malloc.hugetlb=1",
            LD_LIBRARY_PATH="/usr/lib/x86_64-linux-gnu/openblas-openmp")
if "MALLOC_MMAP_MAX_" not in os.environ:
    os.execve(sys.executable, [sys.executable] + sys.argv, {**os.environ, **FAST})

parser = argparse.ArgumentParser()
parser.add_argument("net")
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--seconds", type=float, default=8)
parser.add_argument("--processes", type=int, default=1)
options = parser.parse_args()
os.environ.update(OMP_NUM_THREADS=str(options.threads), MASTER_ADDR="127.0.0.1", GLOO_SOCKET_IFNAME="lo")
os.environ.setdefault("MASTER_PORT", str(20000 + os.getpid() % 20000))  # processes that are spawned inherit it

import torch  # noqa: E402  after the thread count is set
import torch_nets  # noqa: E402


def measure(rank):
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model, shape, kind, classes = torch_nets.make(options.net)
    x, y = torch_nets.batch(shape, kind, classes, options.batch)
    if options.channels_last:
        model, x = torch_nets.channels_last(model), torch_nets.channels_last(x)
    if options.processes > 1:
        torch.distributed.init_process_group("gloo", rank=rank, world_size=options.processes)
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    loss = torch_nets.loss_of(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step():
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        optimizer.step()
        return time.perf_counter() - start

    step()
    steps = torch.tensor([max(3, int(options.seconds / step()))])
    if options.processes > 1:
        torch.distributed.broadcast(steps, 0)
    times = sorted(step() for _ in range(int(steps)))
    if rank == 0:
        report(times)
    if options.processes > 1:
        torch.distributed.destroy_process_group()


def report(times):
    median = times[len(times) // 2]
    print(json.dumps(dict(model=options.net, batch=options.batch, threads=options.threads, processes=options.processes,
                          channels_last=options.channels_last, samples_per_s=round(options.batch * options.processes / median, 3),
                          step_ms=round(median * 1e3, 3), best_ms=round(times[0] * 1e3, 3), worst_ms=round(times[-1] * 1e3, 3), steps=len(times),
                          rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)), flush=True)


if __name__ == "__main__":
    if options.processes == 1:
        measure(0)
    else:
        torch.multiprocessing.spawn(measure, nprocs=options.processes)
