"""``placeopt whatif sweep``, ``swap`` and ``price``: whole rounds under other settings."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.commands.whatif_replay import Draws, Replay, ReplayPolicy, is_scenario, sweep_by_replay
from placeopt.cli.exits import ExitCode, UsageError
from placeopt.cli.files import check_target, write_document
from placeopt.cli.question_options import ParallelQuestion, SolverQuestion

RoundLimit = Annotated[float, typer.Option("--time-limit", metavar="S", help="Seconds a round.")]


def sweep(
    question: ParallelQuestion,
    vary: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="nodes:TYPE=0-10, demand=80-130:10 (percent), quota:QUEUE=8,16 (GPUs). Of a scenario nodes, "
            "arrivals=80-130:10 (percent), policy=A,B, patch=F,G.",
        ),
    ],
    measure: Annotated[
        str | None, typer.Option(metavar="NAME|GOAL", help="Of a scenario: p95_wait, or p95_wait<=30m, and the like.")
    ] = None,
    policy: ReplayPolicy = None,
    draws: Draws = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write the points as CSV.")] = None,
    time_limit: RoundLimit = 10.0,
) -> int:
    """
    Solve the round under one setting after the other: what is placed, and what the most is, by setting.

    A scenario is played under each of them, and what is measured printed.
    """
    limits = question.limits(time_limit)
    check_target(csv, question.sources)
    replay = Replay(question, policy, draws, time_limit)
    if is_scenario(question.instance):
        return sweep_by_replay(replay, vary, measure, csv)
    if refused := replay.refused(rows=True) or ("--measure" if measure is not None else None):
        raise UsageError(f"{refused}: goes with a scenario; {question.instance} is none")
    from placeopt.report.text.whatif_rounds import sweep_csv, sweep_page
    from placeopt.whatif.sweep import parse_variation
    from placeopt.whatif.sweep import sweep as ask

    variation = parse_variation(vary)
    with question.answering() as answering:
        found = ask(
            answering.base,
            variation,
            limits=limits,
            **question.parallel(answering, "settings"),
        )
        if csv is not None:
            write_document(csv, sweep_csv(found).encode())
    question.deliver(found, lambda: sweep_page(found))
    return answering.interruption.code or ExitCode.DONE


def swap(
    question: SolverQuestion,
    by: Annotated[str, typer.Option(metavar="TYPE", help="The machine type that the nodes get.")],
    of: Annotated[str | None, typer.Option(metavar="TYPE", help="All nodes of this machine type.")] = None,
    nodes: Annotated[str | None, typer.Option(metavar="ID,...", help="These nodes.")] = None,
    time_limit: RoundLimit = 10.0,
) -> int:
    """
    Exchange nodes for others, and compare the rounds before and after.

    What ran on them waits, and may be placed again. A machine type that is new comes by a scenario (add_machines). Exit
    code 1 says that it is worse, proven.
    """
    limits = question.limits(time_limit)
    if of is None and nodes is None:
        raise UsageError("expected --of with a machine type, or --nodes with ids")
    from placeopt.report.text.whatif_rounds import swap_page
    from placeopt.whatif.swap import swap as ask

    with question.answering() as answering:
        chosen = () if nodes is None else tuple(nodes.split(","))
        found = ask(answering.base, by, of=of, nodes=chosen, limits=limits, cancel=answering.interruption.event)
    question.deliver(found, lambda: swap_page(found))
    return answering.interruption.code or (ExitCode.NO if found.answer == "worse" else ExitCode.DONE)


def price(
    question: ParallelQuestion,
    of: Annotated[str, typer.Option(metavar="WHAT,...", help="node, quota, or a level such as rack.")] = "node",
    time_limit: RoundLimit = 10.0,
) -> int:
    """
    What one more node of each type, one more rack or one more GPU of quota is worth to the round.

    By the duals of the relaxation, and by solving the round again with it, as an interval from plans and bounds.
    """
    limits = question.limits(time_limit)
    from placeopt.report.text.whatif_rounds import prices_page
    from placeopt.whatif.price import price as ask

    with question.answering() as answering:
        found = ask(
            answering.base,
            of.split(","),
            limits=limits,
            **question.parallel(answering, "rounds"),
        )
    question.deliver(found, lambda: prices_page(found))
    return answering.interruption.code or ExitCode.DONE
