"""Features of a model from its ONNX file: what Horus's table 3 lists."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import Any

from placeopt import BadInput, Unsupported

OPERATORS = (
    "AveragePool", "BatchNormalization", "Concat", "Constant", "Conv", "Exp", "Flatten", "GRU", "Gather", "Gemm",
    "GlobalAveragePool", "LSTM", "MaxPool", "Pad", "ReduceMean", "Relu", "Reshape", "Slice", "Split", "Squeeze",
    "Transpose",
)  # fmt: skip
"""Counted by name; MatMul, which the table lacks, counts as Gemm."""


def onnx_features(path: str | os.PathLike[str], *, batch: int = 1) -> dict[str, float]:
    """
    Return the features of the model in an ONNX file.

    Parameters
    ----------
    path
        The file; weights stored beside it are not needed.
    batch
        Size of the batch; free dimensions of inputs are taken to be it.

    Returns
    -------
    dict
        ``flops`` of a forward pass (two for each multiplication of Conv, Gemm, MatMul; one an element of what other
        operators give out), ``parameters`` and ``activations`` in elements, ``batch``, and one count for each of
        ``OPERATORS``, in lower case. The paper does not say how it counts; this is ours.

    Raises
    ------
    BadInput
        If the file is not an ONNX model.
    Unsupported
        If onnx is not installed.
    """
    if batch < 1:
        raise BadInput(f"batch: {batch}; expected 1 or more")
    try:
        import onnx
    except ImportError as error:
        raise Unsupported("features of ONNX files need onnx; install placeopt[predict]") from error
    name = os.fspath(path)
    try:
        model = onnx.load(name, load_external_data=False)
        _fix_batch(model, batch)
        graph = onnx.shape_inference.infer_shapes(model).graph
    except OSError as error:
        raise BadInput(f"{name}: {error.strerror or error}") from error
    except Exception as error:  # protobuf and onnx raise many kinds for files that are no models
        raise BadInput(f"{name}: no ONNX model ({type(error).__name__}: {error})") from error
    if not graph.node:  # a few bytes of anything may well be read as a model of nothing
        raise BadInput(f"{name}: no ONNX model, or one without operators")
    shapes = {value.name: _shape(value, batch) for value in (*graph.input, *graph.value_info, *graph.output)}
    weights = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    shapes.update(weights)
    counts = Counter("Gemm" if node.op_type == "MatMul" else node.op_type for node in graph.node)
    given_out = [math.prod(shapes.get(output, ())) for node in graph.node for output in node.output if output in shapes]
    return {
        "flops": float(sum(_flops(node, shapes) for node in graph.node)),
        "parameters": float(sum(math.prod(dims) for dims in weights.values())),
        "activations": float(sum(given_out)),
        "batch": float(batch),
        **{operator.lower(): float(counts[operator]) for operator in OPERATORS},
    }


def _fix_batch(model: Any, batch: int) -> None:
    known = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in known:
            continue
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_value <= 0:
                dimension.ClearField("dim_param")
                dimension.dim_value = batch


def _shape(value: Any, batch: int) -> tuple[int, ...]:
    return tuple(d.dim_value if d.dim_value > 0 else batch for d in value.type.tensor_type.shape.dim)


def _flops(node: Any, shapes: dict[str, tuple[int, ...]]) -> int:
    out = math.prod(shapes.get(node.output[0], ())) if node.output and node.output[0] in shapes else 0
    second = shapes.get(node.input[1], ()) if len(node.input) > 1 else ()
    if node.op_type == "Conv":
        return 2 * out * math.prod(second[1:])
    if node.op_type == "Gemm":
        turned = any(a.name == "transB" and a.i for a in node.attribute)
        return 2 * out * (second[1 if turned else 0] if len(second) > 1 else 1)
    if node.op_type == "MatMul":
        return 2 * out * (second[-2] if len(second) > 1 else 1)
    return out
