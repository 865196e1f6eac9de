"""Scores of published schedulers, the lower the better: packing, Horus, opportunistic bin packing, SC'17's artifact."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.scores.score import Score, cheapest
from placeopt.problem import CPU, IntArray, Problem
from placeopt.terms.costs.horus import decision_costs


class DotProduct(Score):
    """
    The node whose free (CPU, GPU share) has the smallest dot product with what is asked, each over the largest node's.

    Tetris's alignment (Grandl et al., SIGCOMM'14) turned to packing, as FGD's evaluation does: a full node wins.
    """

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """See ``Score``."""
        problem, options = candidates.problem, candidates.problem.options
        workers = int(options.bundle_workers[option])
        most_cpu = max(int(problem.node_capacity[:, CPU].max()), 1)
        most_milli = 1000 * max(int(np.diff(problem.node_gpu_start).max()), 1)
        cpu = candidates.state.node_free[nodes, CPU] / most_cpu
        share = candidates.free_milli(nodes).sum(axis=1) / most_milli
        asked_cpu = workers * int(options.demand[option, CPU]) / most_cpu
        asked_share = workers * int(options.gpus[option] * options.milli[option]) / most_milli
        score: np.ndarray = (cpu * asked_cpu + share * asked_share) / 2
        return score


class GpuPacking(Score):
    """
    Shared GPUs first, the fullest; then the fewest idle GPUs of a node in use; then the smallest idle node.

    FGD's "GpuPacking" (after MLaaS in the wild, NSDI'22). 0 to 1 where all the bundle's GPUs are in use already: what
    is left of them; 1 to 2 where idle ones of a node in use are needed: how many; 2 to 3 on an idle node: its GPUs. A
    bundle without GPUs finds all nodes alike.
    """

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """See ``Score``."""
        options = candidates.problem.options
        need = int(options.bundle_gpus[option])
        if not need:
            return np.zeros(len(nodes))
        free, exists = candidates.free_milli(nodes), candidates.slot_exists[nodes]
        left = np.sort(np.where(candidates.usable(option, nodes), free, 1 << 40), axis=1)[
            :, :need
        ]  # the fullest usable
        idle = ((free == 1000) & exists).sum(axis=1)
        opened = (left == 1000).sum(axis=1)
        width = free.shape[1] + 1
        score = np.where(opened > 0, 1 + opened / width, left.sum(axis=1) / (1000 * need))
        packed: np.ndarray = np.where(idle == exists.sum(axis=1), 2 + idle / width, score)
        return packed


class GpuClustering(Score):
    """
    Nodes that hold jobs of the same GPU size: only such, then such among others, then idle nodes, then the rest.

    FGD's "GpuClustering" (after Gandiva, OSDI'18). Within a tier the node with the least GPU share free. Sizes are: a
    share of a GPU, or a number of whole ones on the node. A bundle without GPUs finds all nodes alike.
    """

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """See ``Score``."""
        options = candidates.problem.options
        if not options.gpus[option]:
            return np.zeros(len(nodes))
        mine, size = int(_sizes(candidates.problem)[option]), _sizes(candidates.problem)
        state, tier = candidates.state, np.empty(len(nodes))
        for i, node in enumerate(nodes.tolist()):
            placements = (state.placements[job] for job in state.node_jobs[node])
            here = {int(size[placement.option]) for placement in placements if placement is not None}
            if mine in here:
                tier[i] = 0 if len(here) == 1 else 1
            else:
                tier[i] = 3 if here else 2
        free = candidates.free_milli(nodes)
        score: np.ndarray = tier + free.sum(axis=1) / (1000 * free.shape[1] + 1)
        return score


def _sizes(problem: Problem) -> IntArray:
    """Shape (O,): 0 for a share of a GPU, else GPUs of a bundle."""
    options = problem.options
    sizes: IntArray = np.where(options.milli < 1000, 0, options.gpus * options.bundle_workers)
    return sizes


class Random(Score):
    """A node drawn again for every decision among those with room, and GPUs drawn on it. By its seed repeatable."""

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        del problem
        self._random = np.random.default_rng(seed)

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Equal for all; ``randomize`` draws."""
        del candidates, option
        return np.zeros(len(nodes))

    def randomize(self, scores: np.ndarray) -> np.ndarray:
        """Put a random number in the place of every finite score."""
        return np.where(np.isfinite(scores), self._random.random(len(scores)), np.inf)

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """``need`` of ``gpus``, any of them as likely as the others."""
        del candidates, option
        return tuple(sorted(self._random.choice(gpus, size=need, replace=False).tolist()))


class CheapestGpus(Score):
    """The node whose GPUs that a bundle would take cost least together, and these GPUs, ties by number."""

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Sum of the cheapest GPUs' costs, shape (len(nodes),)."""
        need = int(candidates.problem.options.bundle_gpus[option])
        if not need:
            return np.zeros(len(nodes))
        cost = self.cost(candidates, option, candidates.slot_gpu[nodes]).astype(float)
        score: np.ndarray = np.sort(np.where(candidates.usable(option, nodes), cost, np.inf), axis=1)[:, :need].sum(
            axis=1
        )
        return score

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the cheapest; ties by number."""
        return cheapest(gpus, self.cost(candidates, option, np.array(gpus, dtype=np.int64)), need)

    @abstractmethod
    def cost(self, candidates: Candidates, option: int, gpus: IntArray) -> IntArray:
        """Cost of a job in ``option`` on each of ``gpus``; same shape."""


class HorusByCost(CheapestGpus):
    """
    The node whose lambda cheapest GPUs cost the least, and these GPUs (Horus, algorithm 1 with eq. 7-10).

    Cost of one GPU for one job: w1 x (GPU memory used after) / capacity + w2 x f(utilisation after), f the fitted
    slowdown curve. It depends on what was placed before, unlike the term ``horus``, which counts a GPU once.
    Departures: the paper takes the lambda cheapest GPUs of all nodes with room; here they are on one node where the job
    asks for that, and a job that may spread goes to few, close nodes, the best of them by this cost.
    """

    def option_features(self, problem: Problem) -> IntArray:
        """Return the utilisation of each option, which its cost depends on."""
        return problem.options.utilisation[:, None]

    def cost(self, candidates: Candidates, option: int, gpus: IntArray) -> IntArray:
        """See ``CheapestGpus``."""
        return decision_costs(candidates.state, option, gpus)


class MostFreeMemory(CheapestGpus):
    """
    Opportunistic bin packing (Horus section 5, "OBP"): GPUs with the most memory free, the least loaded of them.

    A GPU takes a job if its memory suffices; which one is "similar to least-loaded" in the paper: read as the most free
    GPU memory, then the fewest jobs. Where no GPU states its memory, only the number of jobs is left.
    """

    def __init__(self, problem: Problem) -> None:
        self._most_jobs = problem.num_jobs + 1

    def cost(self, candidates: Candidates, option: int, gpus: IntArray) -> IntArray:
        """See ``CheapestGpus``."""
        del option
        state = candidates.state
        load: IntArray = state.gpu_jobs[gpus] - self._most_jobs * state.gpu_free_memory[gpus]
        return load


class LastMachine(Score):
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
