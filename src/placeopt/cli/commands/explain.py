"""``placeopt explain``: why a job waits and what would let it start, or what its placement costs."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.exits import ExitCode, UsageError
from placeopt.cli.files import check_sources
from placeopt.cli.output import output_width, write_out
from placeopt.cli.output import show as print_page


def explain(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="The round: .json, .json.gz or -.")],
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan of it: .json, .json.gz or -.")],
    job: Annotated[str, typer.Option(metavar="ID", help="The job.")],
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Time limit in seconds; parts that are not answered by then are marked.")
    ] = 5.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
) -> int:
    """
    Explain one job of a plan.

    A waiting job: the reason, constraints that contradict each other, the jobs that hold the resources it needs, and
    the smallest change that would let it start. A placed job: its costs, term by term, and the best alternative
    placement while all other jobs stay.
    """
    if not 0 < time_limit < float("inf"):
        raise UsageError(f"--time-limit: {time_limit!r}, expected seconds above 0")
    check_sources({"INSTANCE": instance, "PLAN": plan})
    from placeopt.explain import explain as explain_job
    from placeopt.formats.documents import read_instance, read_plan

    found = explain_job(read_instance(instance), read_plan(plan), job, time_limit_s=time_limit)
    if as_json:
        write_out(found.model_dump_json(indent=2) + "\n")
    else:
        from placeopt.report.text.explanation import explanation_page

        print_page(*explanation_page(found), width=output_width())
    return ExitCode.DONE
