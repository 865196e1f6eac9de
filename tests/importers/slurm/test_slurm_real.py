"""
A real Slurm 22.05's JSON against what the same Slurm says in text: node by node and job by job.

The files are the output of Debian's slurm-wlm 22.05.8 (tests/data/snapshots/README.md). The text was printed
some seconds before the JSON: between them job 25 started on g7 and job 53 was cancelled.
"""

import gzip
import json
import re
from pathlib import Path
from typing import NamedTuple

from helpers.imported_rounds import drained, left_out, notes_of
from helpers.node_conditions import chosen_nodes
from placeopt import solve
from placeopt.check import violations
from placeopt.importers import read_slurm
from placeopt.importers.slurm import expand_hosts, parse_tres
from placeopt.model import Instance

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data" / "snapshots" / "slurm-22.05"
NODES, JOBS, TOPOLOGY = DATA / "nodes.json.gz", DATA / "jobs.json.gz", DATA / "topology.txt"
SINCE = {"25", "53"}
"""Jobs of which the text, printed before the JSON, says something else."""


def records(name: str, key: str) -> dict[str, dict[str, str]]:
    """What scontrol prints in text: record -> its fields."""
    text = gzip.decompress((DATA / name).read_bytes()).decode()
    found = [dict(re.findall(r"([A-Za-z:/]+)=(\S*)", block)) for block in re.split(r"\n\s*\n", text)]
    return {fields[key]: fields for fields in found if key in fields}


class Held(NamedTuple):
    """What a job holds on a node; memory in MiB."""

    job: str
    node: str
    gpus: list[int]
    cpus: int
    memory: int


def held(found: Instance) -> list[Held]:
    return [
        Held(one.job, part.node, [int(gpu) for gpu in part.gpus], part.cpu_millicores // 1000, part.memory_mib)
        for one in found.running
        for part in one.assignments
    ]


def test_every_node_is_read_as_slurm_reports() -> None:
    """Hardware, switch, drained: g4 (MIXED+DRAIN), g8 (IDLE+DRAIN)."""
    found = read_slurm(NODES, JOBS, TOPOLOGY)
    said = records("nodes.txt.gz", "NodeName")
    machines = {machine.id: machine for machine in found.cluster.machines}
    assert [node.id for node in found.cluster.nodes] == list(said)
    for node in found.cluster.nodes:
        machine, fields = machines[node.machine], said[node.id]
        assert machine.cpu_millicores == 1000 * int(fields["CPUTot"])
        assert machine.memory_mib == int(fields["RealMemory"])
        gpus = sum(int(count) for count in re.findall(r"gpu:[^:,]+:(\d+)", fields["Gres"]))
        assert len(machine.gpus) == gpus
        assert node.drained == ("DRAIN" in fields["State"]), node.id
    models = {node.id: [gpu.model for gpu in machines[node.machine].gpus] for node in found.cluster.nodes}
    assert models["m1"] == ["a100", *["a100_3g.20gb"] * 2, *["a100_1g.5gb"] * 4]
    domains = {node.id: node.domain for node in found.cluster.nodes}
    assert (domains["g4"], domains["g5"], domains["s1"]) == ("leaf1", "leaf2", "leaf3")
    assert "Drained, state DRAIN: 2 (g4, g8)." in notes_of(found).splitlines()


def test_every_node_has_in_use_what_slurm_reports() -> None:
    """CPUs and memory as scontrol's text counts them, GPUs by index as the JSON does; none less."""
    found = read_slurm(NODES, JOBS)
    parts = held(found)
    used = {one["name"]: one["gres_used"] for one in json.loads(gzip.decompress(NODES.read_bytes()))["nodes"]}
    for name, fields in records("nodes.txt.gz", "NodeName").items():
        here = [part for part in parts if part.node == name]
        assert sum(part.cpus for part in here if part.job not in SINCE) == int(fields["CPUAlloc"]), name
        assert sum(part.memory for part in here if part.job not in SINCE) == int(fields["AllocMem"]), name
        told = [
            range(int(low), int(high or low) + 1)
            for indices in re.findall(r"gpu:[^,(]*\(IDX:([0-9,-]+)\)", used[name])
            for low, high in re.findall(r"(\d+)(?:-(\d+))?", indices)
        ]
        indices = sorted(gpu for part in here for gpu in part.gpus)
        shard = [0] if name == "s1" else []  # a part of it
        assert indices == sorted([gpu for some in told for gpu in some] + shard), name


def test_every_running_job_is_read_as_slurm_reports() -> None:
    """State, nodes, CPUs, memory and GPUs of each of the 25 jobs that hold nodes."""
    parts = held(read_slurm(NODES, JOBS))
    running = {}
    for number, fields in records("jobs.txt.gz", "JobId").items():
        name = f"{fields['ArrayJobId']}_{fields['ArrayTaskId']}" if "ArrayTaskId" in fields else number
        if fields["JobState"] in ("RUNNING", "CONFIGURING") and number not in SINCE:
            running[name] = fields
    assert {part.job for part in parts} == {*running, "25"}
    for name, fields in running.items():
        own = [part for part in parts if part.job == name]
        assert sorted(part.node for part in own) == expand_hosts(fields["NodeList"]), name
        assert sum(part.cpus for part in own) == int(fields["NumCPUs"]), name
        assert sum(part.memory for part in own) == parse_tres(fields["TRES"]).memory_mib, name
        gpus = sum(len(part.gpus) for part in own)
        asked = re.search(r"gpu:(?:[^:]+:)?(\d+)\Z", fields.get("TresPerNode", fields.get("TresPerJob", "")))
        if name == "9":  # --exclusive with two GPUs: Slurm gave it the node, and says so in gres_detail only
            assert (gpus, fields["OverSubscribe"]) == (8, "NO")
        elif name == "15":  # two shards, of one GPU
            assert gpus == 1
        elif "TresPerTask" in fields:
            assert gpus == int(fields["NumTasks"])
        elif "TresPerNode" in fields:
            assert asked is not None
            assert gpus == int(asked[1]) * int(fields["NumNodes"]), name
        else:
            assert gpus == (int(asked[1]) if asked else 0), name


G = tuple(f"g{i}" for i in range(1, 9))
LEFT = {
    **dict.fromkeys(("12_2", "12_3", "12_4", "12_5"), "waiting for JobArrayTaskLimit"),
    **dict.fromkeys(("18", "37"), "waiting for BeginTime"),
    "36": "waiting for JobHeldUser",
    "38": "waiting for Dependency",
    "49": "states tres_per_socket, which is not read",
}
WAITING = {  # job: workers, GPUs, CPUs, MiB of each, and on which nodes, as submit2.sh asks (tests/data/snapshots)
    "22": ([4], 8, 64, 819_200, None),  # -N4 --gres=gpu:a100:8 --ntasks-per-node=8 -c 8 --mem=800G
    "23": ([2, 3, 4], 8, 1, 102_400, G),  # -N2-4 --gres=gpu:8 -C a100 --mem=100G
    "24": ([3], 8, 1, 102_400, G),  # -N3 --switches=1 --gres=gpu:8 -C nvlink
    "26": ([1], 8, 4, 102_400, G),  # -N1 --gres=gpu:8 -C a100 -c 4
    "27": ([1], 8, 4, 102_400, G),
    "28": ([20], 1, 1, 4096, G),  # --gpus=20 -C a100 -c 1 --mem-per-gpu=4G
    "29": ([12], 1, 4, 4096, None),  # -n12 --gpus-per-task=a100:1 -c 4 --mem-per-cpu=1G
    "30": ([2], 8, 64, 2000, G),  # -N2 --exclusive --gres=gpu:1 -C a100: whole nodes
    "31": ([1], 8, 1, 10_240, G),  # -C "a100&nvlink"
    "33": ([1], 4, 1, 10_240, (*G, "l1", "l2", "l3", "l4")),  # -C "a100|l40s"
    "34": ([1], 1, 1, 10_240, ("g1",)),  # -w g1
    "35": ([1], 8, 1, 10_240, G[:6]),  # -x g7,g8
    "39": ([2], 4, 1, 51_200, None),  # --gres=gpu:l40s:4 -N2
    "40": ([1], 4, 1, 51_200, None),
    "41": ([1], 4, 1, 51_200, None),
    "42": ([1], 2, 1, 51_200, None),
    "43": ([1], 2, 1, 8192, None),  # --gres=gpu:a100_3g.20gb:2
    "44": ([1], 3, 1, 8192, None),  # --gres=gpu:a100_1g.5gb:3
    "45": ([1], 1, 1, 8192, None),  # --gres=shard:4, all of a GPU of s1
    "46": ([1], 2, 1, 8192, None),  # --gres=gpu:t4:2
    "50": ([1], 8, 1, 30_720, None),  # -p scav
    "51": ([1], 8, 1, 30_720, G),  # -p gpu,scav -C a100
    "52": ([60], 0, 1, 1024, None),  # -p cpu -N2 -n60 --mem-per-cpu=1G
}


def test_every_waiting_job_is_read_or_left_out_with_the_reason() -> None:
    """--exclusive, --gpus, ranges, het jobs, sockets, shards: exactly what was submitted, or left out."""
    found = read_slurm(NODES, JOBS)
    runs = {held.job for held in found.running}
    waiting = {job.id: job for job in found.jobs if job.id not in runs}
    by_reason: dict[str, list[str]] = {}
    for name, reason in LEFT.items():
        by_reason.setdefault(reason, []).append(name)
    shown = {reason: ", ".join(names[:3]) + ", ..." * (len(names) > 3) for reason, names in by_reason.items()}
    assert sorted(left_out(found)) == sorted(f"{why}: {len(by_reason[why])} ({shown[why]})." for why in shown)
    said = records("jobs.txt.gz", "JobId")
    pending = {number for number, fields in said.items() if fields["JobState"] == "PENDING"} - SINCE
    assert set(waiting) | {name.split("_")[0] for name in LEFT} | {"48"} == pending
    for name, (workers, gpus, cpus, memory, nodes) in WAITING.items():
        job = waiting[name]
        demands = {(o.demand.gpus, o.demand.cpu_millicores, o.demand.memory_mib) for o in job.options}
        assert ([o.workers for o in job.options], demands) == (workers, {(gpus, 1000 * cpus, memory)}), name
        assert nodes is None or set(chosen_nodes(found, job)) == set(nodes), name
        if len(workers) > 1 or workers[0] in (2, 3, 4):
            assert all(o.workers_per_node_max == 1 for o in job.options), name
    assert set(waiting) == {*WAITING, "47"}
    components = [(group.id, group.demand.gpus, group.demand.gpu_models) for group in waiting["47"].options[0].groups]
    assert components == [("47", 8, ()), ("48", 4, ("l40s",))]  # --gres=gpu:8 -C a100 : --gres=gpu:l40s:4
    assert waiting["22"].options[0].demand.gpu_models == ("a100",)
    assert waiting["45"].options[0].demand.resources == {"gres/shard": 4}
    (shares,) = (part for held in found.running if held.job == "15" for part in held.assignments)
    assert (shares.node, shares.gpus) == ("s1", {"0": 500})  # two shards of four
    assert waiting["44"].options[0].demand.gpu_models == ("a100_1g.5gb",)
    assert [(one.level, one.domains) for one in waiting["52"].options[0].splits] == [("node", 2)]
    assert waiting["52"].conditions.node_selector == {"partition:cpu": "yes"}
    assert "does not list --switches" in notes_of(found)


def test_a_job_on_a_cloud_node_that_is_not_listed_runs_there(tmp_path: Path) -> None:
    """Job 53 was, as scontrol said, CONFIGURING on cloud1, which sinfo does not list while it is powered down."""
    jobs = json.loads(gzip.decompress(JOBS.read_bytes()))
    cloud = next(job for job in jobs["jobs"] if job["job_id"] == 53)
    cloud |= {"job_state": "CONFIGURING", "gres_detail": ["gpu:a100:8(IDX:0-7)"]}
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    found = read_slurm(NODES, tmp_path / "jobs.json")
    part = next(one for one in found.running if one.job == "53").assignments[0]
    assert (part.node, len(part.gpus), part.cpu_millicores, part.memory_mib) == ("cloud1", 8, 1000, 30_720)
    assert "Kept as running, on a node that is not listed: 1 (53)." in notes_of(found)
    plan = solve(found, time_limit_s=5)
    assert ("53", "cloud1") in {(one.job, one.node) for one in plan.standing}
    assert not violations(found, plan)


def test_nothing_starts_where_slurm_could_not_start_it() -> None:
    """Everything pending had no room when the JSON was printed: no plan starts more."""
    found = read_slurm(NODES, JOBS)
    plan = solve(found, time_limit_s=5)
    assert {one.job for one in plan.placements} == {one.job for one in found.running}
    assert not violations(found, plan)


def test_sinfo_json_is_the_list_of_nodes() -> None:
    """22.05 has no scontrol --json; sinfo --json and slurmrestd give the same list."""
    first = read_slurm(DATA / "sinfo.json.gz", JOBS)
    assert first.cluster.nodes == read_slurm(NODES, JOBS).cluster.nodes
    assert read_slurm(DATA / "slurmrestd_nodes.json.gz", DATA / "slurmrestd_jobs.json.gz").running[0].job == "21"


def test_the_printed_topology_is_that_of_the_file() -> None:
    """``scontrol show topology`` repeats all nodes below a switch."""
    printed, written = (read_slurm(NODES, JOBS, DATA / f"topology.{end}").cluster for end in ("txt", "conf"))
    assert printed == written


def test_maintenance_drains() -> None:
    """Node c2 is idle with MAINTENANCE and RESERVED; later files: nothing else is drained."""
    found = read_slurm(DATA / "nodes_maintenance.json.gz", DATA / "jobs_later.json.gz")
    assert drained(found) == ["c2"]
    assert "Drained, state MAINTENANCE: 1 (c2)." in notes_of(found)
    later = read_slurm(DATA / "nodes_later.json.gz", DATA / "jobs_later.json.gz")
    assert drained(later) == []
    assert "Not eligible, waiting for JobHeldAdmin: 26 (22, 23, 24, ...)." in notes_of(later)


def test_files_of_different_moments_count_what_no_job_accounts_for() -> None:
    """By nodes.json g6 is used, by jobs_later.json no job is there: somebody's job is not listed."""
    found = read_slurm(NODES, DATA / "jobs_later.json.gz")
    line = next(line for line in notes_of(found).splitlines() if "than the listed jobs hold" in line)
    assert "g6" in line
    assert "g6" in drained(found)
