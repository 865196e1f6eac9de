"""One host from several files about it."""

from collections.abc import Sequence
from dataclasses import replace

from placeopt.errors import BadInput
from placeopt.formats.topo.host import Host, HostGpu
from placeopt.model import Link


def combine(hosts: Sequence[Host]) -> Host:
    """
    Make one host of several, each from one file about the same machine.

    GPUs are matched by PCI address if both files state it, else by number. Sockets and NUMA domains come from the first
    file that states sockets; switches from the first with the PCIe tree; links from the first with their bandwidth;
    everything else from the first file that states it. The number of CPUs is the largest one (``nvidia-smi`` lists only
    those near GPUs).

    Raises
    ------
    BadInput
        If the files disagree about the number of GPUs.
    """
    with_gpus = [host for host in hosts if host.gpus]
    for host in with_gpus[1:]:
        if len(host.gpus) != len(with_gpus[0].gpus):
            raise BadInput(
                f"{host.file}: {len(host.gpus)} GPUs, but {len(with_gpus[0].gpus)} in {with_gpus[0].file}; "
                "files that are given together must be of one machine"
            )
    aligned = [_aligned(host, with_gpus[0]) for host in with_gpus]
    pcie = next((host for host in aligned if host.knows_pcie), aligned[0] if aligned else hosts[0])
    frame = next((host for host in hosts if host.knows_sockets), next((h for h in hosts if h.places), hosts[0]))
    linked = [host for host in aligned if host.links]
    links: tuple[Link, ...] = next(
        (host.links for host in linked if all(link.bandwidth_mbps for link in host.links)),
        linked[0].links if linked else (),
    )
    return Host(
        format=" + ".join(host.format for host in hosts),
        file=" + ".join(host.file for host in hosts),
        places=frame.places,
        knows_sockets=frame.knows_sockets,
        gpus=tuple(_merged([host.gpus[i] for host in aligned], pcie.gpus[i]) for i in range(len(pcie.gpus))),
        knows_pcie=pcie.knows_pcie,
        switch_mbps=pcie.switch_mbps,
        links=links,
        num_cpus=max((host.num_cpus for host in hosts if host.num_cpus), default=None),
        memory_mib=next((host.memory_mib for host in hosts if host.memory_mib), None),
        network_mbps=next((host.network_mbps for host in hosts if host.network_mbps), None),
    )


def _aligned(host: Host, first: Host) -> Host:
    """Return the host with its GPUs in the order of the first host, if PCI addresses determine it."""
    buses = [gpu.bus for gpu in host.gpus]
    wanted = [gpu.bus for gpu in first.gpus]
    if None in buses or len(set(buses)) != len(buses) or set(buses) != set(wanted) or buses == wanted:
        return host
    position = {bus: i for i, bus in enumerate(wanted)}
    new = [position[bus] for bus in buses]  # old index -> new index
    links = []
    for link in host.links:
        a, b = sorted((new[link.gpus[0]], new[link.gpus[1]]))
        links.append(link.model_copy(update={"gpus": (a, b)}))
    by_bus = {gpu.bus: gpu for gpu in host.gpus}
    return replace(host, gpus=tuple(by_bus[bus] for bus in wanted), links=tuple(links))


def _merged(sources: Sequence[HostGpu], pcie: HostGpu) -> HostGpu:
    """Return one GPU from all files."""
    place = next((gpu for gpu in sources if gpu.numa is not None or gpu.cpus), pcie)
    return HostGpu(
        model=next((gpu.model for gpu in sources if gpu.model), None),
        memory_mib=next((gpu.memory_mib for gpu in sources if gpu.memory_mib), 0),
        bus=next((gpu.bus for gpu in sources if gpu.bus), None),
        numa=place.numa,
        cpus=place.cpus,
        island=next((gpu.island for gpu in sources if gpu.island is not None), None),
        switches=pcie.switches,
        uplink_mbps=pcie.uplink_mbps or next((gpu.uplink_mbps for gpu in sources if gpu.uplink_mbps), None),
    )
