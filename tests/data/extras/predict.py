"""Features of a model are read, and a regressor is fitted to a table."""

import onnx
from onnx import TensorProto, helper

from placeopt.systems.horus import onnx_features
from placeopt.systems.predictors import fit_predictor

shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "small", shape[:1], shape[1:])
onnx.save(helper.make_model(graph), "small.onnx")
assert onnx_features("small.onnx")["relu"] == 1

rows = [{"profile": f"m{n}", "batch": str(n), "gpu_utilisation_percent": str(2 * n)} for n in range(20)]
assert fit_predictor("horus-utilisation", rows, source="made up").provenance.rows == 20
