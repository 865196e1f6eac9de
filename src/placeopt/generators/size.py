"""Size and seed of a generated round."""

from dataclasses import dataclass

import numpy as np

from placeopt.errors import BadInput
from placeopt.model.base import MAX_NODES


@dataclass(frozen=True)
class Size:
    """Waiting jobs, nodes, GPUs per node, and the seed; raises ``BadInput`` if one is out of range."""

    jobs: int
    nodes: int
    gpus: int
    seed: int

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("jobs", self.jobs, 0, 500_000),
            ("nodes", self.nodes, 1, MAX_NODES),
            ("gpus", self.gpus, 1, 64),
            ("seed", self.seed, 0, 2**63 - 1),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise BadInput(f"{name}: {value!r}, expected an integer of {low}..{high}")
        if self.num_gpus > 1_000_000:
            raise BadInput(f"gpus: {self.nodes} nodes x {self.gpus} GPUs, expected at most 1000000 GPUs in all")

    @property
    def num_gpus(self) -> int:
        """Number of GPUs of the cluster."""
        return self.nodes * self.gpus

    def random(self) -> np.random.Generator:
        """Return the random generator of the round."""
        return np.random.default_rng(self.seed)

    def title(self, spec: str) -> str:
        """Name of the instance."""
        return f"{spec}-{self.jobs}x{self.nodes}x{self.gpus}-s{self.seed}"
