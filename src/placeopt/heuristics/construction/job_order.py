"""The order in which waiting jobs are placed: by worth and cost, the hardest of the first ones before all others."""

from __future__ import annotations

import numpy as np

from placeopt.problem import BoolArray, IntArray, Problem


def insertion_order(problem: Problem, free: int, surplus: np.ndarray, chosen: IntArray | None = None) -> IntArray:
    """
    Return the waiting jobs that have a way to run and may find room in ``free`` thousandths of GPUs, in order.

    Most value per GPU share comes first, always; among equals the least cost beyond that, ``surplus``, shape (O,), of
    a job in each option. Of these the first that fit into the free share together, or else the jobs ``chosen``, are
    placed the hardest first: those that fill half of a domain or more, first the ones that a split keeps inside
    domains, then by most traffic; the others by demand within one domain, then the largest bundles, so that small ones
    fill the remaining gaps, then most traffic. All others follow, as far as they find room.
    """
    options, numbers = problem.options, np.unique(problem.job_class, return_index=True)[1].tolist()
    best = np.array(
        [max(problem.options_of(j), key=lambda o: (options.value[o], -o), default=-1) for j in numbers], dtype=np.int64
    )
    able: BoolArray = (best >= 0)[problem.job_class]
    able[list(problem.running)] = False
    jobs = _within(problem, np.flatnonzero(able), free)
    option = best[problem.job_class[jobs]]
    milli, value = options.total_milli[option], options.value[option]
    share = np.maximum(milli, 1)
    rank = np.lexsort((jobs, surplus[option] / share, -(value / share)))
    jobs, option, milli = jobs[rank], option[rank], milli[rank]
    taken = milli.cumsum() <= free if chosen is None else np.isin(jobs, chosen)
    at, o, milli = jobs[taken], option[taken], milli[taken]
    weight = np.array([int(c.weight) for c in problem.class_communication], dtype=np.int64)
    traffic, half = (weight[options.job_class] * problem.best_path)[o], 1000 * largest_domain(problem) // 2
    bundle = (options.gpus * options.bundle_workers * options.milli)[o]
    parts = np.array([min((s.domains for s in splits), default=0) for splits in options.splits], dtype=np.int64)[o]
    together = np.where(parts > 0, milli // np.maximum(parts, 1), 0)
    of_wide = np.where((milli >= half) & (milli > bundle), traffic, 0)
    of_split = np.where(together >= half, together, 0)
    hardest = np.lexsort((at, -milli, -traffic, -bundle, -np.maximum(bundle, together), -of_wide, -of_split))
    return np.concatenate([at[hardest], jobs[~taken]])


def _within(problem: Problem, jobs: IntArray, free: int) -> IntArray:
    """Return of every class as many of ``jobs``, the first ones, as the free share takes; alike ones are equal."""
    if not problem.shares_bind:
        return jobs
    fewest = np.full(problem.num_classes, np.iinfo(np.int64).max)
    np.minimum.at(fewest, problem.options.job_class, problem.options.total_milli)
    by_class = jobs[np.argsort(problem.job_class[jobs], kind="stable")]
    classes = problem.job_class[by_class]
    position = np.arange(len(by_class)) - np.searchsorted(classes, classes)
    return np.sort(by_class[position * fewest[classes] < free])


def largest_domain(problem: Problem) -> int:
    """Return the GPUs of the largest domain that holds nodes; without domains more than there are."""
    domain, gpus = problem.topology.node_domain, np.diff(problem.node_gpu_start)
    inside = domain >= 0
    return int(np.bincount(domain[inside], gpus[inside]).max()) if inside.any() else 2 * problem.num_gpus + 1
