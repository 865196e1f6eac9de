"""
Write the files of ``instances/`` again.

    PYTHONPATH=bench python bench/instances/make_instances.py --openb DIR [--sc17 FILE] [--philly CSV]

DIR holds the CSV files of cluster-trace-gpu-v2023, FILE is ``prof_from_experiments.json`` of SC'17's artifact; without
them only hand-made and generated instances are written, and ``openb_classes.csv`` of the generators and
``times.csv`` of SC'17's room stay as they are. The same input gives the same bytes. ``best.solu`` and the READMEs
are not touched.
"""

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from hand_instances import hand_instances
from made_rounds import generate
from placeopt import read_scenario, write_document
from placeopt.importers.openb import read_openb
from placeopt.model import Instance
from placeopt.scheduling import named_policy
from placeopt.simulation import longest_queue_ms, round_at, simulate

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "papers"))  # not installed: a package of its own

from placeopt_papers.traces.philly import philly_scenario, read_philly  # noqa: E402 - found by the line above
from placeopt_papers.traces.sc17_artifact import read_sc17_times  # noqa: E402

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
HARD = (  # spec, jobs, nodes, gpus: what makes each hard is said in docs/generators.md and made_rounds/README.md
    ("planted", 24, 3, 4),
    ("planted", 400, 20, 8),
    ("resources", 30, 4, 4),
    ("resources", 200, 24, 8),
    ("parity", 16, 20, 8),
    ("parity", 80, 100, 8),
    ("islands", 20, 6, 8),
    ("islands", 80, 30, 8),
    ("preempt", 30, 8, 4),
    ("preempt", 100, 32, 8),
    ("defrag", 20, 8, 4),
    ("defrag", 60, 32, 8),
    ("gangs", 100, 48, 8),
    ("fractions", 400, 32, 8),
)
HARD_SEEDS = (0, 1)
LARGE = (
    "planted-1000x50x8-s0",
    "planted-10000x500x8-s0",
    "planted-100000x5000x8-s0",
    "preempt-1000x400x8-s0",
    "defrag-1000x400x8-s0",
    "gangs-1000x500x8-s0",
    "fractions-10000x1000x4-s0",
    "uniform-10000x1000x4-s0",
    "uniform-100000x12500x8-s0",
)
SELECTION = (  # what `--set all` runs: a look at every kind that fits an hour
    "generated/uniform-20x4x4-s0.json.gz",
    "generated/uniform-50x16x8-s0.json.gz",
    "generated/varied-50x16x4-s2.json.gz",
    "generated/gangs-20x16x4-s0.json.gz",
    "generated/fractions-60x8x4-s0.json.gz",
    "generated/cubemesh-20x4x8-s0.json.gz",
    *(f"hard/{spec}-{jobs}x{nodes}x{gpus}-s0.json.gz" for spec, jobs, nodes, gpus in HARD[:12:2]),
    "hard/planted-400x20x8-s0.json.gz",
    "hard/resources-200x24x8-s0.json.gz",
    "hard/gangs-100x48x8-s0.json.gz",
    "openb/openb-first-100.json.gz",
    "openb/openb-default.json.gz",
    "real/philly-day30-anew.json.gz",
    "real/sc17-100-longest-queue.json.gz",
    "generate:planted-1000x50x8-s0",
    "generate:uniform-10000x1000x4-s0",
    *(f"gap/gap{number}-0.gap" for number in range(1, 7)),
)
TINY_JOBS = 20
TIMES = ROOT / "src" / "placeopt" / "systems" / "sc17" / "times.csv"
TIMES_HEAD = """\
# Measured times of SC'17's artifact: bench/instances/make_instances.py, from profiles/prof_from_experiments.json.
# Source: HiEST/gpu-topo-aware, commit 8125c2875ad9. Licence: Apache-2.0.
# A line without 'beside': run time in a socket in ms, excess across sockets. With it: excess beside that kind.
kind,beside,run_time_ms,excess_thousandths
"""
CLASSES = ROOT / "src" / "placeopt" / "generators" / "openb_classes.csv"
CLASSES_HEAD = """\
# GPU pods of cluster-trace-gpu-v2023 by class: bench/instances/make_instances.py, from openb_pod_list_default.csv.
# Source: hkust-adsl/kubernetes-scheduler-simulator, commit 8f3d6417353c, data/csv. Licence: Apache-2.0.
gpus,gpu_milli,cpu_millicores,memory_mib,pods
"""


def main() -> None:
    """Write every stored instance and the lists of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--openb", type=Path, help="folder with the openb_*.csv files")
    parser.add_argument("--out", type=Path, default=ROOT / "instances", help="folder to write to (default: instances/)")
    parser.add_argument("--sc17", type=Path, help="profile file of the artifact of SC'17")
    parser.add_argument("--philly", type=Path, help="the Philly trace as CSV")
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
    hard = [
        write(generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed), arguments.out, f"hard/{name}.json.gz")
        for spec, jobs, nodes, gpus in HARD
        for seed in HARD_SEEDS
        for name in [f"{spec}-{jobs}x{nodes}x{gpus}-s{seed}"]
    ]
    write_list(arguments.out / "hard.test", hard)
    write_list(arguments.out / "large.test", [f"generate:{name}" for name in LARGE])
    write_list(arguments.out / "all.test", SELECTION)
    if arguments.philly is not None:
        moments = [
            write(instance, arguments.out, f"real/{instance.name}.json.gz") for instance in real(arguments.philly)
        ]
        write_list(arguments.out / "real.test", moments)
    tiny = hand + [name for name in made if f"-{TINY_JOBS}x" in name]
    write_list(arguments.out / "generated.test", made)
    if arguments.openb is not None:
        write_classes(arguments.openb)
        traces = [
            write(instance, arguments.out, f"openb/{instance.name}.json.gz") for instance in openb(arguments.openb)
        ]
        write_list(arguments.out / "openb.test", traces)
        write(gpu_nodes(arguments.openb), arguments.out, "openb/openb-gpu-nodes.json.gz")
    write_list(arguments.out / "tiny.test", [*tiny, f"openb/openb-first-{OPENB_SLICES[0]}.json.gz"])


def openb(folder: Path) -> list[Instance]:
    """Slices of the default list on proportionate nodes, and whole lists on all nodes."""
    nodes = folder / "openb_node_list_all_node.csv"

    def read(pods: str, name: str, limit: int | None = None) -> Instance:
        instance = read_openb(nodes, folder / f"openb_pod_list_{pods}.csv", limit=limit, name=name)
        return instance.model_copy(update={"note": instance.note + OPENB_LICENCE})

    slices = [read("default", f"openb-first-{limit}", limit) for limit in OPENB_SLICES]
    return slices + [read(pods, f"openb-{pods}") for pods in ("default", "gpuspec33", "multigpu20")]


def gpu_nodes(folder: Path) -> Instance:
    """Nodes with GPUs alone, by the names that they have in the file of their own, and no pod: FGD's cluster."""
    nodes = folder / "openb_node_list_gpu_node.csv"
    read = read_openb(nodes, folder / "openb_pod_list_default.csv", name="openb-gpu-nodes")
    note = f"Nodes of {nodes.name}: {len(read.cluster.nodes)} nodes, 6212 GPUs, no pods.{OPENB_LICENCE}"
    return read.model_copy(update={"note": note, "jobs": ()})


def real(trace: Path) -> list[Instance]:
    """
    Rounds as a cluster meets them: what ran and what waited when the most jobs waited, first come first served.

    Three days of Philly at a load of 0.9, one at 1.1, all jobs placed anew; and SC'17's 100 jobs on 5 machines.
    """
    jobs = read_philly(trace)
    scenarios = {
        f"philly-day{day}{suffix}": philly_scenario(jobs, from_day=day, days=1, load=load, interference="sc17")
        for day, suffix, load in ((30, "", 0.9), (30, "-load110", 1.1), (40, "", 0.9), (80, "", 0.9))
    }
    scenarios["sc17-100"] = read_scenario(ROOT / "instances" / "papers" / "sc17-workloads-100.json")
    rounds = []
    for name, scenario in scenarios.items():
        history = simulate(scenario, named_policy("fcfs"))
        if name == "sc17-100":
            rounds.append(round_at(history, longest_queue_ms(history), name=f"{name}-longest-queue"))
            continue
        round_ = round_at(history, longest_queue_ms(history), name=f"{name}-anew")
        note = f"All jobs are placed anew: what ran waits. {round_.note}"  # nothing is free beside what ran
        rounds.append(round_.model_copy(update={"running": (), "note": note}))
    return rounds


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
    rows += [f"{pair.profile},{pair.beside},,{pair.socket_thousandths}\n" for pair in beside]
    TIMES.write_text(TIMES_HEAD + "".join(rows))


def write(instance: Instance, folder: Path, name: str) -> str:
    """Write an instance, compressed if the name ends in ``.gz``; return the name."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_document(path, instance)
    print(f"{path.stat().st_size:>9}  {name}")
    return name


def write_list(path: Path, names: Iterable[str]) -> None:
    """Write a list of instances, one path or generator's name a line, relative to the list's folder."""
    path.write_text("".join(f"{name}\n" for name in names))


if __name__ == "__main__":
    main()
