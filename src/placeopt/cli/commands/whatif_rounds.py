"""``placeopt whatif sweep``, ``swap`` and ``price``: whole rounds under other settings."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.commands.whatif_replay import Draws, Replay, ReplayPolicy, is_scenario, sweep_by_replay
from placeopt.cli.exits import ExitCode, UsageError
from placeopt.cli.files import check_target, write_document
from placeopt.cli.question_options import (
    AsJson,
    InstanceFile,
    Jobs,
    KeptRows,
    On,
    PatchFiles,
    PlanFile,
    Quiet,
    Seed,
    Threads,
    asking,
    deliver,
    limits_of,
    rows_path,
)
from placeopt.cli.settings import check_jobs
from placeopt.parallel import HERE, workers

RoundLimit = Annotated[float, typer.Option("--time-limit", metavar="S", help="Seconds a round.")]


def sweep(
    instance: InstanceFile,
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
    rows: KeptRows = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write the points as CSV.")] = None,
    plan: PlanFile = None,
    patch: PatchFiles = None,
    time_limit: RoundLimit = 10.0,
    jobs: Jobs = 1,
    on: On = HERE,
    threads: Threads = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """
    Solve the round under one setting after the other: what is placed, and what the most is, by setting.

    A scenario is played under each of them, and what is measured printed.
    """
    limits = limits_of(time_limit, threads, seed)
    check_jobs(jobs)
    check_target(csv, (instance, plan, *(patch or ())))
    asked = Replay(instance, policy, draws, rows, patch, plan, time_limit, seed, jobs, on, as_json, quiet)
    if is_scenario(instance):
        return sweep_by_replay(asked, vary, measure, csv)
    if refused := asked.refused(rows=True) or ("--measure" if measure is not None else None):
        raise UsageError(f"{refused}: goes with a scenario; {instance} is none")
    from placeopt.report.text.whatif_rounds import sweep_csv, sweep_page
    from placeopt.whatif.sweep import parse_variation
    from placeopt.whatif.sweep import sweep as ask

    variation = parse_variation(vary)
    with asking(instance, plan, patch, quiet=quiet) as (base, ticker, interruption), workers(on, jobs) as width:
        found = ask(
            base,
            variation,
            limits=limits,
            jobs=width,
            rows=rows_path(rows),
            cancel=interruption.event,
            on_news=lambda done, total: ticker.doing(f"{done:,} of {total:,} settings"),
        )
        if csv is not None:
            write_document(csv, sweep_csv(found).encode())
    deliver(found, lambda: sweep_page(found), as_json)
    return interruption.code or ExitCode.DONE


def swap(
    instance: InstanceFile,
    by: Annotated[str, typer.Option(metavar="TYPE", help="The machine type that the nodes get.")],
    of: Annotated[str | None, typer.Option(metavar="TYPE", help="All nodes of this machine type.")] = None,
    nodes: Annotated[str | None, typer.Option(metavar="ID,...", help="These nodes.")] = None,
    plan: PlanFile = None,
    patch: PatchFiles = None,
    time_limit: RoundLimit = 10.0,
    threads: Threads = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """
    Exchange nodes for others, and compare the rounds before and after.

    What ran on them waits, and may be placed again. A machine type that is new comes by a scenario (add_machines). Exit
    code 1 says that it is worse, proven.
    """
    limits = limits_of(time_limit, threads, seed)
    if of is None and nodes is None:
        raise UsageError("expected --of with a machine type, or --nodes with ids")
    from placeopt.report.text.whatif_rounds import swap_page
    from placeopt.whatif.swap import swap as ask

    with asking(instance, plan, patch, quiet=quiet) as (base, _, interruption):
        chosen = () if nodes is None else tuple(nodes.split(","))
        found = ask(base, by, of=of, nodes=chosen, limits=limits, cancel=interruption.event)
    deliver(found, lambda: swap_page(found), as_json)
    return interruption.code or (ExitCode.NO if found.answer == "worse" else ExitCode.DONE)


def price(
    instance: InstanceFile,
    of: Annotated[str, typer.Option(metavar="WHAT,...", help="node, quota, or a level such as rack.")] = "node",
    plan: PlanFile = None,
    patch: PatchFiles = None,
    time_limit: RoundLimit = 10.0,
    jobs: Jobs = 1,
    on: On = HERE,
    rows: KeptRows = None,
    threads: Threads = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """
    What one more node of each type, one more rack or one more GPU of quota is worth to the round.

    By the duals of the relaxation, and by solving the round again with it, as an interval from plans and bounds.
    """
    limits = limits_of(time_limit, threads, seed)
    check_jobs(jobs)
    from placeopt.report.text.whatif_rounds import prices_page
    from placeopt.whatif.price import price as ask

    with asking(instance, plan, patch, quiet=quiet) as (base, ticker, interruption), workers(on, jobs) as width:
        found = ask(
            base,
            of.split(","),
            limits=limits,
            jobs=width,
            rows=rows_path(rows),
            cancel=interruption.event,
            on_news=lambda done, total: ticker.doing(f"{done:,} of {total:,} rounds"),
        )
    deliver(found, lambda: prices_page(found), as_json)
    return interruption.code or ExitCode.DONE
