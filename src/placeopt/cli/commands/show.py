"""``placeopt show``: an instance, a plan, a machine or a scenario as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.files import check_sources, read_any
from placeopt.cli.output import ExitCode, UsageError, can_unicode, output_width, write_out
from placeopt.cli.output import show as print_page
from placeopt.errors import BadInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Instance, Plan

WIDTHS = (40, 400)


def show(
    document: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Instance, plan, machine or scenario: .json, .json.gz or -; recognised by its content."
        ),
    ],
    instance: Annotated[
        str | None, typer.Option(metavar="INSTANCE", help="The round that a plan belongs to; a plan needs it.")
    ] = None,
    width: Annotated[
        int | None, typer.Option(metavar="N", help="Columns; by default the terminal's, at most 100.")
    ] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="Letters and shades only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same facts as JSON.")] = False,
) -> int:
    """
    Draw an instance, a plan, a machine or a scenario.

    Instance: nodes, jobs, demand, and the GPUs in use. Plan: value and bound, costs, waiting jobs, and the GPUs by job;
    on up to 4 nodes also each job's links. Machine: its GPUs and their connections. Scenario: nodes, arrivals over
    time, and the requested share of GPU time.
    """
    if width is not None and not WIDTHS[0] <= width <= WIDTHS[1]:
        raise UsageError(f"--width: {width}, expected {WIDTHS[0]} to {WIDTHS[1]}")
    check_sources({"FILE": document, "--instance": instance})
    from placeopt.model import Instance, Plan
    from placeopt.report.text import documents
    from placeopt.report.text.palette import ASCII, BLOCKS
    from placeopt.report.text.scenario import scenario_facts, scenario_page
    from placeopt.simulation.records.scenario import Scenario

    columns, glyphs = width or output_width(), BLOCKS if can_unicode() else ASCII
    content = read_any(document)
    data: Callable[[], dict[str, Any]]
    page: Callable[[], list[RenderableType]]
    if isinstance(content, Plan):
        round_ = _round_of(content, document, instance)
        data = partial(documents.plan_data, round_, content)
        page = partial(documents.plan_page, round_, content, glyphs, width=columns)
    elif instance is not None:
        raise UsageError(f"--instance: needs a plan; {document} is not one")
    elif isinstance(content, Instance):
        data = partial(documents.instance_data, content)
        page = partial(documents.instance_page, content, glyphs, width=columns)
    elif isinstance(content, Scenario):
        data, page = partial(scenario_facts, content), partial(scenario_page, content)
    else:
        data, page = partial(documents.machine_data, content), partial(documents.machine_page, content)
    if as_json:
        write_out(json.dumps(data(), indent=2) + "\n")
    else:
        print_page(*page(), width=columns, color=not no_color)
    return ExitCode.DONE


def _round_of(plan: Plan, source: str, path: str | None) -> Instance:
    """Read the instance that a plan belongs to, and refuse any other."""
    from placeopt.documents.documents import read_instance

    if path is None:
        raise UsageError(f"{source} is a plan; name its round too: --instance INSTANCE")
    instance = read_instance(path)
    stated = plan.instance
    digest = instance.digest if plan.asked is None else None  # a plan for some jobs names no content
    if (stated.digest, stated.name, stated.revision) != (digest, instance.name, instance.revision):
        raise BadInput(
            f"{source}: instance.digest: the plan belongs to {stated.name!r} revision {stated.revision} "
            f"({(stated.digest or 'no digest')[:12]}), expected that of {path}, {instance.name!r} revision "
            f"{instance.revision} ({instance.digest[:12]})"
        )
    return instance
