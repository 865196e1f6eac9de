"""``placeopt whatif``: questions about capacity, answered on a copy of the instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.commands.whatif_replay import (
    Draws,
    Replay,
    ReplayPolicy,
    add_by_replay,
    apply_to_scenario,
    is_scenario,
)
from placeopt.cli.files import check_target, write_made
from placeopt.cli.options import (
    InstanceFile,
    ParallelPricedQuestion,
    ParallelQuestion,
    PatchFiles,
    PlanFile,
    Question,
    SolverQuestion,
    named_amounts,
    read_base,
)
from placeopt.cli.output import ExitCode, UsageError
from placeopt.readable import plural

if TYPE_CHECKING:
    from placeopt.whatif.answers import MixtureTrial, NodeTrial

PLACED = "placed=all"


def fit(
    question: SolverQuestion,
    job: Annotated[
        str,
        typer.Option(
            metavar="SPEC", help="8, 8xH100, 4x8xH100 (4 workers of 8), 0.5xT4, or a job's id: a job like it."
        ),
    ],
    cpu: Annotated[int, typer.Option(metavar="MILLICORES", help="CPU of each worker.")] = 0,
    memory: Annotated[int, typer.Option(metavar="MIB", help="Memory of each worker.")] = 0,
    resource: Annotated[
        list[str] | None, typer.Option(metavar="NAME=N", help="Named resource of each worker; may be repeated.")
    ] = None,
    together: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="One domain of this level holds all workers.")
    ] = None,
    queue: Annotated[str | None, typer.Option(metavar="ID", help="Queue that the job is in.")] = None,
    tolerates: Annotated[
        str | None,
        typer.Option(
            metavar="KEY,...",
            help="Taints that the job tolerates, none: no taint. By default those that all nodes of a type share.",
        ),
    ] = None,
    time_limit: Annotated[float, typer.Option(metavar="S", help="Time limit for counting copies, in seconds.")] = 10.0,
) -> int:
    """
    Count the copies of a job that fit beside the running jobs, and name the limiting resource and the largest gang.

    Waiting jobs are ignored. Exit code 1: not even one fits.
    """
    limits = question.limits(time_limit)
    named = named_amounts(resource or ())
    from placeopt.report.text.whatif import fit_page
    from placeopt.whatif.fit_copies import fit as answer
    from placeopt.whatif.job_spec import parse_job

    with question.answering() as answering:
        demand = {"cpu_millicores": cpu, "memory_mib": memory}
        keys = None if tolerates is None else [key for key in tolerates.split(",") if key != "none"]
        wanted = parse_job(
            job, answering.base, **demand, resources=named, together=together, queue=queue, tolerates=keys
        )
        answering.ticker.doing("counting copies")
        result = answer(answering.base, wanted, limits, answering.interruption.event)
    each = [f"{cpu:,} millicores"] * bool(cpu) + [f"{memory:,} MiB"] * bool(memory)
    each += [f"{amount:,} {name}" for name, amount in named.items()]
    words = job + (f" with {' and '.join(each)} a worker" if each else "")
    words += (f" in one {together}" if together else "") + (f" in queue {queue}" if queue else "")
    return question.deliver(result, lambda: fit_page(result, words), answering.interruption, no=result.most == 0)


def slots(
    question: Question,
    sizes: Annotated[str, typer.Option(metavar="N,...", help="GPUs of a slot.")] = "1,2,4,8,16,32,64",
    model: Annotated[str | None, typer.Option(metavar="NAME", help="GPUs of this model only.")] = None,
) -> int:
    """Count the disjoint slots of N free GPUs at every level; exact, for GPUs only."""
    try:
        numbers = [int(word) for word in sizes.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise UsageError(f"--sizes: {sizes!r}, expected numbers of GPUs from 1 on, separated by commas")
    from placeopt.report.text.whatif import slots_page
    from placeopt.whatif.fit_copies import slots as answer

    with question.answering() as answering:
        result = answer(answering.base, numbers, model)
    return question.deliver(result, lambda: slots_page(result), answering.interruption)


def fail(
    question: ParallelQuestion,
    level: Annotated[
        str, typer.Option(metavar="LEVEL", help="node, a level of the network, or gpu, switch, numa, socket.")
    ],
    k: Annotated[int, typer.Option("--k", metavar="K", help="Number of parts of the level that fail at once.")] = 1,
    everything: Annotated[
        bool, typer.Option("--all", help="Try every part of the level, or every combination of K.")
    ] = False,
    domains: Annotated[
        str | None,
        typer.Option(
            metavar="ID,...", help="Try only these parts, or every combination of K of them, instead of --all."
        ),
    ] = None,
    changes: Annotated[
        bool,
        typer.Option("--changes", help="Let jobs that still run be moved, shrunk and preempted as the policy allows."),
    ] = False,
    time_limit: Annotated[float, typer.Option(metavar="S", help="Seconds for all scenarios together.")] = 60.0,
) -> int:
    """
    Fail nodes, racks or switches, and try to place their jobs elsewhere.

    Waiting jobs are ignored. Exit code 1: in some scenario a job provably has no other place.
    """
    limits = question.limits(time_limit)
    if everything == (domains is not None):
        raise UsageError("name one of --all and --domains, which lists some of the level")
    from placeopt.report.text.whatif import failures_page
    from placeopt.whatif.failures import fail as answer

    with question.answering() as answering:
        result = answer(
            answering.base,
            level,
            k=k,
            domains=None if domains is None else domains.split(","),
            changes=changes,
            limits=limits,
            **question.parallel(answering, "scenarios"),
        )
    return question.deliver(result, lambda: failures_page(result), answering.interruption, no=result.answer == "no")


def add(
    question: ParallelPricedQuestion,
    node_type: Annotated[
        str,
        typer.Option(
            metavar="TYPE|NODE", help="Machine type, or node to copy; several, separated by commas, may be mixed."
        ),
    ],
    until: Annotated[
        str,
        typer.Option(
            metavar="GOAL",
            help="placed=all: every job of the round is placed. With a scenario, a goal such as p95_wait<=30m.",
        ),
    ] = PLACED,
    most: Annotated[
        int | None, typer.Option(metavar="N", help="With a scenario: largest number of nodes to try.")
    ] = None,
    policy: ReplayPolicy = None,
    draws: Draws = None,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Seconds for the whole search; with a scenario, for a whole round.")
    ] = 60.0,
) -> int:
    """
    Find the smallest number of added nodes with which all jobs are placed, with a proven lower bound.

    With a scenario and a goal such as "p95_wait<=30m", the scenario is simulated with more and more nodes until the
    goal is met; every number tried is printed.

    Running jobs stay. Of several types, the mixture with the lowest price an hour is searched. Exit code 1: no number
    of such nodes is enough, or none was found.
    """
    limits = question.limits(time_limit)
    replay = Replay(question, policy, draws, time_limit)
    if until != PLACED:
        return add_by_replay(replay, node_type, until, most)
    if is_scenario(question.instance):
        raise UsageError(
            f"--until: {PLACED!r}, the default, is a goal for a round; for a scenario, jobs that arrive over time, "
            "expected a goal such as --until 'p95_wait<=30m'"
        )
    if refused := replay.refused() or ("--most" if most is not None else None):
        raise UsageError(f"{refused}: needs a scenario, and a goal such as --until 'p95_wait<=30m'")
    from placeopt.report.text.whatif import added_page, cheapest_page
    from placeopt.whatif.add_nodes import add as answer
    from placeopt.whatif.cheapest_nodes import cheapest

    with question.answering() as answering:
        answering.ticker.doing("0 nodes")

        def news(tried: NodeTrial) -> None:
            answering.ticker.doing(f"{plural(tried.nodes, 'node')}: {plural(tried.waiting, 'job')} waiting")

        def mixed(tried: MixtureTrial) -> None:
            answering.ticker.doing(f"{'+'.join(map(str, tried.nodes))} nodes: {plural(tried.waiting, 'job')} waiting")

        kinds = [kind.strip() for kind in node_type.split(",")]
        if len(kinds) > 1:
            choice = cheapest(
                answering.base,
                kinds,
                limits=limits,
                cancel=answering.interruption.event,
                on_news=news,
                on_mixture=mixed,
            )
            return question.deliver(
                choice, lambda: cheapest_page(choice), answering.interruption, no=choice.mixture is None
            )
        result = answer(answering.base, node_type, limits=limits, cancel=answering.interruption.event, on_news=news)
    return question.deliver(result, lambda: added_page(result), answering.interruption, no=result.impossible)


def apply(
    instance: InstanceFile,
    out: Annotated[str, typer.Option(metavar="INSTANCE", help="Write it: .json, .json.gz, or - for standard output.")],
    plan: PlanFile = None,
    patch: PatchFiles = None,
) -> int:
    """Write the instance, or the scenario of arrivals, after a plan and patches; the input file does not change."""
    check_target(out, (instance, plan, *(patch or ())))
    if is_scenario(instance):
        return apply_to_scenario(instance, plan, patch, out)
    write_made(out, read_base(instance, plan, patch, None))
    return ExitCode.DONE
