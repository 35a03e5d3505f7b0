#!/usr/bin/env python3
"""PyTorch's training step on one GPU (forward, backward, SGD with momentum), a JSON line for each way: the rival's side of bench/gpu.

torch_gpu_step.py NET --batch B --ways bf16:graph-last,tf32:eager-nchw,... [--seconds S]

A way is a type (f32, tf32, bf16), a mode (eager, graph: a CUDA graph, compile: torch.compile) and a layout (nchw, last: channels-last). Steps are timed ten at
a time (long ones two at a time) between two events; bf16 is autocast with float32 weights. A way that fails says so on standard error and has no line.
"""
import argparse
import gc
import json
import sys

import torch
import torch_nets

GROUP, LONG_GROUP = 10, 2
LONG_MS = 100


def make_step(net, batch, dtype, mode, last):
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = dtype != "f32"
    model, shape, kind, classes = torch_nets.make(net)
    model = model.cuda()
    x, y = torch_nets.batch(shape, kind, classes, batch, "cuda")
    if last:
        model, x = torch_nets.channels_last(model), torch_nets.channels_last(x)
    loss = torch_nets.loss_of(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=True)
    forward = torch.compile(model) if mode == "compile" else model

    def step():
        optimizer.zero_grad(set_to_none=mode != "graph")
        with torch.autocast("cuda", torch.bfloat16, enabled=dtype == "bf16"):
            value = loss(forward(x), y)
        value.backward()
        optimizer.step()

    return step


def warmed(step, mode):
    """The step after warming up, as a replayed graph in that mode."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    if mode != "graph":
        return step
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def group_ms(call, count):
    """A step, as the mean of so many one after the other."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / count


def measure(options, way):
    dtype, how = way.split(":")
    mode, layout = how.split("-")
    torch.cuda.reset_peak_memory_stats()
    call = warmed(make_step(options.net, options.batch, dtype, mode, layout == "last"), mode)
    group_ms(call, LONG_GROUP)
    one = group_ms(call, LONG_GROUP)
    count = LONG_GROUP if one > LONG_MS else GROUP
    groups = max(3, int(options.seconds * 1e3 / count / one))
    times = sorted(group_ms(call, count) for _ in range(groups))
    median = times[len(times) // 2]
    return dict(model=options.net, batch=options.batch, way=way, samples_per_s=round(options.batch * 1e3 / median, 2), step_ms=round(median, 4),
                best_ms=round(times[0], 4), worst_ms=round(times[-1], 4), steps=groups * count, peak_bytes=torch.cuda.max_memory_allocated())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--ways", required=True)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    for way in options.ways.split(","):
        try:
            print(json.dumps(measure(options, way)), flush=True)
        except Exception as error:  # a way that a net cannot go is a missing line, not the end
            print(f"torch_gpu_step: {options.net} {way}: {error}", file=sys.stderr, flush=True)
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
