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


def fit_page(answer: Fit, asked: str) -> list[RenderableType]:
    """Return the number of copies that fit, the largest gangs, and the binding constraints."""
    copies = "copy" if answer.found == answer.most == 1 else "copies"
    title = Text(f"{_span(answer.found, answer.most)} more {copies} of {plain(asked)} fit", style="bold")
    share = f"{gpus(answer.found * answer.gpu_milli_each)} GPUs" if answer.gpu_milli_each else "no GPUs"
    title.append(f"  {share}, {_proof(answer.proven)}", style="not bold dim")
    rows = [[gang.level, number(gang.workers), gpus(gang.gpu_milli)] for gang in answer.gangs]
    aside = Text("running jobs stay; waiting jobs are ignored", style="dim")
    parts: list[RenderableType] = [title, aside]
    if answer.tolerated:
        parts.append(Text(f"taints that the job tolerates: {plain(', '.join(answer.tolerated))}", style="dim"))
    parts += [Text(""), heading("Largest gang", "of such workers in one domain; proven")]
    parts.append(TextTable(["level", ">workers", ">GPUs"], rows))
    if answer.binds:
        rows = [[constraint.name, constraint.asks] for constraint in answer.binds]
        note = "one more would fit without any one of these"
        parts += [Text(""), *section("What binds", ["constraint", "requires"], rows, note=note, wrap="requires")]
    return [*parts, took(answer.seconds)]


def slots_page(answer: Slots) -> list[RenderableType]:
    """Return slots, one row per level and one column per size."""
    model = "" if answer.model is None else f" of model {plain(answer.model)}"
    sizes = list(dict.fromkeys(count.size for count in answer.counts))
    levels = list(dict.fromkeys(count.level for count in answer.counts))
    at = {(count.level, count.size): count for count in answer.counts}
    rows = [
        [level, number(at[level, sizes[0]].largest), *(number(at[level, size].slots) for size in sizes)]
        for level in levels
    ]
    return [
        Text(f"{number(answer.free_gpus)} of {plural(answer.gpus, 'GPU')}{model} free", style="bold"),
        Text("disjoint slots of that many free GPUs, each in one domain of the level", style="dim"),
        TextTable(["level", ">most free", *(f">{size}" for size in sizes)], rows),
    ]


def failures_page(answer: Failures) -> list[RenderableType]:
    """Return the answer, the worst case, and the scenarios in which jobs lose their place."""
    asked = f"N+{answer.k} by {answer.level}" if answer.asked is None else answer.condition
    title = Text(f"{plain(asked)}: ", style="bold").append(answer.answer, style=ANSWER[answer.answer])
    said = {
        "yes": "all jobs that run there find another place"
        if answer.asked is not None
        else f"{answer.condition}, all jobs that run there find another place",
        "no": "proven: in some cases jobs find no other place",
        "unknown": "not proven in every case, disproved in none",
    }[answer.answer]
    title.append(f"  {plain(said)}", style="not bold dim")
    some = f"about {len(answer.asked):,} of {answer.domains:,} of level {plain(answer.level)}; " if answer.asked else ""
    stay = "jobs that still run may be changed as the policy allows" if answer.changes else "jobs that still run stay"
    lossy = sorted(
        (scenario for scenario in answer.scenarios if scenario.lost),
        key=lambda scenario: (-scenario.lost, -scenario.lost_gpu_milli, scenario.domains),
    )
    done = f"{plural(len(answer.scenarios), 'scenario')}, {len(lossy):,} with losses"
    parts: list[RenderableType] = [
        title,
        Text(done + (f"; {answer.left:,} not examined" if answer.left else "")),
        Text(f"{some}{stay}; waiting jobs are ignored", style="dim"),
    ]
    if any(scenario.unread and scenario.survives is None for scenario in lossy):
        parts.append(Text("undecided, since some jobs or nodes were not read as they are", style="dim"))
    worst = lossy or sorted(answer.scenarios, key=lambda scenario: (-scenario.displaced, scenario.domains))[:1]
    if worst:
        parts += [Text(""), heading("Worst first" if lossy else "Most displaced")]
        rows = [
            [
                ", ".join(scenario.domains),
                number(scenario.nodes),
                number(scenario.gpus),
                number(scenario.displaced),
                gpus(scenario.displaced_gpu_milli),
                _span(scenario.lost_at_least, scenario.lost),
                gpus(scenario.lost_gpu_milli),
            ]
            for scenario in worst[:SHOWN]
        ]
        columns = ["fails", ">nodes", ">of GPUs", ">displaced", ">GPUs", ">lost", ">lost GPUs"]
        parts.append(TextTable(columns, rows, wrap="fails"))
        if len(worst) > SHOWN:
            parts.append(Text(f"  ... and {len(worst) - SHOWN:,} more"))
    return [*parts, took(answer.seconds)]


def added_page(answer: NodesNeeded) -> list[RenderableType]:
    """Return the interval, its price, and what was tried."""
    kind = plain(answer.node_type)
    if answer.never:
        names = ", ".join(map(plain, answer.never[:SHOWN]))
        return [Text(f"no number of nodes like {kind} places {names}", style="bold"), took(answer.seconds)]
    if answer.impossible:
        title = Text(f"no number of nodes like {kind} places all jobs together", style="bold").append(
            "  proven", style="not bold dim"
        )
        return [title, Text(""), heading("Tried"), _tried(answer.tried), took(answer.seconds)]
    if answer.found is None or answer.at_least is None:
        title = Text(
            f"at least {number(answer.at_least)} more nodes like {kind}; no number was found to be enough", style="bold"
        )
    else:
        title = Text(_enough(answer.at_least, answer.found, kind), style="bold")
        cost = per_hour(answer.price_milli_per_hour, answer.gpus, answer.found)
        title.append(f"  {_proof(answer.proven)}; {cost}", style="not bold dim")
    return [title, Text(""), heading("Tried"), _tried(answer.tried), took(answer.seconds)]


def per_hour(price_milli: int, gpus: int, nodes: int) -> str:
    """Return what so many nodes cost an hour, in money and in GPU hours."""
    return f"price {amount(nodes * price_milli / 1000)} an hour, {nodes * gpus:,} GPU hours"


def cheapest_page(answer: Cheapest) -> list[RenderableType]:
    """Return the cheapest mixture, and the interval and price of each type alone."""
    rows = []
    for choice in answer.choices:
        span = "none is enough" if choice.impossible else f"at least {number(choice.at_least)}"
        if choice.found is not None and choice.at_least is not None:
            span = _span(choice.at_least, choice.found)
        found = choice.found
        cost = None if found is None else found * choice.price_milli_per_hour / 1000
        rows.append([choice.node_type, span, amount(cost), number(None if found is None else found * choice.gpus)])
    if answer.mixture is None or answer.price_milli_per_hour is None:
        title = Text("neither one of these types nor a mixture was found to place all jobs", style="bold")
    else:
        words = [
            f"{number(count)} {plain(choice.node_type)}"
            for count, choice in zip(answer.mixture, answer.choices, strict=True)
            if count
        ]
        price = f"price {amount(answer.price_milli_per_hour / 1000)} an hour"
        title = Text(f"{' + '.join(words) or 'no more nodes'}: {price}", style="bold")
        least = answer.at_least_milli_per_hour
        remark = "" if least is None or answer.proven else f"; at least {amount(least / 1000)}, proven"
        title.append(f"  {_proof(answer.proven)}{remark}", style="not bold dim")
    parts: list[RenderableType] = [title, Text(""), heading("Each type alone")]
    parts.append(TextTable(["type", ">nodes", ">price an hour", ">GPU hours"], rows, wrap="type"))
    if answer.tried:
        parts.append(Text(f"  {plural(len(answer.tried), 'mixture')} tried", style="dim"))
    return [*parts, took(answer.seconds)]


def _enough(low: int, high: int, kind: str) -> str:
    if low == high == 1:
        return f"1 more node like {kind} places all jobs"
    return f"{_span(low, high)} more nodes like {kind} place all jobs"


def _tried(tried: Sequence[NodeTrial]) -> TextTable:
    fits = {True: "all placed", False: "proven too few", None: "open"}
    rows = [[number(t.nodes), fits[t.fits], number(t.waiting), gpus(t.gpu_milli_waiting)] for t in tried]
    return TextTable([">nodes", "", ">jobs waiting", ">GPUs"], rows)


def _span(low: int, high: int) -> str:
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def _proof(proven: bool) -> str:
    return "proven" if proven else "between the best found and the proven bound"


MOVES_SHOWN = 20
NODES = 4


def defrag_page(answer: Defrag) -> list[RenderableType]:
    """Return the number of empty domains against moves, and the moves that empty most."""
    after = answer.front[-1].freed if answer.front else answer.free_before
    title = Text(
        f"{number(after)} of {number(answer.domains)} empty instead of {number(answer.free_before)}", style="bold"
    )
    title.append(
        f"  by {plain(answer.level)}; more than {number(answer.most)} are impossible, proven", style="not bold dim"
    )
    parts: list[RenderableType] = [title]
    asked = [] if answer.moves_most is None else [f"with at most {plural(answer.moves_most, 'move')}"]
    asked += [f"{plural(answer.exempt, 'job')} exempt"] if answer.exempt else []
    asked += ["all running jobs may be moved, marked as movable or not"] if answer.all_movable else []
    if asked:
        parts.append(Text("; ".join(asked), style="dim"))
    if answer.stuck:
        stuck = plural(answer.stuck, plain(answer.level))
        why = "exempt, or not marked as movable (--all-movable moves those too)"
        parts.append(Text(f"{stuck} with jobs that must not be moved: {why}", style="dim"))
    if not answer.front:
        return [*parts, took(answer.seconds)]
    rows = [
        [
            number(point.freed),
            number(len(point.moves)),
            number(point.at_least),
            gpus(sum(move.gpu_milli for move in point.moves)),
            point.domains[-1],
        ]
        for point in _thinned(answer.front)
    ]
    parts += [Text(""), heading("Front", "fewer moves than 'at least' are not enough, proven")]
    parts.append(TextTable([">empty", ">moves", ">at least", ">GPUs moved", "emptied last"], rows, wrap="emptied last"))
    last = answer.front[-1]
    order = (
        "in an order that keeps every rule after each move"
        if last.ordered
        else "no order found that keeps every rule after each move"
    )
    parts += [Text(""), heading("Moves", f"of the last point, {order}")]
    table_rows = [
        [move.job, listed(move.from_nodes, NODES), listed(move.to_nodes, NODES), gpus(move.gpu_milli)]
        for move in last.moves[:MOVES_SHOWN]
    ]
    parts.append(TextTable(["job", "from", "to", ">GPUs"], table_rows, wrap="to"))
    if len(last.moves) > MOVES_SHOWN:
        parts.append(Text(f"  ... and {len(last.moves) - MOVES_SHOWN:,} more"))
    return [*parts, took(answer.seconds)]


def _thinned(front: Sequence[EmptiedDomains]) -> Sequence[EmptiedDomains]:
    """Return at most ``MOVES_SHOWN`` points, the first and the last among them."""
    if len(front) <= MOVES_SHOWN:
        return front
    return [front[i * (len(front) - 1) // (MOVES_SHOWN - 1)] for i in range(MOVES_SHOWN)]
