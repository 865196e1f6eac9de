"""The case of a linear model: solved, its values checked against the model of the file and stored."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.benchmark.journal import Case, CaseAnswer, Status
from placeopt.benchmark.linear_files import permuted, read_model
from placeopt.documents.files import write_bytes
from placeopt.errors import Unsupported
from placeopt.linear import LinearModel, ModelBuilder
from placeopt.solvers.mixed import MixedModel, solve_mixed
from placeopt.solvers.pool import Worker
from placeopt.solvers.registry import load
from placeopt.solvers.result import Outcome, Progress, Solution, SolveOptions

if TYPE_CHECKING:
    from placeopt.benchmark.child import CaseReport

GRACE_S = 1.0
"""Seconds beyond its limit after which a solver is ended."""
WARM_S = 15.0
"""Time limit of loading a solver, in seconds."""


def solve_model(case: Case, target: Path, report: CaseReport) -> CaseAnswer:
    """Solve a model and store its values in the order of the file's columns."""
    model = read_model(Path(case.path))
    asked, before = permuted(model, case.seed) if case.permuted else (model, np.arange(len(model.lower)))
    found = _run_mixed(asked, case, report) if isinstance(asked, MixedModel) else run_solver(asked, case, report)
    objective, refused = None, []
    if found.values is not None:
        values: Any = found.values[np.argsort(before)]
        objective = model.objective_value(values)
        refused = misfits(model, values, found.objective if isinstance(found, Solution) else objective)
        store_values(target, case, values.tolist())
    report.point((report.wall_s or 0.0, objective, found.bound, None, None))
    return CaseAnswer(
        status=status_of(found) if isinstance(found, Solution) else found.claim,
        limit=found.limit,
        sense=model.sense,
        objective=objective,
        bound=found.bound,
        refused=tuple(refused),
        message=found.message,
    )


def run_solver(model: LinearModel, case: Case, report: CaseReport) -> Solution:
    """Return what the solver of the case finds, in a process of its own; progress and times go to the report."""

    def on_progress(news: Progress) -> None:
        report.point((news.seconds, news.objective, news.bound, None, None))

    with Worker() as worker:
        _warm(worker, case.solver)
        report.solving()
        deadline = time.monotonic() + case.time_limit_s + GRACE_S
        solution = worker.solve(case.solver, model, _options(case), deadline=deadline, on_progress=on_progress)
        report.solved()
    report.judging()
    return solution


def _run_mixed(model: MixedModel, case: Case, report: CaseReport) -> Outcome:
    """Return what the solver of the case finds in this process, which ends with it where it does not end in time."""
    load(case.solver)
    report.solving(case.time_limit_s + GRACE_S)
    outcome = solve_mixed(model, case.solver, _options(case), lambda *point: report.point((*point, None, None)))
    report.solved()
    report.judging()
    return outcome


def _options(case: Case) -> SolveOptions:
    return SolveOptions(case.time_limit_s, threads=case.threads, seed=case.seed, memory_limit_mib=case.memory_limit_mib)


def status_of(solution: Solution) -> Status:
    """Return the status as of a case: a solver's process says by an error that it cannot take the model."""
    refused = solution.status == "error" and solution.message.startswith(f"{Unsupported.__name__}: ")
    return "unsupported" if refused else solution.status


def store_values(target: Path, case: Case, values: list[int] | list[float]) -> None:
    """Write the values of a solution to its file."""
    write_bytes(target, (json.dumps({"instance": case.instance, "values": values}) + "\n").encode())


def _warm(worker: Worker, solver: str) -> None:
    """Solve a model of one variable, so that loading the solver does not count as solving."""
    builder = ModelBuilder()
    builder.set_objective(builder.add_variables(0, 1, 1), 1, "max")
    worker.solve(solver, builder.build(), SolveOptions(WARM_S), deadline=time.monotonic() + WARM_S)


def misfits(model: LinearModel | MixedModel, values: Any, objective: float | None) -> list[str]:
    """Return the faults of values, shape ``(n,)``, and of the objective stated for them; empty if there are none."""
    if isinstance(model, MixedModel):
        return model.misfits(values, objective)
    if len(values) != model.num_variables:
        return [f"{len(values)} values for {model.num_variables} variables"]
    faults = [f"variable {j} is {values[j]}, outside its bounds" for j in model.violated_bounds(values)[:20]]
    faults += [f"row {i} does not hold" for i in model.violated_rows(values)[:20]]
    actual = model.objective_value(values)
    if actual != objective:
        faults.append(f"objective is stated as {objective}, but it is {actual}")
    return faults
