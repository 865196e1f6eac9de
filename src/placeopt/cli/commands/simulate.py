"""``placeopt simulate``: a scenario under one policy or several, side by side."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.files import SIMULATIONS, STREAM, check_sources, check_target, read_scheduling, write_document
from placeopt.cli.options import check_seed, check_time_limit, expect, provenance_page
from placeopt.cli.output import ExitCode, UsageError, show, write_error
from placeopt.cli.progress import Interruption, Ticker, time_left
from placeopt.cli.provenance import asked_about, provenance
from placeopt.readable import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from placeopt.scheduling.policy import Scheduling
    from placeopt.simulation import History, Summary, Tick
    from placeopt.simulation.records.scenario import Scenario


def simulate(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="Cluster and arriving jobs: .json, .json.gz or -.")
    ],
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE[,...]", help="Scheduling policies to compare, names or files; a wrong name lists all."
        ),
    ] = "placeopt",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of solvers and of random draws.")] = 0,
    time_limit: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="Time limit of a whole round in seconds; a safeguard, since work limits end rounds earlier.",
        ),
    ] = 60.0,
    rule: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run-time rule instead of the scenario's: rate or sc17.")
    ] = None,
    estimates: Annotated[
        str,
        typer.Option(
            metavar="stated|actual|FACTOR",
            help="Estimates that policies use: those that jobs state; the actual run times of all jobs; or the stated "
            "ones with errors so many times as large: 0 is perfect, 2 twice as wrong.",
        ),
    ] = "stated",
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Write one log file for each policy, and simulations.json, there; show draws them."
        ),
    ] = None,
    round_: Annotated[
        str | None,
        typer.Option(
            "--round",
            metavar="INSTANCE",
            help="Write the state at the moment --at as a round, for solve, audit or whatif.",
        ),
    ] = None,
    at: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Moment for --round, in simulated seconds; by default, when the most jobs wait."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print neither table nor progress.")] = False,
) -> int:
    """
    Simulate jobs that arrive over time under scheduling policies, and compare the results.

    Ctrl-C stops and prints the results so far. The same seed gives the same log, byte for byte. --round writes the
    placements at one moment, which placeopt audit compares with the best plan. A warning appears if a policy needs run
    time estimates that jobs do not state.
    """
    started = time.monotonic()
    check_seed(seed)
    check_time_limit(time_limit)
    expect(rule in (None, "rate", "sc17"), "--rule", rule, "rate or sc17")
    factor = _error_factor(estimates)
    if round_ is not None and "," in policy:
        raise UsageError("--round: needs one policy, whose state it writes; --policy names several")
    if at is not None and (round_ is None or not at >= 0):
        raise UsageError(f"--at: {at}, expected seconds, 0 or more, together with --round FILE")
    check_sources({"SCENARIO": scenario})
    check_target(round_, (scenario, policy))
    from placeopt.simulation import check_utilisation, summarise, with_actual_estimates, with_scaled_errors
    from placeopt.simulation import simulate as play
    from placeopt.simulation.journal import log_name

    with Ticker(started, quiet=quiet) as ticker:
        policies = [read_scheduling(name) for name in policy.split(",")]
        _refuse_twins(policies)
        world = _read(scenario, rule)
        if estimates == "actual":
            world = with_actual_estimates(world)
        elif factor is not None:
            world = with_scaled_errors(world, factor)
        asked_about(world)
        for scheduling in policies:
            check_utilisation(world.as_seen(), scheduling)  # before the first of them is simulated
        warn_of_estimates(
            [(world, scheduling) for scheduling in policies], "state run_time_ms, or take --estimates actual"
        )
        folder = _folder(out)
        summaries: list[Summary] = []
        with Interruption("the results so far") as interruption:
            for nth, scheduling in enumerate(policies, start=1):
                name = scheduling.name + (f" ({nth} of {len(policies)})" if len(policies) > 1 else "")
                since = time.monotonic()

                def on_progress(news: Tick, name: str = name, since: float = since) -> None:
                    left = time_left(news.ended, news.jobs, time.monotonic() - since)
                    ticker.doing(
                        f"{name}: {percent(news.ended / max(1, news.jobs))} of {news.jobs:,} jobs ended"
                        f"{left and f', {left}'}; {news.running:,} run, {news.waiting:,} wait, "
                        f"{duration(news.now_ms / 1000)} simulated, round {news.rounds:,}"
                    )

                ticker.doing(f"{scheduling.name}: compiling")
                log = None if folder is None else folder / log_name(world.name, scheduling.name, seed)
                history = play(
                    world,
                    scheduling,
                    seed=seed,
                    time_limit_s=time_limit,
                    log=log,
                    cancel=interruption.event,
                    on_progress=on_progress,
                )
                summaries.append(summarise(history))
                if round_ is not None:
                    _write_round(history, at, round_)
                if interruption.event.is_set():
                    break
            ticker.stop()
            _deliver(summaries, folder, as_json=as_json, quiet=quiet)
            return interruption.code or ExitCode.DONE


def _error_factor(estimates: str) -> float | None:
    """Return the factor on errors that ``--estimates`` names; None if it names what stands in the scenario."""
    if estimates in ("stated", "actual"):
        return None
    try:
        return float(estimates)
    except ValueError:
        raise UsageError(f"--estimates: {estimates!r}, expected stated or actual, or a factor such as 2") from None


def warn_of_estimates(played: Iterable[tuple[Scenario, Scheduling]], remedy: str) -> None:
    """Print a line for each policy that needs run times or utilisations which jobs of its scenario do not state."""
    from placeopt.simulation import missing_estimates, without_utilisation

    lines: dict[str, None] = {}
    for world, policy in played:
        missing = missing_estimates(world, policy)
        if missing is not None:
            lines[f"warning: policy {policy.name!r} {missing.words}; {remedy}"] = None
        bare = without_utilisation(world.as_seen(), policy)
        if bare:
            jobs = f"{plural(len(bare), 'job')} without any, such as {bare[0]}, count as using nothing"
            words = f"lets jobs share a GPU by their utilisation, and {jobs}; state gpu_utilisation_percent"
            lines[f"warning: policy {policy.name!r} {words}"] = None
    for line in lines:
        write_error(line)


def _write_round(history: History, at_s: float | None, path: str) -> None:
    from placeopt.documents.documents import dumps
    from placeopt.simulation import longest_queue_ms, round_at

    at_ms = longest_queue_ms(history) if at_s is None else round(1000 * min(at_s, history.now_ms / 1000))
    name = f"{history.scenario.name}-{history.scheduling.name}-{at_ms / 1000:g}s"
    write_document(path, dumps(round_at(history, at_ms, name=name)))


def _refuse_twins(policies: list[Scheduling]) -> None:
    """Refuse two policies of one name, which would share a log, and two that differ in name only."""
    for i, policy in enumerate(policies):
        for other in policies[:i]:
            if policy.name == other.name:
                raise UsageError(f"--policy: {policy.name!r} appears twice; name each once")
            if policy.digest == other.digest:
                raise UsageError(f"--policy: {other.name!r} and {policy.name!r} differ in name only; drop one")


def _read(path: str, rule: str | None) -> Scenario:
    from placeopt.simulation import read_scenario

    world = read_scenario(path)
    if rule is None or rule == world.physics.rule:
        return world
    return world.model_copy(update={"physics": world.physics.model_copy(update={"rule": rule})})


def _folder(out: str | None) -> Path | None:
    if out is None:
        return None
    if out == STREAM:
        raise UsageError("--out: '-', expected a folder; --json prints the answer")
    from placeopt.documents.files import make_folder

    return make_folder(out)


def _deliver(summaries: list[Summary], folder: Path | None, *, as_json: bool, quiet: bool) -> None:
    from placeopt.documents import dumps
    from placeopt.report.terminal import view_page
    from placeopt.report.views import simulation_view

    told = provenance([asdict(summary) for summary in summaries])
    view = simulation_view(summaries).model_copy(update={"provenance": told})
    if folder is not None:
        write_document(str(folder / SIMULATIONS), dumps(view))
    if as_json:
        write_document(STREAM, dumps(view))
    elif not quiet:
        show(*view_page(view), *provenance_page(told))
