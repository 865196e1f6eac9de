"""What the compiled problem is made of: integer and boolean arrays read-only once built."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

RESOURCES = ("cpu_millicores", "memory_mib", "memory_bandwidth_mbps", "pcie_bandwidth_mbps")
"""Additive resources of a node, in the order of the last axis of every resource array (R = 4)."""

UNLIMITED = 1 << 50
"""Capacity of what is never a limit. Above any sum that the model's bounds admit, far below 2^63."""


class Frozen:
    """Makes the array fields of a dataclass read-only once it is built."""

    def __post_init__(self) -> None:
        """Lock every array."""
        for field in fields(self):  # type: ignore[arg-type]  # only dataclasses inherit this
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
