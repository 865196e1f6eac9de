"""``placeopt audit``: a placement of another scheduler, compared with the rules and with the proven best."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.exits import ExitCode, UsageError
from placeopt.cli.files import check_sources
from placeopt.cli.progress import Ticker
from placeopt.cli.question_options import KEEPS, AsJson, Quiet, Seed, Threads, deliver, limits_of
from placeopt.cli.signals import Interruption

if TYPE_CHECKING:
    from placeopt.model import Instance, Plan


def audit(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="The round: .json, .json.gz or -.")],
    plan: Annotated[
        str | None,
        typer.Argument(
            metavar="[PLAN]",
            help="A plan, or just {placements: [...]}: .json, .json.gz or -. By default, the running jobs.",
        ),
    ] = None,
    moves: Annotated[int, typer.Option(metavar="N", help="Largest number of moves to list.")] = 5,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Seconds for the best plan; single moves take half as long again.")
    ] = 10.0,
    threads: Threads = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """
    Check a placement against all rules, compare it with the proven best term by term, and list the best moves.

    All figures are computed anew; those in the plan are ignored. Without a plan, the running jobs are the placement
    under review, compared with the best placement of the same jobs from scratch. Exit code 1: the placement breaks a
    rule.
    """
    limits = limits_of(time_limit, threads, seed)
    if moves < 0:
        raise UsageError(f"--moves: {moves}, expected 0 or more")
    check_sources({"INSTANCE": instance, "PLAN": plan})
    started = time.monotonic()
    from placeopt.formats.documents import read_instance
    from placeopt.report.text.review import review_page
    from placeopt.whatif.from_running import running_as_plan
    from placeopt.whatif.plan_review import review

    with Ticker(started, quiet=quiet) as ticker, Interruption(KEEPS) as interruption:
        round_ = read_instance(instance)
        if plan is None:
            round_, placed = running_as_plan(round_)
        else:
            placed = _read(plan, round_)
        ticker.doing("solving the round for comparison")
        found = review(round_, placed, moves=moves, limits=limits, cancel=interruption.event)
    deliver(found, lambda: review_page(found), as_json)
    return interruption.code or (ExitCode.DONE if found.valid else ExitCode.NO)


def _read(path: str, instance: Instance) -> Plan:
    """Read a plan, or placements alone."""
    from placeopt.formats.bounds import top_keys
    from placeopt.formats.documents import loads
    from placeopt.formats.files import label, read_bytes
    from placeopt.model import Plan
    from placeopt.whatif.plan_review import Placements, plan_of

    data = read_bytes(path)
    keys = top_keys(data, label(path))  # if there are none, the reader of plans raises the error
    if keys and set(keys) <= {"format_version", "placements"}:
        return plan_of(instance, loads(Placements, data, source=label(path)).placements)
    return loads(Plan, data, source=label(path))
