#!/usr/bin/python3
"""Convoy's gradients beside PyTorch's, both in double precision, live: `make parity`.

parity.py [MODEL ...] [--convoy PROGRAM] [--threads T] [--seed S]

Every model begins with the weights that torchvision (or bench/torch_nets.py) gives it from a seed. They go to Convoy as a safetensors file,
inputs and targets as .npy files; `convoy grad --dtype f64 --training --no-dropout` sends back a gradient per parameter. Of each, by name,

    ||g - g_torch|| <= 1e-8 * max(||g_torch||, 1e-3 * norm of the whole gradient)

and the losses agree to 1e-10. The floor is there because some gradients are zero in exact arithmetic (a bias in front of a batch norm), and
nothing but rounding in both.

Inputs are small, but not so small that batch norms divide by next to nothing: with few elements per channel some variance comes out tiny by
chance, and its inverse amplifies the rounding of all before it. Every batch norm here sees at least 32.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import torch_side  # first: it may restart the process

import numpy
import safetensors_files
import torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRADIENT_TOLERANCE = 1e-8
LOSS_TOLERANCE = 1e-10
FLOOR = 1e-3
# model -> (batch, input); the last maps of the image networks with batch norm are 2x2, the bottom of the U-Net 2x2x2
CASES = {
    "alexnet": (4, (3, 64, 64)),
    "vgg16": (4, (3, 64, 64)),
    "googlenet": (8, (3, 64, 64)),
    "resnet18": (8, (3, 64, 64)),
    "resnet50": (8, (3, 64, 64)),
    "densenet121": (8, (3, 64, 64)),
    "mobilenet_v2": (8, (3, 64, 64)),
    "squeezenet1_1": (4, (3, 64, 64)),
    "cosmoflow64": (2, (4, 64, 64, 64)),
    "unet3d": (4, (1, 16, 16, 16)),
}


def make_case(name, seed):
    """-> (module, kind, inputs, targets), all drawn from the seed."""
    torch.manual_seed(seed)
    module, kind, classes = torch_side.make(name)
    batch, shape = CASES[name]
    x = torch.randn(batch, *shape, dtype=torch.float64)
    if kind == "regression":
        return module, kind, x, torch.randn(batch, classes, dtype=torch.float64)
    return module, kind, x, torch.randint(0, classes, (batch, *(shape[1:] if kind == "voxel" else ())))


def run_convoy(options, name, folder, tensors, x, target):
    """-> (loss, {parameter: gradient}); the gradients are mapped from a file in `folder`."""
    path = {part: os.path.join(folder, part) for part in ("weights.safetensors", "x.npy", "target.npy", "gradients.safetensors")}
    safetensors_files.write(path["weights.safetensors"], {key: t.numpy() for key, t in tensors.items()})
    numpy.save(path["x.npy"], x.numpy())
    numpy.save(path["target.npy"], target.numpy())
    command = [options.convoy, "grad", name, "--dtype", "f64", "--training", "--no-dropout", "--input-file", path["x.npy"], "--target",
               path["target.npy"], "--weights", path["weights.safetensors"], "--output", path["gradients.safetensors"], "--json", "-"]
    command += ["--threads", str(options.threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {result.stderr.strip()}")
    return json.loads(result.stdout)["loss"], safetensors_files.read(path["gradients.safetensors"])


def compare(ours, theirs):
    """-> (worst error, name of that parameter). A parameter that only one side has is an error without bound."""
    for name in sorted(ours.keys() ^ theirs.keys()):
        return float("inf"), f"{name} is only in {'Convoy' if name in ours else 'PyTorch'}"
    norms = {name: numpy.linalg.norm(g.numpy()) for name, g in theirs.items()}
    floor = FLOOR * numpy.linalg.norm(list(norms.values()))
    worst = (0.0, "")
    for name, g in theirs.items():
        if ours[name].shape != tuple(g.shape):
            return float("inf"), f"{name} is {ours[name].shape}, expected {tuple(g.shape)}"
        error = float(numpy.linalg.norm(ours[name] - g.numpy()) / max(norms[name], floor))
        if not error <= worst[0]:  # so that NaN counts as worst
            worst = (error, name)
    return worst


def check(options, name):
    """Prints a line of the table; -> whether the model agrees."""
    start = time.perf_counter()
    module, kind, x, target = make_case(name, options.seed)
    before = torch_side.state(module)
    parameters = sum(p.numel() for p in module.parameters())
    with tempfile.TemporaryDirectory(prefix="parity-") as folder:
        # Convoy first: PyTorch's step moves the running statistics, which are part of the state handed over.
        our_loss, ours = run_convoy(options, name, folder, before, x, target)
        convoy_s = time.perf_counter() - start
        loss, theirs = torch_side.gradients(module, kind, x, target)
        difference = abs(our_loss - loss) / abs(loss)
        error, where = compare(ours, theirs)
    agrees = difference <= LOSS_TOLERANCE and error <= GRADIENT_TOLERANCE
    print(f"{name:<16}{'x'.join(map(str, x.shape)):>16}{parameters:>13,}{difference:>11.1e}{error:>11.1e}  {where:<42}"
          f"{convoy_s:>7.1f}{time.perf_counter() - start - convoy_s:>7.1f}  {'ok' if agrees else 'DIFFERS'}", flush=True)
    return agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(CASES))
    parser.add_argument("--convoy", default=f"{ROOT}/build/convoy")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unknown = [m for m in options.models if m not in CASES]
    if unknown:
        sys.exit(f"parity: unknown model {unknown[0]}; known: {', '.join(CASES)}")
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, float64, training mode, dropout off, seed {options.seed}; bounds: loss {LOSS_TOLERANCE:g}, "
          f"gradient {GRADIENT_TOLERANCE:g}")
    print(f"{'model':<16}{'input':>16}{'parameters':>13}{'loss':>11}{'gradient':>11}  {'worst in':<42}{'ours s':>7}{'its s':>7}")
    failed = [name for name in options.models if not check(options, name)]
    if failed:
        sys.exit(f"parity: {', '.join(failed)} differ{'s' if len(failed) == 1 else ''} from PyTorch")
    print(f"parity: all {len(options.models)} models agree")


if __name__ == "__main__":
    main()
