"""Why a job waits and what would let it start, or what its placement costs, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.readable import amount, duration, number, of_reading, plain, plural
from placeopt.report.text.text_table import TextTable, heading, section

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.explain import Explanation, QueueExplanation
    from placeopt.explain.records import Alternative, JobPosition

SHOWN = 6
"""Names listed before the rest is counted."""

REMEDY = {
    "workers_max": "fewer workers",
    "domains_min": "other domains",
    "level": "a wider level",
    "preempt": "preempt",
    "changes": "one change",
}


def explanation_page(explanation: Explanation) -> list[RenderableType]:
    """Return reason, conflict and remedies of a waiting job; costs and other places of a placed one."""
    title = Text(plain(explanation.job), style="bold")
    title.append(f"  {explanation.status}{f': {explanation.reason}' if explanation.reason else ''}", style="not bold")
    parts: list[RenderableType] = [title, Text(plain(explanation.detail))]
    if explanation.reason and explanation.plan_reason and explanation.plan_reason != explanation.reason:
        parts.append(Text(f"The plan says {explanation.plan_reason}.", style="dim"))
    parts += _placed(explanation) if explanation.status == "placed" else _waiting(explanation)
    proven = "Every answer is proven" if explanation.proven else "Not every answer is proven"
    proven += "" if explanation.of == "cluster" else f", {of_reading(explanation.unread)}"
    proven += "" if explanation.certified else "; not certified"
    return [*parts, Text(""), Text(f"{proven}; {duration(explanation.seconds)}.", style="dim")]


def queue_page(queue: QueueExplanation) -> list[RenderableType]:
    """Return how many jobs wait for each reason, and what each single change would let start."""
    jobs = f"{plural(queue.waiting, 'job')} wait{'s' * (queue.waiting == 1)}"
    parts: list[RenderableType] = [Text(f"{jobs}, {plural(queue.kinds, 'distinct request')}")]
    if queue.reasons:
        rows = [
            [number(one.jobs), amount(one.gpu_milli / 1000), one.reason, one.detail, ", ".join(one.examples[:2])]
            for one in queue.reasons
        ]
        columns = [">jobs", ">GPUs", "reason", "detail", "such as"]
        note = "of each conflict: without any one of its constraints the job fits"
        parts += [Text(""), *section("Reasons", columns, rows, note=note, wrap="detail")]
    if queue.changes:
        rows = [
            [one.change, number(one.jobs_together), amount(one.gpu_milli / 1000), number(one.jobs_alone)]
            for one in queue.changes
        ]
        note = "together: found by greedy, at least; alone: each without the others"
        columns = ["change", ">together", ">GPUs", ">alone"]
        parts += [Text(""), *section("What one change would start", columns, rows, note=note, wrap="change")]
    elif queue.waiting:
        parts += [Text(""), Text("No single change that was tried would let a job start.")]
    proven = "Every job was answered" if queue.proven else "Time ended before every job and change was answered"
    return [*parts, Text(""), Text(f"{proven}; {duration(queue.seconds)}.", style="dim")]


def _waiting(explanation: Explanation) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if explanation.conflict:
        beside = "beside the running jobs that must stay" if explanation.beside == "running" else "beside the plan"
        rows = [[item.name, item.asks] for item in explanation.conflict]
        note = f"{beside}; without any one of these it fits"
        parts += [Text(""), *section("Conflict", ["constraint", "requires"], rows, note=note, wrap="requires")]
    if explanation.outvoted_by is not None:
        rows = [[item.job, number(item.value)] for item in explanation.outvoted_by.jobs[:SHOWN]]
        if rest := explanation.outvoted_by.jobs[SHOWN:]:
            rows.append([f"and {len(rest):,} more", number(sum(item.value for item in rest))])
        least = "the cheapest jobs that hold" if explanation.outvoted_by.proven else "some jobs that hold"
        worth = number(explanation.outvoted_by.job_value)
        note = f"{least} the room it needs; it would be worth {worth}"
        parts += [Text(""), *section("In its place", ["job", ">value"], rows, note=note)]
    does, fails = (
        [[REMEDY.get(name, name), said] for name, said in remedies.items()]
        for remedies in (explanation.remedies.said, explanation.remedies.none)
    )
    if does:
        note = "each is enough by itself; nothing smaller is"
        parts += [
            Text(""),
            *section("What would help", ["remedy", "smallest change"], does, note=note, wrap="smallest change"),
        ]
    if fails and (does or explanation.conflict):
        parts += [Text(""), *section("What would not help", ["remedy", "because"], fails, wrap="because")]
    return parts


def _placed(explanation: Explanation) -> list[RenderableType]:
    parts: list[RenderableType] = []
    spots: list[tuple[str, JobPosition | None, Alternative | None]] = [("now", explanation.spot, None)]
    others = (("best", explanation.best), ("elsewhere", explanation.elsewhere))
    spots += [(name, other.spot, other) for name, other in others if other]
    rows = [
        [name, number(spot.value), number(spot.cost), _nodes(spot), _change(change)]
        for name, spot, change in spots
        if spot is not None
    ]
    parts += [Text(""), heading("Place", "all other jobs stay where they are")]
    parts.append(TextTable(["", ">value", ">cost", "nodes", "the plan would"], rows, wrap="nodes"))
    for name, spot, change in spots:
        if spot is None and change is not None and change.detail:
            parts.append(Text(f"  {name}: {plain(change.detail)}", style="dim"))
    if explanation.spot is not None and explanation.spot.terms:
        rows = [[term.term, number(term.raw), term.unit, number(term.cost)] for term in explanation.spot.terms]
        note, columns = "how much each term would fall without the job", ["term", ">raw", "unit", ">cost"]
        parts += [Text(""), *section("Its cost", columns, rows, note=note, wrap="unit")]
    return parts


def _nodes(spot: JobPosition) -> str:
    names = [node if workers == 1 else f"{node} x {workers}" for node, workers in spot.nodes.items()]
    shown = names if len(names) <= SHOWN + 1 else [*names[:SHOWN], f"{len(names) - SHOWN:,} more"]
    return ", ".join(shown)


def _change(change: Alternative | None) -> str:
    if change is None:
        return ""
    said = []
    if change.gain_value:
        said.append(f"{'gain' if change.gain_value > 0 else 'lose'} {number(abs(change.gain_value))} in value")
    if change.gain_cost:
        said.append(f"cost {number(abs(change.gain_cost))} {'less' if change.gain_cost > 0 else 'more'}")
    return (", ".join(said) or "stay as good") + ("" if change.proven else " (not proven the best)")
