"""
Hardware descriptions as tools print them: one machine, a network of nodes, or a list of nodes.

The format is recognised from the content.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from placeopt.arguments import checked
from placeopt.errors import BadInput, Unsupported
from placeopt.formats.fabric import Fabric, Inventory
from placeopt.formats.slurm.nodes import is_json, read_slurm_nodes
from placeopt.formats.slurm.topology import is_slurm_topology, read_slurm_topology
from placeopt.formats.source_file import SourceFile, read_source
from placeopt.formats.topo.amd_smi import is_amd_smi, read_amd_smi
from placeopt.formats.topo.build import Stated, build_machine
from placeopt.formats.topo.host import Host
from placeopt.formats.topo.hwloc import read_hwloc
from placeopt.formats.topo.ibnetdiscover import (
    is_hostfile,
    is_ibnetdiscover,
    is_ibstat,
    no_network_error,
    read_ibnetdiscover,
)
from placeopt.formats.topo.lscpu import is_lscpu, read_lscpu
from placeopt.formats.topo.nccl import read_nccl
from placeopt.formats.topo.nvidia_smi import is_nvidia_smi, read_nvidia_smi
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

_XML_ROOTS = {"topology": "hwloc", "system": "nccl"}

_File = tuple[SourceFile, str]
"""A file, and the name of its format."""


def recognise(source: SourceFile) -> str:
    """Name the format of a file by its content; raises `BadInput` if it is none of them."""
    if source.is_xml:
        name = _XML_ROOTS.get(source.xml.tag)
        if name is None:
            raise BadInput(
                f"{source.name}: XML with root <{source.xml.tag[:40]}>; expected <topology> (hwloc) or <system> (NCCL)"
            )
        return name
    if is_json(source):
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
    return build_machine(_host(_recognised([path])), Stated(id, cpu_millicores, memory_mib, gpu_model, gpu_memory_mib))


@checked
def read_fabric(paths: Sequence[str | Path]) -> Fabric:
    """Read a network: Slurm's ``topology.conf``, or ``ibnetdiscover`` (with a host file and ``ibstat`` or without)."""
    return _fabric(_recognised(paths))


@checked
def read_inventory(path: str | Path) -> Inventory:
    """Read a list of nodes: slurmrestd's reply of ``.../nodes``."""
    return _inventory(_recognised([path]))


@checked
def read_topo(paths: Sequence[str | Path]) -> Machine | Fabric | Inventory:
    """Read whatever the files describe together; raises as ``read_machine``, ``read_fabric`` and ``read_inventory``."""
    files = _recognised(paths)
    names = {name for _, name in files}
    if names == {"slurmrestd"}:
        return _inventory(files)
    return _fabric(files) if names <= set(_FABRICS) else build_machine(_host(files), Stated())


@checked
def read_cluster(paths: Sequence[str | Path], machine: Machine | None = None) -> Cluster:
    """
    Read a whole cluster: a network and/or a list of nodes, and the machine of its nodes.

    Parameters
    ----------
    paths
        slurmrestd's nodes, a network, or both; for a network alone also the file of the machine that all nodes are.
    machine
        The machine instead of a file.

    Raises
    ------
    BadInput
        As the single readers; or if nodes and network have no name in common.
    Unsupported
        If the files are no network and no list of nodes, or the machine is missing or given twice.
    """
    files = _recognised(paths)
    nodes = [file for file in files if file[1] == "slurmrestd"]
    network = [file for file in files if file[1] in _FABRICS]
    dumps = [file for file in files if file[1] in _HOSTS]
    if (nodes or machine is not None) and dumps:
        raise Unsupported(f"{dumps[0][0].name}: describes a machine, but the machines are stated already; leave it out")
    fabric = _fabric(network) if network else None
    if nodes:
        if machine is not None:
            raise Unsupported(f"{nodes[0][0].name}: a list of nodes states their machines; leave the machine out")
        return _inventory(nodes).cluster(fabric)
    if fabric is None or (machine is None and not dumps):
        raise Unsupported(
            f"{paths[0]}: a cluster needs a list of nodes, or a network and the machine of its nodes; "
            "give, for instance, topology.conf and the output of nvidia-smi topo -m"
        )
    return fabric.cluster(machine if machine is not None else build_machine(_host(dumps), Stated()))


def _host(files: Sequence[_File]) -> Host:
    for source, name in files:
        if name not in _HOSTS:
            raise Unsupported(f"{source.name}: {name} describes no machine; read it as a network or a list of nodes")
    if len(files) > 1:
        raise Unsupported(f"{files[1][0].name}: a second machine; give one file, and state what it lacks")
    ((source, name),) = files
    return _HOSTS[name](source)


def _fabric(files: Sequence[_File]) -> Fabric:
    sources: dict[str, SourceFile] = {}
    for source, name in files:
        if name not in _FABRICS:
            raise Unsupported(f"{source.name}: {name} describes no network; read it as a machine or a list of nodes")
        if name in sources:
            raise Unsupported(f"{source.name}: a second file of format {name}; give one network at a time")
        sources[name] = source
    if "slurm topology" in sources:
        if len(sources) > 1:
            raise Unsupported(f"{sources['slurm topology'].name}: topology.conf lists the nodes itself; give it alone")
        return read_slurm_topology(sources["slurm topology"])
    if "ibnetdiscover" not in sources:
        raise no_network_error(next(iter(sources.values())))
    return read_ibnetdiscover(sources["ibnetdiscover"], sources.get("hostfile"), sources.get("ibstat"))


def _inventory(files: Sequence[_File]) -> Inventory:
    for source, name in files:
        if name != "slurmrestd" or len(files) > 1:
            raise Unsupported(f"{source.name}: {name}; expected one file, slurmrestd's reply of .../nodes")
    return read_slurm_nodes(files[0][0])


def _recognised(paths: Sequence[str | Path]) -> list[_File]:
    if not 1 <= len(paths) <= MAX_FILES:
        raise BadInput(f"{len(paths)} files given; expected 1 to {MAX_FILES}")
    sources = [read_source(path) for path in paths]
    return [(source, recognise(source)) for source in sources]
