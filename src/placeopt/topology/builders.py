"""
Well-known machines, from their makers' public data sheets: ``machines.json``, with a note and the source of each.

``cpu_millicores`` counts the data sheet's physical cores, bandwidths are MB/s in one direction. ``lanes``: pairs of
GPUs and their NVLink lanes, by default of 25,000 MB/s, or the lanes of every pair, as NVSwitch gives. Weights are left
to the defaults of ``LEVEL_WEIGHTS``; a direct link has weight 1.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from itertools import combinations
from typing import Any

from placeopt.errors import BadInput
from placeopt.model import Gpu, Link, Machine, Part

PCIE3_X16_MBPS = 15_754
"""8 GT/s x 16 lanes x 128/130 / 8 bits; generations 4 and 5 double it."""
NVLINK2_LANE_MBPS = 25_000
"""Also of NVLink 3 and 4, which add lanes: 12 on A100, 18 on H100."""


SOCKETS = 2


def _listed(name: str) -> Machine:
    """Return a machine of the file."""
    listed = json.loads(files("placeopt.topology").joinpath("machines.json").read_text(encoding="utf-8"))[name]
    count, gpu, lanes = listed.pop("num_gpus"), Gpu(**listed.pop("gpu")), listed.pop("lanes")
    lane_mbps, _ = listed.pop("lane_mbps", NVLINK2_LANE_MBPS), listed.pop("note")
    pairs = lanes if isinstance(lanes, list) else [(*pair, lanes) for pair in combinations(range(count), 2)]
    links = tuple(Link(gpus=(a, b), lanes=n, bandwidth_mbps=n * lane_mbps) for a, b, n in pairs)
    return _server(name, count * [gpu], links=links, **listed)


minsky, dgx1, dgx2, dgx_a100, dgx_h100 = (
    partial(_listed, name) for name in ("minsky", "dgx-1", "dgx-2", "dgx-a100", "dgx-h100")
)


def pcie_box(
    num_gpus: int = 8,
    *,
    gpus_per_switch: int | None = None,
    gpu_model: str = "T4",
    gpu_memory_mib: int = 16 * 1024,
) -> Machine:
    """
    A server without direct GPU links: PCIe 3.0 x16 to each GPU, GPUs dealt in order and as evenly as can be to sockets.

    It has two sockets of 16 cores and 256 GiB. ``gpus_per_switch``: GPUs under one PCIe switch, which never spans
    sockets; None hangs them on their socket. Raises ``BadInput`` for more than 1024 GPUs, or no GPU on a switch.
    """
    for name, value, least in (("num_gpus", num_gpus, 0), ("gpus_per_switch", gpus_per_switch, 1)):
        if value is not None and not least <= value <= 1024:
            raise BadInput(f"pcie_box: {name} is {value}, expected {least} to 1024")
    return _server(
        f"pcie-{num_gpus}",
        num_gpus * [Gpu(model=gpu_model, memory_mib=gpu_memory_mib, uplink_mbps=PCIE3_X16_MBPS)],
        name="pcie-box",
        gpus_per_switch=gpus_per_switch,
        cpu_millicores=32_000,
        memory_mib=256 * 1024,
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
    gpus_per_switch: int | None = None,
    socket_mbps: int | None = None,
    **fields: Any,
) -> Machine:
    """Return a machine whose GPUs are dealt evenly to sockets, and there to switches as wide as a GPU's own uplink."""
    parts = [Part(id=f"socket{s}", level="socket", uplink_mbps=socket_mbps) for s in range(SOCKETS)]
    placed = []
    for s in range(SOCKETS):
        for i, gpu in enumerate(gpus[len(gpus) * s // SOCKETS : len(gpus) * (s + 1) // SOCKETS]):
            if gpus_per_switch is not None and i % gpus_per_switch == 0:
                switch = f"switch{len(parts) - SOCKETS}"
                parts.append(Part(id=switch, level="switch", parent=f"socket{s}", uplink_mbps=gpu.uplink_mbps))
            part = f"socket{s}" if gpus_per_switch is None else parts[-1].id
            placed.append(gpu.model_copy(update={"part": part}))
    source = f"builder {name or id}: {source}"
    return Machine(id=id, parts=tuple(parts), gpus=tuple(placed), source=source, **fields)
