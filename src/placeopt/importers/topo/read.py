"""
Hardware descriptions as tools print them: one machine, a network of nodes, or a list of nodes.

The format is recognised from the content.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from placeopt.arguments import checked
from placeopt.errors import BadInput, Unsupported
from placeopt.importers.fabric import Fabric, Inventory
from placeopt.importers.slurm.nodes import read_slurm_nodes
from placeopt.importers.slurm.topology import is_slurm_topology, read_slurm_topology
from placeopt.importers.source_file import SourceFile, read_source
from placeopt.importers.topo.amd_smi import is_amd_smi, read_amd_smi
from placeopt.importers.topo.build import build_machine
from placeopt.importers.topo.host import Host
from placeopt.importers.topo.hwloc import read_hwloc
from placeopt.importers.topo.ibnetdiscover import (
    is_hostfile,
    is_ibnetdiscover,
    is_ibstat,
    no_network_error,
    read_ibnetdiscover,
)
from placeopt.importers.topo.lscpu import is_lscpu, read_lscpu
from placeopt.importers.topo.nccl import read_nccl
from placeopt.importers.topo.nvidia_smi import is_nvidia_smi, read_nvidia_smi
from placeopt.model import Cluster, Machine

MAX_FILES = 16

_TEXTS: Sequence[tuple[str, Callable[[SourceFile], bool]]] = (
    ("lscpu", is_lscpu),
    ("ibnetdiscover", is_ibnetdiscover),
    ("amd-smi", is_amd_smi),
    ("nvidia-smi", is_nvidia_smi),
    ("slurm topology", is_slurm_topology),
    ("ibstat", is_ibstat),
    ("hostfile", is_hostfile),
)
"""Tried in this order; a host file, which resembles any text, comes last."""

_HOSTS: Mapping[str, Callable[[SourceFile], Host]] = {
    "lscpu": read_lscpu,
    "amd-smi": read_amd_smi,
    "nvidia-smi": read_nvidia_smi,
    "hwloc": read_hwloc,
    "nccl": read_nccl,
}
"""Formats that describe one machine."""

_FABRICS = ("ibnetdiscover", "slurm topology", "ibstat", "hostfile")
_INVENTORIES = ("slurmrestd",)

_XML_ROOTS = {"topology": "hwloc", "system": "nccl"}

_File = tuple[SourceFile, str]
"""A file, and the name of its format."""


def recognise(source: SourceFile) -> str:
    """Name the format of a file by its content; raises `BadInput` if it is none of them."""
    if source.begins == b"<":
        name = _XML_ROOTS.get(source.xml.tag)
        if name is None:
            raise BadInput(
                f"{source.name}: XML with root <{source.xml.tag[:40]}>; expected <topology> (hwloc) or <system> (NCCL)"
            )
        return name
    if source.begins in (b"{", b"["):
        return "slurmrestd"
    for name, looks_like in _TEXTS:
        if looks_like(source):
            return name
    raise BadInput(
        f"{source.name}: not recognised; expected the output of nvidia-smi topo -m, amd-smi topology, "
        "rocm-smi --showtopo, lstopo --of xml, lscpu, ibnetdiscover, a NCCL topology file, Slurm's topology.conf or "
        "slurmrestd's nodes"
    )


@checked
def read_machine(
    path: str | Path,
    id: str | None = None,  # noqa: A002 - the field's name
    *,
    cpu_millicores: int | None = None,
    memory_mib: int | None = None,
    gpu_model: str | None = None,
    gpu_memory_mib: int | None = None,
) -> Machine:
    """
    Read one machine.

    Parameters
    ----------
    path
        File (``.gz`` too, ``-`` is standard input) in any of the formats that describe a machine.
    id
        Name of the machine type; left out, the file's name.
    cpu_millicores, memory_mib, gpu_model, gpu_memory_mib
        Override the file, or supply what it lacks.

    Returns
    -------
    Machine
        CPUs and memory that the file does not state are 0, GPU models ``unknown``. A machine without GPUs is valid.

    Raises
    ------
    BadInput
        If the file is not recognised, damaged or contradicts itself.
    Unsupported
        If the file describes something else than one machine.
    """
    ((source, name),) = _recognised([path])
    if name not in _HOSTS:
        raise Unsupported(f"{source.name}: {name} describes no machine; read_topo reads networks and lists of nodes")
    of_machine = {"id": id, "cpu_millicores": cpu_millicores, "memory_mib": memory_mib}
    of_gpus = {"model": gpu_model, "memory_mib": gpu_memory_mib}
    return build_machine(_HOSTS[name](source), _stated(of_machine), _stated(of_gpus))


def _stated(fields: Mapping[str, object]) -> Mapping[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


@checked
def read_topo(paths: Sequence[str | Path], machine: Machine | None = None) -> Machine | Fabric | Inventory | Cluster:
    """
    Read what the files describe together.

    Parameters
    ----------
    paths
        One machine; or a network, Slurm's ``topology.conf`` or ``ibnetdiscover`` (with a host file and ``ibstat`` or
        without); or slurmrestd's nodes. A network with nodes, or with the machine that all its nodes are, is a cluster.
    machine
        That machine in place of its file.

    Returns
    -------
    Machine, Fabric, Inventory or Cluster
        What that is.

    Raises
    ------
    BadInput
        As `read_machine`; or if nodes and network have no name in common.
    Unsupported
        If the files do not go together.
    """
    files = _recognised(paths)
    hosts, networks, nodes = ([file for file in files if file[1] in kind] for kind in (_HOSTS, _FABRICS, _INVENTORIES))
    for source, _ in (*hosts[1:], *nodes[1:]):
        raise Unsupported(f"{source.name}: a second machine or list of nodes; give one, and state what it lacks")
    if (hosts and nodes) or (machine is not None and (hosts or nodes or not networks)):
        raise Unsupported(f"{files[-1][0].name}: the machines are stated twice; a machine goes with a network alone")
    inventories = [read_slurm_nodes(source) for source, _ in nodes]
    machines = [build_machine(_HOSTS[name](source), {}, {}) for source, name in hosts]
    machines += [] if machine is None else [machine]
    if not networks:
        found: list[Machine | Inventory] = [*machines, *inventories]
        return found[0]
    fabric = _fabric(networks)
    if inventories:
        return inventories[0].cluster(fabric)
    return fabric.cluster(machines[0]) if machines else fabric


def _fabric(files: Sequence[_File]) -> Fabric:
    sources = {name: source for source, name in files}
    if len(sources) < len(files):
        raise Unsupported(f"{files[-1][0].name}: a second file of its format; give one network at a time")
    if "slurm topology" in sources:
        if len(sources) > 1:
            raise Unsupported(f"{sources['slurm topology'].name}: topology.conf lists the nodes itself; give it alone")
        return read_slurm_topology(sources["slurm topology"])
    if "ibnetdiscover" not in sources:
        raise no_network_error(files[0][0])
    return read_ibnetdiscover(sources["ibnetdiscover"], sources.get("hostfile"), sources.get("ibstat"))


def _recognised(paths: Sequence[str | Path]) -> list[_File]:
    if not 1 <= len(paths) <= MAX_FILES:
        raise BadInput(f"{len(paths)} files given; expected 1 to {MAX_FILES}")
    sources = [read_source(path) for path in paths]
    return [(source, recognise(source)) for source in sources]
