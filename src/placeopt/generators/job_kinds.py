"""
Kinds of jobs from papers and traces: profiles with communication weights and slowdowns, sizes, demands of pods.

Profiles are after Amaral et al. (SC'17). Weights are those of section 5.1: 4 tiny batch, 3 small, 2 medium, 1 big.
Figure 6 (two AlexNet jobs of 2 GPUs on one machine) gives, as text: tiny beside tiny up to 30 % slower, tiny beside big
24 %, small beside big 21 %, big barely slowed at all. The figures in between are ours, and so is that GoogLeNet, which
gains far less from peer-to-peer traffic in figure 4, suffers half of what AlexNet does.
"""

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from placeopt.model import Slowdown

PROFILES = ("alexnet-tiny", "alexnet-small", "alexnet-medium", "alexnet-big", "googlenet-tiny", "googlenet-big")
WEIGHTS = (4, 3, 2, 1, 4, 1)
"""Communication weight of each profile, for jobs of two GPUs or more; one GPU does not communicate."""

_SUFFERED = {
    "tiny": {"tiny": 300, "small": 280, "medium": 260, "big": 240},
    "small": {"tiny": 260, "small": 240, "medium": 225, "big": 210},
    "medium": {"tiny": 100, "small": 90, "medium": 80, "big": 70},
}
"""Batch of the slowed job -> of the other -> excess in thousandths of the solo time. Big batches do not suffer."""
JOBS_BY_GPUS = {1: 76_627, 2: 1_818, 4: 1_870, 8: 1_643, 16: 199, 32: 67}
"""
Jobs of the Philly trace by number of GPUs: msr-fiddle/philly-traces (CC-BY-4.0), 82,247 jobs of 2017, as stored in
siasosp23/artifacts, sia-simulator/traces/philly.csv. 23 jobs of other sizes are left out.
"""

SINGLE_GPU_SHARES = {250: 0.25, 500: 0.25, 1000: 0.5}
"""
The trace has no fractions. Of its single-GPU jobs a quarter requests 1/4 of a GPU, a quarter 1/2 and half a whole one,
in GPU-milli. Ours.
"""


def slowdowns() -> tuple[Slowdown, ...]:
    """
    Pairwise slowdowns of all profiles.

    The excess holds for jobs that share a GPU, a switch or a socket: the artifact of the paper counts only neighbours
    in the same socket, so jobs in different sockets of a machine do not disturb each other here.
    """
    pairs = []
    for profile in PROFILES:
        net, batch = profile.split("-")
        for beside in PROFILES:
            excess = _SUFFERED.get(batch, {}).get(beside.split("-")[1], 0) // (2 if net == "googlenet" else 1)
            if excess:
                near = {f"{level}_thousandths": excess for level in ("gpu", "switch", "socket")}
                pairs.append(Slowdown(profile=profile, beside=beside, **near))
    return tuple(pairs)


def philly_sizes(rng: np.random.Generator, num_jobs: int, most_gpus: int) -> npt.NDArray[np.int64]:
    """Draw sizes in GPU-milli, 250 to 32,000; those above ``most_gpus`` GPUs become the largest size that is not."""
    total = sum(JOBS_BY_GPUS.values())
    shares = {milli: share * JOBS_BY_GPUS[1] / total for milli, share in SINGLE_GPU_SHARES.items()}
    shares |= {1000 * gpus: jobs / total for gpus, jobs in JOBS_BY_GPUS.items() if gpus > 1}
    sizes = np.array(list(shares), dtype=np.int64)
    drawn = rng.choice(sizes, num_jobs, p=list(shares.values()))
    largest = int(sizes[sizes <= 1000 * most_gpus].max())
    capped: npt.NDArray[np.int64] = np.minimum(drawn, largest)
    return capped


def philly_workers(
    rng: np.random.Generator, sizes: npt.NDArray[np.int64], node_gpus: int
) -> dict[str, npt.NDArray[Any]]:
    """
    Divide sizes (GPU-milli) into workers: columns ``workers``, ``gpus`` (of a worker) and ``gpu_milli``.

    What fits a node is one worker. Larger sizes are gangs: half of them of workers as large as a node allows (the
    largest power of two that is not above ``node_gpus``), half of workers half that large.
    """
    largest = 1 << (node_gpus.bit_length() - 1)
    halved = rng.random(sizes.size) < 0.5
    whole = np.maximum(sizes // 1000, 1)
    of_gang = np.where(halved, max(largest // 2, 1), largest)
    gpus = np.where(whole <= node_gpus, whole, of_gang)
    return {"workers": whole // gpus, "gpus": gpus, "gpu_milli": np.minimum(sizes, 1000)}


@cache
def openb_classes() -> np.recarray[Any, Any]:
    """
    Return classes of GPU pods: ``gpus``, ``gpu_milli``, ``cpu_millicores``, ``memory_mib``, and their number ``pods``.

    Comment lines of the table state source and licence.
    """
    text = files("placeopt.generators").joinpath("openb_classes.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return np.genfromtxt(lines, delimiter=",", names=True, dtype=np.int64).view(np.recarray)


def draw_openb(
    rng: np.random.Generator, num_jobs: int, among: npt.NDArray[np.bool_] | bool = True
) -> npt.NDArray[np.int64]:
    """Draw indices of classes in proportion to the trace's pods, among the classes of a mask."""
    pods = np.where(among, openb_classes().pods, 0)
    return rng.choice(pods.size, num_jobs, p=pods / pods.sum())
