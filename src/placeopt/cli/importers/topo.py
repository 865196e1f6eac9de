"""``placeopt import topo``: hardware as tools print it, as a machine, a network or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.importers.importer import INPUT, Imported, Importer
from placeopt.cli.output import UsageError

if TYPE_CHECKING:
    from placeopt.model import Cluster, Machine


def topo(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Output of a tool about one machine, or about a network."), INPUT
    ],
    name: Annotated[
        str | None, typer.Option("--id", metavar="NAME", help="Name of the machine type; by default that of the file.")
    ] = None,
    gpu_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="GPU model, instead of that in the file.")
    ] = None,
    gpu_memory_mib: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Memory of a GPU, instead of that in the file.")
    ] = None,
    cpu_millicores: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="CPU of the machine, instead of that in the file.")
    ] = None,
    memory_mib: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Memory of the machine, instead of that in the file.")
    ] = None,
) -> Imported:
    """
    Read hardware from the output of tools such as nvidia-smi; the format is recognised by its content.

    One machine: nvidia-smi topo -m, amd-smi topology, rocm-smi --showtopo, lstopo XML, NCCL, lscpu. Or a network:
    topology.conf, ibnetdiscover. Or the nodes of slurmrestd, alone or with their network.
    """
    from placeopt.importers.fabric import Fabric
    from placeopt.importers.topo.read import read_machine, read_topo
    from placeopt.report.views import hardware_lines

    hardware: Machine | Fabric | Cluster
    if all(stated is None for stated in (name, gpu_model, gpu_memory_mib, cpu_millicores, memory_mib)):
        hardware = read_topo(files)
    elif len(files) > 1:
        raise UsageError(f"{len(files)} files; --id and what a machine lacks go with the file of one machine")
    else:
        hardware = read_machine(
            files[0],
            name,
            cpu_millicores=cpu_millicores,
            memory_mib=memory_mib,
            gpu_model=gpu_model,
            gpu_memory_mib=gpu_memory_mib,
        )
    if isinstance(hardware, Fabric):
        return Imported(hardware.network, hardware_lines(hardware))
    return Imported(hardware, hardware_lines(hardware))


TOPO = Importer("topo", topo, "hardware", "placeopt import topo topo-m.txt --id dgx --gpu-model A100 --out dgx.json")
