"""A small network whose counts are worked out by hand."""

from math import prod
from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.systems.horus import onnx_features

onnx = pytest.importorskip("onnx")


def test_counts_by_hand(tmp_path: Path) -> None:
    """
    3 x 8 x 8 image, convolution to 4 channels with a 3 x 3 kernel, ReLU, flattened, to 10 classes.

    The convolution gives out 4 x 6 x 6 a sample, with 27 multiplications each; the dense layer 10 with 144 each.
    """
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["c"], kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Gemm", ["f", "dense"], ["y"], transB=1),
    ]
    ends = {"x": ["n", 3, 8, 8], "y": ["n", 10]}
    x, y = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)] for name, dims in ends.items())
    shapes = {"kernel": [4, 3, 3, 3], "dense": [10, 144]}
    weights = [helper.make_tensor(name, TensorProto.FLOAT, dims, [0.0] * prod(dims)) for name, dims in shapes.items()]
    onnx.save(helper.make_model(helper.make_graph(nodes, "small", x, y, weights)), str(tmp_path / "small.onnx"))
    found = onnx_features(tmp_path / "small.onnx", batch=2)
    assert found["parameters"] == 4 * 27 + 1440
    assert found["activations"] == 2 * (144 + 144 + 144 + 10)
    assert found["flops"] == 2 * (2 * 144 * 27 + 144 + 144 + 2 * 10 * 144)
    assert [found[name] for name in ("conv", "relu", "flatten", "gemm", "lstm", "batch")] == [1, 1, 1, 1, 0, 2]


@pytest.mark.parametrize(
    ("data", "batch", "words"),
    [
        (b"nothing of that kind", 1, r"f\.onnx"),
        (b"xx", 1, r"f\.onnx: no ONNX model, or one without operators"),  # a model, if one without anything
        (None, 1, r"f\.onnx"),
        (b"", 0, "batch: 0"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes | None, batch: int, words: str) -> None:
    """No traceback of protobuf."""
    if data is not None:
        (tmp_path / "f.onnx").write_bytes(data)
    with pytest.raises(BadInput, match=words):
        onnx_features(tmp_path / "f.onnx", batch=batch)
