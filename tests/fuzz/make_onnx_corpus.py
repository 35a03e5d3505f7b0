#!/usr/bin/python3
"""Writes corpus/onnx: small models that between them use every family of ops, as a start for the fuzzer. Needs python3-onnx."""

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def save(name, nodes, inputs, weights=(), opset=13, output="y"):
    values = [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs]
    graph = helper.make_graph(nodes, "g", values, [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in weights])
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.preview.training", 1)]
    model = helper.make_model(graph, opset_imports=domains, producer_name="")
    folder = Path(__file__).resolve().parent / "corpus" / "onnx"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


def main():
    n, f32 = helper.make_node, np.float32
    image = [("x", TensorProto.FLOAT, [2, 2, 6, 6])]
    ones = lambda *s: np.ones(s, f32)
    save("conv", [n("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]), n("BatchNormalization", ["c", "g", "g", "g", "g"], ["d"]),
                  n("Relu", ["d"], ["e"]), n("GlobalAveragePool", ["e"], ["f"]), n("Flatten", ["f"], ["h"]), n("Gemm", ["h", "v", "g"], ["y"], transB=1)],
         image, [("w", ones(3, 2, 3, 3)), ("b", ones(3)), ("g", ones(3)), ("v", ones(3, 3))])
    save("pools", [n("MaxPool", ["x"], ["a", "i"], kernel_shape=[2, 2], ceil_mode=1), n("AveragePool", ["a"], ["b"], kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
                   n("ConvTranspose", ["b", "w"], ["c"], strides=[2, 2], output_padding=[1, 1]), n("LRN", ["c"], ["y"], size=3)],
         image, [("w", ones(2, 2, 3, 3))])
    save("shapes", [n("Shape", ["x"], ["s"]), n("Gather", ["s", "zero"], ["b"], axis=0), n("Concat", ["b", "open"], ["t"], axis=0), n("Reshape", ["x", "t"], ["f"]),
                    n("Slice", ["f", "zero", "end", "axis", "step"], ["g"]), n("Transpose", ["g"], ["h"], perm=[1, 0]), n("Pad", ["h", "pads"], ["i"], mode="reflect"),
                    n("Split", ["i"], ["j", "k"], axis=1), n("Tile", ["j", "times"], ["y"])],
         image, [("zero", np.array([0])), ("open", np.array([-1])), ("end", np.array([72])), ("axis", np.array([1])), ("step", np.array([3])),
                 ("pads", np.array([1, 0, 1, 0])), ("times", np.array([2, 2]))])
    save("resize", [n("Resize", ["x", "", "s"], ["a"], mode="linear", coordinate_transformation_mode="half_pixel"),
                    n("Resize", ["a", "", "", "z"], ["b"], mode="cubic"), n("Resize", ["b", "r", "", "z"], ["y"], mode="linear",
                                                                           coordinate_transformation_mode="tf_crop_and_resize")],
         image, [("s", np.array([1, 1, 2, 1.5], f32)), ("z", np.array([2, 2, 5, 4])), ("r", np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 1.3], f32))])
    save("arithmetic", [n("Mul", ["x", "h"], ["a"]), n("Add", ["a", "c"], ["b"]), n("Div", ["b", "x"], ["d"]), n("Max", ["d", "x", "c"], ["e"]),
                        n("Clip", ["e", "", "h"], ["f"]), n("PRelu", ["f", "c"], ["g"]), n("ReduceMean", ["g"], ["i"], axes=[2, 3], keepdims=0),
                        n("LogSoftmax", ["i"], ["y"], axis=-1)],
         image, [("h", np.array(0.5, f32)), ("c", ones(2, 1, 1))])
    save("training", [n("Dropout", ["x", "p", "t"], ["a", "m"]), n("LayerNormalization", ["a", "g"], ["b"], axis=-1), n("MatMul", ["b", "b"], ["c"]),
                      n("ReduceSum", ["c"], ["d"], keepdims=0), n("Gradient", ["x"], ["y"], xs=["x"], y="d", domain="ai.onnx.preview.training")],
         image, [("p", np.array(0.3, f32)), ("t", np.array(True)), ("g", ones(6))], opset=17)
    save("loss", [n("SoftmaxCrossEntropyLoss", ["x", "t", "w"], ["y", "z"], reduction="mean", ignore_index=1)],
         [("x", TensorProto.FLOAT, [3, 5]), ("t", TensorProto.INT64, [3])], [("w", ones(5))])
    save("adam", [n("Adam", ["r", "t", "x", "x", "x", "x"], ["y", "v", "h"], domain="ai.onnx.preview.training")],
         [("x", TensorProto.FLOAT, [4])], [("r", np.array(0.1, f32)), ("t", np.array(3))])


if __name__ == "__main__":
    main()
