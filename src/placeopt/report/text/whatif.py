"""Answers to what-if questions as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.readable import amount, gpus, number, plain, plural
from placeopt.report.text.palette import BAD, GOOD, SO_SO
from placeopt.report.text.text_table import TextTable, heading, listed, section, took

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from placeopt.whatif.answers import (
        Cheapest,
        Defrag,
        EmptiedDomains,
        Failures,
        Fit,
        NodesNeeded,
        NodeTrial,
        Slots,
    )


SHOWN = 10
ANSWER = {"yes": GOOD, "no": BAD, "unknown": SO_SO}
"""Colours of answers."""


def fit_page(found: Fit, asked: str) -> list[RenderableType]:
    """Return the number of copies that fit, the largest gangs, and the binding constraints."""
    title = Text(f"{_span(found.found, found.most)} more of {plain(asked)}", style="bold")
    share = f"{gpus(found.found * found.gpu_milli_each)} GPUs" if found.gpu_milli_each else "no GPUs"
    title.append(f"  {share}, {_proof(found.proven)}", style="not bold dim")
    rows = [[gang.level, number(gang.workers), gpus(gang.gpu_milli)] for gang in found.gangs]
    aside = Text("beside what runs; jobs that wait are left aside", style="dim")
    parts: list[RenderableType] = [title, aside, Text("")]
    parts.append(heading("Largest gang", "of such workers in one domain; proven"))
    parts.append(TextTable(["level", ">workers", ">GPUs"], rows))
    if found.binds:
        rows = [[one.name, one.asks] for one in found.binds]
        note = "for one more; without any one of these it fits"
        parts += [Text(""), *section("What binds", ["constraint", "asks"], rows, note=note, wrap="asks")]
    return [*parts, took(found.seconds)]


def slots_page(found: Slots) -> list[RenderableType]:
    """Return slots, one row per level and one column per size."""
    model = "" if found.model is None else f" of model {plain(found.model)}"
    sizes = list(dict.fromkeys(one.size for one in found.counts))
    levels = list(dict.fromkeys(one.level for one in found.counts))
    at = {(one.level, one.size): one for one in found.counts}
    rows = [
        [level, number(at[level, sizes[0]].largest), *(number(at[level, size].slots) for size in sizes)]
        for level in levels
    ]
    return [
        Text(f"{number(found.free_gpus)} of {plural(found.gpus, 'GPU')}{model} free", style="bold"),
        Text("disjoint slots of that many free GPUs, each in one domain of the level", style="dim"),
        TextTable(["level", ">most free", *(f">{size}" for size in sizes)], rows),
    ]


def failures_page(found: Failures) -> list[RenderableType]:
    """Return the answer, the worst case, and the scenarios in which jobs lose their place."""
    asked = f"N+{found.k} by {found.level}" if found.asked is None else found.condition
    title = Text(f"{plain(asked)}: ", style="bold").append(found.answer, style=ANSWER[found.answer])
    said = {
        "yes": "all jobs that run there find another place"
        if found.asked is not None
        else f"{found.condition}, all jobs that run there find another place",
        "no": "in some of these cases, proven, jobs find no other place",
        "unknown": "not shown for every one of these cases, refuted in none",
    }[found.answer]
    title.append(f"  {plain(said)}", style="not bold dim")
    alone = f"about {len(found.asked):,} of {found.domains:,} of level {plain(found.level)}; " if found.asked else ""
    stay = "what still runs may be changed as the policy lets it" if found.changes else "what still runs stays"
    lossy = sorted(
        (one for one in found.scenarios if one.lost), key=lambda one: (-one.lost, -one.lost_gpu_milli, one.domains)
    )
    done = f"{plural(len(found.scenarios), 'scenario')}, {len(lossy):,} with losses"
    parts: list[RenderableType] = [
        title,
        Text(done + (f"; {found.left:,} not looked at" if found.left else "")),
        Text(f"{alone}{stay}; jobs that wait are left aside", style="dim"),
    ]
    worst = lossy or sorted(found.scenarios, key=lambda one: (-one.displaced, one.domains))[:1]
    if worst:
        parts += [Text(""), heading("Worst first" if lossy else "Most displaced")]
        rows = [
            [
                ", ".join(one.domains),
                number(one.nodes),
                number(one.gpus),
                number(one.displaced),
                gpus(one.displaced_gpu_milli),
                _span(one.lost_at_least, one.lost),
                gpus(one.lost_gpu_milli),
            ]
            for one in worst[:SHOWN]
        ]
        columns = ["fails", ">nodes", ">of GPUs", ">displaced", ">GPUs", ">lost", ">lost GPUs"]
        parts.append(TextTable(columns, rows, wrap="fails"))
        if len(worst) > SHOWN:
            parts.append(Text(f"  ... and {len(worst) - SHOWN:,} more"))
    return [*parts, took(found.seconds)]


def added_page(found: NodesNeeded) -> list[RenderableType]:
    """Return the interval, its price, and what was tried."""
    kind = plain(found.node_type)
    if found.never:
        names = ", ".join(map(plain, found.never[:SHOWN]))
        return [Text(f"no number of {kind} places {names}", style="bold"), took(found.seconds)]
    if found.impossible:
        title = Text(f"no number of {kind} places all jobs together", style="bold").append(
            "  proven", style="not bold dim"
        )
        return [title, Text(""), heading("Tried"), _tried(found.tried), took(found.seconds)]
    if found.found is None or found.at_least is None:
        title = Text(f"at least {number(found.at_least)} of {kind}; none found that do", style="bold")
    else:
        title = Text(f"{_span(found.at_least, found.found)} of {kind} place all jobs", style="bold")
        price = found.found * found.price_milli_per_hour / 1000
        title.append(f"  {_proof(found.proven)}; {amount(price)} an hour", style="not bold dim")
    return [title, Text(""), heading("Tried"), _tried(found.tried), took(found.seconds)]


def cheapest_page(found: Cheapest) -> list[RenderableType]:
    """Return the cheapest mixture, and the interval and price of each type alone."""
    rows = []
    for one in found.choices:
        span = "none will do" if one.impossible else f"at least {number(one.at_least)}"
        if one.found is not None and one.at_least is not None:
            span = _span(one.at_least, one.found)
        price = "-" if one.found is None else amount(one.found * one.price_milli_per_hour / 1000)
        rows.append([one.node_type, span, price])
    if found.mixture is None or found.price_milli_per_hour is None:
        title = Text("with none of these types, nor with a mixture, all jobs were placed", style="bold")
    else:
        words = [
            f"{number(count)} {plain(one.node_type)}"
            for count, one in zip(found.mixture, found.choices, strict=True)
            if count
        ]
        price = f"{amount(found.price_milli_per_hour / 1000)} an hour"
        title = Text(f"{' + '.join(words) or 'no more nodes'}: {price}", style="bold")
        least = found.at_least_milli_per_hour
        remark = "" if least is None or found.proven else f"; at least {amount(least / 1000)}, proven"
        title.append(f"  {_proof(found.proven)}{remark}", style="not bold dim")
    parts: list[RenderableType] = [title, Text(""), heading("Each type alone")]
    parts.append(TextTable(["type", ">nodes", ">an hour"], rows, wrap="type"))
    if found.tried:
        parts.append(Text(f"  {plural(len(found.tried), 'mixture')} tried", style="dim"))
    return [*parts, took(found.seconds)]


def _tried(tried: Sequence[NodeTrial]) -> TextTable:
    fits = {True: "all placed", False: "proven too few", None: "open"}
    rows = [[number(t.nodes), fits[t.fits], number(t.waiting), gpus(t.gpu_milli_waiting)] for t in tried]
    return TextTable([">nodes", "", ">jobs waiting", ">GPUs"], rows)


def _span(low: int, high: int) -> str:
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def _proof(proven: bool) -> str:
    return "proven" if proven else "between what is found and what is proven"


MOVES_SHOWN = 20
NODES = 4


def defrag_page(found: Defrag) -> list[RenderableType]:
    """Return the number of empty domains against moves, and the moves that empty most."""
    after = found.front[-1].freed if found.front else found.free_before
    title = Text(
        f"{number(after)} of {number(found.domains)} empty instead of {number(found.free_before)}", style="bold"
    )
    title.append(f"  by {plain(found.level)}; more than {number(found.most)} cannot be, proven", style="not bold dim")
    parts: list[RenderableType] = [title]
    asked = [] if found.moves_most is None else [f"with at most {plural(found.moves_most, 'move')}"]
    asked += [f"{plural(found.exempt, 'job')} exempt"] if found.exempt else []
    asked += ["all running jobs may be moved, marked as movable or not"] if found.all_movable else []
    if asked:
        parts.append(Text("; ".join(asked), style="dim"))
    if found.stuck:
        stuck = plural(found.stuck, plain(found.level))
        why = "exempt, or not marked as movable (--all-movable moves those too)"
        parts.append(Text(f"{stuck} with jobs that must not be moved: {why}", style="dim"))
    if not found.front:
        return [*parts, took(found.seconds)]
    rows = [
        [
            number(point.freed),
            number(len(point.moves)),
            number(point.at_least),
            gpus(sum(move.gpu_milli for move in point.moves)),
            point.domains[-1],
        ]
        for point in _thinned(found.front)
    ]
    parts += [Text(""), heading("Front", "fewer moves than 'at least' will not do, proven")]
    parts.append(TextTable([">empty", ">moves", ">at least", ">GPUs moved", "emptied last"], rows, wrap="emptied last"))
    last = found.front[-1]
    order = (
        "in an order in which each keeps every rule"
        if last.ordered
        else "no order found in which each keeps every rule"
    )
    parts += [Text(""), heading("Moves", f"of the last point, {order}")]
    table_rows = [
        [move.job, listed(move.from_nodes, NODES), listed(move.to_nodes, NODES), gpus(move.gpu_milli)]
        for move in last.moves[:MOVES_SHOWN]
    ]
    parts.append(TextTable(["job", "from", "to", ">GPUs"], table_rows, wrap="to"))
    if len(last.moves) > MOVES_SHOWN:
        parts.append(Text(f"  ... and {len(last.moves) - MOVES_SHOWN:,} more"))
    return [*parts, took(found.seconds)]


def _thinned(front: Sequence[EmptiedDomains]) -> Sequence[EmptiedDomains]:
    """Return at most ``MOVES_SHOWN`` points, the first and the last among them."""
    if len(front) <= MOVES_SHOWN:
        return front
    return [front[i * (len(front) - 1) // (MOVES_SHOWN - 1)] for i in range(MOVES_SHOWN)]
