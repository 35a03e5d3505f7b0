#!/usr/bin/python3
"""Writes corpus/hdf5 and the JPEGs of corpus/image: files as their own libraries write them. Needs python3-h5py and python3-pil.
Beside them, corpus/hdf5/damaged_* are two of these with one byte changed, on which a program that gives them to HDF5 1.10.8 unlooked at crashes.

    tests/fuzz/make_library_corpus.py
"""

import io
from pathlib import Path

import h5py
import numpy as np
from PIL import Image

CORPUS = Path(__file__).resolve().parent / "corpus"


def put_hdf5(name, x, y, attributes=(), version="earliest", **layout):
    path = CORPUS / "hdf5" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w", libver=version, track_order=False) as file:
        file.create_dataset("x", data=x, track_times=False, **layout)
        target = file.create_dataset("y", data=y, track_times=False)
        for key, value in attributes:
            target.attrs[key] = value


def put_jpeg(name, mode, size, **options):
    path = CORPUS / "image" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.add.outer(np.arange(size[1]) * 9, np.arange(size[0]) * 5) % 256
    out = io.BytesIO()
    Image.fromarray(values.astype(np.uint8)).convert(mode).save(out, "JPEG", quality=40, **options)
    path.write_bytes(out.getvalue())


def main():
    f4, volume = np.float32, (2, 1, 4, 4, 4)
    ramp = np.arange(128).reshape(volume)
    put_hdf5("regression", ramp.astype(f4), np.zeros((2, 3), f4))
    put_hdf5("voxels", ramp.astype(np.uint8), (ramp[:, 0] % 3).astype(np.uint8), [("classes", 3)])
    put_hdf5("chunked", ramp.astype(f4), np.arange(2), chunks=(1, 1, 2, 4, 4))
    put_hdf5("deflated", ramp.astype(np.float64), np.arange(2), chunks=volume, compression="gzip", shuffle=True, fletcher32=True)
    put_hdf5("latest", ramp.astype(np.float16), np.arange(2, dtype=">i2"), [("classes", 4)], version="latest")
    put_hdf5("latest_chunked", ramp.astype(f4), np.arange(2), version="latest", chunks=(1, 1, 4, 4, 4), compression="gzip")
    put_hdf5("sample", ramp[0].astype(f4), np.zeros(3, f4))
    put_jpeg("colour.jpg", "RGB", (24, 17))
    put_jpeg("grey.jpg", "L", (9, 8))
    put_jpeg("progressive.jpg", "RGB", (33, 20), progressive=True)
    put_jpeg("cmyk.jpg", "CMYK", (8, 8))


if __name__ == "__main__":
    main()
