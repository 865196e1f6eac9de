"""``placeopt doctor``: versions and trials of the installation."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.output import ExitCode, show, write_out


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> int:
    """
    Print versions, solvers, cores and memory limits; try a solver process and both import orders.

    Returns 1, with the problem named, if something is wrong.
    """
    from placeopt.cli.installation import examine

    findings = examine()
    problems = [finding.problem for finding in findings if finding.problem]
    if as_json:
        import json

        facts = {finding.what: finding.fact for finding in findings}
        write_out(json.dumps({"ok": not problems, "facts": facts, "problems": problems}, indent=2) + "\n")
    else:
        from rich.text import Text

        from placeopt.report.text.palette import BAD, GOOD
        from placeopt.report.text.text_table import TextTable

        rows: list[list[str | Text]] = [
            [
                Text("wrong", style=BAD) if finding.problem else Text("ok", style=GOOD),
                finding.what,
                finding.problem or finding.fact,
            ]
            for finding in findings
        ]
        verdict = "all is well" if not problems else f"{len(problems)} of {len(findings)} points are wrong"
        show(TextTable(["", "", ""], rows, wrap=""), Text(verdict, style="bold"))
    return ExitCode.NO if problems else ExitCode.DONE
