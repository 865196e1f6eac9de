"""A small network whose counts are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.predict import onnx_features

onnx = pytest.importorskip("onnx")


def small_network(path: Path) -> None:
    """3 x 8 x 8 image, convolution to 4 channels with a 3 x 3 kernel, ReLU, flattened, to 10 classes."""
    from onnx import TensorProto, helper

    def weights(name: str, dims: list[int]) -> object:
        size = 1
        for d in dims:
            size *= d
        return helper.make_tensor(name, TensorProto.FLOAT, dims, [0.0] * size)

    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["c"], kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Gemm", ["f", "dense"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])],
        [weights("kernel", [4, 3, 3, 3]), weights("dense", [10, 144])],
    )
    onnx.save(helper.make_model(graph), str(path))


def test_counts_by_hand(tmp_path: Path) -> None:
    """The convolution gives out 4 x 6 x 6 a sample, with 27 multiplications each; the dense layer 10 with 144 each."""
    small_network(tmp_path / "small.onnx")
    found = onnx_features(tmp_path / "small.onnx", batch=2)
    assert found["parameters"] == 4 * 27 + 1440
    assert found["activations"] == 2 * (144 + 144 + 144 + 10)
    assert found["flops"] == 2 * (2 * 144 * 27 + 144 + 144 + 2 * 10 * 144)
    assert [found[name] for name in ("conv", "relu", "flatten", "gemm", "lstm", "batch")] == [1, 1, 1, 1, 0, 2]


def test_other_files_are_refused(tmp_path: Path) -> None:
    """No traceback of protobuf."""
    (tmp_path / "no.onnx").write_bytes(b"nothing of that kind")
    with pytest.raises(BadInput, match=r"no\.onnx"):
        onnx_features(tmp_path / "no.onnx")
    (tmp_path / "two.onnx").write_bytes(b"xx")  # which is a model, if one without anything
    with pytest.raises(BadInput, match=r"two\.onnx: no ONNX model, or one without operators"):
        onnx_features(tmp_path / "two.onnx")
    with pytest.raises(BadInput, match=r"missing\.onnx"):
        onnx_features(tmp_path / "missing.onnx")
    with pytest.raises(BadInput, match="batch: 0"):
        onnx_features(tmp_path / "no.onnx", batch=0)
