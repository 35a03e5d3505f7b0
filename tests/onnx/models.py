#!/usr/bin/python3
"""Whole models through ONNX, against PyTorch and another runtime.

    tests/onnx/models.py [--program build/convoy] [--work build/onnx-models] [--skip-runtime] [name...]

1. Models of torchvision with random weights, exported by PyTorch: imported, they give PyTorch's float32 outputs in evaluation mode within 1e-4 of their
   norm, and, exported in double, PyTorch's gradients within 1e-8, in evaluation mode and in training mode (batch statistics, no dropout).
2. Models of our zoo, exported by us: onnx.checker accepts them, and they give the outputs of the zoo's model again when imported and in onnxruntime
   (from npm, installed into the work directory; if npm or the network is missing, that is said and that part is left out).

Exits with 1 when anything does not hold. Uses Debian's python3-torch, python3-torchvision and python3-onnx.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "parity"))

# name -> side of the square input. vgg16 averages to 7x7, which PyTorch exports only where the side is a multiple of that.
TORCH_MODELS = {"resnet18": 64, "resnet50": 64, "vgg16": 224, "googlenet": 64, "densenet121": 64, "mobilenet_v2": 64, "squeezenet1_1": 64,
                "shufflenet_v2_x1_0": 64, "mnasnet1_0": 64}
# name -> (input, classes) of what we export ourselves.
ZOO_MODELS = {"lenet5": ("1x28x28", 10), "alexnet": ("3x224x224", 10), "vgg11_bn": ("3x224x224", 10), "googlenet": ("3x64x64", 10),
              "resnet18": ("3x64x64", 10), "resnet50": ("3x64x64", 10), "densenet121": ("3x64x64", 10), "squeezenet1_1": ("3x64x64", 10),
              "mobilenet_v2": ("3x64x64", 10), "cosmoflow64": ("4x64x64x64", 4), "unet3d": ("1x16x16x16", 3)}

RUNTIME_SCRIPT = """
const fs = require('fs'), ort = require('onnxruntime-node');
(async () => {
    const [model, input, output, dims] = process.argv.slice(2);
    const session = await ort.InferenceSession.create(model, {intraOpNumThreads: 1, logSeverityLevel: 3});
    const bytes = fs.readFileSync(input);
    const x = new ort.Tensor('float32', new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4), dims.split('x').map(Number));
    const y = (await session.run({[session.inputNames[0]]: x}))[session.outputNames[0]];
    fs.writeFileSync(output, Buffer.from(y.data.buffer, y.data.byteOffset, y.data.byteLength));
})().catch(error => { console.error(String(error)); process.exit(1); });
"""


def run(*command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {result.stderr.strip()[-800:]}")
    return result.stdout


def error_of(found, expected):
    """||found - expected|| / ||expected||."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    if found.shape != expected.shape:
        return float("inf")
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-300))


def torch_model(name, classes):
    import torch
    import torchvision

    torch.manual_seed(1)
    options = {"init_weights": True} if name == "googlenet" else {}
    if name == "googlenet":
        options["aux_logits"] = False
    model = getattr(torchvision.models, name)(weights=None, num_classes=classes, **options)
    # Statistics that a training might have left, so that batch norm does something.
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return model


def export_torch(model, x, path, faithful):
    """`faithful`: every parameter under its own name; otherwise as PyTorch exports by itself, batch norm folded into convolutions."""
    import torch

    options = {"opset_version": 13, "input_names": ["x"], "output_names": ["y"], "dynamic_axes": {"x": {0: "n"}, "y": {0: "n"}}}
    if faithful:
        options |= {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    torch.onnx.export(model, x, str(path), **options)


def check_gradients(program, model, path, x, target, work, training):
    import torch
    from safetensors_files import read

    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.train(training)
    model.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), target)
    loss.backward()
    # In training mode PyTorch has changed its running statistics; the file has those from before, which training does not read.
    output = work / "g.safetensors"
    flags = ["--training", "--no-dropout"] if training else []
    run(program, "grad", path, "--input-file", work / "x64.npy", "--target", work / "t.npy", "--output", output, "--dtype", "f64",
        "--backend", "reference", *flags)
    found = read(output)
    expected = {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None}
    missing = sorted(set(expected) - set(found))
    if missing:
        raise RuntimeError(f"no gradient of {', '.join(missing[:4])}; there are {', '.join(sorted(found)[:4])}")
    whole = np.sqrt(sum(float((g ** 2).sum()) for g in expected.values()))
    return max(float(np.linalg.norm(found[n] - g) / max(np.linalg.norm(g), 1e-3 * whole)) for n, g in expected.items())


def check_torch(program, name, work):
    import torch

    side = TORCH_MODELS[name]
    rng = np.random.default_rng(3)
    batch = 2 if side < 100 else 1
    x = rng.standard_normal((batch, 3, side, side))
    target = torch.tensor(rng.integers(0, 7, batch))
    np.save(work / "x32.npy", x.astype(np.float32))
    np.save(work / "x64.npy", x)
    np.save(work / "t.npy", target.numpy().astype(np.int64))
    model = torch_model(name, 7).eval()
    x32 = torch.tensor(x.astype(np.float32))
    path = work / f"{name}.onnx"
    export_torch(model, x32, path, faithful=False)
    run(program, "run", path, "--input-file", work / "x32.npy", "--output", work / "y.npy")
    with torch.no_grad():
        forward = error_of(np.load(work / "y.npy"), model(x32).numpy())
    model = model.double()
    export_torch(model, torch.tensor(x), path, faithful=True)
    evaluation = check_gradients(program, model, path, torch.tensor(x), target, work, training=False)
    training = check_gradients(program, model, path, torch.tensor(x), target, work, training=True) if batch > 1 else float("nan")
    path.unlink()
    good = forward <= 1e-4 and evaluation <= 1e-8 and not training > 1e-8
    print(f"{name:20} output f32 {forward:.1e}   gradients f64: evaluation {evaluation:.1e}, training {training:.1e}   {'ok' if good else 'FAILED'}",
          flush=True)
    return good


def make_runtime(work):
    """The folder with onnxruntime, or why there is none."""
    folder = work / "runtime"
    if not shutil.which("npm") or not shutil.which("node"):
        return None, "npm or node is missing"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / "onnxruntime-node").exists():
        result = subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder), "onnxruntime-node@1.30.0"],
                                capture_output=True, text=True, cwd=folder)
        if result.returncode != 0:
            return None, f"npm could not install it: {result.stderr.strip()[-200:]}"
    (folder / "run.js").write_text(RUNTIME_SCRIPT)
    return folder, ""


def livelier_weights(model, path):
    """The weights of an exported model, but the matrices and kernels so large that a signal keeps its size."""
    from onnx import numpy_helper
    from safetensors_files import write

    rng, weights = np.random.default_rng(11), {}
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32:
            fan_in = values.size // values.shape[0] if values.ndim > 1 else 1
            weights[tensor.name] = rng.standard_normal(values.shape) * np.sqrt(2 / fan_in) if values.ndim > 1 else values
    write(path, weights)


def check_zoo(program, name, work, runtime):
    import onnx

    def export_and_run(*weights):
        run(program, "export", name, "--input", shape, "--classes", classes, "--seed", 7, "--output", path, *weights)
        run(program, "run", name, "--classes", classes, "--seed", 7, "--input-file", work / "x.npy", "--output", work / "y.npy", *weights)
        return onnx.load(str(path)), np.load(work / "y.npy")

    shape, classes = ZOO_MODELS[name]
    dims = [2] + [int(v) for v in shape.split("x")]
    x = np.random.default_rng(5).standard_normal(dims).astype(np.float32)
    np.save(work / "x.npy", x)
    path = work / f"our-{name}.onnx"
    dull = lambda y: error_of(y[0], y[1]) < 1e-3  # the same for both samples: agreeing about it would say nothing
    model, expected = export_and_run()
    if dull(expected):
        livelier_weights(model, work / "w.safetensors")
        model, expected = export_and_run("--weights", work / "w.safetensors")
    if dull(expected):
        raise RuntimeError("its outputs do not depend on its inputs")
    onnx.checker.check_model(model, full_check=True)
    run(program, "run", path, "--input-file", work / "x.npy", "--output", work / "y2.npy")
    again = error_of(np.load(work / "y2.npy"), expected)
    other = float("nan")
    if runtime:
        (work / "x.bin").write_bytes(x.tobytes())
        run("node", runtime / "run.js", path, work / "x.bin", work / "y.bin", "x".join(map(str, dims)))
        other = error_of(np.frombuffer((work / "y.bin").read_bytes(), np.float32).reshape(expected.shape), expected)
    path.unlink()
    good = again <= 1e-5 and not other > 1e-4
    print(f"{name:20} checker ok   imported again {again:.1e}   onnxruntime {other:.1e}   {'ok' if good else 'FAILED'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "convoy"))
    parser.add_argument("--work", default=str(ROOT / "build" / "onnx-models"))
    parser.add_argument("--skip-runtime", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    Path(arguments.work).mkdir(parents=True, exist_ok=True)
    runtime, why = (None, "--skip-runtime") if arguments.skip_runtime else make_runtime(Path(arguments.work))
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:  # runs side by side do not share files
        return compare(arguments, Path(folder), runtime, why)


def compare(arguments, work, runtime, why):
    chosen = lambda known: [n for n in known if not arguments.names or n in arguments.names]
    bad = []
    print("Exported by PyTorch, imported by us:")
    for name in chosen(TORCH_MODELS):
        try:
            if not check_torch(arguments.program, name, work):
                bad.append(name)
        except Exception as error:  # noqa: BLE001: the others are still worth a look
            print(f"{name:20} FAILED: {error}", flush=True)
            bad.append(name)
    print(f"Exported by us:{'' if runtime else f' (without onnxruntime: {why})'}")
    for name in chosen(ZOO_MODELS):
        try:
            if not check_zoo(arguments.program, name, work, runtime):
                bad.append(name)
        except Exception as error:  # noqa: BLE001
            print(f"{name:20} FAILED: {error}", flush=True)
            bad.append(name)
    print(json.dumps({"failed": bad}) if bad else "all hold")
    return 1 if bad else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main())
