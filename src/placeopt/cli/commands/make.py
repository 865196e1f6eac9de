"""``placeopt generate``: a made-up round with a documented distribution; ``placeopt export``: its integer model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.files import check_sources, check_target, read_policy, say, write_document, write_made
from placeopt.cli.options import PolicyChoice, RoundFile, check_seconds, expect
from placeopt.cli.output import ExitCode
from placeopt.errors import Unsupported

if TYPE_CHECKING:
    from placeopt.model import Instance, Policy
    from placeopt.scheduling.policy import Scheduling


def generate(
    out: Annotated[str, typer.Option(metavar="INSTANCE", help="Write it: .json, .json.gz, or - for standard output.")],
    spec: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="uniform, gangs, fractions; and hard ones: planted, preempt, defrag.",
        ),
    ] = "uniform",
    jobs: Annotated[int, typer.Option(metavar="N", help="Waiting jobs; running jobs are added to them.")] = 50,
    nodes: Annotated[int, typer.Option(metavar="N", help="Nodes.")] = 16,
    gpus: Annotated[int, typer.Option(metavar="N", help="GPUs of each node.")] = 8,
    seed: Annotated[int, typer.Option(metavar="N", help="Same seed, same file.")] = 0,
    scenario: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A scenario of a paper instead, for simulate; any other name lists them."),
    ] = None,
) -> int:
    """Generate an artificial round, or a scenario of a paper; the same arguments always give the same file."""
    check_target(out)
    if scenario is not None:
        from placeopt.scheduling import system_scenario

        write_made(out, system_scenario(scenario, seed))
        return ExitCode.DONE
    from placeopt.generators import generate as make

    write_made(out, make(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed))
    return ExitCode.DONE


LEVELS = ("value", "cost")
DEFAULT_TIME_LIMIT_S = 10.0


def export(
    instance: RoundFile,
    out: Annotated[str, typer.Option(metavar="FILE", help="Write the model; - for standard output.")],
    form: Annotated[str, typer.Option("--format", metavar="NAME", help="One of mps, lp, cp-sat.")] = "mps",
    level: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="value: maximise the value of the jobs; cost: minimise the cost at that value."
        ),
    ] = "value",
    formulation: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="counts: a variable for each job and node; assignment: for each job, node and GPU."
        ),
    ] = "counts",
    policy: PolicyChoice = None,
    time_limit: Annotated[
        float,
        typer.Option(metavar="S", help="Seconds to prove the value, which level cost fixes; unused at level value."),
    ] = DEFAULT_TIME_LIMIT_S,
) -> int:
    """
    Write the integer model that the exact stage solves, as MPS, LP or CP-SAT's binary protocol buffer.

    Its optimum, found by any solver, equals the objective of that level in an optimal plan. CBC ignores the sense in an
    MPS file: give it -max for the level value.
    """
    check_sources({"INSTANCE": instance, "--policy": policy})
    check_target(out, [instance, policy])
    from placeopt.documents.documents import read_instance
    from placeopt.solvers.export import FORMATS
    from placeopt.solving.stages.exact import FORMULATIONS, level_model

    for option, value, known in (
        ("--format", form, FORMATS),
        ("--level", level, LEVELS),
        ("--formulation", formulation, FORMULATIONS),
    ):
        expect(value in known, option, value, f"one of {', '.join(known)}")
    check_seconds("--time-limit", time_limit)
    given = None if policy is None else read_policy(policy)
    round_ = read_instance(instance)
    chosen = None if given is None else _of_rounds(given, round_)
    optimum = _optimal_value(round_, chosen, time_limit) if level == "cost" else None
    model = level_model(round_, chosen, formulation, optimal_value=optimum)
    write_document(out, FORMATS[form](model))
    sense = "maximise" if model.sense == "max" else "minimise"
    say(f"{sense} {model.num_variables:,} variables, {model.num_rows:,} rows, {model.num_nonzeros:,} non-zeros", out)
    return ExitCode.DONE


def _of_rounds(policy: Policy | Scheduling, round_: Instance) -> Policy:
    """Return the policy that the model of a round is of."""
    from placeopt.model import Policy
    from placeopt.scheduling import scheduling_in, setting_of

    if isinstance(policy, Policy):
        return policy
    own = scheduling_in(policy, setting_of(round_))
    expect(own.rounds == "whole", "--policy", policy.name, "one of whole rounds: others decide without a model")
    return own.policy


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
