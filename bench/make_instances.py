"""
Writes the files of ``instances/`` again: ``python bench/make_instances.py --openb DIR [--sc17 FILE]``.

DIR holds the CSV files of cluster-trace-gpu-v2023, FILE is ``prof_from_experiments.json`` of SC'17's artifact; without
them only hand-made and generated instances are written, and ``openb_classes.csv`` and ``sc17_times.csv`` of the
generators stay as they are. The same input gives the same bytes. ``best.solu`` and the READMEs are not touched.
"""

import argparse
import csv
from collections import Counter
from pathlib import Path

from hand_instances import hand_instances
from placeopt.formats.documents import write_instance
from placeopt.formats.openb import read_openb
from placeopt.formats.sc17 import read_sc17_times
from placeopt.generators import generate
from placeopt.model import Instance

ROOT = Path(__file__).resolve().parent.parent
OPENB_LICENCE = (
    " Licence: Apache-2.0, by way of hkust-adsl/kubernetes-scheduler-simulator (commit 8f3d6417353c, data/csv), whose"
    " copies of these files are byte-identical to those of alibaba/clusterdata, which states no licence."
)
OPENB_SLICES = (20, 100, 500, 2000)
GENERATED = (  # spec, jobs, nodes, gpus
    ("uniform", 20, 4, 4),
    ("uniform", 50, 16, 8),
    ("varied", 50, 16, 4),
    ("gangs", 20, 16, 4),
    ("fractions", 60, 8, 4),
    ("cubemesh", 20, 4, 8),
)
SEEDS = (0, 1, 2)
TINY_JOBS = 20
TIMES = ROOT / "src" / "placeopt" / "generators" / "sc17_times.csv"
TIMES_HEAD = """\
# Measured times of SC'17's artifact: bench/make_instances.py, from profiles/prof_from_experiments.json.
# Source: HiEST/gpu-topo-aware, commit 8125c2875ad9. Licence: Apache-2.0.
# A line without 'beside': run time in a socket in ms, excess across sockets. With it: excess beside that kind.
kind,beside,run_time_ms,excess_thousandths
"""
CLASSES = ROOT / "src" / "placeopt" / "generators" / "openb_classes.csv"
CLASSES_HEAD = """\
# GPU pods of Alibaba's cluster-trace-gpu-v2023 by class: bench/make_instances.py, from openb_pod_list_default.csv.
# Source: hkust-adsl/kubernetes-scheduler-simulator, commit 8f3d6417353c, data/csv. Licence: Apache-2.0.
gpus,gpu_milli,cpu_millicores,memory_mib,pods
"""


def main() -> None:
    """Write every stored instance and the lists of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--openb", type=Path, help="folder with the openb_*.csv files")
    parser.add_argument("--out", type=Path, default=ROOT / "instances", help="folder to write to (default: instances/)")
    parser.add_argument("--sc17", type=Path, help="profile file of the artifact of SC'17")
    arguments = parser.parse_args()
    if arguments.sc17 is not None:
        write_times(arguments.sc17)
    hand = [write(instance, arguments.out, f"hand/{instance.name}.json") for instance in hand_instances()]
    made = [
        write(instance, arguments.out, f"generated/{instance.name}.json.gz")
        for instance in (
            generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)
            for spec, jobs, nodes, gpus in GENERATED
            for seed in SEEDS
        )
    ]
    tiny = hand + [name for name in made if f"-{TINY_JOBS}x" in name]
    write_list(arguments.out / "generated.test", made)
    if arguments.openb is not None:
        write_classes(arguments.openb)
        traces = [
            write(instance, arguments.out, f"openb/{instance.name}.json.gz") for instance in openb(arguments.openb)
        ]
        write_list(arguments.out / "openb.test", traces)
    write_list(arguments.out / "tiny.test", [*tiny, f"openb/openb-first-{OPENB_SLICES[0]}.json.gz"])


def openb(folder: Path) -> list[Instance]:
    """Slices of the default list on proportionate nodes, and whole lists on all nodes."""
    nodes = folder / "openb_node_list_all_node.csv"

    def read(pods: str, name: str, limit: int | None = None) -> Instance:
        instance = read_openb(nodes, folder / f"openb_pod_list_{pods}.csv", limit=limit, name=name)
        return instance.model_copy(update={"note": instance.note + OPENB_LICENCE})

    slices = [read("default", f"openb-first-{limit}", limit) for limit in OPENB_SLICES]
    return slices + [read(pods, f"openb-{pods}") for pods in ("default", "gpuspec33", "multigpu20")]


def write_classes(folder: Path) -> None:
    """Count the GPU pods of the default list by class, for the generators."""
    columns = ("num_gpu", "gpu_milli", "cpu_milli", "memory_mib")
    with (folder / "openb_pod_list_default.csv").open(newline="") as file:
        pods = Counter(tuple(int(row[column]) for column in columns) for row in csv.DictReader(file))
    rows = (f"{','.join(map(str, shape))},{count}\n" for shape, count in sorted(pods.items()) if shape[0])
    CLASSES.write_text(CLASSES_HEAD + "".join(rows))


def write_times(profile: Path) -> None:
    """Write the measured times of SC'17's artifact for the generators."""
    solo, spread, beside = read_sc17_times(profile)
    rows = [f"{kind},,{ms},{spread.get(kind, 0)}\n" for kind, ms in sorted(solo.items())]
    rows += [f"{one.profile},{one.beside},,{one.socket_thousandths}\n" for one in beside]
    TIMES.write_text(TIMES_HEAD + "".join(rows))


def write(instance: Instance, folder: Path, name: str) -> str:
    """Write an instance, compressed if the name ends in ``.gz``; return the name."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_instance(path, instance)
    print(f"{path.stat().st_size:>9}  {name}")
    return name


def write_list(path: Path, names: list[str]) -> None:
    """Write a list of instances, one path a line, relative to the list's folder."""
    path.write_text("".join(f"{name}\n" for name in names))


if __name__ == "__main__":
    main()
