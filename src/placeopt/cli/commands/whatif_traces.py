"""``placeopt whatif add --until GOAL``, ``compare`` and ``edit`` on a scenario, which is played again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.commands.simulate import warn_of_estimates
from placeopt.cli.files import STREAM, check_sources, peek, read_scheduling, write_made
from placeopt.cli.options import KEEPS, ParallelQuestion, Question, read_patch
from placeopt.cli.output import ExitCode, UsageError
from placeopt.cli.progress import Interruption, Ticker
from placeopt.cli.provenance import asked_about

if TYPE_CHECKING:
    from placeopt.scheduling.policy import Scheduling
    from placeopt.simulation.records.scenario import Scenario

DEFAULT_POLICY = "placeopt"
STATE = "state run_time_ms in their options"
PLAN_OF_A_ROUND = "--plan: needs a round; a scenario states itself what runs at its beginning"
DEFAULT_MEASURE = "p95_wait"
ReplayPolicy = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE", help="With a scenario: scheduling policy of the simulation; placeopt by default."
    ),
]
Draws = Annotated[
    str | None, typer.Option(metavar="N-M,...", help="With a scenario: draw new arrivals with each of these seeds.")
]


@dataclass(frozen=True, kw_only=True)
class TraceQuestion(ParallelQuestion):
    """With the options of a scenario."""

    policy: ReplayPolicy = None
    draws: Draws = None

    def refuse(self, **more: str | None) -> None:
        """Raise `UsageError` about an option that was given and needs a scenario."""
        for name, value in {"policy": self.policy, "draws": self.draws, **more}.items():
            if value is not None:
                raise UsageError(f"--{name}: needs a scenario; {self.instance} is not one")


def is_scenario(path: str) -> bool | None:
    """Tell a scenario from a round by what the file says it is; None where it is neither, or standard input."""
    return None if path == STREAM else {"scenario": True, "round": False}.get(peek(path)[2])


def add_on_trace(question: TraceQuestion, node_type: str, until: str) -> int:
    """Answer ``add --until GOAL``; exit code 1 if no number that was tried meets it."""
    from placeopt.simulation.replay import add, parse_goal

    goal = parse_goal(until)
    if is_scenario(question.instance) is False:
        raise UsageError(
            f"--until: {until!r} needs a scenario, jobs that arrive over time; for a round the goal is placed=all"
        )
    if "," in node_type:
        raise UsageError("--node-type: with a scenario, expected one type")
    with _playing(question) as (world, scheduling, shared, interruption):
        warn_of_estimates([(world, scheduling)], STATE)
        result = add(world, scheduling, node_type, goal, **shared)
    return question.deliver(result.view(), interruption, no=result.found is None)


def compare_traces(question: TraceQuestion, vary: str, measure: str | None) -> int:
    """Answer ``compare`` on a scenario."""
    from placeopt.simulation.replay import compare, parse_goal, parse_settings

    wanted = measure or DEFAULT_MEASURE
    goal = parse_goal(wanted) if "=" in wanted else None
    with _playing(question) as (world, scheduling, shared, interruption):
        varied, settings = parse_settings(vary, world, scheduling, policies=read_scheduling, patches=read_patch)
        warn_of_estimates([(setting.scenario, setting.scheduling) for setting in settings], STATE)
        result = compare(varied, settings, goal.measure if goal else wanted, goal=goal, **shared)
    return question.deliver(result.view(), interruption)


def edit_trace(question: Question, out: str) -> int:
    """Write a scenario after patches and prices."""
    before = read_scheduling(DEFAULT_POLICY)
    world, after = _patched(question, before)
    if after != before:
        raise UsageError("--patch: set_policy and change_queue change a policy, and a scenario has none")
    write_made(out, world)
    return ExitCode.DONE


def _patched(question: Question, scheduling: Scheduling) -> tuple[Scenario, Scheduling]:
    """Return the scenario and its policy after patches and prices."""
    if question.plan is not None:
        raise UsageError(PLAN_OF_A_ROUND)
    from placeopt.simulation import read_scenario
    from placeopt.simulation.replay import patch_scenario

    patches = [read_patch(path) for path in question.patch or ()]
    world, scheduling = patch_scenario(read_scenario(question.instance), scheduling, *patches)
    return question.priced(world), scheduling


@contextmanager
def _playing(question: TraceQuestion) -> Iterator[tuple[Scenario, Scheduling, dict[str, Any], Interruption]]:
    """Yield scenario, policy, the arguments that all questions share, and the signal that ends the replay."""
    from placeopt.deadline import Deadline
    from placeopt.solving.params import SolveParams
    from placeopt.whatif.variants import parse_range

    limits, limit_s = question.limits(), float("inf") if question.time_limit is None else question.time_limit
    draws = () if question.draws is None else parse_range("draws", question.draws)
    if question.plan is not None:
        raise UsageError(PLAN_OF_A_ROUND)
    check_sources({"SCENARIO": question.instance})
    with Ticker(time.monotonic(), quiet=question.quiet) as ticker, Interruption(KEEPS) as interruption:
        world, scheduling = _patched(question, read_scheduling(question.policy or DEFAULT_POLICY))
        asked_about(world)
        ticker.doing("playing")

        shared = {
            **question.parallel(ticker, interruption, "runs"),
            "draws": draws,
            "limits": SolveParams(seed=limits.seed),
            "cancel": Deadline(limit_s, interruption.event),
        }
        yield world, scheduling, shared, interruption
