"""Nodes in a line of text, ``32x8xA100:96:1024``: as many nodes, of as many GPUs of a model, with cores and GiB."""

from __future__ import annotations

import re

from placeopt.errors import BadArgument
from placeopt.generators.shared import equal_nodes
from placeopt.model import Cluster, Machine, Node
from placeopt.model.base import MAX_NODES
from placeopt.topology.builders import pcie_box

_NODES = re.compile(
    r"(?P<count>[0-9]{1,6})x(?P<gpus>[0-9]{1,4})(?:x(?P<model>[^\s,:]{1,100}))?(?::(?P<cores>[0-9]{1,5}):(?P<gib>[0-9]{1,6}))?\Z"
)


def parse_nodes(text: str) -> Cluster:
    """
    Return the nodes of ``COUNTxGPUS[xMODEL][:CORES:GIB],...``, without a network.

    A machine type is called ``8xA100``, its nodes ``8xA100-000`` on. Cores and memory that are not stated are 0: no job
    that asks for any fits. Raises `BadArgument` about ``nodes``.
    """
    machines: dict[str, Machine] = {}
    nodes: list[Node] = []
    for part in text.split(","):
        match = _NODES.match(part.strip())
        if match is None or not 1 <= (count := int(match["count"])) <= MAX_NODES or int(match["gpus"]) > 1024:
            raise BadArgument(
                f"nodes: {part[:80]!r}, expected COUNTxGPUS[xMODEL][:CORES:GIB], such as 32x8xA100:96:1024"
            )
        name = f"{match['gpus']}x{match['model'] or 'gpu'}" if int(match["gpus"]) else "cpu"
        if name in machines:
            raise BadArgument(f"nodes: {name!r} appears twice, expected each machine type once")
        box = pcie_box(int(match["gpus"]), gpu_model=match["model"] or "gpu", gpu_memory_mib=0)
        capacity = {"cpu_millicores": 1000 * int(match["cores"] or 0), "memory_mib": 1024 * int(match["gib"] or 0)}
        machines[name] = box.model_copy(update={"id": name, "source": "nodes of import jobs", **capacity})
        nodes += equal_nodes(machines[name], count, prefix=name).nodes
    if len(nodes) > MAX_NODES:
        raise BadArgument(f"nodes: {len(nodes):,}, expected at most {MAX_NODES:,}")
    return Cluster(machines=tuple(machines.values()), nodes=tuple(nodes))
