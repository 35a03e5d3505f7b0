"""PyTorch's side of the parity checks: the networks in double precision, in training mode, with dropout off.

make(name, **options) -> (module, kind of target: "class", "voxel" or "regression", number of classes or outputs)
"""
import os
import sys

OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
if OPENBLAS not in os.environ.get("LD_LIBRARY_PATH", ""):  # several times as fast as the reference BLAS; read when a process starts
    os.environ["LD_LIBRARY_PATH"] = OPENBLAS + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    os.execv(sys.executable, [sys.executable] + sys.argv)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

import torch  # noqa: E402  after the path of its BLAS is set
import torch.nn.functional as F  # noqa: E402
import torch_nets  # noqa: E402  from bench/

KINDS = {"cosmoflow64": ("regression", 4), "unet3d": ("voxel", 3)}
AUXILIARY_WEIGHT = 0.3  # of GoogLeNet's heads, as its paper has it


def make(name, classes=1000):
    """`classes` is for the models of torchvision; the others have their own number."""
    if name in KINDS:
        module = torch_nets.make(name)[0]
        kind, classes = KINDS[name]
    else:
        import torchvision
        options = dict(aux_logits=True, init_weights=True) if name == "googlenet" else {}
        module, kind = getattr(torchvision.models, name)(num_classes=classes, **options), "class"
    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
    for part in module.modules():  # DenseNet drops by a number of its own
        if hasattr(part, "drop_rate"):
            part.drop_rate = 0.0
    return module.double().train(), kind, classes


def loss_of(module, kind, x, target):
    """The mean loss of a batch. torchvision returns GoogLeNet's auxiliary outputs under swapped names; their sum does not mind."""
    outputs = module(x)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    loss = F.mse_loss if kind == "regression" else F.cross_entropy
    return sum(weight * loss(y, target) for weight, y in zip((1, AUXILIARY_WEIGHT, AUXILIARY_WEIGHT), outputs))


def gradients(module, kind, x, target):
    """-> (loss, {parameter: gradient}); also moves the running statistics of batch norms by one step."""
    loss = loss_of(module, kind, x, target)
    loss.backward()
    return loss.item(), {name: p.grad for name, p in module.named_parameters()}


def state(module):
    """Parameters and buffers by name, as Convoy knows them: without the counters of batches."""
    return {name: t for name, t in module.state_dict().items() if not name.endswith("num_batches_tracked")}
