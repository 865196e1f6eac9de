"""FGD's protocol on openb: who arrives in what order, and what is allocated when so much has arrived."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_random import GoRandom
from placeopt.formats.openb import read_openb
from placeopt.model import Instance
from placeopt.problem import Problem, compile_problem

NODES = "openb_node_list_gpu_node.csv"
PODS = "openb_pod_list_{}.csv"
RATIO = 1.3


@dataclass(frozen=True, eq=False)
class Arrivals:
    """A list of pods on the trace's nodes with GPUs; pods by name, nodes by name."""

    problem: Problem
    milli: np.ndarray  # (J,) GPU-milli that a pod asks for
    capacity: int  # GPU-milli of the cluster

    def order(self, seed: int) -> np.ndarray:
        """
        Pods in order of arrival; those drawn to fill up stand more than once.

        As the authors' simulator: seed, one number thrown away, shuffle; then pods are drawn with replacement until the
        next one's share would pass 1.3 x the capacity (of a pod of several GPUs only one is counted there), or, where
        the list asks for more than that, removed.
        """
        random = GoRandom(seed)
        random.int63()
        pods: list[object] = list(range(self.problem.num_jobs))
        random.shuffle(pods)
        order = np.array(pods, dtype=np.int64).tolist()
        total, goal = int(self.milli.sum()), RATIO * self.capacity
        per_gpu = self.problem.options.milli * (self.problem.options.gpus > 0)
        first = self.problem.class_option_start[self.problem.job_class]
        while total > goal:
            total -= int(self.milli[order.pop(random.intn(len(order)))])
        while total < goal:
            pod = random.intn(self.problem.num_jobs)
            if total + int(per_gpu[first[pod]]) > goal:
                break
            order.append(pod)
            total += int(self.milli[pod])
        return np.array(order, dtype=np.int64)

    def allocated(self, order: np.ndarray, placed: np.ndarray) -> dict[int, float]:
        """Percent of the capacity allocated, by percent that arrived: the mean over the steps that round to it."""
        arrived = np.rint(100 * np.cumsum(self.milli[order]) / self.capacity).astype(np.int64)
        used = 100 * np.cumsum(np.where(placed, self.milli[order], 0)) / self.capacity
        steps = np.bincount(arrived, minlength=131)
        means = np.bincount(arrived, weights=used, minlength=131) / np.maximum(steps, 1)
        return {percent: float(means[percent]) for percent in np.flatnonzero(steps).tolist()}


def read_arrivals(folder: Path, name: str) -> Arrivals:
    """Read the list ``name`` from the folder with the trace's csv files."""
    read = read_openb(folder / NODES, folder / PODS.format(name))
    cluster = read.cluster.model_copy(update={"nodes": tuple(sorted(read.cluster.nodes, key=lambda node: node.id))})
    jobs = tuple(sorted(read.jobs, key=lambda job: job.id))
    problem = compile_problem(Instance(cluster=cluster, jobs=jobs, policy=read.policy))
    first = problem.class_option_start[problem.job_class]
    return Arrivals(problem, problem.options.total_milli[first], 1000 * problem.num_gpus)
