"""
Hardware descriptions as tools print them: one machine, a network of nodes, or a list of nodes.

The format is recognised from the content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from placeopt.arguments import checked
from placeopt.errors import BadInput, Unsupported
from placeopt.importers.fabric import Fabric
from placeopt.importers.slurm.nodes import read_slurm_nodes
from placeopt.importers.slurm.topology import TOPOLOGY_LINE, read_slurm_topology
from placeopt.importers.source_file import SourceFile, read_source
from placeopt.importers.topo.host import Host
from placeopt.importers.topo.hwloc import read_hwloc
from placeopt.importers.topo.ibnetdiscover import ADAPTER, DEVICE, is_hostfile, read_ibnetdiscover
from placeopt.importers.topo.lscpu import is_lscpu, read_lscpu
from placeopt.importers.topo.nccl import read_nccl
from placeopt.importers.topo.smi import AMD_TITLE, NVIDIA_HEADER, read_amd_smi, read_nvidia_smi
from placeopt.model import Cluster, Machine

MAX_FILES = 16


class _Format(NamedTuple):
    name: str
    fits: Callable[[SourceFile], bool]
    host: Callable[[SourceFile], Host] | None = None
    """Reader of one machine; None: it is a list of nodes, a network, or names in one."""


_NODES = _Format("slurmrestd", lambda source: source.begins in (b"{", b"["))
_FORMATS = (
    _Format("hwloc XML", lambda source: source.begins == b"<" and source.xml.tag == "topology", read_hwloc),
    _Format("NCCL XML", lambda source: source.begins == b"<" and source.xml.tag == "system", read_nccl),
    _NODES,
    _Format("lscpu", is_lscpu, read_lscpu),
    _Format("ibnetdiscover", lambda source: source.has(DEVICE)),
    _Format("amd-smi", lambda source: source.has(AMD_TITLE), read_amd_smi),
    _Format("nvidia-smi topo -m", lambda source: source.has(NVIDIA_HEADER), read_nvidia_smi),
    _Format("slurm topology", lambda source: source.has(TOPOLOGY_LINE)),
    _Format("ibstat", lambda source: source.has(ADAPTER)),
    _Format("hostfile", is_hostfile),
)
"""Tried in this order; a host file, which resembles any text, comes last."""


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
    source, form = _recognised(path)
    if form.host is None:
        raise Unsupported(
            f"{source.name}: {form.name} describes no machine; read_topo reads networks and lists of nodes"
        )
    of_machine = {"id": id, "cpu_millicores": cpu_millicores, "memory_mib": memory_mib}
    of_gpus = {"model": gpu_model, "memory_mib": gpu_memory_mib}
    stated = ({name: value for name, value in of.items() if value is not None} for of in (of_machine, of_gpus))
    return form.host(source).machine(source.name, form.name, *stated)


@checked
def read_topo(paths: Sequence[str | Path], machine: Machine | None = None) -> Machine | Fabric | Cluster:
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
    Machine, Fabric or Cluster
        What that is; of nodes alone a cluster without domains.

    Raises
    ------
    BadInput
        As `read_machine`; or if nodes and network have no name in common.
    Unsupported
        If the files do not go together.
    """
    if not 1 <= len(paths) <= MAX_FILES:
        raise BadInput(f"{len(paths)} files given; expected 1 to {MAX_FILES}")
    machines = [] if machine is None else [machine]
    clusters: list[Cluster] = []
    networks: dict[str, SourceFile] = {}
    for source, form in map(_recognised, paths):
        if form.name in networks:
            raise Unsupported(f"{source.name}: a second file of its format; give one network at a time")
        if form.host is None and form is not _NODES:
            networks[form.name] = source
        elif machines or clusters:
            raise Unsupported(f"{source.name}: a second machine or list of nodes; give one, and state what it lacks")
        elif form.host is None:
            clusters.append(read_slurm_nodes(source))
        else:
            machines.append(form.host(source).machine(source.name, form.name, {}, {}))
    if not networks:
        return machines[0] if machines else clusters[0]
    fabric = _fabric(networks)
    for cluster in clusters:
        return fabric.with_nodes(cluster)
    return fabric.of_machine(machines[0]) if machines else fabric


def _fabric(sources: Mapping[str, SourceFile]) -> Fabric:
    """Return the network of files by format."""
    if tree := sources.get("slurm topology"):
        if len(sources) > 1:
            raise Unsupported(f"{tree.name}: topology.conf lists the nodes itself; give it alone")
        return read_slurm_topology(tree)
    names, adapters = sources.get("hostfile"), sources.get("ibstat")
    if network := sources.get("ibnetdiscover"):
        return read_ibnetdiscover(network, names, adapters)
    what, source = ("a list of host names", names) if names else ("hosts' adapters as ibstat lists them", adapters)
    name = "" if source is None else source.name
    raise Unsupported(f"{name}: {what}, not a network; give it together with the output of ibnetdiscover")


def _recognised(path: str | Path) -> tuple[SourceFile, _Format]:
    """Return a file with its format by its content; raises `BadInput` if it is none of them."""
    source = read_source(path)
    for form in _FORMATS:
        if form.fits(source):
            return source, form
    root = f"XML with root <{source.xml.tag[:40]}>" if source.begins == b"<" else "not recognised"
    raise BadInput(
        f"{source.name}: {root}; expected the output of nvidia-smi topo -m, amd-smi topology, rocm-smi --showtopo, "
        "lstopo --of xml, lscpu, ibnetdiscover, a NCCL topology file, Slurm's topology.conf or slurmrestd's nodes"
    )
