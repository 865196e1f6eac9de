"""The case of a linear model: solved by a solver process, values checked against the model and stored."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placeopt.benchmark.journal import Case, CaseAnswer, Status
from placeopt.benchmark.linear_files import permuted, read_model
from placeopt.benchmark.mixed_case import solve_mixed
from placeopt.benchmark.mixed_model import MixedModel
from placeopt.documents.files import write_bytes
from placeopt.errors import Unsupported
from placeopt.linear import IntArray, LinearModel, ModelBuilder
from placeopt.solvers.pool import Worker
from placeopt.solvers.result import Progress, Solution, SolveOptions

if TYPE_CHECKING:
    from placeopt.benchmark.child import CaseReport

GRACE_S = 1.0
"""Seconds beyond its limit after which a solver process is killed."""
WARM_S = 15.0
"""Time limit of loading a solver, in seconds."""


def solve_model(case: Case, target: Path, report: CaseReport) -> CaseAnswer:
    """Solve a model and store its values in the order of the file's columns."""
    model = read_model(Path(case.path))
    if isinstance(model, MixedModel):
        return _solve_mixed(model, case, target, report)
    asked, before = permuted(model, case.seed) if case.permuted else (model, np.arange(model.num_variables))
    solution = run_solver(asked, case, report)
    refused: list[str] = []
    if solution.values is not None:
        values = solution.values[np.argsort(before)]
        refused = misfits(model, values, solution.objective)
        store_values(target, case, values.tolist())
    report.point((report.wall_s or 0.0, solution.objective, solution.bound, None, None))
    return CaseAnswer(
        status=status_of(solution),
        limit=solution.limit,
        sense=model.sense,
        objective=solution.objective,
        bound=solution.bound,
        refused=tuple(refused),
        message=solution.message,
    )


def run_solver(model: LinearModel, case: Case, report: CaseReport) -> Solution:
    """Return what the solver of the case finds, in a process of its own; progress and times go to the report."""
    options = SolveOptions(
        case.time_limit_s, threads=case.threads, seed=case.seed, memory_limit_mib=case.memory_limit_mib
    )

    def on_progress(news: Progress) -> None:
        report.point((news.seconds, news.objective, news.bound, None, None))

    with Worker() as worker:
        _warm(worker, case.solver)
        report.solving()
        deadline = time.monotonic() + case.time_limit_s + GRACE_S
        solution = worker.solve(case.solver, model, options, deadline=deadline, on_progress=on_progress)
        report.solved()
    report.judging()
    return solution


def status_of(solution: Solution) -> Status:
    """Return the status as of a case: a solver's process says by an error that it cannot take the model."""
    refused = solution.status == "error" and solution.message.startswith(f"{Unsupported.__name__}: ")
    return "unsupported" if refused else solution.status


def _solve_mixed(model: MixedModel, case: Case, target: Path, report: CaseReport) -> CaseAnswer:
    asked, before = model.shuffled(case.seed) if case.permuted else (model, np.arange(len(model.lower)))
    outcome = solve_mixed(asked, case, report)
    report.judging()
    objective, refused = None, []
    if outcome.values is not None:
        values = outcome.values[np.argsort(before)]
        objective = model.objective_value(values)
        refused = model.misfits(values, objective)
        store_values(target, case, values.tolist())
    report.point((report.wall_s or 0.0, objective, outcome.bound, None, None))
    return CaseAnswer(
        status=outcome.claim,
        limit=outcome.limit,
        sense=model.sense,
        objective=objective,
        bound=outcome.bound,
        refused=tuple(refused),
        message=outcome.message,
    )


def store_values(target: Path, case: Case, values: list[int] | list[float]) -> None:
    """Write the values of a solution to its file."""
    write_bytes(target, (json.dumps({"instance": case.instance, "values": values}) + "\n").encode())


def _warm(worker: Worker, solver: str) -> None:
    """Solve a model of one variable, so that loading the solver does not count as solving."""
    builder = ModelBuilder()
    builder.set_objective(builder.add_variables(0, 1, 1), 1, "max")
    worker.solve(solver, builder.build(), SolveOptions(WARM_S), deadline=time.monotonic() + WARM_S)


def misfits(model: LinearModel, values: IntArray, objective: float | None) -> list[str]:
    """Return the faults of values of a model and of the objective stated for them; empty if there are none."""
    if len(values) != model.num_variables:
        return [f"{len(values)} values for {model.num_variables} variables"]
    faults = [f"variable {j} is {values[j]}, outside its bounds" for j in model.violated_bounds(values)[:20]]
    faults += [f"row {i} does not hold" for i in model.violated_rows(values)[:20]]
    actual = model.objective_value(values)
    if actual != objective:
        faults.append(f"objective is stated as {objective}, but it is {actual}")
    return faults
