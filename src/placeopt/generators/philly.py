"""Job sizes in the proportions of Microsoft's Philly trace, and their division into workers."""

from typing import Any

import numpy as np
import numpy.typing as npt

JOBS_BY_GPUS = {1: 76_627, 2: 1_818, 4: 1_870, 8: 1_643, 16: 199, 32: 67}
"""
Jobs of the Philly trace by number of GPUs: msr-fiddle/philly-traces (CC-BY-4.0), 82,247 jobs of 2017, as stored in
siasosp23/artifacts, sia-simulator/traces/philly.csv. 23 jobs of other sizes are left out.
"""

SINGLE_GPU_SHARES = {250: 0.25, 500: 0.25, 1000: 0.5}
"""
The trace knows no fractions. Of its single-GPU jobs we let a quarter ask for 1/4 of a GPU, a quarter for 1/2 and half
for a whole one, in GPU-milli. Ours.
"""


def draw_sizes(rng: np.random.Generator, num_jobs: int, most_gpus: int) -> npt.NDArray[np.int64]:
    """Draw sizes in GPU-milli, 250 to 32,000; those above ``most_gpus`` GPUs become the largest size that is not."""
    total = sum(JOBS_BY_GPUS.values())
    shares = {milli: share * JOBS_BY_GPUS[1] / total for milli, share in SINGLE_GPU_SHARES.items()}
    shares |= {1000 * gpus: jobs / total for gpus, jobs in JOBS_BY_GPUS.items() if gpus > 1}
    sizes = np.array(list(shares), dtype=np.int64)
    drawn = rng.choice(sizes, num_jobs, p=list(shares.values()))
    largest = int(sizes[sizes <= 1000 * most_gpus].max())
    capped: npt.NDArray[np.int64] = np.minimum(drawn, largest)
    return capped


def workers(rng: np.random.Generator, sizes: npt.NDArray[np.int64], node_gpus: int) -> dict[str, npt.NDArray[Any]]:
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
