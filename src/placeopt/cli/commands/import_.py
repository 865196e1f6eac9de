"""``placeopt import``: rounds and hardware from other people's files."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.exits import ExitCode, UsageError
from placeopt.cli.files import STREAM, check_sources, check_target, say, write_document
from placeopt.cli.output import write_error
from placeopt.errors import Unsupported
from placeopt.report.text.text import plural

if TYPE_CHECKING:
    from placeopt.formats.topo.read import Fabric, Inventory
    from placeopt.model import Cluster, Instance, Machine

    Found = Machine | Fabric | Inventory | Cluster


def openb(
    nodes: Annotated[str, typer.Option(metavar="CSV", help="The trace's node list.")],
    pods: Annotated[str, typer.Option(metavar="CSV", help="One of the trace's pod lists.")],
    out: Annotated[str, typer.Option(metavar="INSTANCE", help="Write the round: .json, .json.gz or -.")],
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Take the first N pods and a proportionate part of the nodes.")
    ] = None,
) -> int:
    """Read Alibaba's GPU trace of 2023 (openb) as one round in which every pod waits and every node is empty."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit: {limit}, expected 1 or more")
    check_target(out, (nodes, pods))
    from placeopt.formats.openb import read_openb

    _write_round(read_openb(nodes, pods, limit), out)
    return ExitCode.DONE


def openb_trace(
    nodes: Annotated[str, typer.Option(metavar="CSV", help="The trace's node list.")],
    pods: Annotated[str, typer.Option(metavar="CSV", help="A pod list with times.")],
    out: Annotated[str, typer.Option(metavar="SCENARIO", help="Write the scenario: .json, .json.gz or -.")],
    part: Annotated[
        int, typer.Option(metavar="N", min=1, help="Take one of so many nodes, of every shape alike.")
    ] = 20,
    load: Annotated[
        float, typer.Option(metavar="F", help="GPU time asked for / GPU time of the cluster; sets how fast pods come.")
    ] = 0.9,
) -> int:
    """Read openb's pods with their run times as a scenario; they arrive so much faster that GPUs are short."""
    check_target(out, (nodes, pods))
    from placeopt.formats.documents import dumps
    from placeopt.formats.openb import read_openb, read_openb_run_times
    from placeopt.generators.openb_scenario import openb_scenario

    round_ = read_openb(nodes, pods)
    some = read_openb(nodes, pods, limit=max(1, len(round_.jobs) // part)).cluster
    scenario = openb_scenario(round_, read_openb_run_times(pods), cluster=some, load=load)
    write_document(out, dumps(scenario))
    say(f"{scenario.name}: {plural(len(scenario.arrivals), 'job')} on {plural(len(some.nodes), 'node')}", out)
    return ExitCode.DONE


def sc17(
    workload: Annotated[str, typer.Option(metavar="JSON", help="Jobs: workloads-5.json and the like.")],
    infrastructure: Annotated[str, typer.Option(metavar="JSON", help="The machine: infra-1m.json.")],
    profile: Annotated[str, typer.Option(metavar="JSON", help="Measured times: prof_from_experiments.json.")],
    out: Annotated[str, typer.Option(metavar="SCENARIO", help="Write the scenario: .json, .json.gz or -.")],
    machines: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Machines of the cluster.")] = 1,
) -> int:
    """Read a workload of the artifact of SC'17's topology-aware scheduling paper as a scenario to simulate."""
    check_target(out, (workload, infrastructure, profile))
    from placeopt.formats.documents import dumps
    from placeopt.formats.sc17 import read_sc17

    scenario = read_sc17(workload, infrastructure, profile, machines=machines)
    write_document(out, dumps(scenario))
    say(f"{scenario.name}: {plural(len(scenario.arrivals), 'job')} on {plural(machines, 'machine')}", out)
    write_error(scenario.note.partition("\n")[2])
    return ExitCode.DONE


def philly(
    trace: Annotated[
        str, typer.Option(metavar="CSV", help="The trace: timestamp, duration, num_gpus, gpu_time, cluster.")
    ],
    out: Annotated[str, typer.Option(metavar="SCENARIO", help="Write the scenario: .json, .json.gz or -.")],
    from_day: Annotated[int, typer.Option(metavar="N", min=0, help="First day, from the first submission.")] = 0,
    days: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Days of submissions; left out, all that follow.")
    ] = None,
    load: Annotated[
        float, typer.Option(metavar="F", help="GPU time asked for / GPU time of the cluster; sets the nodes.")
    ] = 0.9,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of the profiles, which the trace lacks.")] = 0,
    prediction_error: Annotated[
        float, typer.Option(metavar="F", help="Deviation of the logarithm of predicted / actual run time.")
    ] = 0.0,
) -> int:
    """Read Microsoft's Philly trace as a scenario on as many nodes of 8 GPUs as make the load."""
    check_target(out, (trace,))
    from placeopt.formats.documents import dumps
    from placeopt.formats.philly import read_philly
    from placeopt.generators.philly_scenario import philly_scenario

    scenario = philly_scenario(
        read_philly(trace), from_day=from_day, days=days, load=load, seed=seed, prediction_error=prediction_error
    )
    write_document(out, dumps(scenario))
    jobs, nodes = len(scenario.arrivals), len(scenario.cluster.nodes)
    say(f"{scenario.name}: {plural(jobs, 'job')} on {plural(nodes, 'node')}", out)
    return ExitCode.DONE


def slurm(
    nodes: Annotated[
        str, typer.Option(metavar="FILE", help="Of scontrol show nodes --json; before 23.02 sinfo --json")
    ],
    jobs: Annotated[str, typer.Option(metavar="FILE", help="Output of: squeue --json")],
    out: Annotated[str, typer.Option(metavar="INSTANCE", help="Write the round: .json, .json.gz or -.")],
    topology: Annotated[
        str | None, typer.Option(metavar="FILE", help="topology.conf, or scontrol show topology.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Of the round.")] = None,
) -> int:
    """
    Read what Slurm shows at one moment: nodes, what runs on them, what is pending.

    What was left out, kept in doubt, drained or assumed is printed on standard error, with counts. placeopt audit
    judges the round.
    """
    check_target(out, (nodes, jobs, topology))
    check_sources({"--nodes": nodes, "--jobs": jobs, "--topology": topology})
    from placeopt.formats.snapshots import read_slurm

    _write_seen(read_slurm(nodes, jobs, topology, name=name), out)
    return ExitCode.DONE


def kubernetes(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Output of: kubectl get nodes,pods -A -o json")],
    out: Annotated[str, typer.Option(metavar="INSTANCE", help="Write the round: .json, .json.gz or -.")],
    resource: Annotated[str, typer.Option(metavar="NAME", help="The resource that counts GPUs.")] = "nvidia.com/gpu",
    levels: Annotated[
        str | None,
        typer.Option(metavar="LABELS", help="Labels that tell domains, from the top down, joined by commas."),
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Of the round.")] = None,
) -> int:
    """
    Read what Kubernetes shows at one moment: nodes, pods that run, pods that wait, gangs.

    Pod groups (nodes,pods,podgroups) say how many pods of a gang must start together. What was left out, kept in doubt,
    drained or assumed is printed on standard error, with counts. placeopt audit judges the round.
    """
    check_target(out, files)
    check_sources({f"FILE {number}": path for number, path in enumerate(files, start=1)})
    from placeopt.formats.snapshots import read_kubernetes

    chosen = None if levels is None else [key for key in levels.split(",") if key]
    _write_seen(read_kubernetes(files, resource=resource, levels=chosen, name=name), out)
    return ExitCode.DONE


def sia(
    workload: Annotated[
        str, typer.Option(metavar="CSV", help="A sample: name, time, application, num_replicas, batch_size.")
    ],
    out: Annotated[str, typer.Option(metavar="SCENARIO", help="Write the scenario: .json, .json.gz or -.")],
    nodes: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Nodes of 4 GPUs.")] = 16,
) -> int:
    """Read a sample workload of Sia's simulator as a scenario; what an application computes is a table of ours."""
    check_target(out, (workload,))
    from placeopt.formats.documents import dumps
    from placeopt.formats.sia import read_sia
    from placeopt.generators.sia_scenario import sia_scenario

    name = f"sia-{PurePath(workload).name.removesuffix('.csv')}"
    scenario = sia_scenario(read_sia(workload), name=name, nodes=nodes)
    write_document(out, dumps(scenario))
    say(f"{scenario.name}: {plural(len(scenario.arrivals), 'job')} on {plural(nodes, 'node')}", out)
    return ExitCode.DONE


def topo(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Dumps of one machine or one network.")],
    out: Annotated[str, typer.Option(metavar="MACHINE", help="Write what they describe: .json, .json.gz or -.")],
    name: Annotated[
        str | None, typer.Option("--id", metavar="NAME", help="Name of the machine type; left out, the file's.")
    ] = None,
    gpu_model: Annotated[str | None, typer.Option(metavar="NAME", help="GPU model, where no file tells it.")] = None,
    gpu_memory_mib: Annotated[int | None, typer.Option(metavar="N", min=0, help="Memory of a GPU, likewise.")] = None,
    cpu_millicores: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="CPU of the machine, likewise.")
    ] = None,
    memory_mib: Annotated[int | None, typer.Option(metavar="N", min=0, help="Memory of the machine, likewise.")] = None,
) -> int:
    """
    Read hardware as tools print it; the format is recognised from the content.

    One machine, from one file or several together: nvidia-smi topo -m, rocm-smi, numactl --hardware, lstopo XML, lscpu,
    NCCL. Or a network: topology.conf, ibnetdiscover. Or the nodes of slurmrestd, alone or with their network.
    """
    check_target(out, files)
    check_sources({f"FILE {number}": path for number, path in enumerate(files, start=1)})
    from placeopt.formats.topo.read import read_machine
    from placeopt.report.text.hardware import hardware_document, hardware_summary

    stated = {
        "id": name,
        "gpu_model": gpu_model,
        "gpu_memory_mib": gpu_memory_mib,
        "cpu_millicores": cpu_millicores,
        "memory_mib": memory_mib,
    }
    found: Found
    if any(value is not None for value in stated.values()):
        found = read_machine(
            files,
            name,
            cpu_millicores=cpu_millicores,
            memory_mib=memory_mib,
            gpu_model=gpu_model,
            gpu_memory_mib=gpu_memory_mib,
        )
    else:
        found = _read(files)
    write_document(out, hardware_document(found))
    say(hardware_summary(found), out)
    return ExitCode.DONE


def _write_round(round_: Instance, out: str) -> None:
    from placeopt.formats.documents import dumps
    from placeopt.report.text.instance_summary import instance_facts, summary_line

    write_document(out, dumps(round_))
    say(f"{round_.name}: {summary_line(instance_facts(round_))}", out)


def _write_seen(round_: Instance, out: str) -> None:
    """Write a round that was seen; on standard error, what was left out, kept in doubt, drained or assumed."""
    _write_round(round_, out)
    write_error(round_.note.partition("\n")[2])


def _read(files: list[str]) -> Found:
    """Read files that describe one thing, or a cluster together."""
    from placeopt.formats.topo.read import read_cluster, read_topo

    try:
        return read_topo(files)
    except Unsupported as error:
        if len(files) < 2 or STREAM in files:
            raise
        try:
            return read_cluster(files)
        except Unsupported:
            raise error from None
