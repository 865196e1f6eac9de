"""
What each bounding relaxation adds: ``python bench/relaxations.py [--sets NAME ...] [--time-limit S] [--out FILE.md]``.

Every relaxation by which ``auto`` bounds value or cost runs alone on every round of the sets, from the plan that
``auto`` finds within ``--auto-limit`` seconds. Its bound stands beside the best bound of all others, the trivial bound
included; what it adds is the relative gap of that plan without it less the gap with it. One that builds on another
(whole jobs on flows) is no other to it, and its seconds include those of what it builds on. Solvers
work on one thread of this process, so its CPU seconds are all there are; seconds are those of the relaxation alone.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from placeopt import PlaceoptError, read_instance
from placeopt.benchmark.sets import SetEntry, read_sets
from placeopt.environment import usable_cores, versions
from placeopt.formulations.gpu_patterns import build_gpu_patterns
from placeopt.linear import ModelBuilder
from placeopt.problem import Allocation, Problem, compile_problem
from placeopt.solvers.pool import InProcess
from placeopt.solving import sizes
from placeopt.solving.bounds import relative_gap
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.methods import METHODS
from placeopt.solving.params import SolveParams
from placeopt.solving.runners import SolverRunners
from placeopt.solving.stage import Stage, run_stage, run_stages
from placeopt.solving.stages.bound import NO_PRESOLVE, SIMPLEX_WORK
from placeopt.solving.stages.branch_and_price import BranchAndPrice
from placeopt.solving.stages.capacity_relaxation import CapacityRelaxationBound
from placeopt.solving.stages.cost_relaxation import CostRelaxationBound, solve_cost_relaxation
from placeopt.solving.stages.exact import build_level
from placeopt.solving.stages.node_patterns import NodePatterns

SETS = ("tiny", "hand", "generated", "hard", "real", "openb")
MOST_PRODUCT = 2_000_000
"""Waiting jobs x GPUs of the largest round that runs by default: a few minutes for all."""


@dataclass(frozen=True)
class Relaxation:
    """A way to a bound: ``run`` moves the bounds of a context and returns why it did not, if it did not."""

    name: str
    level: str
    stage: str
    """The stage of ``auto`` that it is, or is a part of."""
    run: Callable[[SolveContext], str]
    needs: str = ""
    """The relaxation on which it builds."""


@dataclass(frozen=True)
class Row:
    """One relaxation on one round."""

    relaxation: Relaxation
    round: str
    objective: int
    bound: int | None
    others: int
    """The best bound of all others."""
    wall_s: float
    cpu_s: float
    reason: str
    """Why there is no bound; empty where there is one."""
    auto: str
    """What ``auto`` does with the stage: ``runs``, or why it skips it."""

    @property
    def gap_without(self) -> float:
        """Relative gap of the plan by the bounds of all others."""
        return relative_gap(self.objective, self.others) or 0.0

    @property
    def gap_with(self) -> float:
        """The same with this bound beside them."""
        best = max if self.relaxation.level == "cost" else min
        return relative_gap(self.objective, self.others if self.bound is None else best(self.bound, self.others)) or 0.0

    @property
    def adds(self) -> float:
        """By how much the gap is smaller with this bound."""
        return self.gap_without - self.gap_with


def by_stage(stage: Stage) -> Callable[[SolveContext], str]:
    """Return a run of a whole stage."""

    def run(context: SolveContext) -> str:
        run_stage(context, stage)
        if context.skipped:
            return context.skipped[-1][1]
        failed = [record.detail for record in context.stages if record.outcome in ("skipped", "failed")]
        return failed[-1] if failed else ""

    return run


def gpu_patterns(context: SolveContext) -> str:
    """Solve the relaxation over fillings of single GPUs, without rows of single nodes."""
    patterns = build_gpu_patterns(context.relaxed, context.budget.deadline)
    options = replace(context.budget.options(SIMPLEX_WORK), relax=True, extra=NO_PRESOLVE)
    solution = context.solvers.solve("highs", patterns.model, options)
    context.bounds.prove_value(solution.bound)
    return "" if solution.status == "optimal" else solution.message or solution.limit


def cost_flows(context: SolveContext) -> str:
    """Solve the relaxation of the cost once, without prices of whole jobs."""
    _, solution = solve_cost_relaxation(context, context.incumbent.value)
    if solution.bound is not None:
        context.bounds.prove_cost(max(solution.bound, 0))
    return "" if solution.status == "optimal" else solution.message or solution.limit


def counts_relaxed(level: str) -> Callable[[SolveContext], str]:
    """Return a run of the linear relaxation of the exact model ``counts``: the root of the exact stage."""

    def run(context: SolveContext) -> str:
        if not sizes.is_built(context, "counts"):
            return "too large for counts"
        builder = ModelBuilder(context.budget.deadline, sizes.SIZES.exact_columns)
        build_level(context, builder, "counts", "cost" if level == "cost" else "value")
        solution = context.solvers.solve("highs", builder.build(), replace(context.budget.options(60.0), relax=True))
        if level == "cost":
            context.bounds.prove_cost(None if solution.bound is None else max(solution.bound, 0))
        else:
            context.bounds.prove_value(solution.bound)
        return "" if solution.status == "optimal" else solution.message or solution.limit

    return run


RELAXATIONS = (
    Relaxation("fillings", "value", "bound", gpu_patterns),
    Relaxation("patterns", "value", "patterns", by_stage(NodePatterns())),
    Relaxation("roster", "value", "roster", by_stage(CapacityRelaxationBound(share=1.0))),
    Relaxation("counts, linear", "value", "counts-value", counts_relaxed("value")),
    Relaxation("arrangements", "cost", "arrangements", by_stage(BranchAndPrice())),
    Relaxation("flows", "cost", "flows", cost_flows),
    Relaxation("flows, whole jobs", "cost", "flows", by_stage(CostRelaxationBound()), needs="flows"),
    Relaxation("counts, linear", "cost", "counts-cost", counts_relaxed("cost")),
)


def context_of(problem: Problem, limit_s: float, plan: Allocation | None = None) -> SolveContext:
    """Return a context of one thread with its own solvers, and the plan as incumbent."""
    now = time.monotonic()
    budget = Budget(SolveParams(time_limit_s=limit_s), started=now, deadline=now + limit_s)
    context = SolveContext(problem, budget, greedy=METHODS["auto"].greedy)
    context.solvers = SolverRunners(context, (InProcess(), InProcess()))
    if plan is not None:
        context.incumbent.offer(plan)
    return context


def rows_of(entry: SetEntry, limit_s: float, auto_s: float) -> list[Row]:
    """Run all relaxations on one round."""
    problem = compile_problem(read_instance(entry.there()))
    auto = context_of(problem, auto_s)
    run_stages(auto, METHODS["auto"].stages)
    plan = auto.incumbent.allocation
    runs: list[tuple[Relaxation, SolveContext, str, float, float]] = []
    for relaxation in RELAXATIONS:
        context = context_of(problem, limit_s, plan)
        if relaxation.level == "cost":
            context.bounds.prove_value(context.incumbent.value)  # costs are bounded at the value of the plan
            if not context.weighted:
                runs.append((relaxation, context, "no cost counts", 0.0, 0.0))
                continue
        wall, cpu = time.monotonic(), time.process_time()
        try:
            reason = relaxation.run(context)
        except PlaceoptError as error:
            reason = str(error)
        runs.append((relaxation, context, reason, time.monotonic() - wall, time.process_time() - cpu))
    return [row_of(entry.name, auto, run, runs) for run in runs]


def row_of(
    name: str,
    auto: SolveContext,
    run: tuple[Relaxation, SolveContext, str, float, float],
    runs: list[tuple[Relaxation, SolveContext, str, float, float]],
) -> Row:
    """Return the row of one relaxation beside the bounds of all others."""
    relaxation, context, reason, wall, cpu = run
    at_cost = relaxation.level == "cost"
    trivial = 0 if at_cost else SolveContext(auto.whole, auto.budget).bounds.value

    def bound_of(of: SolveContext) -> int:
        return (of.bounds.cost or 0) if at_cost else of.bounds.value

    others = [
        bound_of(held)
        for other, held, *_ in runs
        if other is not relaxation and other.level == relaxation.level and other.needs != relaxation.name
    ]
    bound = bound_of(context)
    has_bound = context.bounds.cost is not None if at_cost else bound < trivial or not reason
    return Row(
        relaxation,
        name,
        auto.incumbent.cost if at_cost else auto.incumbent.value,
        bound if has_bound else None,
        max([trivial, *others]) if at_cost else min([trivial, *others]),
        wall,
        cpu,
        "" if has_bound else reason,
        in_auto(auto, relaxation.stage),
    )


def in_auto(auto: SolveContext, stage: str) -> str:
    """Return what ``auto`` did with a stage."""
    records = [record for record in auto.stages if record.name == stage]
    if records:
        return "runs" if any(record.outcome != "skipped" for record in records) else records[-1].detail
    skipped = dict(reversed(auto.skipped))  # of a stage that appears twice the first counts
    block = "search before exact" if stage in ("roster", "flows") else ""
    whole = stage.removesuffix("-value").removesuffix("-cost")
    return skipped.get(whole) or skipped.get(block) or "its level is proven before"


def line(row: Row) -> str:
    """Return a row as Markdown."""
    bound = f"{row.bound:,}" if row.bound is not None else "-"
    cells = [row.round, row.relaxation.name, f"{row.objective:,}", bound, f"{row.others:,}"]
    cells += [f"{100 * gap:.3f} %" for gap in (row.gap_without, row.gap_with, row.adds)]
    return f"| {' | '.join([*cells, f'{row.wall_s:.2f}', f'{row.cpu_s:.2f}', row.reason or '-', row.auto])} |"


def summary(rows: list[Row]) -> list[str]:
    """Return one line a relaxation: on how many rounds it adds anything, how much, and its seconds."""
    lines = [
        "| level | relaxation | rounds with a bound | no other is better | adds | closes the gap alone | median added "
        "| most added | CPU s, median | CPU s, all |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for relaxation in RELAXATIONS:
        own = [row for row in rows if row.relaxation is relaxation and row.bound is not None]
        adding = [row.adds for row in own if row.adds > 0]
        closing = sum(row.gap_without > 0 and row.gap_with == 0 for row in own)
        seconds = [row.cpu_s for row in own]
        best = sum(row.bound == row.others or row.adds > 0 for row in own)
        cells = [relaxation.level, relaxation.name, f"{len(own)}", f"{best}", f"{len(adding)}", f"{closing}"]
        cells += [f"{100 * of(adding):.3f} %" if adding else "-" for of in (statistics.median, max)]
        cells += [f"{of(seconds):.2f}" if seconds else "-" for of in (statistics.median, sum)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def report(rows: list[Row], arguments: argparse.Namespace) -> str:
    """Return summary and rows as Markdown."""
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    head = [
        "# What each bounding relaxation adds",
        "",
        f"`python bench/relaxations.py --sets {' '.join(arguments.sets)} --time-limit {arguments.time_limit:g} "
        f"--auto-limit {arguments.auto_limit:g} --most-product {arguments.most_product}`, {usable_cores()} cores, "
        f"Python {platform.python_version()}, {used}.",
        "",
        "From the plan of `auto`, each relaxation alone, on one thread. Added: the relative gap of that plan by all "
        "other bounds, less the gap with this one; `flows, whole jobs` builds on the relaxation of "
        "that name, and its seconds include those. Two that tie add nothing each: take out one at a time, run again.",
        "",
        *summary(rows),
    ]
    for level in ("value", "cost"):
        head += [
            "",
            f"## Bounds of {level}",
            "",
            f"| round | relaxation | {level} of the plan | bound | best of all others | gap without | gap with | adds "
            "| wall s | CPU s | no bound because | in `auto` |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|",
            *(line(row) for row in rows if row.relaxation.level == level),
        ]
    return "\n".join(head) + "\n"


def main() -> None:
    """Run all rounds and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS, help="names of lists, or files")
    parser.add_argument("--instances", type=Path, default=Path(__file__).parents[1] / "instances")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds of a relaxation")
    parser.add_argument("--auto-limit", type=float, default=3.0, help="seconds of the plan")
    parser.add_argument("--most-product", type=int, default=MOST_PRODUCT, help="jobs x GPUs of the largest round")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows: list[Row] = []
    for entry in read_sets(arguments.sets, arguments.instances):
        if entry.kind != "placement" or entry.generated:
            continue
        instance = read_instance(entry.there())
        gpus = {machine.id: len(machine.gpus) for machine in instance.cluster.machines}
        product = len(instance.jobs) * sum(gpus[node.machine] for node in instance.cluster.nodes)
        if product > arguments.most_product:
            print(f"{entry.name}: {product:,} jobs x GPUs, left out", flush=True)
            continue
        rows += rows_of(entry, arguments.time_limit, arguments.auto_limit)
        for row in rows[-len(RELAXATIONS) :]:
            print(line(row), flush=True)
    text = report(rows, arguments)
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
