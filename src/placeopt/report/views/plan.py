"""What a plan is worth: value, gap, costs, who waits and why, which job is where."""

from __future__ import annotations

from collections import Counter

from placeopt.model import Assignment, Instance, Machine, Plan
from placeopt.model.plan import Level
from placeopt.readable import gpus, number, of_reading, percent
from placeopt.report.text.links import job_links
from placeopt.report.views.held_gpus import gpu_map, gpu_table, node_table, node_uses
from placeopt.view import Better, Cell, Column, Figure, Table, View

LIMITS = {
    "time": "stopped by the time limit",
    "work": "stopped by the work limit",
    "size": "too large for the exact stages",
    "memory": "stopped by the memory limit",
    "user": "stopped by the user",
}
MEANING = {
    "conflict": "does not fit, even alone",
    "outvoted": "fits, but others are worth as much or more in its place",
    "postponed": "better later than now",
    "policy": "its queue or the policy keeps it back",
    "not_reached": "time ended before it was tried",
}
"""What the reason of a waiting job means."""


def plan_view(plan: Plan, instance: Instance | None = None, *, stages: bool = False) -> View:
    """
    Return what a plan is worth.

    Parameters
    ----------
    plan
        The plan.
    instance
        Its round; with it the view has the map of GPUs, the nodes, and the placed jobs with their links.
    stages
        Whether the stages of the search are a table, too.

    Returns
    -------
    View
        The answer, its figures, and what waits, why.

    Raises
    ------
    BadInput
        If the plan names nodes or GPUs that the round does not have.
    """
    uses = [] if instance is None else node_uses(instance, plan.placements, "placements")
    tables = [_objective_table(plan), _waiting_table(plan), _standing_table(plan), _cost_table(plan)]
    if instance is not None:
        tables += [_placed_table(instance, plan), gpu_table(uses, "after the round"), node_table(uses)]
    tables += [_waiting_jobs(plan), *([_stage_table(plan)] if stages else [])]
    relaxed = [f"The bound leaves out: {'; '.join(plan.bound_relaxes)}."] if plan.bound_relaxes else []
    timeless = [] if plan.seconds.solve is not None else ["A deterministic plan states no times."]
    return View(
        title=f"{plan.instance.name}: {_status(plan)}",
        verdict="good" if plan.status == "optimal" else "bad" if plan.gap is None else "open",
        proof=of_reading(plan.unread) if plan.of == "reading" else "",
        figures=_figures(plan),
        notes=(f"policy {plan.policy.name}", *relaxed, *timeless),
        tables=tuple(table for table in tables if table.rows),
        chart=gpu_map(uses) if any(use.gpus for use in uses) else None,
        provenance={"instance": plan.instance.model_dump(), "seed": plan.seed, "versions": plan.versions},
    )


def _status(plan: Plan) -> str:
    """Return how good a plan is, in words."""
    if plan.status == "optimal":
        return "optimal: no better plan exists"
    level = next((level.name for level in plan.levels if level.bound != level.objective), "value")
    if plan.gap is None:
        words = f"feasible: keeps every rule; how good its {level} can be is not proven"
    else:
        words = f"feasible: keeps every rule, {level} within {percent(plan.gap)} of the bound"
    return f"{words}; {LIMITS[plan.limit]}" if plan.limit in LIMITS else words


def _figures(plan: Plan) -> tuple[Figure, ...]:
    """Return what a planner asks first."""
    ran = plan.facts.get("jobs_running", 0) - len(plan.preempted)
    of_level = {level.name: level.objective for level in plan.levels}
    changed = {"moved": plan.moved, "shrunk": plan.shrunk, "preempted": plan.preempted}
    return (
        *(Figure(name=name, value=of_level[name], better=_better(name)) for name in of_level),
        Figure(name="gap", value=plan.gap, unit="fraction", better="less"),
        Figure(name="jobs placed", value=len(plan.placements), better="more"),
        Figure(name="of them ran before", value=ran),
        Figure(name="jobs waiting", value=len(plan.unplaced), better="less"),
        *(Figure(name=name, value=len(jobs), better="less") for name, jobs in changed.items() if jobs),
        *(
            Figure(name=f"{name} time", value=seconds, unit="s")
            for name, seconds in plan.seconds.model_dump().items()
            if seconds is not None
        ),
    )


def _better(level: str) -> Better:
    return "less" if level == "cost" else "more"


def _objective_table(plan: Plan) -> Table:
    names = ("level", "reached", "bound", "gap", "remark")
    columns = tuple(Column(name=name, unit="fraction" if name == "gap" else "") for name in names)
    rows = [_level(level) for level in plan.levels]
    share = _gpu_share(plan)
    if share is not None:
        rows.insert(1, share)
    return Table(name="Objective", columns=columns, rows=tuple(rows))


def _level(level: Level) -> tuple[Cell, ...]:
    gap = None if level.bound is None else abs(level.bound - level.objective) / max(1, abs(level.objective))
    if level.bound == level.objective:
        proven = "proven"
    elif level.bound is None:
        proven = "no bound known"
    else:
        proven = "the more the better" if level.sense == "max" else "the less the better"
    return level.name, level.objective, level.bound, gap, proven


def _gpu_share(plan: Plan) -> tuple[Cell, ...] | None:
    """
    Return the row about GPU share, for plans that state it.

    Its gap is the part of the bound that is not placed: the most valuable plan may hold next to none of the GPUs.
    """
    facts = plan.facts
    if "gpu_milli_placed" not in facts or "gpu_milli_bound" not in facts:
        return None
    placed, bound = facts["gpu_milli_placed"], facts["gpu_milli_bound"]
    asked, capacity = facts.get("gpu_milli_asked"), facts.get("gpu_milli_capacity")
    of = [] if asked is None else [f"{number(asked)} demanded"]
    if capacity is not None:
        of.append(f"the cluster has {gpus(capacity)} {'GPU' if capacity == 1000 else 'GPUs'}")
    return "GPU-milli", placed, bound, (bound - placed) / max(1, bound), ", ".join(of)


def _cost_table(plan: Plan) -> Table:
    """Return the terms of the cost level in the policy's order."""
    total = sum(cost.raw * cost.weight for cost in plan.costs.values())
    rows = tuple(
        (
            term,
            cost.raw,
            cost.unit,
            cost.raw / cost.worst if cost.worst else None,
            cost.weight,
            cost.raw * cost.weight,
            cost.raw * cost.weight / total if total else None,
        )
        for term, cost in plan.costs.items()
    )
    columns = (
        Column(name="term"),
        Column(name="raw", better="less"),
        Column(name="unit"),
        Column(name="of worst", unit="fraction"),
        Column(name="x weight"),
        Column(name="= cost", better="less"),
        Column(name="share", unit="fraction"),
    )
    return Table(name="Cost", columns=columns, rows=rows)


def _standing_table(plan: Plan) -> Table:
    """Return a row for each limit that running jobs exceed."""
    columns = (Column(name="limit"), Column(name="by how much"))
    note = "as before the round; nothing starts that would add to it"
    rows = tuple((entry.rule, entry.detail) for entry in plan.standing)
    return Table(name="Exceeded by running jobs", columns=columns, rows=rows, keys=2, note=note, shown=10)


def _waiting_table(plan: Plan) -> Table:
    """Return why jobs wait, the most frequent reason first, and below each reason its details."""
    reasons = Counter(job.reason for job in plan.unplaced)
    details = Counter((job.reason, job.detail) for job in plan.unplaced)
    such = {(job.reason, job.detail): job.job for job in reversed(plan.unplaced)}
    order = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
    rows = tuple(
        (reason, detail or MEANING.get(reason, ""), count, such[reason, detail])
        for (reason, detail), count in sorted(details.items(), key=lambda one: (order.index(one[0][0]), -one[1]))
    )
    columns = (Column(name="reason"), Column(name="why"), Column(name="jobs", better="less"), Column(name="such as"))
    note = "; ".join(f"{reason}: {MEANING[reason]}" for reason in order if reason in MEANING)
    return Table(name="Waiting jobs", columns=columns, rows=rows, keys=2, note=note)


def _waiting_jobs(plan: Plan) -> Table:
    columns = tuple(Column(name=name) for name in ("job", "reason", "why"))
    rows = tuple((job.job, job.reason, job.detail) for job in plan.unplaced)
    return Table(name="Each waiting job", columns=columns, rows=rows, shown=0)


def _placed_table(instance: Instance, plan: Plan) -> Table:
    """Return a row for each job and node: its GPUs there, and the links between them."""
    machine_of = {node.id: instance.cluster.machine_of(node) for node in instance.cluster.nodes}
    running = {held.job for held in instance.running}
    links: dict[tuple[str, tuple[str, ...]], tuple[str, int | None]] = {}
    rows = []
    for placement in plan.placements:
        for assignment in placement.assignments:
            machine, held = machine_of.get(assignment.node), tuple(assignment.gpus)
            alike = ("" if machine is None else machine.id, held)
            if alike not in links:
                links[alike] = ("", None) if machine is None else _links(machine, held)
            before = "ran" if placement.job in running else "new"
            what = (_gpus(assignment), len(assignment.workers), placement.option, before)
            rows.append((placement.job, assignment.node, *what, *links[alike]))
    names = ("job", "node", "GPUs", "workers", "option", "before", "links between them", "distance")
    columns = tuple(Column(name=name, better="less" if name == "distance" else "") for name in names)
    return Table(name="Placed jobs", columns=columns, rows=tuple(rows), keys=2)


def _gpus(assignment: Assignment) -> str:
    held = (index if milli >= 1000 else f"{index} ({gpus(milli)})" for index, milli in assignment.gpus.items())
    return " ".join(held) or "none"


def _links(machine: Machine, indices: tuple[str, ...]) -> tuple[str, int | None]:
    """Return the connections of GPUs of a node, and the sum of their distances; of those that the machine has."""
    pairs = job_links(machine, [gpu for gpu in map(int, indices) if gpu < len(machine.gpus)])
    if not pairs:
        return "", None
    kinds = Counter(pair.label for pair in pairs)
    words = ", ".join(f"{count} x {label}" for label, count in kinds.most_common())
    return words, sum(pair.distance for pair in pairs)


def _stage_table(plan: Plan) -> Table:
    columns = (
        Column(name="stage"),
        Column(name="outcome"),
        Column(name="objective"),
        Column(name="bound"),
        Column(name="time", unit="s"),
        Column(name="what it did"),
    )
    rows = tuple(
        (stage.name, stage.outcome, stage.objective, stage.bound, stage.seconds, stage.detail) for stage in plan.stages
    )
    return Table(name="Stages", columns=columns, rows=rows, shown=max(1, len(rows)))
