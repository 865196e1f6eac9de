"""``placeopt whatif defrag``: nodes or racks emptied by moving what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.exits import ExitCode, UsageError
from placeopt.cli.question_options import SolverQuestion

if TYPE_CHECKING:
    from placeopt.whatif.answers import EmptiedDomains


def defrag(
    question: SolverQuestion,
    level: Annotated[str, typer.Option(metavar="LEVEL", help="node, or a level of the cluster's network.")] = "node",
    exempt: Annotated[str | None, typer.Option(metavar="JOB,...", help="Jobs that must not be moved.")] = None,
    everyone: Annotated[
        bool, typer.Option("--all-movable", help="Also move jobs that are not marked as movable.")
    ] = False,
    moves: Annotated[int | None, typer.Option(metavar="N", help="Largest number of moves.")] = None,
    time_limit: Annotated[float, typer.Option(metavar="S", help="Seconds for the whole search.")] = 30.0,
) -> int:
    """
    Empty as many nodes, or racks, as possible by moving running jobs.

    Prints emptied nodes against moves, in a safe order.

    Exit code 1: no tried set of moves empties more than are empty now.
    """
    limits = question.limits(time_limit)
    if moves is not None and moves < 0:
        raise UsageError(f"--moves: {moves}, expected 0 or more")
    from placeopt.report.text.defragmenting import defrag_page
    from placeopt.whatif.defragmentation import defrag as answer

    with question.answering() as answering:

        def news(point: EmptiedDomains) -> None:
            answering.ticker.doing(f"{point.freed:,} empty with {len(point.moves):,} moves")

        found = answer(
            answering.base,
            level,
            exempt=() if exempt is None else exempt.split(","),
            everyone=everyone,
            most_moves=moves,
            limits=limits,
            cancel=answering.interruption.event,
            on_news=news,
        )
    question.deliver(found, lambda: defrag_page(found))
    return answering.interruption.code or (ExitCode.DONE if found.front else ExitCode.NO)
