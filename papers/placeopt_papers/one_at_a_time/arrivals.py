"""FGD's protocol on openb: the order of arrival, and the allocation as a function of what has arrived."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placeopt import read_instance
from placeopt.model import Instance
from placeopt.problem import IntArray, Problem, compile_problem
from placeopt_papers.one_at_a_time.go_random import GoRandom

NODES = "openb-gpu-nodes.json.gz"
PODS = "openb-{}.json.gz"
RATIO = 1.3
"""Demand that arrives, in multiples of the capacity."""

OTHER_NUMBERS = 10
"""
Random numbers that other parts of the authors' simulator take between the last pod and the order of nodes.

They are drawn by threads that start meanwhile. With so many the fragmentation published for the first two percent of
arrivals, which tells orders apart, comes out to the last digit for all ten seeds of default and multigpu20.
"""


@dataclass(frozen=True, eq=False)
class Arrivals:
    """A list of pods, by name, on the trace's nodes with GPUs."""

    instance: Instance
    problem: Problem
    milli: IntArray  # (J,) GPU-milli that a pod requests
    capacity: int  # GPU-milli of the cluster

    def order(self, seed: int) -> IntArray:
        """
        Pods in order of arrival; those drawn to fill up stand more than once.

        As the authors' simulator: seed, one number thrown away, shuffle; then pods are drawn with replacement until the
        next one's share would pass 1.3 x the capacity (of a pod of several GPUs only one is counted there), or, where
        the list asks for more than that, removed.
        """
        return self._draw(seed)[0]

    def by_seed(self, seed: int) -> tuple[Arrivals, IntArray]:
        """
        Return the same list with nodes in the order that ``seed`` gives them, and the order of arrival.

        The simulator puts a random number before each node's name, and takes the first name among nodes of equal score.
        """
        order, random = self._draw(seed)
        for _ in range(OTHER_NUMBERS):
            random.int63()
        number = random.permutation(self.problem.num_nodes)
        nodes = self.instance.cluster.nodes
        shuffled = tuple(nodes[n] for n in np.argsort(number).tolist())
        cluster = self.instance.cluster.model_copy(update={"nodes": shuffled})
        return arrivals_of(self.instance.model_copy(update={"cluster": cluster})), order

    def _draw(self, seed: int) -> tuple[IntArray, GoRandom]:
        random = GoRandom(seed)
        random.int63()
        pods: list[object] = list(range(self.problem.num_jobs))
        random.shuffle(pods)
        order = np.array(pods, dtype=np.int64).tolist()
        total, goal = int(self.milli.sum()), RATIO * self.capacity
        per_gpu = self.problem.options.milli * (self.problem.options.gpus > 0)
        first = self.problem.class_option_start[self.problem.job_class]
        short = total < goal
        while total > goal:
            total -= int(self.milli[order.pop(random.intn(len(order)))])
        while short:  # a pod of several GPUs may pass the goal; then one more is drawn
            pod = random.intn(self.problem.num_jobs)
            if total + int(per_gpu[first[pod]]) > goal:
                break
            order.append(pod)
            total += int(self.milli[pod])
        return np.array(order, dtype=np.int64), random

    def allocated(self, order: IntArray, placed: np.ndarray) -> dict[int, float]:
        """Percent of the capacity allocated, by percent that arrived: the mean over the steps that round to it."""
        arrived = self.arrived(order)
        used = 100 * np.cumsum(np.where(placed, self.milli[order], 0)) / self.capacity
        steps = np.bincount(arrived, minlength=131)
        means = np.bincount(arrived, weights=used, minlength=131) / np.maximum(steps, 1)
        return {percent: float(means[percent]) for percent in np.flatnonzero(steps).tolist()}

    def arrived(self, order: IntArray) -> IntArray:
        """Shape of ``order``: percent of the capacity asked for so far, a whole number, half to even."""
        percent: IntArray = np.rint(100 * np.cumsum(self.milli[order]) / self.capacity).astype(np.int64)
        return percent


def arrivals_of(instance: Instance) -> Arrivals:
    """Compile the pods and nodes of ``instance``, in their order."""
    problem = compile_problem(instance)
    first = problem.class_option_start[problem.job_class]
    return Arrivals(instance, problem, problem.options.total_milli[first], 1000 * problem.num_gpus)


def list_files(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the files of pods and of nodes of a list, below the folder of stored instances."""
    return folder / "openb" / PODS.format(name), folder / "openb" / NODES


def read_arrivals(folder: Path, name: str) -> Arrivals:
    """
    Read the list ``name`` of openb on the trace's nodes with GPUs, both sorted by name.

    Parameters
    ----------
    folder
        Of the stored instances.
    name
        ``default``, ``gpuspec33`` or ``multigpu20``.

    Raises
    ------
    BadInput
        If a file is missing or is no instance.
    """
    pods, nodes = (read_instance(path) for path in list_files(folder, name))
    by_name = tuple(sorted(nodes.cluster.nodes, key=lambda node: node.id))
    cluster = nodes.cluster.model_copy(update={"nodes": by_name})
    jobs = tuple(sorted(pods.jobs, key=lambda job: job.id))
    return arrivals_of(Instance(name=pods.name, cluster=cluster, jobs=jobs, policy=pods.policy))
