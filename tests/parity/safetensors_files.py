"""Reads and writes safetensors files of float64 with NumPy alone: a length, a JSON header, and the tensors end to end."""
import json
import struct

import numpy


def write(path, tensors):
    """tensors: {name: array}; stored in double precision."""
    header, end = {}, 0
    for name, array in tensors.items():
        begin, end = end, end + 8 * array.size
        header[name] = dict(dtype="F64", shape=list(array.shape), data_offsets=[begin, end])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            out.write(numpy.ascontiguousarray(array, dtype="<f8").data)


def read(path):
    """-> {name: array}; the arrays are mapped, not read. Refuses other types than F64."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    whole = numpy.memmap(path, mode="r", dtype=numpy.uint8, offset=8 + length)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "F64":
            raise ValueError(f"{path}: {name} is {entry['dtype']}, expected F64")
        begin, end = entry["data_offsets"]
        tensors[name] = whole[begin:end].view("<f8").reshape(entry["shape"])
    return tensors
