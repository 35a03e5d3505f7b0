#!/usr/bin/env python3
"""PyTorch's training step on one GPU (forward, backward, SGD with momentum), one JSON line: the rival's side of bench/gpu.

torch_gpu_step.py NET --batch B --dtype f32|tf32|bf16 --mode eager|graph|compile [--channels-last] [--seconds S]

Steps are timed ten at a time between two events, as Convoy's are; bf16 is autocast with float32 weights.
"""
import argparse
import json

import torch
import torch_nets

GROUP = 10

parser = argparse.ArgumentParser()
parser.add_argument("net")
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--dtype", choices=["f32", "tf32", "bf16"], default="bf16")
parser.add_argument("--mode", choices=["eager", "graph", "compile"], default="eager")
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--seconds", type=float, default=3)
options = parser.parse_args()

torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.dtype != "f32"


def make_step():
    torch.manual_seed(0)
    model, shape, kind, classes = torch_nets.make(options.net)
    model = model.cuda()
    x, y = torch_nets.batch(shape, kind, classes, options.batch, "cuda")
    if options.channels_last:
        model, x = torch_nets.channels_last(model), torch_nets.channels_last(x)
    loss = torch_nets.loss_of(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=True)
    forward = torch.compile(model) if options.mode == "compile" else model

    def step():
        optimizer.zero_grad(set_to_none=options.mode != "graph")
        with torch.autocast("cuda", torch.bfloat16, enabled=options.dtype == "bf16"):
            value = loss(forward(x), y)
        value.backward()
        optimizer.step()

    return step


def warmed(step):
    """The step after warming up, as a replayed graph in that mode."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    if options.mode != "graph":
        return step
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def group_ms(call):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(GROUP):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / GROUP


torch.cuda.reset_peak_memory_stats()
call = warmed(make_step())
group_ms(call)
groups = max(3, int(options.seconds * 1e3 / GROUP / group_ms(call)))
times = sorted(group_ms(call) for _ in range(groups))
median = times[len(times) // 2]
print(json.dumps(dict(model=options.net, batch=options.batch, dtype=options.dtype, mode=options.mode, channels_last=options.channels_last,
                      samples_per_s=round(options.batch * 1e3 / median, 2), step_ms=round(median, 4), best_ms=round(times[0], 4),
                      worst_ms=round(times[-1], 4), steps=groups * GROUP, peak_bytes=torch.cuda.max_memory_allocated())), flush=True)
