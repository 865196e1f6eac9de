"""Nodes emptied by moves, as text: the front, and the moves of its last point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.readable import duration
from placeopt.report.text.text import gpus, number, plain, plural
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from placeopt.whatif.answers import Defrag, EmptiedDomains

SHOWN = 20
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
        return [*parts, Text(f"\n{duration(found.seconds)}", style="dim")]
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
        [move.job, _listed(move.from_nodes), _listed(move.to_nodes), gpus(move.gpu_milli)]
        for move in last.moves[:SHOWN]
    ]
    parts.append(TextTable(["job", "from", "to", ">GPUs"], table_rows, wrap="to"))
    if len(last.moves) > SHOWN:
        parts.append(Text(f"  ... and {len(last.moves) - SHOWN:,} more"))
    return [*parts, Text(f"\n{duration(found.seconds)}", style="dim")]


def _thinned(front: Sequence[EmptiedDomains]) -> Sequence[EmptiedDomains]:
    """Return at most ``SHOWN`` points, the first and the last among them."""
    if len(front) <= SHOWN:
        return front
    return [front[i * (len(front) - 1) // (SHOWN - 1)] for i in range(SHOWN)]


def _listed(nodes: Sequence[str]) -> str:
    shown = ", ".join(map(plain, nodes[:NODES]))
    return shown + (f", {len(nodes) - NODES:,} more" if len(nodes) > NODES else "")
