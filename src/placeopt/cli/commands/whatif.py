"""``placeopt whatif``: questions about capacity, answered on a copy of the instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.commands.whatif_replay import (
    Draws,
    Replay,
    ReplayPolicy,
    RowsFile,
    add_by_replay,
    apply_to_scenario,
    is_scenario,
)
from placeopt.cli.exits import ExitCode, UsageError
from placeopt.cli.files import check_target, say, write_document
from placeopt.cli.question_options import (
    AsJson,
    InstanceFile,
    Jobs,
    KeptRows,
    On,
    PatchFiles,
    PlanFile,
    Quiet,
    Seed,
    Threads,
    asking,
    deliver,
    limits_of,
    read_base,
    rows_path,
)
from placeopt.cli.settings import check_jobs
from placeopt.parallel import HERE, workers

if TYPE_CHECKING:
    from placeopt.whatif.records import MixTried, Tried

PLACED = "placed=all"


def fit(
    instance: InstanceFile,
    job: Annotated[
        str, typer.Option(metavar="SPEC", help="8, 8xH100, 4x8xH100 (4 workers of 8), 0.5xT4, or a job's id: its like.")
    ],
    cpu: Annotated[int, typer.Option(metavar="MILLICORES", help="CPU of each worker.")] = 0,
    memory: Annotated[int, typer.Option(metavar="MIB", help="Memory of each worker.")] = 0,
    together: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="One domain of this level holds all workers.")
    ] = None,
    queue: Annotated[str | None, typer.Option(metavar="ID", help="Queue that the job is in.")] = None,
    plan: PlanFile = None,
    patch: PatchFiles = None,
    time_limit: Annotated[float, typer.Option(metavar="S", help="Seconds for counting copies.")] = 10.0,
    threads: Threads = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """
    How many more of a job fit beside what runs, the largest gang of its kind by level, and what binds.

    Jobs that wait are left aside. Exit code 1 says that not even one fits.
    """
    limits = limits_of(time_limit, threads, seed)
    from placeopt.report.text.whatif import fit_page
    from placeopt.whatif.fit import fit as ask
    from placeopt.whatif.job_spec import parse_job

    with asking(instance, plan, patch, quiet=quiet) as (base, ticker, interruption):
        wanted = parse_job(job, base, cpu_millicores=cpu, memory_mib=memory, together=together, queue=queue)
        ticker.doing("counting copies")
        found = ask(base, wanted, limits, interruption.event)
    each = [f"{cpu:,} millicores"] * bool(cpu) + [f"{memory:,} MiB"] * bool(memory)
    words = job + (f" with {' and '.join(each)} a worker" if each else "")
    words += (f" in one {together}" if together else "") + (f" in queue {queue}" if queue else "")
    deliver(found, lambda: fit_page(found, words), as_json)
    return interruption.code or (ExitCode.NO if found.most == 0 else ExitCode.DONE)


def slots(
    instance: InstanceFile,
    sizes: Annotated[str, typer.Option(metavar="N,...", help="GPUs of a slot.")] = "1,2,4,8,16,32,64",
    model: Annotated[str | None, typer.Option(metavar="NAME", help="GPUs of this model only.")] = None,
    plan: PlanFile = None,
    patch: PatchFiles = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """How many disjoint slots of N free GPUs are left at every level; exact, about GPUs alone."""
    try:
        numbers = [int(word) for word in sizes.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise UsageError(f"--sizes: {sizes!r}, expected numbers of GPUs from 1 on, separated by commas")
    from placeopt.report.text.whatif import slots_page
    from placeopt.whatif.slots import slots as ask

    with asking(instance, plan, patch, quiet=quiet) as (base, _, interruption):
        found = ask(base, numbers, model)
    deliver(found, lambda: slots_page(found), as_json)
    return interruption.code or ExitCode.DONE


def fail(
    instance: InstanceFile,
    level: Annotated[
        str, typer.Option(metavar="LEVEL", help="node, a level of the network, or gpu, switch, numa, socket.")
    ],
    k: Annotated[int, typer.Option("--k", metavar="K", help="How many fail at once.")] = 1,
    everything: Annotated[bool, typer.Option("--all", help="Try every one of them, or every K.")] = False,
    domains: Annotated[
        str | None, typer.Option(metavar="ID,...", help="Try these only, or every K of them, instead of --all.")
    ] = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="What still runs may be changed as the policy lets it; else it stays.")
    ] = False,
    plan: PlanFile = None,
    patch: PatchFiles = None,
    time_limit: Annotated[float, typer.Option(metavar="S", help="Seconds a scenario.")] = 10.0,
    jobs: Jobs = 1,
    on: On = HERE,
    rows: KeptRows = None,
    threads: Threads = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """
    Fail nodes, racks or switches: do all jobs that ran there find another place?

    Jobs that wait are left aside. Exit code 1 says that in some scenario, proven, a job does not.
    """
    limits = limits_of(time_limit, threads, seed)
    if everything == (domains is not None):
        raise UsageError("expected --all, or --domains with some of the level")
    check_jobs(jobs)
    from placeopt.report.text.whatif import failures_page
    from placeopt.whatif.fail import fail as ask

    with asking(instance, plan, patch, quiet=quiet) as (base, ticker, interruption), workers(on, jobs) as width:
        found = ask(
            base,
            level,
            k=k,
            domains=None if domains is None else domains.split(","),
            changes=changes,
            limits=limits,
            jobs=width,
            rows=rows_path(rows),
            cancel=interruption.event,
            on_news=lambda done, total: ticker.doing(f"{done:,} of {total:,} scenarios"),
        )
    deliver(found, lambda: failures_page(found), as_json)
    return interruption.code or (ExitCode.NO if found.answer == "no" else ExitCode.DONE)


def add(
    instance: InstanceFile,
    node_type: Annotated[
        str, typer.Option(metavar="TYPE|NODE", help="Machine type, or node to copy; several by commas.")
    ],
    until: Annotated[
        str,
        typer.Option(metavar="GOAL", help="placed=all: every job of the round; of a scenario such as p95_wait<=30m."),
    ] = PLACED,
    most: Annotated[int | None, typer.Option(metavar="N", help="Of a scenario: nodes to try at most.")] = None,
    policy: ReplayPolicy = None,
    draws: Draws = None,
    rows: RowsFile = None,
    plan: PlanFile = None,
    patch: PatchFiles = None,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Seconds for the whole search; of a scenario, for a round.")
    ] = 60.0,
    threads: Threads = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    on: On = HERE,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """
    The fewest nodes of a type with which all jobs are placed: proven from below, found from above.

    A goal such as "p95_wait<=30m" is met by playing a scenario with more and more nodes; the curve is printed.

    What runs stays where it is. Of several types the mixture with the least price an hour is sought. Exit code 1 says
    that no number of such nodes will do, or none was found.
    """
    limits = limits_of(time_limit, threads, seed)
    asked = Replay(instance, policy, draws, rows, patch, plan, time_limit, seed, jobs, on, as_json, quiet)
    if until != PLACED:
        return add_by_replay(asked, node_type, until, most)
    if refused := asked.refused() or ("--most" if most is not None else "--on" if on != HERE else None):
        raise UsageError(f"{refused}: goes with a scenario, and a goal such as --until 'p95_wait<=30m'")
    from placeopt.report.text.whatif import added_page, cheapest_page
    from placeopt.whatif.add import add as ask
    from placeopt.whatif.cheapest import cheapest

    with asking(instance, plan, patch, quiet=quiet) as (base, ticker, interruption):
        ticker.doing("0 nodes")

        def news(tried: Tried) -> None:
            ticker.doing(f"{tried.nodes:,} nodes: {tried.waiting:,} jobs wait")

        def mixed(tried: MixTried) -> None:
            ticker.doing(f"{'+'.join(map(str, tried.nodes))} nodes: {tried.waiting:,} jobs wait")

        kinds = [kind.strip() for kind in node_type.split(",")]
        if len(kinds) > 1:
            choice = cheapest(base, kinds, limits=limits, cancel=interruption.event, on_news=news, on_mixture=mixed)
            deliver(choice, lambda: cheapest_page(choice), as_json)
            return interruption.code or (ExitCode.NO if choice.mixture is None else ExitCode.DONE)
        found = ask(base, node_type, limits=limits, cancel=interruption.event, on_news=news)
    deliver(found, lambda: added_page(found), as_json)
    return interruption.code or (ExitCode.NO if found.impossible else ExitCode.DONE)


def apply(
    instance: InstanceFile,
    out: Annotated[str, typer.Option(metavar="INSTANCE", help="Write it: .json, .json.gz, or - for standard output.")],
    plan: PlanFile = None,
    patch: PatchFiles = None,
) -> int:
    """Write the instance, or the trace, after a plan and scenarios; the one that is read stays as it is."""
    check_target(out, (instance, plan, *(patch or ())))
    if is_scenario(instance):
        return apply_to_scenario(instance, plan, patch, out)
    from placeopt.formats.documents import dumps
    from placeopt.report.text.contents import contents_facts, summary_line

    changed = read_base(instance, plan, patch, None)
    write_document(out, dumps(changed))
    say(f"{changed.name}: {summary_line(contents_facts(changed))}", out)
    return ExitCode.DONE
