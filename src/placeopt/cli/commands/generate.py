"""``placeopt generate``: a made-up round with a documented distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placeopt.cli.commands.bench_papers import require_papers
from placeopt.cli.files import check_target, say, write_document
from placeopt.cli.output import ExitCode, UsageError
from placeopt.errors import BadInput
from placeopt.readable import plural


def generate(
    context: typer.Context,
    out: Annotated[str, typer.Option(metavar="INSTANCE", help="Write it: .json, .json.gz, or - for standard output.")],
    spec: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="uniform, varied, gangs, fractions, cubemesh; and hard ones: planted, resources, parity, islands, "
            "preempt, defrag.",
        ),
    ] = "uniform",
    jobs: Annotated[int, typer.Option(metavar="N", help="Waiting jobs; some running ones come on top.")] = 50,
    nodes: Annotated[int, typer.Option(metavar="N", help="Nodes.")] = 16,
    gpus: Annotated[int, typer.Option(metavar="N", help="GPUs of each node; cubemesh and islands take 8 only.")] = 8,
    seed: Annotated[int, typer.Option(metavar="N", help="Same seed, same file.")] = 0,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Instead of a round a setting of the papers, to simulate, in full size, such as sc17-table-1 or "
            "genie-10; a wrong name lists them.",
        ),
    ] = None,
    instances: Annotated[
        str, typer.Option(metavar="DIR", help="Folder that holds papers/, for the settings that are stored.")
    ] = "instances",
) -> int:
    """Make up a round, or a scenario, to try things on: the same arguments always give the same file."""
    check_target(out)
    if scenario is not None:
        given = [name for name in ("spec", "jobs", "nodes", "gpus") if _is_stated(context, name)]
        if given:
            raise UsageError(f"--scenario: makes a setting of the papers in its full size; leave out --{given[0]}")
        return _scenario(scenario, seed, instances, out)
    from placeopt.formats.documents import dumps
    from placeopt.generators import generate as make
    from placeopt.report.text.instance_summary import instance_facts, summary_line

    try:
        round_ = make(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)
    except BadInput as error:  # all that it can refuse are these options
        raise UsageError(f"--{error}") from None
    write_document(out, dumps(round_))
    say(f"{round_.name}: {summary_line(instance_facts(round_))}", out)
    return ExitCode.DONE


def _is_stated(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line, and is not at its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _scenario(name: str, seed: int, instances: str, out: str) -> int:
    from placeopt.formats.documents import dumps

    require_papers()
    from placeopt_papers.catalogue import SETTINGS
    from placeopt_papers.one_at_a_time.protocol import OneAtATime

    if name not in SETTINGS:
        raise UsageError(f"--scenario: no setting {name!r}; known settings: {', '.join(SETTINGS)}")
    made = SETTINGS[name].make(seed, Path(instances), True)
    if isinstance(made, OneAtATime):
        raise UsageError(f"--scenario: {name!r} is played one job at a time and makes no scenario")
    write_document(out, dumps(made))
    say(f"{made.name}: {plural(len(made.arrivals), 'job')} on {plural(len(made.cluster.nodes), 'node')}", out)
    return ExitCode.DONE
