"""Machine types that several tests use."""

from typing import Any

from placeopt.build import machine
from placeopt.model import Gpu, Machine, Part

SC17_MATRIX = ((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0))
"""Distances of two sockets of two GPUs as the artifact of SC'17 states them: 1 apart inside and 20 across."""


def sockets(*sizes: int, **fields: Any) -> Machine:
    """Return a machine with sockets ``s0``, ``s1``, ... of so many GPUs."""
    parts = tuple(Part(id=f"s{i}", level="socket") for i in range(len(sizes)))
    gpus = [Gpu(model="P100", memory_mib=16_384, part=f"s{i}") for i, size in enumerate(sizes) for _ in range(size)]
    return machine(**{"gpus": gpus, "parts": parts, **fields})
