"""Features of a model."""

import onnx

from placeopt.predict import onnx_features

value = onnx.helper.make_tensor_value_info
node = onnx.helper.make_node("Relu", ["x"], ["y"])
graph = onnx.helper.make_graph([node], "g", [value("x", 1, [1, 4])], [value("y", 1, [1, 4])])
onnx.save(onnx.helper.make_model(graph), "relu.onnx")
assert onnx_features("relu.onnx")
