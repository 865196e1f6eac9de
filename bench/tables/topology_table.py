"""
Regenerates the table of dumps in docs/topology.md.

    python bench/tables/topology_table.py --data DIR [--write docs/topology.md]

DIR holds dumps, in folders or not; every file is read alone and its outcome becomes a row. With ``--write`` the rows
replace what stands between the two markers in that file; without, they are printed.
"""

import argparse
from pathlib import Path

from placeopt import BadInput, PlaceoptError, Unsupported
from placeopt.importers.topo import Fabric, read_topo
from placeopt.model import Cluster, Machine
from placeopt.topology import gpu_distances

BEGIN, END = "<!-- begin: bench/tables/topology_table.py -->", "<!-- end -->"
HEADER = "| file | outcome | GPUs | parts | links | distances | also stated |\n|---|---|---|---|---|---|---|\n"


def row(folder: Path, path: Path) -> str:
    """One line of the table."""
    name = f"`{path.relative_to(folder).as_posix()}`"
    try:
        topology = read_topo([path])
    except PlaceoptError as error:
        reason = str(error).replace(str(path), "").lstrip(":, ").replace("|", "\\|")
        kind = "not supported" if isinstance(error, Unsupported) else "refused" if isinstance(error, BadInput) else "?"
        return f"| {name} | {kind}: {reason} | | | | | |\n"
    if isinstance(topology, Fabric):
        levels = [domain.level for domain in topology.domains]
        counts = ", ".join(f"{levels.count(level)} {level}" for level in sorted(set(levels)))
        return f"| {name} | fabric: {len(topology.node_domains)} nodes | | | | | {counts} |\n"
    if isinstance(topology, Cluster):
        machines = ", ".join(machine.id for machine in topology.machines)
        gpus = sum(
            len(machine.gpus) for node in topology.nodes for machine in topology.machines if machine.id == node.machine
        )
        return f"| {name} | list of {len(topology.nodes)} nodes | {gpus} | | | | {machines} |\n"
    return machine_row(name, topology)


def machine_row(name: str, machine: Machine) -> str:
    """One line about a machine."""
    levels = [part.level for part in machine.parts]
    parts = ", ".join(f"{levels.count(level)} {level}" for level in dict.fromkeys(levels))
    links = sorted({(link.kind, link.lanes) for link in machine.links})
    kinds = ", ".join(f"{kind} x{lanes}" for kind, lanes in links)
    values = sorted({int(value) for value in gpu_distances(machine).flat if value})
    told = [f"{machine.cpu_millicores // 1000} CPUs"] if machine.cpu_millicores else []
    told += [f"{machine.memory_mib} MiB"] if machine.memory_mib else []
    told += sorted({gpu.model for gpu in machine.gpus if gpu.model != "unknown"})
    told += [f"network {machine.network_bandwidth_mbps} MB/s"] if machine.network_bandwidth_mbps else []
    return (
        f"| {name} | machine | {len(machine.gpus)} | {parts} | {len(machine.links)}{f' ({kinds})' if kinds else ''} | "
        f"{', '.join(map(str, values))} | {'; '.join(told)} |\n"
    )


def main() -> None:
    """Read all files of the folder; print or write the table."""
    parser = argparse.ArgumentParser(description="Regenerate the table of dumps in docs/topology.md.")
    parser.add_argument("--data", type=Path, required=True, help="folder of dumps")
    parser.add_argument("--write", type=Path, help="file that has the markers")
    arguments = parser.parse_args()
    folder: Path = arguments.data
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md")
    table = HEADER + "".join(row(folder, path) for path in paths)
    if arguments.write is None:
        print(table, end="")
        return
    text = arguments.write.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    arguments.write.write_text(f"{before}{BEGIN}\n{table}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
