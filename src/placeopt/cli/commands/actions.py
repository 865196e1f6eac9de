"""``placeopt actions``: what to do to carry out a plan, in a safe order."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from placeopt.cli.files import check_sources, check_target, write_document
from placeopt.cli.options import RoundFile, expect
from placeopt.cli.output import ExitCode

FORMS = ("json", "scontrol", "bindings")


def actions(
    instance: RoundFile,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan of it: .json, .json.gz or -.")],
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORM",
            help="json: ordered actions; scontrol: commands of Slurm; bindings: objects of Kubernetes.",
        ),
    ] = "json",
    out: Annotated[str, typer.Option(metavar="FILE", help="Write them; - for standard output.")] = "-",
) -> int:
    """
    List what to do to carry out a plan: jobs to start, move, shrink and preempt, in an order in which room is free.

    Each action names the actions that have to be done before it; jobs that stay as they are have none. Jobs and workers
    carry the names of the system that the round was imported from.
    """
    expect(form in FORMS, "--as", form, f"one of {', '.join(FORMS)}")
    check_sources({"INSTANCE": instance, "PLAN": plan})
    check_target(out, [instance, plan])
    from placeopt.actions import plan_actions
    from placeopt.actions.action import as_bindings, as_scontrol
    from placeopt.documents.documents import read_instance, read_plan

    found = plan_actions(read_instance(instance), read_plan(plan))
    if form == "scontrol":
        text = as_scontrol(found)
    else:
        data = as_bindings(found) if form == "bindings" else [action.model_dump(mode="json") for action in found]
        text = json.dumps(data, indent=2) + "\n"
    write_document(out, text.encode())
    return ExitCode.DONE
