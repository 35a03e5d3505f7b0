#!/usr/bin/python3
"""Writes fixtures.json, against which parity_test.cpp checks the reference without PyTorch being there. Needs PyTorch; run it again only
when a model changes.

Weights, inputs and targets come from a formula on (name of the tensor, index of the element) that parity_test.cpp has too. Of each gradient
of PyTorch, in double precision, the file keeps three numbers: its norm and its dot products with sin(i + 1) and cos(0.7 i), which no wrong
gradient shares; the same of the running statistics after the step.
"""
import json
import os
import sys

import torch_side  # first: it may restart the process

import numpy
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = 10
# model -> (batch, input, whether the test runs it always). Batch norms see at least 24 elements per channel (parity.py says why).
CASES = {
    "resnet18": (4, (3, 96, 96), True),
    "squeezenet1_1": (2, (3, 64, 64), True),
    "mobilenet_v2": (8, (3, 64, 64), True),
    "googlenet": (8, (3, 64, 64), True),
    "unet3d": (3, (1, 16, 16, 16), True),
    "alexnet": (2, (3, 64, 64), False),
    "vgg11": (2, (3, 32, 32), False),
    "resnet50": (8, (3, 64, 64), False),
    "densenet121": (8, (3, 64, 64), False),
    "cosmoflow64": (1, (4, 64, 64, 64), False),
}


def fnv1a(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return numpy.uint64(value)


def words(name, count):
    """One 64-bit word per element: splitmix64 started at the hash of the name."""
    with numpy.errstate(over="ignore"):
        z = fnv1a(name) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


def centred(name, count):
    """In [-1, 1), the same doubles as in parity_test.cpp."""
    return (words(name, count) >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-52 - 1


def state_value(name, shape):
    """He's variance for weights of layers, values near 1 for scales and variances, small ones for the rest."""
    u = centred(name, int(numpy.prod(shape)))
    if len(shape) > 1:
        return u.reshape(shape) * numpy.sqrt(6 / numpy.prod(shape[1:]))
    return 1 + 0.2 * u if name.endswith((".weight", ".running_var")) else 0.1 * u


def target_value(kind, classes, shape):
    if kind == "regression":
        return torch.from_numpy(centred("target", int(numpy.prod(shape))).reshape(shape))
    labels = words("target", int(numpy.prod(shape))) % numpy.uint64(classes)
    return torch.from_numpy(labels.astype(numpy.int64).reshape(shape))


def fingerprint(tensor):
    values = tensor.numpy().ravel()
    i = numpy.arange(values.size, dtype=numpy.float64)
    numbers = (numpy.linalg.norm(values), values @ numpy.sin(i + 1), values @ numpy.cos(0.7 * i))
    return [float(f"{number:.13g}") for number in numbers]


def fixture(name):
    batch, shape, always = CASES[name]
    module, kind, classes = torch_side.make(name, CLASSES)
    module.load_state_dict({key: torch.from_numpy(state_value(key, tuple(t.shape))) if t.dim() else t for key, t in module.state_dict().items()})
    x = torch.from_numpy(numpy.sqrt(3) * centred("input", batch * int(numpy.prod(shape))).reshape(batch, *shape))
    target_shape = {"class": (batch,), "voxel": (batch, *shape[1:]), "regression": (batch, classes)}[kind]
    loss, gradients = torch_side.gradients(module, kind, x, target_value(kind, classes, target_shape))
    norm = numpy.sqrt(sum(float(g.square().sum()) for g in gradients.values()))
    buffers = {key: t for key, t in torch_side.state(module).items() if key not in gradients}
    print(f"{name}: loss {loss:.6g}, {len(gradients)} gradients with a norm of {norm:.6g}", flush=True)
    return dict(model=name, always=always, batch=batch, input=list(shape), classes=classes, loss=loss, norm=float(norm),
                gradients={key: fingerprint(g) for key, g in gradients.items()}, buffers={key: fingerprint(t) for key, t in buffers.items()})


def lines(case):
    """A case with one tensor per line, so that a difference can be read."""
    head = json.dumps({key: value for key, value in case.items() if not isinstance(value, dict)})[:-1]
    parts = (f'"{part}": {{\n' + ",\n".join(f"  {json.dumps(key)}: {json.dumps(n)}" for key, n in case[part].items()) + "}" for part in ("gradients", "buffers"))
    return head + ",\n " + ",\n ".join(parts) + "}"


def main():
    unknown = [m for m in sys.argv[1:] if m not in CASES]
    if unknown:
        sys.exit(f"make_fixtures: unknown model {unknown[0]}; known: {', '.join(CASES)}")
    path = f"{HERE}/fixtures.json"
    cases = {}
    if sys.argv[1:]:
        with open(path, encoding="utf-8") as old:
            cases = {case["model"]: case for case in json.load(old)}
    cases.update((name, fixture(name)) for name in sys.argv[1:] or CASES)
    with open(path, "w", encoding="utf-8") as out:
        out.write("[" + ",\n".join(lines(cases[name]) for name in CASES) + "]\n")


if __name__ == "__main__":
    main()
