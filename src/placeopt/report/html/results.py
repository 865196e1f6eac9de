"""Simulations, plans and answers as result tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placeopt.model import Plan
from placeopt.readable import plural
from placeopt.report.html.result_table import Cell, Column, ResultTable
from placeopt.report.html.simulation import policy_colours, slowdowns_with_wait
from placeopt.report.html.simulation_log import SimulationLog, labels_of
from placeopt.simulation.gpu_time import occupancy
from placeopt.simulation.journal import log_name
from placeopt.simulation.records.scenario import Scenario
from placeopt.simulation.statistics import distribution_of

POLICY_COLUMNS = (
    Column("policy"),
    Column("ended", better="more"),
    Column("never end", better="less"),
    Column("wait, mean", "s", "less"),
    Column("wait, p95", "s", "less"),
    Column("JCT, mean", "s", "less"),
    Column("slowdown, mean", better="less"),
    Column("makespan", "s", "less"),
    Column("GPU use", "share", "more"),
    Column("per decision", "decision_s", "less"),
)
ABOUT = (
    "Means of the jobs that ended. Wait: from arrival to the first start. JCT: from arrival to the end. Slowdown: JCT "
    "over the run time alone and well placed. Makespan: from the first arrival to the last end. GPU use: part of the "
    "GPUs' time that jobs held, above 100 % where they share GPUs. Bold: the best of its column."
)


def policy_table(
    summaries: Sequence[Mapping[str, Any]], logs: Sequence[SimulationLog], scenario: Scenario | None
) -> ResultTable:
    """
    Return the policies side by side: by their summaries, those without one by their logs.

    ``summaries``: As ``simulate --json`` prints them. Without the scenario a log tells neither slowdown nor GPU use,
    and no log tells how long decisions took.
    """
    labels = labels_of(logs)
    of_log = {log_name(s["scenario"], s["policy"], s["seed"]).removesuffix(".jsonl"): s for s in summaries}
    rows: list[tuple[Cell, ...]] = []
    partial, jobs = set(), set()
    found = []
    for log in logs:
        summary = of_log.pop(log.name, None)
        found.append((labels[log.name], _of_log(log, scenario) if summary is None else _of_summary(summary)))
    found += [(summary["policy"], _of_summary(summary)) for summary in of_log.values()]
    for label, (row, all_jobs) in found:
        rows.append((label, *row))
        jobs.add(all_jobs)
        partial |= {label} if row[0] != all_jobs else set()
    names = ", ".join(sorted({*(str(s["scenario"]) for s in summaries), *(log.scenario for log in logs)} - {""}))
    title = f"Policies: {names}" if names else "Policies"
    some = f" {plural(max(jobs), 'job')}." if jobs else ""
    return ResultTable(
        "policies",
        title,
        f"{ABOUT}{some}",
        POLICY_COLUMNS,
        rows,
        partial=frozenset(partial),
        colours=policy_colours([str(row[0]) for row in rows]),
    )


def _of_summary(summary: Mapping[str, Any]) -> tuple[tuple[Cell, ...], int]:
    """Return the cells after the policy, and the number of jobs."""

    def of(name: str, figure: str = "mean", scale: float = 1.0) -> float | None:
        return None if summary[name] is None else summary[name][figure] * scale

    cells = (
        summary["ended"], summary["stranded"] if summary["finished"] else None, of("wait_s"), of("wait_s", "p95"),
        of("completion_s"), of("slowdown_with_wait"), summary["makespan_s"], summary["gpus"]["allocation"],
        of("decision_ms", scale=0.001),
    )  # fmt: skip
    return cells, summary["jobs"]


def _of_log(log: SimulationLog, scenario: Scenario | None) -> tuple[tuple[Cell, ...], int]:
    """Return the same from a log."""
    endless = {a.job.id for a in scenario.arrivals if a.service} if scenario is not None else set()
    arrivals = {job: at for job, at in log.arrivals.items() if job not in endless}
    done = [job for job in log.ends if job in arrivals and job in log.starts]
    waits = distribution_of([(log.starts[job] - arrivals[job]) / 1000 for job in done])
    times = distribution_of([(log.ends[job] - arrivals[job]) / 1000 for job in done])
    first, last = min(log.arrivals.values(), default=0), max([log.ends[job] for job in done], default=None)
    slow, used = None, None
    if scenario is not None:
        slow = distribution_of(slowdowns_with_wait(log, scenario))
        until = max([end for spans in log.held.values() for _, end, _, _ in spans], default=0)
        used = occupancy(log.stays(), scenario.cluster.gpus_by_node, first, until).allocation
    cells = (
        len(done),
        len(set(log.stranded) - endless),
        None if waits is None else waits.mean,
        None if waits is None else waits.p95,
        None if times is None else times.mean,
        None if slow is None else slow.mean,
        None if last is None else (last - first) / 1000,
        used,
        None,
    )
    return cells, len(arrivals)


def never_ending_table(summaries: Sequence[Mapping[str, Any]], logs: Sequence[SimulationLog]) -> ResultTable | None:
    """Return the jobs that never end, with the reason where a summary states it; None if all end."""
    rows: list[tuple[Cell, ...]] = [(s["policy"], job["job"], job["why"]) for s in summaries for job in s["never_ends"]]
    known = {log_name(s["scenario"], s["policy"], s["seed"]).removesuffix(".jsonl") for s in summaries}
    labels = labels_of(logs)
    rows += [
        (labels[log.name], job, "stands in summaries.json, which 'simulate --out' writes")
        for log in logs
        if log.name not in known
        for job in log.stranded[:10]
    ]
    if not rows:
        return None
    return ResultTable(
        "never-end",
        "Jobs that never end",
        "Of each policy the first ten; jobs that hold others back come first.",
        (Column("policy"), Column("job"), Column("reason")),
        rows,
        keys=2,
    )


def plan_table(plans: Sequence[Plan]) -> ResultTable:
    """Return plans side by side: jobs placed, and value, bound and gap of every level, and the costs."""
    levels = list(dict.fromkeys((level.name, level.sense) for plan in plans for level in plan.levels))
    terms = list(dict.fromkeys(term for plan in plans for term in plan.costs))
    columns = [Column("instance"), Column("status"), Column("jobs placed", better="more")]
    columns += [Column("jobs waiting", better="less"), Column("gap", "share", "less")]
    for name, sense in levels:
        columns += [Column(name, better="less" if sense == "min" else "more"), Column(f"{name}, bound")]
    columns += [Column(f"cost {term}", better="less") for term in terms]
    rows = []
    for plan in plans:
        of_level = {level.name: level for level in plan.levels}
        cells: list[Cell] = [plan.instance.name, plan.status, len(plan.placements), len(plan.unplaced), plan.gap]
        for name, _ in levels:
            level = of_level.get(name)
            cells += [None, None] if level is None else [level.objective, level.bound]
        rows.append([*cells, *(plan.costs[term].raw if term in plan.costs else None for term in terms)])
    return ResultTable("plans", "Plans", "The gap is that of the first level that is not proven.", tuple(columns), rows)
