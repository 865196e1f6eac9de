"""
First come and best fit as SC'17's artifact plays them: the last machine with room, and its own ways to pick GPUs.

The artifact means to keep the machine of greatest utility but compares each with itself, so the last one stays. Its
best fit splits a job over two half-taken sockets rather than open a free one.
"""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.problem import IntArray


class LastMachine:
    """The last node of the file with room; GPUs in the order of their numbers."""

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``: the later the better."""
        del candidates, option
        return -nodes.astype(float)

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the first ``need`` of ``gpus``."""
        del candidates, option
        return tuple(sorted(gpus)[:need])


class LastMachineFullestSocket(LastMachine):
    """The same machine; GPUs of the socket with the fewest free ones first, of equal sockets the last."""

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return ``need`` of ``gpus``, socket after socket."""
        del option
        sockets = candidates.problem.gpu_socket[gpus].tolist()
        ranked = sorted(zip(sockets, gpus, strict=True), key=lambda pair: (sockets.count(pair[0]), -pair[0], pair[1]))
        return tuple(sorted(gpu for _, gpu in ranked[:need]))
