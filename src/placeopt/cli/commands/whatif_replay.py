"""``placeopt whatif add --until GOAL`` and ``sweep`` on a scenario: answered by playing it again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.commands.bench import parse_seeds
from placeopt.cli.commands.simulate import warn_of_estimates
from placeopt.cli.files import STREAM, check_sources, peek, read_scheduling, write_document, write_made
from placeopt.cli.options import KEEPS, ParallelPricedQuestion, check_jobs, limits_of, read_patch, rows_path
from placeopt.cli.output import ExitCode, UsageError
from placeopt.cli.progress import Interruption, Ticker
from placeopt.cli.provenance import asked_about
from placeopt.readable import plural

if TYPE_CHECKING:
    from placeopt.scheduling.policy import Scheduling
    from placeopt.simulation.records.scenario import Scenario
    from placeopt.simulation.replay import MeasuredRun

ReplayPolicy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME|FILE",
        help="With a scenario: scheduling policy of the simulation; placeopt by default.",
    ),
]
Draws = Annotated[
    str | None,
    typer.Option("--draws", metavar="N-M,...", help="With a scenario: draw new arrivals with each of these seeds."),
]
DEFAULT_POLICY = "placeopt"
STATE = "state run_time_ms in their options"
PLAN_OF_A_ROUND = "--plan: needs a round; a scenario states itself what runs at its beginning"
DEFAULT_MEASURE = "p95_wait"


@dataclass(frozen=True)
class Replay:
    """The options of a question about a scenario."""

    question: ParallelPricedQuestion
    policy: str | None
    draws: str | None
    time_limit_s: float

    def refused(self, *, rows: bool = False) -> str | None:
        """Return an option that needs a scenario and was given; ``rows``: ``--rows`` is allowed."""
        given = {"--policy": self.policy, "--draws": self.draws, "--rows": None if rows else self.question.rows}
        return next((name for name, value in given.items() if value is not None), None)


def is_scenario(path: str) -> bool | None:
    """Tell a scenario from an instance by its content; None where it is neither, or standard input."""
    if path == STREAM:
        return None
    keys = peek(path)[2]
    return bool(keys & {"arrivals", "physics"}) if "cluster" in keys else None


def add_by_replay(replay: Replay, node_type: str, until: str, most: int | None) -> int:
    """Answer ``add --until GOAL``; exit code 1 if no number that was tried meets it."""
    from placeopt.report.text.whatif_rounds import curve_page
    from placeopt.simulation.replay import add, parse_goal

    goal = parse_goal(until)
    if is_scenario(replay.question.instance) is False:
        raise UsageError(
            f"--until: {until!r} needs a scenario, jobs that arrive over time; for a round the goal is placed=all"
        )
    if "," in node_type:
        raise UsageError("--node-type: with a scenario, expected one type")
    with _replaying(replay) as (world, scheduling, shared, interruption):
        warn_of_estimates([(world, scheduling)], STATE)
        result = add(world, scheduling, node_type, goal, most=most, **shared)
    return replay.question.deliver(result, lambda: curve_page(result), interruption, no=result.found is None)


def sweep_by_replay(replay: Replay, vary: str, measure: str | None, csv: str | None) -> int:
    """Answer ``sweep`` on a scenario."""
    from placeopt.report.text.whatif_rounds import curve_csv, curve_page
    from placeopt.simulation.replay import parse_goal, parse_settings, sweep

    wanted = measure or DEFAULT_MEASURE
    goal = parse_goal(wanted) if "=" in wanted else None
    with _replaying(replay) as (world, scheduling, shared, interruption):
        varied, settings = parse_settings(vary, world, scheduling, policies=read_scheduling, patches=read_patch)
        warn_of_estimates([(setting.scenario, setting.scheduling) for setting in settings], STATE)
        result = sweep(varied, settings, goal.measure if goal else wanted, goal=goal, **shared)
        if csv is not None:
            write_document(csv, curve_csv(result).encode())
    return replay.question.deliver(result, lambda: curve_page(result), interruption)


def apply_to_scenario(path: str, plan: str | None, patch: list[str] | None, out: str) -> int:
    """Write a scenario after patches."""
    if plan is not None:
        raise UsageError(PLAN_OF_A_ROUND)
    from placeopt.simulation import read_scenario
    from placeopt.simulation.replay import patch_scenario

    before = read_scheduling(DEFAULT_POLICY)
    world, after = patch_scenario(read_scenario(path), before, *(read_patch(path_) for path_ in patch or ()))
    if after != before:
        raise UsageError("--patch: set_policy and change_queue change a policy, and a scenario has none")
    write_made(out, world)
    return ExitCode.DONE


@contextmanager
def _replaying(replay: Replay) -> Iterator[tuple[Scenario, Scheduling, dict[str, Any], Interruption]]:
    """Yield scenario, policy, the arguments that all questions share, and the signal that ends the replay."""
    limits = limits_of(replay.time_limit_s, None, replay.question.seed)
    check_jobs(replay.question.jobs)
    draws = () if replay.draws is None else parse_seeds(replay.draws, "--draws")
    if replay.question.plan is not None:
        raise UsageError(PLAN_OF_A_ROUND)
    check_sources({"SCENARIO": replay.question.instance})
    started = time.monotonic()
    from placeopt.simulation import read_scenario
    from placeopt.simulation.replay import patch_scenario

    done = 0
    with Ticker(started, quiet=replay.question.quiet) as ticker, Interruption(KEEPS) as interruption:
        scheduling = read_scheduling(replay.policy or DEFAULT_POLICY)
        patches = [read_patch(path) for path in replay.question.patch or ()]
        world, scheduling = patch_scenario(read_scenario(replay.question.instance), scheduling, *patches)
        world = replay.question.edited(world)
        asked_about(world)
        ticker.doing("playing")

        def news(row: MeasuredRun) -> None:
            nonlocal done
            done += 1
            drawn = "" if row.draw is None else f", draw {row.draw}"
            ticker.doing(f"{plural(done, 'run')}; the last with {plural(row.nodes, 'node')} under {row.policy}{drawn}")

        shared = {
            "draws": draws,
            "limits": limits.params,
            "rows": rows_path(replay.question.rows),
            "jobs": replay.question.jobs,
            "cancel": interruption.event,
            "on_news": news,
        }
        yield world, scheduling, shared, interruption
