"""What running jobs hold beyond a limit when the round begins: by how much, and who stays as it is for that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placeopt.problem.holdings import holdings
from placeopt.problem.problem import Problem


def without_fixed(problem: Problem) -> Problem:
    """
    Return the problem in which running jobs that stand in a way no option allows may not be changed.

    These are jobs of single-node options on several nodes, and jobs on GPUs that more jobs hold than the policy lets
    share one: the linear models have no form for leaving such a place, and what they would leave takes nothing new.
    """
    if not problem.changeable:
        return problem
    fixed = frozenset(
        job
        for job, held in problem.running.items()
        if problem.options.bundles[held.option] == 1 and len(set(held.nodes)) > 1
    ) | _on_crowded_gpus(problem)
    if not fixed & problem.changeable:
        return problem
    may = {name: getattr(problem, name) - fixed for name in ("may_move", "may_shrink", "may_preempt")}
    return replace(problem, **may)


def _on_crowded_gpus(problem: Problem) -> frozenset[int]:
    """Running jobs with a GPU that more of them hold than may share one."""
    most = problem.jobs_per_gpu
    if most is None:
        return frozenset()
    held = holdings(problem, problem.running.items())
    crowded = np.bincount(held.gpu, minlength=problem.num_gpus) > most
    return frozenset(held.job[crowded[held.gpu]].tolist())
