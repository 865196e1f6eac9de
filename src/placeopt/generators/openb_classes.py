"""The GPU pods of Alibaba's openb trace by class, from ``openb_classes.csv`` beside this file."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class OpenbClasses:
    """Classes of GPU pods as arrays of the same length: the demand of a pod, and the number of such pods."""

    gpus: npt.NDArray[np.int64]
    gpu_milli: npt.NDArray[np.int64]
    cpu_millicores: npt.NDArray[np.int64]
    memory_mib: npt.NDArray[np.int64]
    pods: npt.NDArray[np.int64]

    def draw(self, rng: np.random.Generator, num_jobs: int, among: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return class indices drawn in proportion to the trace's pods, among the classes of a mask."""
        pods = np.where(among, self.pods, 0)
        return rng.choice(pods.size, num_jobs, p=pods / pods.sum())


@cache
def openb_classes() -> OpenbClasses:
    """Return the table; its comment lines state source and licence."""
    text = files("placeopt.generators").joinpath("openb_classes.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    table = np.array([line.split(",") for line in lines[1:]], dtype=np.int64)
    table.setflags(write=False)
    return OpenbClasses(**{name: table[:, i] for i, name in enumerate(lines[0].split(","))})
