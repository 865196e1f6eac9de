"""
Writes the instances of ``instances/`` again: ``python bench/make_instances.py --openb DIR``.

DIR holds the CSV files of cluster-trace-gpu-v2023. The same input gives the same bytes (gzip without time and name).
"""

import argparse
import gzip
from pathlib import Path

from placeopt.formats.openb import read_openb
from placeopt.model import Instance

ROOT = Path(__file__).resolve().parent.parent / "instances"
OPENB_LICENCE = (
    " Licence: Apache-2.0, by way of hkust-adsl/kubernetes-scheduler-simulator (commit 8f3d6417353c, data/csv), whose"
    " copies of these files are byte-identical to those of alibaba/clusterdata, which states no licence."
)
OPENB_SLICES = (20, 100, 500, 2000)


def main() -> None:
    """Write every stored instance below ``--out``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--openb", type=Path, required=True, help="folder with the openb_*.csv files")
    parser.add_argument("--out", type=Path, default=ROOT, help="folder to write to (default: instances/)")
    arguments = parser.parse_args()
    for instance in openb(arguments.openb):
        write(instance, arguments.out / "openb" / f"{instance.name}.json.gz")


def openb(folder: Path) -> list[Instance]:
    """Whole lists on all nodes, and slices of the default list on proportionate nodes."""
    nodes = folder / "openb_node_list_all_node.csv"

    def read(pods: str, name: str, limit: int | None = None) -> Instance:
        instance = read_openb(nodes, folder / f"openb_pod_list_{pods}.csv", limit=limit, name=name)
        return instance.model_copy(update={"note": instance.note + OPENB_LICENCE})

    whole = [read(pods, f"openb-{pods}") for pods in ("default", "gpuspec33", "multigpu20")]
    return whole + [read("default", f"openb-first-{limit}", limit) for limit in OPENB_SLICES]


def write(instance: Instance, path: Path) -> None:
    """Write canonical JSON, compressed if the name ends in ``.gz``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = instance.model_dump_json(exclude_defaults=True).encode() + b"\n"
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    print(f"{path.stat().st_size:>9}  {path}")


if __name__ == "__main__":
    main()
