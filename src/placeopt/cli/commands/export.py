"""``placeopt export``: the integer model of a round, for another solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.files import check_sources, check_target, read_policy, say, write_document
from placeopt.cli.output import ExitCode, UsageError
from placeopt.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from placeopt.model import Instance, Policy

LEVELS = ("value", "cost")
DEFAULT_TIME_LIMIT_S = 10.0


def export(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="The round: .json, .json.gz or -.")],
    out: Annotated[str, typer.Option(metavar="FILE", help="Write the model; - for standard output.")],
    form: Annotated[str, typer.Option("--format", metavar="NAME", help="One of mps, lp, cp-sat.")] = "mps",
    level: Annotated[
        str, typer.Option(metavar="NAME", help="value: most value placed; cost: least cost at that value.")
    ] = "value",
    formulation: Annotated[
        str, typer.Option(metavar="NAME", help="counts, or assignment with a variable for each job and GPU.")
    ] = "counts",
    policy: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Policy instead of the instance's own.")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Seconds to prove the value, which is fixed at the level cost.")
    ] = DEFAULT_TIME_LIMIT_S,
) -> int:
    """
    Write the integer model that the exact stage solves, as MPS, LP or CP-SAT's binary protocol buffer.

    Solved elsewhere, its optimum is the objective of that level in an optimal plan. CBC ignores the sense in an MPS
    file: give it -max for the level value.
    """
    check_sources({"INSTANCE": instance, "--policy": policy})
    check_target(out, [instance, policy])
    from placeopt.formats.documents import read_instance
    from placeopt.solvers.export import FORMATS
    from placeopt.solving.level_model import MAX_PRODUCT, level_model

    _one_of("--format", form, FORMATS)
    _one_of("--level", level, LEVELS)
    _one_of("--formulation", formulation, MAX_PRODUCT)
    if not 0 < time_limit < float("inf"):
        raise UsageError(f"--time-limit: {time_limit!r}, expected seconds above 0")
    chosen = read_policy(policy)
    round_ = read_instance(instance)
    optimum = _optimal_value(round_, chosen, time_limit) if level == "cost" else None
    model = level_model(round_, chosen, formulation, optimal_value=optimum)
    write_document(out, FORMATS[form](model))
    sense = "maximise" if model.sense == "max" else "minimise"
    say(f"{sense} {model.num_variables:,} variables, {model.num_rows:,} rows, {model.num_nonzeros:,} non-zeros", out)
    return ExitCode.DONE


def _optimal_value(instance: Instance, policy: Policy | None, time_limit_s: float) -> int:
    """Return the proven optimum of the value level; refuses a round where it is not proven in time."""
    from placeopt.solving.api import solve

    first = solve(instance, policy=policy, time_limit_s=time_limit_s).levels[0]
    if first.objective is None or first.objective != first.bound:
        raise Unsupported(
            f"level 'cost' keeps the optimal value, and that is not proven in {time_limit_s:g} s ({first.objective} "
            f"placed, at most {first.bound}); raise --time-limit, or export the level 'value'"
        )
    return first.objective


def _one_of(option: str, value: str, known: Iterable[str]) -> None:
    names = tuple(known)
    if value not in names:
        raise UsageError(f"{option}: {value!r}, expected one of {', '.join(names)}")
