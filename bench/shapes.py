"""A set of ten classes that is hard enough to need learning: five shapes, each filled with stripes or with a chequerboard, at random places,
sizes, angles and contrasts, under noise and a slope of light. 32x32 grey images as IDX files, the same from every run.
"""
import os
import struct

import numpy

SIZE = 32
SHAPES = ("disc", "square", "triangle", "cross", "ring")
CLASSES = 2 * len(SHAPES)


def inside(shape, x, y):
    """Where a shape of size 1 around the origin is; x and y are coordinates of pixels."""
    radius = numpy.hypot(x, y)
    if shape == "disc":
        return radius < 0.9
    if shape == "square":
        return numpy.maximum(abs(x), abs(y)) < 0.8
    if shape == "triangle":
        return (y > -0.6) & (y < 1 - 1.8 * abs(x))
    if shape == "cross":
        return (numpy.minimum(abs(x), abs(y)) < 0.3) & (numpy.maximum(abs(x), abs(y)) < 1)
    return (radius < 1) & (radius > 0.55)


def texture(chequered, x, y, wavelength, phase):
    waves = numpy.sin(2 * numpy.pi * x / wavelength + phase)
    return waves * numpy.sin(2 * numpy.pi * y / wavelength) * 1.4 if chequered else waves


def image(random, label):
    rows, columns = numpy.mgrid[0:SIZE, 0:SIZE]
    size, angle = random.uniform(8, 13), random.uniform(0, 2 * numpy.pi)
    x, y = columns - random.uniform(12, 20), rows - random.uniform(12, 20)
    turned = (x * numpy.cos(angle) + y * numpy.sin(angle), y * numpy.cos(angle) - x * numpy.sin(angle))
    mask = inside(SHAPES[label // 2], turned[0] / size, turned[1] / size)
    fill = texture(label % 2 == 1, *turned, random.uniform(4.5, 7), random.uniform(0, 2 * numpy.pi))
    slope = (x * random.normal() + y * random.normal()) * 0.6
    grey = 90 + slope + mask * (random.uniform(20, 45) + random.uniform(35, 60) * fill) + random.normal(0, 12, (SIZE, SIZE))
    return numpy.clip(grey, 0, 255).astype(numpy.uint8)


def write_idx(path, array):
    with open(path, "wb") as out:
        out.write(struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes())


def write(folder, train, test):
    """Both splits under MNIST's file names, as many of each class as the others."""
    random = numpy.random.Generator(numpy.random.PCG64(7))
    for split, count in (("train", train), ("t10k", test)):
        labels = random.permutation(numpy.arange(count) % CLASSES).astype(numpy.uint8)
        images = numpy.stack([image(random, label) for label in labels])
        write_idx(os.path.join(folder, f"{split}-images-idx3-ubyte"), images)
        write_idx(os.path.join(folder, f"{split}-labels-idx1-ubyte"), labels)
