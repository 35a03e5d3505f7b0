"""Files of tensors, read and written with Python's standard library alone."""

import json
import struct
from pathlib import Path


def write_npy(path, shape, values, kind):
    """kind: f4, f8 or i8, as NumPy names them."""
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': ({''.join(f'{n}, ' for n in shape)}), }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    code = {"f4": "f", "f8": "d", "i8": "q"}[kind]
    Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values))


def read_npy(path):
    data = Path(path).read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10 : 10 + size].decode())  # a dict literal of our own making
    code = {"<f4": "f", "<f8": "d"}[header["descr"]]
    return header["shape"], [v for (v,) in struct.iter_unpack("<" + code, data[10 + size :])]


def read_safetensors(path):
    """Tensors by name, as (dtype, shape, bytes)."""
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    return {n: (t["dtype"], t["shape"], body[slice(*t["data_offsets"])]) for n, t in header.items() if n != "__metadata__"}


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)
