"""``placeopt whatif sweep``, ``swap`` and ``price``: whole rounds under other settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.commands.whatif_replay import Draws, Replay, ReplayPolicy, is_scenario, sweep_by_replay
from placeopt.cli.files import check_target, write_document
from placeopt.cli.options import ParallelPricedQuestion, PricedQuestion, SolverQuestion, expect
from placeopt.cli.output import UsageError

if TYPE_CHECKING:
    from placeopt.whatif.answers import EmptiedDomains


RoundLimit = Annotated[float, typer.Option("--time-limit", metavar="S", help="Time limit of a round in seconds.")]


def sweep(
    question: ParallelPricedQuestion,
    vary: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="nodes:TYPE=0-10, demand=80-130:10 (percent), quota:QUEUE=8,16 (GPUs). With a scenario: nodes, "
            "arrivals=80-130:10 (percent), policy=A,B, patch=F,G.",
        ),
    ],
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|GOAL", help="With a scenario: a measure such as p95_wait, or a goal such as p95_wait<=30m."
        ),
    ] = None,
    policy: ReplayPolicy = None,
    draws: Draws = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write the points as CSV.")] = None,
    time_limit: RoundLimit = 10.0,
) -> int:
    """
    Solve the round under a series of settings, and print value, bound and placed jobs of each.

    A scenario is simulated under each setting instead, and --measure is printed.
    """
    limits = question.limits(time_limit)
    check_target(csv, question.sources)
    replay = Replay(question, policy, draws, time_limit)
    if is_scenario(question.instance):
        return sweep_by_replay(replay, vary, measure, csv)
    if refused := replay.refused(rows=True) or ("--measure" if measure is not None else None):
        raise UsageError(f"{refused}: needs a scenario; {question.instance} is not one")
    from placeopt.report.text.whatif_rounds import sweep_csv, sweep_page
    from placeopt.whatif.round_sweep import parse_variation
    from placeopt.whatif.round_sweep import sweep as answer

    variation = parse_variation(vary)
    with question.answering() as answering:
        result = answer(
            answering.base,
            variation,
            limits=limits,
            **question.parallel(answering, "settings"),
        )
        if csv is not None:
            write_document(csv, sweep_csv(result).encode())
    return question.deliver(result, lambda: sweep_page(result), answering.interruption)


def swap(
    question: PricedQuestion,
    by: Annotated[str, typer.Option(metavar="TYPE", help="The new machine type.")],
    of: Annotated[str | None, typer.Option(metavar="TYPE", help="All nodes of this machine type.")] = None,
    nodes: Annotated[str | None, typer.Option(metavar="ID,...", help="These nodes.")] = None,
    time_limit: RoundLimit = 10.0,
) -> int:
    """
    Replace nodes by others, and compare the rounds before and after.

    Jobs that ran on replaced nodes wait, and may be placed again. A patch (add_machines) defines a new machine type.
    Exit code 1: the result is provably worse.
    """
    limits = question.limits(time_limit)
    if of is None and nodes is None:
        raise UsageError("expected --of with a machine type, or --nodes with ids")
    from placeopt.report.text.whatif_rounds import swap_page
    from placeopt.whatif.round_sweep import swap as answer

    with question.answering() as answering:
        chosen = () if nodes is None else tuple(nodes.split(","))
        result = answer(answering.base, by, of=of, nodes=chosen, limits=limits, cancel=answering.interruption.event)
    return question.deliver(result, lambda: swap_page(result), answering.interruption, no=result.answer == "worse")


def price(
    question: ParallelPricedQuestion,
    of: Annotated[str, typer.Option(metavar="WHAT,...", help="node, quota, or a level such as rack.")] = "node",
    time_limit: RoundLimit = 10.0,
) -> int:
    """
    Compute the value of one more node of each type, one more rack or one more GPU of quota.

    The value comes from the duals of the relaxation, and from solving the round again, as an interval of plan and
    bound.
    """
    limits = question.limits(time_limit)
    from placeopt.report.text.whatif_rounds import prices_page
    from placeopt.whatif.marginal_prices import price as answer

    with question.answering() as answering:
        result = answer(
            answering.base,
            of.split(","),
            limits=limits,
            **question.parallel(answering, "rounds"),
        )
    return question.deliver(result, lambda: prices_page(result), answering.interruption)


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

    Prints how many moves empty how many nodes, and the moves in a valid order. Exit code 1: no set of moves was found
    that empties more nodes than now.
    """
    limits = question.limits(time_limit)
    expect(moves is None or moves >= 0, "--moves", moves, "0 or more")
    from placeopt.report.text.whatif import defrag_page
    from placeopt.whatif.defragmentation import defrag as answer

    with question.answering() as answering:

        def news(point: EmptiedDomains) -> None:
            answering.ticker.doing(f"{point.freed:,} empty with {len(point.moves):,} moves")

        result = answer(
            answering.base,
            level,
            exempt=() if exempt is None else exempt.split(","),
            everyone=everyone,
            most_moves=moves,
            limits=limits,
            cancel=answering.interruption.event,
            on_news=news,
        )
    return question.deliver(result, lambda: defrag_page(result), answering.interruption, no=not result.front)
