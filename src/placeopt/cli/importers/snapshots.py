"""``placeopt import slurm`` and ``kubernetes``: nodes and jobs of a resource manager at one moment, as a round."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.importers.importer import INPUT, Imported, Importer, imported_snapshot


def slurm(
    nodes: Annotated[
        str,
        typer.Option(metavar="FILE", help="Output of: scontrol show nodes --json; before Slurm 23.02: sinfo --json"),
        INPUT,
    ],
    jobs: Annotated[str, typer.Option(metavar="FILE", help="Output of: squeue --json"), INPUT],
    topology: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="topology.conf, topology.yaml, or output of: scontrol show topology"),
        INPUT,
    ] = None,
    preemption: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="slurm.conf, or output of: scontrol show partitions; sacctmgr -P show qos"),
        INPUT,
    ] = None,
    licenses: Annotated[
        str | None, typer.Option(metavar="FILE", help="Output of: scontrol show licenses --json"), INPUT
    ] = None,
    reservations: Annotated[
        str | None, typer.Option(metavar="FILE", help="Output of: scontrol show reservations --json"), INPUT
    ] = None,
    priority_rule: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="JSON: what priorities and classes are worth, which may be preempted."),
        INPUT,
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the round.")] = None,
) -> Imported:
    """
    Read the state of Slurm at one moment as a round: nodes, running jobs, pending jobs.

    Standard error lists, with counts, what was left out, kept although unclear, drained or assumed. placeopt audit
    judges the placement of the running jobs.
    """
    from placeopt.importers import read_slurm

    return imported_snapshot(
        read_slurm(
            nodes,
            jobs,
            topology,
            name=name,
            rule=priority_rule,
            preemption=preemption or (),
            licenses=licenses,
            reservations=reservations,
        )
    )


SLURM = Importer(
    "slurm",
    slurm,
    "instance",
    "placeopt import slurm --nodes nodes.json --jobs jobs.json --topology topology.conf --out now.json",
)


def kubernetes(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Output of: kubectl get nodes,pods -A -o json"), INPUT
    ],
    resource: Annotated[str, typer.Option(metavar="NAME", help="The resource that counts GPUs.")] = "nvidia.com/gpu",
    levels: Annotated[
        str | None,
        typer.Option(metavar="LABELS", help="Node labels that define domains, top level first, joined by commas."),
    ] = None,
    priority_rule: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="JSON: what priorities and classes are worth, which may be preempted."),
        INPUT,
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the round.")] = None,
) -> Imported:
    """
    Read the state of Kubernetes at one moment as a round: nodes, running pods, pending pods, gangs.

    Pod groups (kubectl get nodes,pods,podgroups) state how many pods of a gang must start together. Standard error
    lists, with counts, what was left out, kept although unclear, drained or assumed. placeopt audit judges the
    placement of the running jobs.
    """
    from placeopt.importers import read_kubernetes

    labels = None if levels is None else [label for label in levels.split(",") if label]
    return imported_snapshot(read_kubernetes(files, resource=resource, levels=labels, name=name, rule=priority_rule))


KUBERNETES = Importer(
    "kubernetes",
    kubernetes,
    "instance",
    "kubectl get nodes,pods,podgroups -A -o json > k.json; placeopt import kubernetes k.json --out now.json",
)
