"""
Well-known machines, from their makers' public data sheets.

``cpu_millicores`` counts the data sheet's physical cores, bandwidths are MB/s in one direction. Weights are left to the
defaults of ``LEVEL_WEIGHTS``; a direct link has weight 1.
"""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from placeopt.errors import BadInput
from placeopt.model import Gpu, Link, Machine, Part

PCIE3_X16_MBPS = 15_754
"""8 GT/s x 16 lanes x 128/130 / 8 bits; generations 4 and 5 double it."""
PCIE4_X16_MBPS = 31_508
PCIE5_X16_MBPS = 63_015

NVLINK1_LANE_MBPS = 20_000
NVLINK2_LANE_MBPS = 25_000
"""Also of NVLink 3 and 4, which add lanes: 12 on A100, 18 on H100."""

DGX1_LANES = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2,
    (1, 2): 2, (1, 3): 1, (1, 5): 2,
    (2, 3): 2, (2, 6): 1,
    (3, 7): 1,
    (4, 5): 1, (4, 6): 1, (4, 7): 2,
    (5, 6): 2, (5, 7): 1,
    (6, 7): 2,
}  # fmt: skip
"""NVLink lanes of the DGX-1 with V100: a hybrid cube mesh that uses all six lanes of every GPU."""


def minsky() -> Machine:
    """
    IBM Power System S822LC for HPC ("Minsky") as in SC'17, section 3: 2 sockets x (8 cores, 256 GB, 2 P100).

    Dual NVLink (40 GB/s) inside a socket, between the GPUs and to the CPU; the X bus between the sockets carries
    38.4 GB/s. By fig. 7 two GPUs are 1 apart inside a socket and 42 across; the paper's own scenarios state 1 and 20
    instead.
    """
    return _server(
        "minsky",
        4 * [Gpu(model="P100", memory_mib=16 * 1024, uplink_mbps=2 * NVLINK1_LANE_MBPS)],
        socket_mbps=38_400,
        links=_links({(0, 1): 2, (2, 3): 2}, NVLINK1_LANE_MBPS),
        cpu_millicores=16_000,
        memory_mib=512 * 1024,
        memory_bandwidth_mbps=230_000,
        source="Amaral et al., SC'17, section 3; IBM Power System S822LC for HPC data sheet",
    )


def dgx1() -> Machine:
    """
    NVIDIA DGX-1 with 8 V100 (32 GB): hybrid cube mesh, 2 sockets x 20 cores, 4 PCIe switches with 2 GPUs each.

    SC'17 describes the older one with P100, which has the same 16 edges with one lane each.
    """
    return _server(
        "dgx-1",
        8 * [Gpu(model="V100", memory_mib=32 * 1024, uplink_mbps=PCIE3_X16_MBPS)],
        gpus_per_switch=2,
        socket_mbps=38_400,
        links=_links(DGX1_LANES),
        cpu_millicores=40_000,
        memory_mib=512 * 1024,
        memory_bandwidth_mbps=2 * 76_800,
        pcie_bandwidth_mbps=4 * PCIE3_X16_MBPS,
        network_bandwidth_mbps=4 * 12_500,
        source="NVIDIA DGX-1 (V100) data sheet and system architecture white paper",
    )


def dgx2() -> Machine:
    """
    NVIDIA DGX-2: 16 V100 (32 GB) on NVSwitch, 6 lanes (150 GB/s) to any other; 2 sockets x 24 cores.

    NVSwitch gives every pair all lanes of a GPU, so each pair is one link. Of the two layers of PCIe switches only the
    lower one is drawn: 8 switches with 2 GPUs and one network card each.
    """
    return _server(
        "dgx-2",
        16 * [Gpu(model="V100", memory_mib=32 * 1024, uplink_mbps=PCIE3_X16_MBPS)],
        gpus_per_switch=2,
        socket_mbps=62_400,
        links=_all_linked(16, lanes=6),
        cpu_millicores=48_000,
        memory_mib=1536 * 1024,
        memory_bandwidth_mbps=2 * 128_000,
        pcie_bandwidth_mbps=8 * PCIE3_X16_MBPS,
        network_bandwidth_mbps=8 * 12_500,
        source="NVIDIA DGX-2 data sheet",
    )


def dgx_a100() -> Machine:
    """
    NVIDIA DGX A100 (640 GB): 8 A100 (80 GB) on NVSwitch, 12 lanes (300 GB/s) to any other; 2 sockets x 64 cores.

    4 PCIe switches with 2 GPUs each. The sockets can be set to show four NUMA domains each; that is not drawn.
    """
    return _server(
        "dgx-a100",
        8 * [Gpu(model="A100", memory_mib=80 * 1024, uplink_mbps=PCIE4_X16_MBPS)],
        gpus_per_switch=2,
        links=_all_linked(8, lanes=12),
        cpu_millicores=128_000,
        memory_mib=2048 * 1024,
        memory_bandwidth_mbps=2 * 204_800,
        pcie_bandwidth_mbps=8 * PCIE4_X16_MBPS,
        network_bandwidth_mbps=8 * 25_000,
        source="NVIDIA DGX A100 (640 GB) data sheet",
    )


def dgx_h100() -> Machine:
    """
    NVIDIA DGX H100: 8 H100 (80 GB) on NVSwitch, 18 lanes (450 GB/s) to any other; 2 sockets x 56 cores.

    Each GPU shares its PCIe switch with a network card and no other GPU, so GPUs hang on their socket.
    """
    return _server(
        "dgx-h100",
        8 * [Gpu(model="H100", memory_mib=80 * 1024, uplink_mbps=PCIE5_X16_MBPS)],
        links=_all_linked(8, lanes=18),
        cpu_millicores=112_000,
        memory_mib=2048 * 1024,
        memory_bandwidth_mbps=2 * 307_200,
        pcie_bandwidth_mbps=8 * PCIE5_X16_MBPS,
        network_bandwidth_mbps=8 * 50_000,
        source="NVIDIA DGX H100 data sheet",
    )


def pcie_box(
    num_gpus: int = 8,
    *,
    sockets: int = 2,
    gpus_per_switch: int | None = None,
    gpu_model: str = "T4",
    gpu_memory_mib: int = 16 * 1024,
    cores_per_socket: int = 16,
    memory_mib: int = 256 * 1024,
) -> Machine:
    """
    A server without direct GPU links: PCIe 3.0 x16 to each GPU, GPUs dealt in order and as evenly as can be to sockets.

    Parameters
    ----------
    num_gpus
        0 to 1024.
    sockets
        1 to 64.
    gpus_per_switch
        GPUs under one PCIe switch; None hangs them on their socket. A switch never spans sockets.

    Raises
    ------
    BadInput
        If a count is out of its range.
    """
    for name, value, low, high in (
        ("num_gpus", num_gpus, 0, 1024),
        ("sockets", sockets, 1, 64),
        ("gpus_per_switch", 1 if gpus_per_switch is None else gpus_per_switch, 1, 1024),
        ("cores_per_socket", cores_per_socket, 1, 1000),
    ):
        if not low <= value <= high:
            raise BadInput(f"pcie_box: {name} is {value}, expected {low} to {high}")
    return _server(
        f"pcie-{num_gpus}",
        num_gpus * [Gpu(model=gpu_model, memory_mib=gpu_memory_mib, uplink_mbps=PCIE3_X16_MBPS)],
        name="pcie-box",
        sockets=sockets,
        gpus_per_switch=gpus_per_switch,
        cpu_millicores=sockets * cores_per_socket * 1000,
        memory_mib=memory_mib,
        source="no particular product",
    )


MACHINES: Mapping[str, Callable[[], Machine]] = {
    "minsky": minsky,
    "dgx-1": dgx1,
    "dgx-2": dgx2,
    "dgx-a100": dgx_a100,
    "dgx-h100": dgx_h100,
    "pcie-box": pcie_box,
}
"""The builders by name, for the command line and for generated instances."""


def _server(
    id: str,  # noqa: A002
    gpus: list[Gpu],
    *,
    source: str,
    name: str = "",
    sockets: int = 2,
    gpus_per_switch: int | None = None,
    socket_mbps: int | None = None,
    **fields: Any,
) -> Machine:
    """Return a machine whose GPUs are dealt evenly to sockets, and there to switches as wide as a GPU's own uplink."""
    parts = [Part(id=f"socket{s}", level="socket", uplink_mbps=socket_mbps) for s in range(sockets)]
    placed = []
    for s in range(sockets):
        for i, gpu in enumerate(gpus[len(gpus) * s // sockets : len(gpus) * (s + 1) // sockets]):
            if gpus_per_switch is not None and i % gpus_per_switch == 0:
                switch = f"switch{len(parts) - sockets}"
                parts.append(Part(id=switch, level="switch", parent=f"socket{s}", uplink_mbps=gpu.uplink_mbps))
            part = f"socket{s}" if gpus_per_switch is None else parts[-1].id
            placed.append(gpu.model_copy(update={"part": part}))
    source = f"builder {name or id}: {source}"
    return Machine(id=id, parts=tuple(parts), gpus=tuple(placed), source=source, **fields)


def _links(lanes: Mapping[tuple[int, int], int], lane_mbps: int = NVLINK2_LANE_MBPS) -> tuple[Link, ...]:
    return tuple(Link(gpus=pair, lanes=n, bandwidth_mbps=n * lane_mbps) for pair, n in lanes.items())


def _all_linked(count: int, *, lanes: int) -> tuple[Link, ...]:
    """Links between all pairs, each with all lanes of a GPU, as NVSwitch gives."""
    return _links(dict.fromkeys(combinations(range(count), 2), lanes))
