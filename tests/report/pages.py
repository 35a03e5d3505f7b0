"""What the tests of reports share: running the program, a short run of two ranks, and a large simulation made by hand."""

import json
import subprocess

RUN = ["train", "lenet5", "--data", "synthetic", "--train-samples", "256", "--test-samples", "64", "--batch", "16", "--epochs", "2",
       "--threads", "1", "--plan", "sample:2", "--log-every", "4"]


def convoy(program, *arguments, timeout=60):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=timeout)


def make_run(program, directory):
    done = convoy(program, *RUN, "--run-dir", directory)
    assert done.returncode == 0, done.stderr
    return directory


def trace(ranks, layers, scale=1.0):
    """A step: forward, backward with traffic beside it, update."""
    events = []

    def add(rank, queue, phase, layer, what, begin, duration, sent=0):
        events.append({"name": f"{layer}: {what}", "cat": phase, "ph": "X", "pid": rank, "tid": queue, "ts": begin, "dur": duration,
                       "args": {"layer": layer, "what": what, "step": 3, "flops": 1e9, "bytes": 1000, "sent": sent}})

    for rank in ranks:
        at = 0.0
        for i in range(layers):
            add(rank, 0, "forward", f"layer{i}", "conv 3x3 pad 1", at, 50 * scale)
            add(rank, 1, "forward", f"layer{i}", "exchange", at, 20 * scale, 4096)
            at += 52 * scale
        for i in reversed(range(layers)):
            add(rank, 0, "backward", f"layer{i}", "conv_wgrad 3x3 pad 1", at, 90 * scale)
            add(rank, 2, "backward", f"layer{i}", "all_reduce", at + 90 * scale, 60 * scale, 1 << 20)
            at += 95 * scale
        add(rank, 0, "update", "layer0", "update", at + 80 * scale, 40 * scale)
    return {"queues": ["compute", "activation", "gradient", "host"], "traceEvents": events}


def write_simulation(folder, ranks=4096, classes=40, layers=160):
    """A directory as `simulate --output` writes it, of a strong scaling up to `ranks` ranks."""
    folder.mkdir()
    counts = [1 << k for k in range(ranks.bit_length())]
    members = [{"ranks": ranks // classes, "first": i, "step_ms": 4, "waiting_ms": 3, "arena_bytes": 10**9 + i * 10**6, "state_bytes": 10**8} for i in range(classes)]
    points = [{"ranks": 1, "batch": 4096, "failure": "cannot be divided"}]
    points += [{"ranks": r, "batch": 4096, "step_ms": 4000 / r + 3, "samples_per_s": 4096e3 / (4000 / r + 3), "memory_bytes": 4e10 / r + 2e8,
                "joules": 1000 + r, "limit": "computing", "classes": [{"ranks": r, "first": 0, "step_ms": 4, "waiting_ms": 3}]} for r in counts[1:]]
    points[-1]["classes"] = members
    placement = {"spec": f"sample:{ranks}", "grids": [{"axes": [{"name": "sample", "size": ranks}], "ranks": list(range(ranks))}],
                 "layers": [{"layer": f"layer{i}", "kind": "conv 3x3 pad 1", "from": [f"layer{i - 1}"] if i else [], "input": "samples/4096",
                             "weight": "whole", "output": "samples/4096", "local_output": "1x64x56x56", "activation_bytes_sent": 0,
                             "gradient_bytes_sent": 147456} for i in range(layers)], "unfollowed": []}
    steps = 4 * layers
    memory = {"rank": 0, "arena_bytes": 10**9, "state_bytes": {"parameters": 5 * 10**7, "optimizer": 5 * 10**7, "buffers": 0},
              "layers": [f"layer{i % layers}" for i in range(steps)], "phases": ["forward" if i < steps / 2 else "backward" for i in range(steps)],
              "bytes": {"activations": [10**6 * min(i, steps - i) for i in range(steps)], "gradients": [10**6 if i > steps / 2 else 0 for i in range(steps)]},
              "peak": steps // 2, "at_peak": [{"name": "layer3", "use": "activations", "bytes": 10**8}]}
    document = {"model": "resnet50", "machine": "v100", "dtype": "f32", "plan": "auto", "points": points}
    for name, content in (("simulation", document), ("placement", placement), ("memory", memory), ("trace", trace(range(classes), layers))):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def write_prediction(folder, run):
    """A simulation that says what the run measured."""
    folder.mkdir()
    (folder / "simulation.json").write_text(json.dumps({"points": [{"ranks": 2, "step_ms": 1.5}]}))
    (folder / "trace.json").write_text((run / "trace.json").read_text())
    return folder
