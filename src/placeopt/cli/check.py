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
    """
    check_sources({"INSTANCE": instance, "PLAN": plan})
    from placeopt.auditing import audit
    from placeopt.check import violations
    from placeopt.formats.documents import read_instance, read_plan
    from placeopt.report.text import plain, plural

    round_, answer = read_instance(instance), read_plan(plan)
    broken = violations(round_, answer)
    untrue = [] if broken else audit(round_, answer)
    if as_json:
        _write_json(
            not (broken or untrue),
            [{"rule": found.rule, "where": found.where, "message": found.message} for found in broken],
            untrue,
        )
    elif not broken and not untrue:
        write_out(f"ok: {plural(len(answer.placements), 'job')} placed, {len(answer.unplaced):,} waiting\n")
    else:
        findings = [plain(str(found)) for found in broken] or [plain(text) for text in untrue]
        write_out(_text(findings, "rule violation" if broken else "false statement"))
    return ExitCode.NO if broken or untrue else ExitCode.DONE


def _text(findings: list[str], kind: str) -> str:
    from placeopt.report.text import plural

    width = output_width()
    lines = [f"not ok: {plural(len(findings), kind)}"]
    for finding in findings[:SHOWN]:
        lines += textwrap.wrap(finding, width, initial_indent="  ", subsequent_indent="      ")
    if len(findings) > SHOWN:
        lines.append(f"  ... and {len(findings) - SHOWN:,} more")
    return "\n".join(lines) + "\n"


def _write_json(ok: bool, broken: list[dict[str, str]], untrue: list[str]) -> None:
    import json

    write_out(json.dumps({"ok": ok, "violations": broken, "audit": untrue}, indent=2) + "\n")
