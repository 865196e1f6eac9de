"""Clusters of equal nodes in racks."""

from placeopt.formats.columns import cluster_from_columns
from placeopt.model import Cluster, Domain, Gpu, Machine, Part


def two_socket_machine(spec: str, gpus: int, cpu_millicores_per_gpu: int, memory_mib_per_gpu: int) -> Machine:
    """Return a machine with two sockets, the first half of the GPUs (rounded up) on the first; bandwidths unknown."""
    sockets = (Part(id="socket0", level="socket"), Part(id="socket1", level="socket"))
    first = (gpus + 1) // 2
    return Machine(
        id=f"{spec}-{gpus}gpu",
        cpu_millicores=cpu_millicores_per_gpu * gpus,
        memory_mib=memory_mib_per_gpu * gpus,
        parts=sockets,
        gpus=tuple(Gpu(model="generic", part="socket0" if i < first else "socket1") for i in range(gpus)),
        source=f"generator {spec}",
    )


def racks(machine: Machine, nodes: int, nodes_per_rack: int) -> Cluster:
    """Return ``nodes`` nodes of one machine type in racks of ``nodes_per_rack``; the last one may be smaller."""
    count = -(-nodes // nodes_per_rack)
    return cluster_from_columns(
        [machine],
        {
            "id": [f"node-{i:05d}" for i in range(nodes)],
            "machine": machine.id,
            "domain": [f"rack-{i // nodes_per_rack:04d}" for i in range(nodes)],
        },
        domains=[Domain(id=f"rack-{i:04d}") for i in range(count)],
    )
