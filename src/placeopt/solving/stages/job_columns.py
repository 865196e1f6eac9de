"""Stage ``job-columns``: column generation over whole jobs; its bound and prices beat those of the cost relaxation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from placeopt.errors import OutOfTime
from placeopt.formulations.cost_relaxation import CostRelaxation, JobLayout, JobMaster, Part, with_whole_jobs
from placeopt.linear import LinearModel
from placeopt.problem import Placement
from placeopt.readable import plural
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.result import Basis, Solution
from placeopt.solving.context import CostGuide, CostPrices, JobColumns, SolveContext
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.cost_relaxation import guide_of, relaxation_options, with_job_set
from placeopt.terms.costs.communication import job_cost

MOST_STEPS = 60
"""Programs, after each of which whole jobs are priced."""
STEPS_PER_S, FEWEST_STEPS = 10, 10
"""
Of these per second of the time limit in deterministic mode, and for which a slice of work must have room: before, the
bound is hardly better than that of flows. The clock ends the stage wherever it comes.
"""
SHARE = 0.6
"""Part of the time left that the stage may take."""
CLOSE = 1e-4
"""Part of the bound by which the program may still be better."""


@dataclass(frozen=True)
class JobColumnBound:
    """Bounds the cost by the linear program over whole jobs, and hands its columns and prices on."""

    name: ClassVar[str] = "job-columns"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only after flows that priced jobs of several bundles, once for plans of the same value."""
        if reason := context.budget.stop_reason():
            return reason
        handover, budget = context.handover, context.budget
        prices, done = handover.cost_prices, handover.job_columns
        if context.is_closed:
            return "the round is proven, or within the gap"
        if prices is None or not prices.whole.layouts:
            return "no jobs of several bundles are priced"
        if done is not None and done.value == context.incumbent.value:
            return "the bound is at the value of the best plan"
        if handover.cost_guide is None or handover.cost_guide.value != context.incumbent.value:
            return "prices are of plans of another value"
        return None if budget.steps(STEPS_PER_S) >= FEWEST_STEPS else "the slice of work is too small for columns"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Add columns while they make the program cheaper, then the cheapest set of jobs at its prices."""
        budget, handover, value = context.budget, context.handover, context.incumbent.value
        prices = handover.cost_prices
        assert prices is not None  # noqa: S101 - see `skip_reason`
        ends, relaxation, whole = budget.until(SHARE), prices.relaxation, prices.whole
        master = JobMaster(relaxation, list(whole.layouts))
        _add_plan(context, relaxation, master)
        best, steps, basis = whole, 0, None
        bound = proven = dual_bound(whole.model, whole.multipliers)
        try:
            while steps < MOST_STEPS and not budget.stopped() and not budget.is_past(ends):
                fresh = [master.add(q, found)[1] for q, found in whole.layouts.items()]
                if steps and not any(fresh):
                    break
                model = master.model()
                solution, basis = solve_master(context, model, basis)
                if solution is None or solution.duals is None or solution.relaxed_values is None:
                    break
                steps += 1
                whole = with_whole_jobs(relaxation, solution.duals, budget.deadline)
                bound = dual_bound(whole.model, whole.multipliers)
                if bound > proven:
                    best, proven = whole, bound
                if bound >= (1 - CLOSE) * (float(model.objective @ solution.relaxed_values) + model.offset):
                    break
            context.bounds.prove_cost(max(proven, 0), relaxation.relaxes)
            priced, certificate = with_job_set(context, relaxation, best)
            context.bounds.prove_cost(max(dual_bound(certificate.model, certificate.multipliers), 0), priced.relaxes)
        except OutOfTime as error:
            budget.note_error(error)
            context.bounds.prove_cost(max(proven, 0), relaxation.relaxes)
        handover.cost_guide = CostGuide(value, guide_of(context, relaxation, best))
        handover.job_columns = JobColumns(value, master, CostPrices(relaxation, best, prices.pricing_s))
        yield StageReport(
            f"{plural(steps, 'program')}, {plural(len(master.columns), 'column')} of whole jobs", "proved", level="cost"
        )


def solve_master(
    context: SolveContext, model: LinearModel, basis: Basis | None
) -> tuple[Solution | None, Basis | None]:
    """Solve a program of columns, from an earlier basis where that helps; None where it is not solved."""
    options = replace(relaxation_options(context), keep_basis=True)
    for start in dict.fromkeys((basis, None)):
        solution = context.solvers.solve("highs", model, replace(options, start=start))
        if solution.status == "optimal":
            return solution, solution.basis
    return None, None


def layout_of(context: SolveContext, relaxation: CostRelaxation, job: int, placement: Placement) -> JobLayout:
    """Return how the bundles of a job lie."""
    problem, node_classes = context.problem, relaxation.node_classes
    each = int(problem.options.bundle_workers[placement.option])
    nodes, bundles = np.unique(np.array(placement.nodes[::each], dtype=np.int64), return_counts=True)
    apart = len(problem.topology.domain_parent) + nodes
    domains = np.where(node_classes.own[nodes] >= 0, node_classes.own[nodes], apart)
    parts: dict[int, list[tuple[int, int]]] = {}
    for domain, place, count in zip(
        domains.tolist(), node_classes.place[nodes].tolist(), bundles.tolist(), strict=True
    ):
        parts.setdefault(domain, []).append((place, count))
    cost = relaxation.path_price * job_cost(problem, job, placement)
    return JobLayout(tuple(Part(domain, tuple(own)) for domain, own in parts.items()), cost)


def groups_of_options(relaxation: CostRelaxation) -> dict[int, int]:
    """Return the bundle group of every option that has one, by its number in ``bundle_columns``."""
    return {
        int(relaxation.option[column]): q
        for q, bundle_columns in enumerate(relaxation.bundle_columns)
        for column in bundle_columns.jobs.tolist()
    }


def _add_plan(context: SolveContext, relaxation: CostRelaxation, master: JobMaster) -> None:
    """Add how the jobs of the best plan lie, so that the program has a solution."""
    group = groups_of_options(relaxation)
    for job, placement in enumerate(context.incumbent.allocation):
        if placement is None or job in context.problem.running:
            continue
        q = group.get(placement.option)
        if q in master.groups:
            master.add(q, layout_of(context, relaxation, job, placement))
