"""
Graphs of standard networks, made layer by layer and written as ONNX, without weights: for features of predictors.

The architectures are those of their papers (AlexNet as torchvision's, VGG, ResNet, GoogLeNet, MobileNet, BERT's
encoder, LSTM language models); images may be smaller than 224. Beside the graph stands what each operator computes and
moves, by its shapes alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

CLASSES = 1000
OPSET = 11
"""The last in which axes are attributes: as inputs they would be weights, whose values this does not write."""
BYTES = 4
"""Of an element in single precision."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of the graph by name, and its shape with the batch first."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """What an operator computes and moves in a forward pass."""

    flops: int
    bytes: int


@dataclass
class Graph:
    """A network under construction: ONNX nodes and weights, and the work of every operator."""

    batch: int
    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, tuple[int, ...]] = field(default_factory=dict)
    work: list[Work] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)

    def source(self, *shape: int) -> Tensor:
        """Return the input of a sample's shape."""
        self.inputs.append(Tensor(f"x{len(self.inputs)}", (self.batch, *shape)))
        return self.inputs[-1]

    def add(
        self,
        kind: str,
        inputs: tuple[Tensor, ...],
        shape: tuple[int, ...],
        weights: tuple[tuple[int, ...], ...] = (),
        flops: int | None = None,
        **attributes: Any,
    ) -> Tensor:
        """Add an operator with weights of some dimensions; without ``flops`` it computes one for each element."""
        from onnx import helper

        name = f"{kind.lower()}{len(self.nodes)}"
        made = [f"{name}.w{i}" for i in range(len(weights))]
        self.weights |= dict(zip(made, weights, strict=True))
        self.nodes.append(helper.make_node(kind, [*(x.name for x in inputs), *made], [name], **attributes))
        moved = sum(math.prod(x.shape) for x in inputs) + math.prod(shape) + sum(map(math.prod, weights))
        self.work.append(Work(math.prod(shape) if flops is None else flops, BYTES * moved))
        return Tensor(name, shape)

    def conv(self, x: Tensor, channels: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> Tensor:
        """Convolve with as much padding as keeps the size, divided by the stride."""
        n, c, h, w = x.shape
        shape = (n, channels, -(-h // stride), -(-w // stride))
        each = c // groups * kernel * kernel
        return self.add(
            "Conv", (x,), shape, ((channels, c // groups, kernel, kernel),), 2 * math.prod(shape) * each,
            kernel_shape=[kernel, kernel], strides=[stride, stride], group=groups, auto_pad="SAME_UPPER",
        )  # fmt: skip

    def relu(self, x: Tensor) -> Tensor:
        """Rectify."""
        return self.add("Relu", (x,), x.shape)

    def normed(self, x: Tensor) -> Tensor:
        """Normalise by batch and rectify."""
        return self.relu(self.add("BatchNormalization", (x,), x.shape, ((x.shape[1],),) * 4))

    def pool(self, x: Tensor, kernel: int = 2, stride: int = 2) -> Tensor:
        """Take the largest of a window."""
        n, c, h, w = x.shape
        shape = (n, c, -(-h // stride), -(-w // stride))
        return self.add(
            "MaxPool", (x,), shape, kernel_shape=[kernel, kernel], strides=[stride, stride], auto_pad="SAME_UPPER"
        )

    def dense(self, x: Tensor, width: int) -> Tensor:
        """Connect all of a sample's elements to each of ``width``."""
        size = math.prod(x.shape[1:])
        flat = x if len(x.shape) == 2 else self.add("Flatten", (x,), (x.shape[0], size))
        out = (x.shape[0], width)
        return self.add("Gemm", (flat,), out, ((size, width), (width,)), 2 * math.prod(out) * size)

    def classify(self, x: Tensor) -> None:
        """Average over the image, and connect to the classes."""
        self.dense(self.add("GlobalAveragePool", (x,), (*x.shape[:2], 1, 1)), CLASSES)

    def matmul(self, x: Tensor, width: int) -> Tensor:
        """Multiply by a matrix of weights."""
        shape = (*x.shape[:-1], width)
        return self.add("MatMul", (x,), shape, ((x.shape[-1], width),), 2 * math.prod(shape) * x.shape[-1])

    @property
    def parameters(self) -> int:
        """Elements of all weights."""
        return sum(map(math.prod, self.weights.values()))

    def save(self, path: Path) -> None:
        """Write the graph; its weights have dimensions and no values."""
        from onnx import TensorProto, helper

        tensors = []
        for name, dims in self.weights.items():
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims)
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="none")
            tensors.append(tensor)
        made = [helper.make_tensor_value_info(x.name, TensorProto.FLOAT, ["n", *x.shape[1:]]) for x in self.inputs]
        last = helper.make_tensor_value_info(self.nodes[-1].output[0], TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "net", made, [last], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        path.write_bytes(model.SerializeToString())


def alexnet(graph: Graph, size: int) -> None:
    """Krizhevsky 2012, as one tower."""
    x = graph.pool(graph.relu(graph.conv(graph.source(3, size, size), 64, 11, 4)), 3)
    x = graph.pool(graph.relu(graph.conv(x, 192, 5)), 3)
    for channels in (384, 256, 256):
        x = graph.relu(graph.conv(x, channels))
    x = graph.pool(x, 3)
    for _ in range(2):
        x = graph.relu(graph.dense(x, 4096))
    graph.dense(x, CLASSES)


def vgg(graph: Graph, size: int, repeats: tuple[int, ...]) -> None:
    """Simonyan 2015: convolutions in five blocks."""
    x = graph.source(3, size, size)
    for channels, number in zip((64, 128, 256, 512, 512), repeats, strict=True):
        for _ in range(number):
            x = graph.relu(graph.conv(x, channels))
        x = graph.pool(x)
    for _ in range(2):
        x = graph.relu(graph.dense(x, 4096))
    graph.dense(x, CLASSES)


def resnet(graph: Graph, size: int, blocks: tuple[int, ...], *, bottleneck: bool) -> None:
    """He 2016: blocks with a shortcut, plain or with a bottleneck."""
    x = graph.pool(graph.normed(graph.conv(graph.source(3, size, size), 64, 7, 2)), 3)
    grown = 4 if bottleneck else 1
    for stage, number in enumerate(blocks):
        width = 64 * 2**stage
        for i in range(number):
            stride, short = 2 if stage and not i else 1, x
            if bottleneck:
                y = graph.normed(graph.conv(x, width, 1))
                y = graph.conv(graph.normed(graph.conv(y, width, 3, stride)), width * grown, 1)
            else:
                y = graph.conv(graph.normed(graph.conv(x, width, 3, stride)), width)
            if x.shape != y.shape:
                short = graph.conv(x, width * grown, 1, stride)
            x = graph.normed(graph.add("Add", (y, short), y.shape))
    graph.classify(x)


INCEPTION = (
    (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None, (192, 96, 208, 16, 48, 64),
    (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128), None, (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128),
)  # fmt: skip
"""GoogLeNet's modules: channels of 1 x 1; of 3 x 3 and 5 x 5 with those before; after the pool. None: a pool."""


def googlenet(graph: Graph, size: int) -> None:
    """Szegedy 2015."""
    x = graph.pool(graph.relu(graph.conv(graph.source(3, size, size), 64, 7, 2)), 3)
    x = graph.pool(graph.relu(graph.conv(graph.relu(graph.conv(x, 64, 1)), 192)), 3)
    for module in INCEPTION:
        if module is None:
            x = graph.pool(x, 3)
            continue
        one, three_in, three, five_in, five, after = module
        parts = (
            graph.relu(graph.conv(x, one, 1)),
            graph.relu(graph.conv(graph.relu(graph.conv(x, three_in, 1)), three)),
            graph.relu(graph.conv(graph.relu(graph.conv(x, five_in, 1)), five, 5)),
            graph.relu(graph.conv(graph.pool(x, 3, 1), after, 1)),
        )
        n, _, h, w = x.shape
        x = graph.add("Concat", parts, (n, one + three + five + after, h, w), axis=1)
    graph.classify(x)


POINTWISE = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1),
)  # fmt: skip
"""MobileNet's channels and strides."""


def mobilenet(graph: Graph, size: int, percent: int) -> None:
    """Howard 2017: a convolution of each channel, then one of points; ``percent`` of the channels."""
    x = graph.normed(graph.conv(graph.source(3, size, size), 32 * percent // 100, 3, 2))
    for width, stride in POINTWISE:
        x = graph.normed(graph.conv(x, x.shape[1], 3, stride, groups=x.shape[1]))
        x = graph.normed(graph.conv(x, width * percent // 100, 1))
    graph.classify(x)


def encoder(graph: Graph, length: int, layers: int, width: int) -> None:
    """Devlin 2019: attention and two dense layers, again and again, from embedded words on; heads are not split."""
    x = graph.source(length, width)
    for _ in range(layers):
        query, key, value = (graph.matmul(x, width) for _ in range(3))
        turned = graph.add("Transpose", (key,), (graph.batch, width, length), perm=[0, 2, 1])
        square = (graph.batch, length, length)
        looked = graph.add("MatMul", (query, turned), square, (), 2 * math.prod(square) * width)
        looked = graph.add("Softmax", (looked,), square)
        mixed = graph.add("MatMul", (looked, value), value.shape, (), 2 * math.prod(value.shape) * length)
        x = graph.add("Add", (x, graph.matmul(mixed, width)), x.shape)
        x = graph.add("Add", (x, graph.matmul(graph.relu(graph.matmul(x, 4 * width)), width)), x.shape)


def language(graph: Graph, length: int, layers: int, width: int) -> None:
    """Zaremba 2015: layers of LSTM over a sequence, from embedded words on, and the words of the vocabulary."""
    x = graph.source(length, width)
    steps = graph.add("Transpose", (x,), (length, graph.batch, width), perm=[1, 0, 2])
    for _ in range(layers):
        every = (length, 1, graph.batch, width)
        out = graph.add(
            "LSTM", (steps,), every, ((1, 4 * width, width), (1, 4 * width, width)),
            2 * math.prod(every) * 8 * width, hidden_size=width,
        )  # fmt: skip
        steps = graph.add("Squeeze", (out,), (length, graph.batch, width), axes=[1])
    graph.matmul(steps, 10_000)


@dataclass(frozen=True)
class Network:
    """A network of the collection: family, name, and what makes it."""

    family: str
    name: str
    make: Callable[[Graph], None]

    def graph(self, batch: int) -> Graph:
        """Return its graph."""
        made = Graph(batch)
        self.make(made)
        return made


def networks() -> Iterator[Network]:
    """Yield the collection: seven families, in several depths and sizes of a sample."""
    for size in (32, 64, 128, 224):
        yield Network("alexnet", f"alexnet-{size}", partial(alexnet, size=size))
        yield Network("googlenet", f"googlenet-{size}", partial(googlenet, size=size))
        for depth, repeats in ((11, (1, 1, 2, 2, 2)), (16, (2, 2, 3, 3, 3)), (19, (2, 2, 4, 4, 4))):
            yield Network("vgg", f"vgg-{depth}-{size}", partial(vgg, size=size, repeats=repeats))
        for depth, blocks in ((18, (2, 2, 2, 2)), (50, (3, 4, 6, 3)), (101, (3, 4, 23, 3))):
            make = partial(resnet, size=size, blocks=blocks, bottleneck=depth > 34)
            yield Network("resnet", f"resnet-{depth}-{size}", make)
        for percent in (50, 100):
            yield Network("mobilenet", f"mobilenet-{percent}-{size}", partial(mobilenet, size=size, percent=percent))
    for length in (64, 256):
        for layers, width in ((4, 256), (6, 512), (12, 768)):
            make = partial(encoder, length=length, layers=layers, width=width)
            yield Network("encoder", f"encoder-{layers}x{width}-{length}", make)
    for length in (20, 70):
        for layers, width in ((1, 256), (2, 650), (2, 1500)):
            make = partial(language, length=length, layers=layers, width=width)
            yield Network("lstm", f"lstm-{layers}x{width}-{length}", make)
