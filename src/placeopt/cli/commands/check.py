"""``placeopt check``: does a plan keep every rule, and state the truth about itself?"""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from placeopt.cli.exits import ExitCode
from placeopt.cli.files import check_sources
from placeopt.cli.output import output_width, write_out

SHOWN = 20


def check(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="The round: .json, .json.gz or -.")],
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="The plan to judge: .json, .json.gz or -.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON.")] = False,
) -> int:
    """
    Judge a plan: every hard rule, then its objective, costs, bounds and gap.

    Prints ok and returns 0, or lists what is wrong and returns 1. The plan is judged by the policy that it carries.
    Limits that running jobs exceeded before the round, and still do, are listed, but are no fault of the plan.
    """
    check_sources({"INSTANCE": instance, "PLAN": plan})
    from placeopt.check import judge
    from placeopt.formats.documents import read_instance, read_plan
    from placeopt.report.text.text import plain, plural
    from placeopt.solving.audit import audit

    round_, answer = read_instance(instance), read_plan(plan)
    broken, standing = judge(round_, answer)
    untrue = [] if broken else audit(round_, answer)
    if as_json:
        _write_json(
            not (broken or untrue),
            [{"rule": found.rule, "where": found.where, "message": found.message} for found in broken],
            untrue,
            [{"job": one.job, "rule": one.rule, "node": one.node, "detail": one.message} for one in standing],
        )
    elif not broken and not untrue:
        write_out(f"ok: {plural(len(answer.placements), 'job')} placed, {len(answer.unplaced):,} waiting\n")
        if standing:
            title = f"running jobs exceed {plural(len(standing), 'limit')}, as before the round:"
            write_out(_listed(title, [plain(str(found)) for found in standing]))
    else:
        findings = [plain(str(found)) for found in broken] or [plain(text) for text in untrue]
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


def _write_json(
    ok: bool, broken: list[dict[str, str]], untrue: list[str], standing: list[dict[str, str | None]]
) -> None:
    import json

    found = {"ok": ok, "violations": broken, "audit": untrue, "standing": standing}
    write_out(json.dumps(found, indent=2) + "\n")
