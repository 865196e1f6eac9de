"""Does each node hold no more than it can?"""

from placeopt.check.case import CheckCase, PlacedJob, names
from placeopt.model import Assignment


def check_nodes(case: CheckCase) -> None:
    """CPU, memory, and the usable part of memory and PCIe bandwidth of every node."""
    usable = case.policy.usable
    for node, entries in case.on_node.items():
        cpu = memory = memory_bandwidth = pcie = 0
        for held, assignment in entries:
            workers, demand = len(assignment.workers), held.option.demand
            # What the workers need and what the plan states are the same, or rule `amounts` is broken.
            needed = workers * demand.cpu_millicores
            cpu += needed if needed > assignment.cpu_millicores else assignment.cpu_millicores
            needed = workers * demand.memory_mib
            memory += needed if needed > assignment.memory_mib else assignment.memory_mib
            memory_bandwidth += workers * demand.memory_bandwidth_mbps
            pcie += workers * demand.pcie_bandwidth_mbps
        machine = case.machine_of[node]
        if cpu <= machine.cpu_millicores and memory <= machine.memory_mib and not memory_bandwidth and not pcie:
            continue
        for rule, unit, load, capacity, percent in (
            ("cpu", "millicores", cpu, machine.cpu_millicores, 100),
            ("memory", "MiB", memory, machine.memory_mib, 100),
            (
                "memory_bandwidth",
                "MB/s of memory bandwidth",
                memory_bandwidth,
                machine.memory_bandwidth_mbps,
                usable.memory_bandwidth_percent,
            ),
            (
                "pcie_bandwidth",
                "MB/s of PCIe bandwidth",
                pcie,
                machine.pcie_bandwidth_mbps,
                usable.pcie_bandwidth_percent,
            ),
        ):
            if capacity is not None and load * 100 > percent * capacity:
                part = "" if percent == 100 else f"{percent} % of "
                holders = [held.job.id for held, assignment in entries if _takes(rule, held, assignment)]
                what = f"{load} of {part}{capacity} {unit} held by {names(holders)}"
                case.add(rule, f"node {node!r}", what, by=holders, node=node)


def _takes(rule: str, held: PlacedJob, assignment: Assignment) -> bool:
    """Whether a job takes any of what the rule limits."""
    demand = held.option.demand
    if rule == "cpu":
        return max(demand.cpu_millicores, assignment.cpu_millicores) > 0
    if rule == "memory":
        return max(demand.memory_mib, assignment.memory_mib) > 0
    return (demand.memory_bandwidth_mbps if rule == "memory_bandwidth" else demand.pcie_bandwidth_mbps) > 0
