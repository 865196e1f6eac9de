"""``placeopt check``: does a plan keep every rule, and state the truth about itself?"""

from __future__ import annotations

import json
import textwrap
import time
from typing import Annotated

import typer

from placeopt.cli.files import check_sources, check_target, read_placed
from placeopt.cli.options import (
    KEEPS,
    AsCsv,
    AsJson,
    Quiet,
    RoundFile,
    Seed,
    Threads,
    check_seconds,
    deliver,
    expect,
    limits_of,
)
from placeopt.cli.output import ExitCode, output_width, write_out
from placeopt.cli.progress import Interruption, Ticker
from placeopt.cli.provenance import asked_about

SHOWN = 20


def check(
    instance: RoundFile,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="The plan to judge: .json, .json.gz or -.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON.")] = False,
) -> int:
    """
    Judge a plan: every hard rule, then its objective, costs, bounds and gap.

    Prints ok and returns 0, or lists what is wrong and returns 1. The plan is judged by the policy in it.
    Limits that running jobs exceeded before the round and still exceed are listed, but are not faults of the plan.
    """
    check_sources({"INSTANCE": instance, "PLAN": plan})
    from placeopt.check import judge
    from placeopt.documents.documents import read_instance, read_plan
    from placeopt.readable import plain, plural
    from placeopt.solving.audit import audit

    round_, answer = read_instance(instance), read_plan(plan)
    broken, standing = judge(round_, answer)
    untrue = [] if broken else audit(round_, answer)
    if as_json:
        data = {
            "ok": not (broken or untrue),
            "violations": [
                {"rule": violation.rule, "where": violation.where, "message": violation.message} for violation in broken
            ],
            "audit": untrue,
            "standing": [
                {"job": entry.job, "rule": entry.rule, "node": entry.node, "detail": entry.message}
                for entry in standing
            ],
        }
        write_out(json.dumps(data, indent=2) + "\n")
    elif not broken and not untrue:
        write_out(f"ok: {plural(len(answer.placements), 'job')} placed, {len(answer.unplaced):,} waiting\n")
        if standing:
            title = f"running jobs exceed {plural(len(standing), 'limit')}, as before the round:"
            write_out(_listed(title, [plain(str(violation)) for violation in standing]))
    else:
        findings = [plain(str(violation)) for violation in broken] or [plain(text) for text in untrue]
        count = plural(len(findings), "rule violation" if broken else "false statement")
        write_out(_listed(f"not ok: {count}", findings))
    return ExitCode.NO if broken or untrue else ExitCode.DONE


def _listed(title: str, findings: list[str]) -> str:
    width, lines = output_width(), [title]
    for finding in findings[:SHOWN]:
        lines += textwrap.wrap(finding, width, initial_indent="  ", subsequent_indent="      ")
    if len(findings) > SHOWN:
        lines.append(f"  ... and {len(findings) - SHOWN:,} more")
    return "\n".join(lines) + "\n"


def audit(
    instance: RoundFile,
    plan: Annotated[
        str | None,
        typer.Argument(
            metavar="[PLAN]",
            help="A plan, or placements alone: .json, .json.gz or -. By default, the running jobs.",
        ),
    ] = None,
    moves: Annotated[int, typer.Option(metavar="N", help="Largest number of moves to list.")] = 5,
    time_limit: Annotated[
        float,
        typer.Option(metavar="S", help="Seconds for the whole answer; a third of them for single moves."),
    ] = 15.0,
    threads: Threads = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    csv: AsCsv = None,
    quiet: Quiet = False,
) -> int:
    """
    Check a placement against all rules, compare it with the proven best term by term, and list the best moves.

    All figures are computed again; those in the plan are ignored. Without a plan, the running jobs are the placement
    under review, compared with the best placement of the same jobs from scratch. Exit code 1: the placement breaks a
    rule.
    """
    limits = limits_of(time_limit, threads, seed)
    expect(moves >= 0, "--moves", moves, "0 or more")
    check_sources({"INSTANCE": instance, "PLAN": plan})
    check_target(csv, (instance, plan))
    started = time.monotonic()
    from placeopt.documents.documents import read_instance
    from placeopt.whatif import review, running_as_plan

    with Ticker(started, quiet=quiet) as ticker, Interruption(KEEPS) as interruption:
        round_ = read_instance(instance)
        if plan is None:
            round_, placed = running_as_plan(round_)
        else:
            placed = read_placed(plan, round_)
        asked_about(round_)
        ticker.doing("solving the round for comparison")
        result = review(round_, placed, moves=moves, limits=limits, cancel=interruption.event)
    deliver(result.view(), as_json=as_json, csv=csv)
    return interruption.code or (ExitCode.DONE if result.valid else ExitCode.NO)


def explain(
    instance: RoundFile,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan of it: .json, .json.gz or -.")],
    job: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The job, by its id or by its name where the round was imported from."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Seconds for the whole answer, which says what was not reached.")
    ] = 30.0,
    as_json: AsJson = False,
    csv: AsCsv = None,
    quiet: Quiet = False,
) -> int:
    """
    Explain the whole queue of a plan, or one job.

    A waiting job: the reason, constraints that contradict each other, the jobs that hold the resources it needs, and
    the smallest change that would let it start. A placed job: its costs, term by term, and the best alternative
    placement while all other jobs stay. Without --job: how many jobs wait for each reason, and which single change of
    the cluster would let most of them start.
    """
    check_seconds("--time-limit", time_limit)
    check_sources({"INSTANCE": instance, "PLAN": plan})
    check_target(csv, (instance, plan))
    from placeopt.documents.documents import read_instance, read_plan
    from placeopt.explain import explain as explain_job
    from placeopt.explain import explain_all

    with Ticker(time.monotonic(), quiet=quiet) as ticker:
        round_, placed = read_instance(instance), read_plan(plan)
        asked_about(round_)
        if job is None:
            view = explain_all(round_, placed, time_limit_s=time_limit, on_progress=ticker.doing).view()
        else:
            view = explain_job(round_, placed, job, time_limit_s=time_limit).view()
    deliver(view, as_json=as_json, csv=csv)
    return ExitCode.DONE
