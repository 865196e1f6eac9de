"""The GPU pods of Alibaba's openb trace by class, from ``openb_classes.csv`` beside this file."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class OpenbClasses:
    """Classes of GPU pods as arrays of the same length: what one pod asks for, and how many pods do."""

    gpus: npt.NDArray[np.int64]
    gpu_milli: npt.NDArray[np.int64]
    cpu_millicores: npt.NDArray[np.int64]
    memory_mib: npt.NDArray[np.int64]
    pods: npt.NDArray[np.int64]

    def draw(self, rng: np.random.Generator, num_jobs: int, among: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Draw class indices, as often as the trace has pods, among the classes that a mask of them allows."""
        pods = np.where(among, self.pods, 0)
        return rng.choice(pods.size, num_jobs, p=pods / pods.sum())


@cache
def openb_classes() -> OpenbClasses:
    """Read the table; comment lines state its source and licence."""
    text = files("placeopt.generators").joinpath("openb_classes.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    table = np.array([line.split(",") for line in lines[1:]], dtype=np.int64)
    table.setflags(write=False)
    return OpenbClasses(**{name: table[:, i] for i, name in enumerate(lines[0].split(","))})
