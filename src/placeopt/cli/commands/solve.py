"""``placeopt solve``: one round, from file to checked plan."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.exits import ExitCode
from placeopt.cli.files import STREAM, check_sources, check_target, read_policy, write_document
from placeopt.cli.log import SolveLog
from placeopt.cli.output import show, write_error
from placeopt.cli.progress import Ticker
from placeopt.cli.settings import check_params, check_previous, parse_solver_options
from placeopt.cli.signals import Interruption
from placeopt.errors import BadInput
from placeopt.solving.params import SolveParams

if TYPE_CHECKING:
    from placeopt.model import Instance, Plan
    from placeopt.solving.progress import Progress

DEFAULT_TIME_LIMIT_S = 10.0


def solve(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="The round: .json, .json.gz or -.")],
    method: Annotated[str, typer.Option(metavar="NAME", help="auto, or a method by name.")] = "auto",
    policy: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Policy instead of the instance's own.")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Time limit in seconds, reading included.")
    ] = DEFAULT_TIME_LIMIT_S,
    gap: Annotated[float, typer.Option(metavar="G", help="Stop at this relative gap; 0.01 is one percent.")] = 0.0,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Threads of a solver; by default all usable cores.")
    ] = None,
    memory_limit: Annotated[
        int | None, typer.Option(metavar="MIB", help="MiB that a solve may use beyond the loaded data.")
    ] = None,
    solver_option: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="Option of the exact solver, by its own name; repeatable.")
    ] = None,
    previous: Annotated[
        str | None,
        typer.Option(metavar="PLAN", help="An earlier plan as a hint; the running jobs are those of the instance."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of solvers and ties.")] = 0,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Same input, same plan, byte for byte: one thread, no timings.")
    ] = False,
    log: Annotated[str | None, typer.Option(metavar="FILE", help="Write progress and timings as JSON lines.")] = None,
    out: Annotated[
        str | None, typer.Option(metavar="PLAN", help="Write the plan: .json, .json.gz, or - for standard output.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON instead of a summary.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Neither summary nor progress.")] = False,
) -> int:
    """
    Place the waiting jobs of a round, prove a bound on the result, and print a summary.

    Ctrl-C stops with the best plan so far; a second one quits at once. Progress goes to standard error after 2 s.
    Exit code 4 says that jobs were waiting and none was placed.
    """
    started = time.monotonic()
    params = SolveParams(
        method=method,
        time_limit_s=time_limit,
        gap=gap,
        threads=threads,
        seed=seed,
        deterministic=deterministic,
        memory_limit_mib=memory_limit,
        solver_options=parse_solver_options(solver_option or []),
    )
    check_params(params)
    check_sources({"INSTANCE": instance, "--previous": previous, "--policy": policy})
    check_target(out, (instance, previous, policy, log))
    check_target(log, (instance, previous, policy))
    from placeopt.formats.documents import read_instance, read_plan
    from placeopt.live_cluster.engine import Engine

    chosen = read_policy(policy)
    with SolveLog(log) as journal, Ticker(started, quiet=quiet) as ticker, Engine(chosen) as engine:
        engine.start()  # it loads while the instance is read
        round_ = read_instance(instance)
        earlier = None
        if previous is not None:
            earlier = read_plan(previous)
            check_previous(earlier, round_, previous)
        journal.start(round_, params)
        ticker.doing("first plan")

        def on_progress(news: Progress) -> None:
            ticker.news(news)
            journal.progress(news)

        with Interruption() as interruption:  # until all is written
            read_s = time.monotonic() - started
            plan = engine.solve(
                round_,
                **params.keywords(),
                previous=earlier,
                cancel=interruption.event,
                on_progress=on_progress,
                read_s=read_s,
            )
            engine.close()
            total_s = time.monotonic() - started
            ticker.stop()
            _warn(plan)
            _warn_of_estimates(round_, plan)
            _deliver(plan, out, as_json=as_json, quiet=quiet, total_s=total_s)
            code = interruption.code or _judge(round_, plan)
        journal.end(plan, read_s=read_s, total_s=total_s, code=code)
    return code


def _deliver(plan: Plan, out: str | None, *, as_json: bool, quiet: bool, total_s: float) -> None:
    """Write the plan first; the summary stands even if that fails."""
    from placeopt.formats.documents import dumps

    data = dumps(plan) if out is not None or as_json else b""
    to_screen = as_json or out == STREAM
    fault = None
    if out is not None and out != STREAM:
        try:
            write_document(out, data)
        except BadInput as error:
            fault = error
    if to_screen:
        write_document(STREAM, data)
    elif not quiet:
        from placeopt.report.text.summary import plan_summary

        show(*plan_summary(plan, total_s=total_s))
    if fault is not None:
        raise fault


def _warn(plan: Plan) -> None:
    """Print a warning for each stage that failed; the plan is valid nevertheless."""
    for stage in plan.stages:
        if stage.outcome == "failed":
            write_error(f"warning: stage {stage.name} failed: {stage.detail}")


def _warn_of_estimates(instance: Instance, plan: Plan) -> None:
    """Print a warning if look-ahead needs run time estimates that waiting jobs do not state."""
    if plan.policy.values.postpone.rule != "lookahead":
        return
    running = {held.job for held in instance.running}
    lacking = [
        job.id
        for job in instance.jobs
        if job.id not in running and any(option.run_time_ms is None for option in job.options)
    ]
    if lacking:
        more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        write_error(
            f"warning: look-ahead goes by run time estimates, and {lacking[0]}{more} of the waiting jobs state none "
            "(run_time_ms of their options)"
        )


def _judge(instance: Instance, plan: Plan) -> ExitCode:
    """Done, unless jobs were waiting and none of them was placed."""
    running = {held.job for held in instance.running}
    waited = len(instance.jobs) > len(running)
    placed = any(placement.job not in running for placement in plan.placements)
    return ExitCode.NOTHING_PLACED if waited and not placed else ExitCode.DONE
