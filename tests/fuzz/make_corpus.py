#!/usr/bin/env python3
"""Writes the small inputs that fuzzing begins with: tests/fuzz/corpus/TARGET/*. Only the standard library is needed.

    tests/fuzz/make_corpus.py
"""

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"


def put(target, name, data):
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def idx(kind, dims, data):
    return bytes([0, 0, kind, len(dims)]) + b"".join(struct.pack(">I", d) for d in dims) + data


def npy(descr, shape, data, fortran=False, version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    size = 2 if version == 1 else 4
    header += b" " * (-(8 + size + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


def safetensors(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def png(width, height, colour, rows, depth=8):
    """A PNG of these rows of bytes (without their filters); colour 0: grey, 2: RGB, 3: palette, 6: RGB and alpha"""
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    palette = chunk(b"PLTE", bytes(range(12))) if colour == 3 else b""
    body = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)) + palette + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def tar(entries, kind=tarfile.USTAR_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
        for name, data in entries:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    data = out.getvalue().rstrip(b"\0")
    return data + bytes(-len(data) % 512 + 1024)  # two empty blocks end it; Python fills up a tape's record


def npz(arrays, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in arrays:
            archive.writestr(zipfile.ZipInfo(name + ".npy"), data, method)
    return out.getvalue()


def checksum(data):
    """As src/train/checksum.cpp has it."""
    total, mask = 0xCBF29CE484222325, (1 << 64) - 1

    def mix(word):
        nonlocal total
        total = ((total ^ word) * 0x100000001B3) & mask
        total = ((total << 31) | (total >> 33)) & mask

    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        mix(struct.unpack_from("<Q", data, at)[0])
    mix(int.from_bytes(data[whole:], "little"))
    mix(len(data))
    return f"{total:016x}"


def make_idx():
    images = idx(8, (2, 3, 4), bytes(range(24)))
    put("idx", "images", images)
    put("idx", "labels", idx(8, (3,), b"\x00\x01\x02"))
    put("idx", "short", idx(0x0B, (2, 2), struct.pack(">4h", 1, -2, 3, -4)))
    put("idx", "int", idx(0x0C, (2,), struct.pack(">2i", 1, -2)))
    put("idx", "float", idx(0x0D, (2,), struct.pack(">2f", 1, -2)))
    put("idx", "double", idx(0x0E, (1, 1), struct.pack(">d", 0.5)))
    put("idx", "gzipped", gzip.compress(images, mtime=0))
    put("idx", "huge", idx(8, (0xFFFFFFFF, 0xFFFFFFFF), b"x"))


def make_npy():
    put("npy", "f4", npy("<f4", "(2, 3)", struct.pack("<6f", *range(6))))
    put("npy", "f8_fortran", npy("<f8", "(2, 2)", struct.pack("<4d", *range(4)), fortran=True))
    put("npy", "i2_v2", npy("<i2", "(3,)", struct.pack("<3h", 1, 2, 3), version=2))
    put("npy", "bool_v3", npy("|b1", "(2,)", b"\x00\x01", version=3))
    put("npy", "scalar", npy("<i8", "()", struct.pack("<q", 7)))
    put("npy", "empty", npy("<f2", "(0, 5)", b""))
    put("npy", "huge", npy("<f8", "(4294967295, 4294967295)", b""))


def make_safetensors():
    entries = {
        "__metadata__": {"format": "pt"},
        "w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "n": {"dtype": "I64", "shape": [], "data_offsets": [16, 24]},
    }
    put("safetensors", "two", safetensors(entries, bytes(24)))
    put("safetensors", "none", safetensors({}, b""))
    put("safetensors", "types", safetensors({"b": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]},
                                             "h": {"dtype": "BF16", "shape": [1], "data_offsets": [2, 4]}}, bytes(4)))
    put("safetensors", "huge", struct.pack("<Q", 1 << 40) + b"{}")


def make_plan():
    entry = {"layers": "*", "grid": 0, "input": [{"split": 0}], "weight": ["replicate"], "output": ["partial"], "batch_norm": "local"}
    grid = {"axes": [{"name": "sample", "size": 2}], "ranks": [0, 1]}
    put("plan", "two", json.dumps({"grids": [grid], "layers": [entry]}).encode())
    put("plan", "single", json.dumps({"grids": [{"axes": [], "ranks": [0]}], "layers": [{"layers": "*", "grid": 0}]}).encode())
    put("plan", "zero", json.dumps({"grids": [grid], "layers": [{**entry, "state_axis": 0}]}).encode())


def make_trace():
    event = {"name": "a: b", "cat": "forward", "ph": "X", "pid": 0, "tid": 1, "ts": 1.5, "dur": 2,
             "args": {"layer": "a", "what": "b", "step": 3, "flops": 1e9, "bytes": 64, "sent": 0}}
    name = {"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "rank 0"}}
    put("trace", "one", json.dumps({"queues": ["compute", "gradient"], "traceEvents": [name, event]}).encode())


def make_checkpoint():
    state = safetensors({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4))
    document = {
        "format": "convoy checkpoint", "version": 1, "state": {"bytes": len(state), "checksum": checksum(state)},
        "progress": {"step": 3, "epoch": 1, "batch": 0, "samples": 96, "in_epoch": {"loss": 0.5, "correct": 3, "samples": 4},
                     "last": {"train_loss": 1.5, "test_accuracy": 0.5}, "best_accuracy": 0.5},
        "train_samples": 32, "config": {"model": "lenet5", "input": "1x28x28", "classes": 10, "data": {"name": "synthetic"},
                                        "optimizer": {"rule": "adam"}, "schedule": {"lr": 0.1}, "skip": [], "freeze": ["conv1.*"]},
    }
    put("checkpoint", "whole", json.dumps(document).encode() + b"\0" + state)
    put("checkpoint", "bare", b"{}\0")


def make_cifar():
    pixels = bytes(3072)
    put("cifar", "ten", b"\x03" + pixels + b"\x09" + pixels)
    put("cifar", "hundred", b"\x07\x63" + pixels)
    put("cifar", "label", b"\x0a" + pixels)
    put("cifar", "short", pixels)


def make_npz():
    x, y = npy("<f4", "(2, 1, 2, 2)", struct.pack("<8f", *range(8))), npy("<i8", "(2,)", struct.pack("<2q", 0, 1))
    put("npz", "stored", npz([("x", x), ("y", y)]))
    put("npz", "deflated", npz([("x", x), ("y", y)], zipfile.ZIP_DEFLATED))
    put("npz", "both", npz([(f"{array}_{split}", data) for split in ("train", "test") for array, data in (("x", x), ("y", y))]))
    put("npz", "voxels", npz([("x", npy("|u1", "(1, 1, 2, 2, 2)", bytes(8))), ("y", npy("|u1", "(1, 2, 2, 2)", bytes(8)))]))
    put("npz", "regression", npz([("x", x), ("y", npy("<f8", "(2, 3)", bytes(48)))]))
    put("npz", "grown", npz([("x", npy("|u1", "(1, 1, 60000)", bytes(60000))), ("y", npy("|u1", "(1,)", b"\0"))], zipfile.ZIP_DEFLATED))


def make_tar():
    picture = png(4, 3, 2, [bytes(range(12))] * 3)
    one = [("a/0.png", picture), ("a/0.cls", b"1\n")]
    put("tar", "ustar", tar(one))
    put("tar", "pax", tar([("p" * 120 + ".png", picture), ("p" * 120 + ".cls", b"0")], tarfile.PAX_FORMAT))
    put("tar", "gnu", tar([("g" * 120 + ".png", picture), ("g" * 120 + ".json", b'{"label": 2}')], tarfile.GNU_FORMAT))
    put("tar", "gzipped", gzip.compress(tar(one), mtime=0))
    put("tar", "alone", tar(one[:1]))
    put("tar", "largest", tar([("0.png", picture), ("0.cls", b"2147483647")]))


def make_image():
    put("image", "rgb.png", png(4, 3, 2, [bytes(range(12))] * 3))
    put("image", "grey16.png", png(3, 2, 0, [bytes(6)] * 2, 16))
    put("image", "palette.png", png(5, 2, 3, [b"\x1b\x40"] * 2, 2))
    put("image", "alpha.png", png(2, 2, 6, [bytes(8)] * 2))
    put("image", "large.png", png(8000, 8000, 2, [bytes(12)]))


def main():
    for make in (make_idx, make_npy, make_safetensors, make_plan, make_trace, make_checkpoint, make_cifar, make_npz, make_tar, make_image):
        make()


if __name__ == "__main__":
    main()
