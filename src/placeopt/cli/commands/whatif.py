"""``placeopt whatif``: questions about capacity, answered on a copy of the instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.commands.whatif_traces import TraceQuestion, add_on_trace, compare_traces, edit_trace, is_scenario
from placeopt.cli.files import check_target, write_made
from placeopt.cli.options import ParallelQuestion, Question, expect, named_amounts, read_patch
from placeopt.cli.output import ExitCode, UsageError
from placeopt.readable import plural

if TYPE_CHECKING:
    from placeopt.whatif import EmptiedDomains, NodeTrial

PLACED = "placed=all"


def fit(
    question: Question,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC", help="8, 8xH100, 4x8xH100 (4 workers of 8), 0.5xT4, or a job's id: a job like it."
        ),
    ] = None,
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
) -> int:
    """
    Count the copies of a job that fit beside the running jobs, and name the limiting resource and the largest gang.

    Without --job: the disjoint slots of N free GPUs, at every level. Waiting jobs are ignored. Exit code 1: not even
    one copy fits.
    """
    limits, named = question.limits(), named_amounts(resource or ())
    demand = {"cpu_millicores": cpu, "memory_mib": memory}
    from placeopt import whatif

    with question.answering() as answering:
        if job is None:
            if named or any((cpu, memory, together, queue, tolerates)):
                raise UsageError(
                    "--job: expected what the other options add to, such as --job 0 for a job without GPUs"
                )
            return question.deliver(whatif.slots(answering.base).view(), answering.interruption)
        keys = None if tolerates is None else [key for key in tolerates.split(",") if key != "none"]
        asked = whatif.parse_job(
            job, answering.base, **demand, resources=named, together=together, queue=queue, tolerates=keys
        )
        answering.ticker.doing("counting copies")
        result = whatif.fit(answering.base, asked, limits, answering.interruption.event)
    each = [f"{cpu:,} millicores"] * bool(cpu) + [f"{memory:,} MiB"] * bool(memory)
    each += [f"{amount:,} {name}" for name, amount in named.items()]
    words = job + (f" with {' and '.join(each)} a worker" if each else "")
    words += (f" in one {together}" if together else "") + (f" in queue {queue}" if queue else "")
    return question.deliver(result.view(words), answering.interruption, no=result.most == 0)


def fail(
    question: ParallelQuestion,
    level: Annotated[
        str, typer.Option(metavar="LEVEL", help="node, a level of the network, or gpu, switch, numa, socket.")
    ] = "node",
    k: Annotated[int, typer.Option("--k", metavar="K", help="Number of parts of the level that fail at once.")] = 1,
    domains: Annotated[
        str | None,
        typer.Option(metavar="ID,...", help="Only these parts, or every combination of K of them; by default all."),
    ] = None,
    changes: Annotated[
        bool,
        typer.Option("--changes", help="Let jobs that still run be moved, shrunk and preempted as the policy allows."),
    ] = False,
) -> int:
    """
    Fail every node, rack or switch in turn, and try to place their jobs elsewhere.

    Jobs that find no place are given up as solve gives them up. Waiting jobs are ignored. Exit code 1: in some scenario
    a job provably has no other place.
    """
    limits = question.limits()
    from placeopt import whatif

    with question.answering() as answering:
        result = whatif.fail(
            answering.base,
            level,
            k=k,
            domains=None if domains is None else domains.split(","),
            changes=changes,
            limits=limits,
            **question.parallel(answering.ticker, answering.interruption, "scenarios"),
        )
    return question.deliver(result.view(), answering.interruption, no=result.answer == "no")


def add(
    question: TraceQuestion,
    node_type: Annotated[
        str,
        typer.Option(
            metavar="TYPE|NODE,...", help="Machine type, or node to copy; several may be mixed for the lowest price."
        ),
    ],
    until: Annotated[
        str,
        typer.Option(
            metavar="GOAL",
            help="placed=all: every job of the round is placed. With a scenario, a goal such as p95_wait<=30m.",
        ),
    ] = PLACED,
) -> int:
    """
    Find the cheapest nodes with which all jobs are placed, with a proven lower bound.

    With a scenario and a goal such as "p95_wait<=30m", the scenario is simulated with more and more nodes until the
    goal is met. Running jobs stay. Exit code 1: no number of such nodes is enough, or none was found.
    """
    if until != PLACED:
        return add_on_trace(question, node_type, until)
    if is_scenario(question.instance):
        raise UsageError(
            f"--until: {PLACED!r}, the default, is a goal for a round; for a scenario, jobs that arrive over time, "
            "expected a goal such as --until 'p95_wait<=30m'"
        )
    question.refuse(rows=question.rows)
    limits = question.limits()
    from placeopt import whatif

    with question.answering() as answering:

        def news(tried: NodeTrial) -> None:
            counts = "+".join(map(str, tried.nodes))
            answering.ticker.doing(f"{counts} nodes: {plural(tried.waiting, 'job')} waiting")

        types = [kind.strip() for kind in node_type.split(",")]
        event = answering.interruption.event
        result = whatif.add(answering.base, *types, limits=limits, cancel=event, on_news=news)
    no = result.found is None and (result.impossible or len(types) > 1)
    return question.deliver(result.view(), answering.interruption, no=no)


def compare(
    question: TraceQuestion,
    vary: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="nodes:TYPE=0-10, demand=80-130:10 (percent), quota:QUEUE=8,16 (GPUs), machine:OLD=NEW, "
            "more=node,rack,quota (one more of each), patch=F,G. With a scenario also arrivals=80-130:10 (percent), "
            "policy=A,B.",
        ),
    ],
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|GOAL", help="With a scenario: a measure such as p95_wait, or a goal such as p95_wait<=30m."
        ),
    ] = None,
) -> int:
    """
    Solve the round and variants of it, and print value, bound, placed jobs and gain of each.

    A scenario is simulated under each variant instead, and --measure is printed. Exit code 1: the only
    variant of a round is provably worse than the round as it is.
    """
    if is_scenario(question.instance):
        return compare_traces(question, vary, measure)
    question.refuse(measure=measure)
    limits = question.limits()
    from placeopt import whatif

    with question.answering() as answering:
        variants = whatif.parse_variants(vary, answering.base, seed=question.seed, patches=read_patch)
        parallel = question.parallel(answering.ticker, answering.interruption, "rounds")
        result = whatif.compare(answering.base, variants, limits=limits, **parallel)
    no = [one.answer for one in result.variants] == ["worse"]
    return question.deliver(result.view(), answering.interruption, no=no)


def defrag(
    question: Question,
    level: Annotated[str, typer.Option(metavar="LEVEL", help="node, or a level of the cluster's network.")] = "node",
    exempt: Annotated[str | None, typer.Option(metavar="JOB,...", help="Jobs that must not be moved.")] = None,
    everyone: Annotated[
        bool, typer.Option("--all-movable", help="Also move jobs that are not marked as movable.")
    ] = False,
    moves: Annotated[int | None, typer.Option(metavar="N", help="Largest number of moves.")] = None,
) -> int:
    """
    Empty as many nodes, or racks, as possible by moving running jobs.

    Prints how many moves empty how many nodes, and the moves in a valid order. Exit code 1: no set of moves was found
    that empties more nodes than now.
    """
    limits = question.limits()
    expect(moves is None or moves >= 0, "--moves", moves, "0 or more")
    from placeopt import whatif

    with question.answering() as answering:

        def news(point: EmptiedDomains) -> None:
            answering.ticker.doing(f"{point.freed:,} empty with {len(point.moves):,} moves")

        result = whatif.defrag(
            answering.base,
            level,
            exempt=() if exempt is None else exempt.split(","),
            everyone=everyone,
            most_moves=moves,
            limits=limits,
            cancel=answering.interruption.event,
            on_news=news,
        )
    return question.deliver(result.view(), answering.interruption, no=not result.front)


def clear(question: Question) -> int:
    """
    Play the round forward, and print when each waiting job starts and when the queue is clear.

    Whole rounds under the round's policy, with the run times that jobs state; none comes or fails. Exit code 1: some
    job never starts.
    """
    limits = question.limits()
    from placeopt.simulation.replay import clear as answer

    with question.answering() as answering:
        result = answer(answering.base, limits=limits, cancel=answering.interruption.event)
    return question.deliver(result.view(), answering.interruption, no=result.answer == "never")


def edit(
    question: Question,
    out: Annotated[str, typer.Option(metavar="FILE", help="Write it: .json, .json.gz, or - for standard output.")],
) -> int:
    """Write the instance, or the scenario of arrivals, after plan, patches and prices; the input does not change."""
    check_target(out, question.sources)
    if is_scenario(question.instance):
        return edit_trace(question, out)
    with question.answering() as answering:
        base = answering.base
    write_made(out, base)
    return ExitCode.DONE
