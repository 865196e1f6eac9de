"""
Stage ``capacity_relaxation``: which jobs a plan made anew had better hold, by a model that counts room; bounds the
value.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from placeopt.errors import PlaceoptError
from placeopt.formulations.capacity_relaxation import RELAXES, CapacityRelaxation, build_capacity_relaxation
from placeopt.problem import IntArray
from placeopt.solving.context import SolveContext
from placeopt.solving.solver_call import Solve
from placeopt.terms.objective import value

PART = 0.05
"""Part of the time left that each of the two levels may take."""
WORK = 2.0
"""Deterministic work for each."""


@dataclass(frozen=True)
class Counted:
    """A roster, how many jobs of each of its columns run, and what these are worth."""

    capacity_relaxation: CapacityRelaxation
    jobs: IntArray
    value: int


def run_capacity_relaxation(context: SolveContext, solve: Solve) -> Counted | None:
    """Bound the value by the most valuable roster; None where there is none, or GPU shares do not bind."""
    started, bound = time.monotonic(), context.value_bound
    if not context.problem.shares_bind or context.problem.changeable:
        return None
    capacity_relaxation = build_capacity_relaxation(context.relaxed)
    try:
        model = capacity_relaxation.model(deadline=context.budget.deadline)
        solution = solve(_solver(context), model, context.budget.options(WORK, PART * context.budget.left_s))
    except PlaceoptError as error:
        context.stopped()
        context.record("roster", "skipped", started, str(error))
        return None
    if solution.bound is not None:
        held = value(context.problem, context.open.allocation())
        context.prove_value(held + solution.bound, RELAXES)
    detail = f"{model.num_variables} columns, {model.num_rows} rows"
    if solution.values is None or solution.objective is None:
        context.record("roster", "failed", started, f"{detail}: {solution.message or solution.limit}")
        return None
    context.record("roster", "proved" if context.value_bound < bound else "kept", started, detail)
    return Counted(capacity_relaxation, solution.values, solution.objective)


def choose_jobs(context: SolveContext, solve: Solve, counted: Counted, option_cost: np.ndarray) -> IntArray:
    """
    Return the jobs of the cheapest roster of that value, by number.

    ``option_cost``, shape (O,), is what a job in each option costs beyond what it is worth.
    """
    problem, capacity_relaxation, numbers = context.problem, counted.capacity_relaxation, counted.jobs
    try:
        model = capacity_relaxation.model(option_cost, counted.value, context.budget.deadline)
        solution = solve(_solver(context), model, context.budget.options(WORK, PART * context.budget.left_s))
        numbers = counted.jobs if solution.values is None else solution.values
    except PlaceoptError:
        context.stopped()  # the most valuable capacity_relaxation does as well
    counts = np.zeros(len(problem.class_communication), dtype=np.int64)
    np.add.at(counts, problem.options.job_class[capacity_relaxation.option], numbers)
    jobs = np.flatnonzero(np.array([placement is None for placement in context.open.placements], dtype=bool))
    jobs = jobs[np.argsort(problem.job_class[jobs], kind="stable")]
    of_class = problem.job_class[jobs]
    turn = np.arange(len(jobs)) - np.searchsorted(of_class, of_class)
    chosen: IntArray = np.sort(jobs[turn < counts[of_class]])
    return chosen


def _solver(context: SolveContext) -> str:
    """CP-SAT's deterministic time keeps pace with the clock, HiGHS's work stands still at the root."""
    return "cpsat" if context.budget.deterministic else "highs"
