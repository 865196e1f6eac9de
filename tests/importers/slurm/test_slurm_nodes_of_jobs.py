"""Slurm: whole nodes, sets of features, heterogeneous jobs and parts of GPUs, against all sets of nodes."""

from itertools import combinations
from random import Random
from typing import Any

import pytest

from helpers.imported_rounds import left_out, notes_of
from helpers.slurm_files import RUNS, WAITS, read
from placeopt import solve, violations
from placeopt.importers import read_slurm

TWO = {"max_nodes": 2, "tres_req_str": "cpu=4,mem=2G,node=2"}


def test_exclusive_nodes_of_unlike_kinds() -> None:
    """Whole nodes of each kind are an option, worth the same; several nodes of a job are of one kind."""
    found = read(WAITS | {"shared": "none", "partition": "gpu,vis", "tres_per_node": "gres:gpu:1"})
    (job,) = found.jobs
    sizes = {option.id: (option.demand.gpus, option.demand.cpu_millicores, option.value) for option in job.options}
    assert {"nodes1:64cpu-4xa100", "nodes1:32cpu-2xl40s"} <= sizes.keys()
    assert len({value for *_, value in sizes.values()}) == 1
    plan = solve(found, time_limit_s=5)
    (placed,) = plan.placements
    (part,) = placed.assignments
    assert (len(part.gpus), violations(found, plan)) == (found.cluster.gpus_by_node[part.node], [])
    pair = read(WAITS | TWO | {"tasks": 2, "shared": "none", "partition": "gpu,vis"})
    assert {option.workers for option in pair.jobs[0].options} == {2}
    assert "--exclusive have nodes of one kind each" in notes_of(pair)


def test_a_matching_set_is_an_option_for_each_of_its_alternatives() -> None:
    """``[a|b]``: all nodes have the first feature, or all have the second; three are the fewest that tell."""
    three = {"max_nodes": 3, "tasks": 3, "tres_req_str": "cpu=3,mem=3G,node=3", "tres_per_node": "gres:gpu:1"}
    found = read(WAITS | three | {"partition": "gpu,vis", "features": "[l40s|ib]"})
    assert [option.id for option in found.jobs[0].options] == ["nodes3:l40s", "nodes3:ib"]
    plan = solve(found, time_limit_s=5)
    assert [part.node for part in plan.placements[0].assignments] == ["gpu01", "gpu02", "gpu03"]
    assert violations(found, plan) == []


PARTS = {"gres": "gpu:a100:4,shard:a100:16", "partitions": ["gpu"]}


@pytest.mark.parametrize(
    ("running", "asked", "started"),
    [  # gpu01 has 4 GPUs of 4 shards
        ([], ["shard:2"] * 9, 8),
        ([], ["shard:3"] * 9, 4),
        ([], ["gpu:1"] * 3 + ["shard:2"] * 3, 5),
        (["shard:2(IDX:0)", "shard:a100:3(0/4,3/4,0/4,0/4)"], ["shard:2"] * 6, 5),
        (["shard:2(IDX:0)", "gpu:a100:2(IDX:1,2)"], ["gpu:1", "gpu:1"], 1),
        (["shard:5(4/4,1/4,0/4,0/4)"], ["shard:1"], 0),  # of two GPUs: the node is drained
    ],
)
def test_shards_are_parts_of_a_gpu(running: list[str], asked: list[str], started: int) -> None:
    """A job has those of one GPU, which no job may have as a whole then."""
    here = {"required_nodes": "gpu01", "max_nodes": 1}
    jobs = [
        RUNS | {"job_id": 20 + n, "gres_detail": [text], "tres_alloc_str": "cpu=1,mem=1M"}
        for n, text in enumerate(running)
    ]
    jobs += [WAITS | here | {"job_id": 40 + n, "tres_per_node": f"gres/{text}"} for n, text in enumerate(asked)]
    found = read(*jobs, **PARTS)
    plan = solve(found, time_limit_s=5)
    assert (len(plan.placements) - len(found.running), violations(found, plan)) == (started, [])


def test_a_job_of_shards_that_has_its_node_to_itself() -> None:
    found = read(
        WAITS | {"tres_per_node": "gres/shard:2", "shared": "none", "required_nodes": "gpu01", "max_nodes": 1}, **PARTS
    )
    demand = found.jobs[0].options[0].demand
    assert (demand.gpus, demand.gpu_milli, demand.cpu_millicores) == (4, 1000, 64_000)


@pytest.mark.parametrize("gres", ["gpu:a100:4,shard:15", "gpu:a100:2,gpu:h100:2,shard:16"])
def test_shards_that_are_no_equal_parts(gres: str) -> None:
    found = read(WAITS | {"tres_per_node": "gres/shard:1"}, gres=gres)
    assert left_out(found) == ["asks for gres/shard, and not for an equal part of a GPU: 1 (2)."]


HEAD = WAITS | {"het_job_id": 2, "het_job_id_set": "2-3", "het_job_offset": 0, "features": "ib"}
TAIL = WAITS | {"job_id": 3, "het_job_id": 2, "het_job_id_set": "2-3", "het_job_offset": 1, "partition": "gpu,vis"}
NOT_ALL = "a component of the heterogeneous job does not wait: 1 (2)."


def test_components_of_a_heterogeneous_job_are_groups_of_one_job() -> None:
    """Each with its own request and conditions, on nodes of its own; all of them start, or none."""
    head, tail = (
        HEAD | {"tres_per_node": "gres:gpu:3"},
        TAIL | {"tres_per_node": "gres:gpu:1", "excluded_nodes": "gpu04"},
    )
    found = read(head, tail | {"features": "a100"}, WAITS | {"job_id": 9})
    assert [job.id for job in found.jobs] == ["2", "9"]
    (option,) = found.jobs[0].options
    assert [(group.id, group.workers, group.demand.gpus) for group in option.groups] == [("2", 1, 3), ("3", 1, 1)]
    plan = solve(found, time_limit_s=5)
    placed = next(one for one in plan.placements if one.job == "2")
    assert sorted(len(part.gpus) for part in placed.assignments) == [1, 3]
    assert (len({part.node for part in placed.assignments}), violations(found, plan)) == (2, [])
    alone = read(head | {"features": "ib", "excluded_nodes": "gpu[02-03]"}, tail | {"required_nodes": ""}, state="down")
    assert not solve(alone, time_limit_s=5).placements, "the first component has no node"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"job_state": "RUNNING", "nodes": "gpu02", "tres_alloc_str": "cpu=1,mem=1G,node=1"}, NOT_ALL),
        ({"state_reason": "Dependency"}, "waiting for Dependency: 2 (2, 3)."),
        ({"required_nodes": "gpu02"}, "a heterogeneous job that names nodes, or has several workers on one: 2 (2, 3)."),
        ({"contiguous": True}, "states contiguous, which is not read: 2 (2, 3)."),
        ({"tres_req_str": "cpu=x"}, "cannot be read: tres_req_str: 2 (2, 3)."),
    ],
)
def test_heterogeneous_jobs_that_are_left_out(other: dict[str, Any], reason: str) -> None:
    """As a whole, by what one component asks for."""
    found = read(HEAD, TAIL | other, WAITS | {"job_id": 9})
    assert left_out(found) == [reason]
    assert "9" in {job.id for job in found.jobs}


Asked = tuple[int, int, int, str]
"""Nodes, and of each of them GPUs, CPUs and features."""


def wish(rng: Random, number: int) -> tuple[dict[str, Any], Asked]:
    """Return a waiting job, and what it asks for."""
    count, gpus, cpus, features = (
        rng.choice([1, 1, 2]),
        rng.choice([1, 2]),
        rng.choice([1, 2, 4]),
        rng.choice(["", "a", "a&b"]),
    )
    job = WAITS | {"job_id": number, "tasks": count, "max_nodes": count, "features": features, "partition": "p"}
    job |= {"cpus_per_task": cpus, "tres_req_str": f"cpu={count * cpus},mem=1M,node={count}", "memory_per_node": 1}
    return job | {"tres_per_node": f"gres/gpu:{gpus}"}, (count, gpus, cpus, features)


@pytest.mark.parametrize("kind", ["components", "exclusive", "set"])
@pytest.mark.parametrize("seed", range(12))
def test_a_job_starts_where_some_sets_of_nodes_are_lawful(kind: str, seed: int) -> None:
    """On nodes of unlike sizes and features, one of which is partly used."""
    rng = Random(seed)
    sizes = {
        f"n{n}": (rng.choice([1, 2, 4]), rng.choice([4, 8]), rng.sample("abc", rng.randint(0, 3))) for n in range(4)
    }
    nodes = [
        {"name": name, "cpus": cpus, "real_memory": 9, "gres": f"gpu:x:{gpus}", "state": "idle", "partitions": ["p"]}
        | {"active_features": some}
        for name, (gpus, cpus, some) in sizes.items()
    ]
    runs = RUNS | {
        "job_id": 9,
        "nodes": "n0",
        "gres_detail": ["gpu:x:1(IDX:0)"],
        "tres_alloc_str": "cpu=1,mem=1M,node=1",
    }
    asked = [wish(rng, number) for number in range(1, rng.randint(3, 4) if kind == "components" else 2)]
    jobs, wishes = [job for job, _ in asked], [one for _, one in asked]

    def lawful(wanted: Asked, free: set[str]) -> list[set[str]]:
        count, gpus, cpus, features = wanted
        fit = [
            name
            for name in sorted(free)
            if sizes[name][0] - (name == "n0") >= gpus and sizes[name][1] - (name == "n0") >= cpus
            if set(features.replace("&", "")) <= set(sizes[name][2])
        ]
        return [set(some) for some in combinations(fit, count)]

    def together(rest: list[Asked], free: set[str]) -> bool:
        return not rest or any(together(rest[1:], free - some) for some in lawful(rest[0], free))

    if kind == "components":
        for offset, job in enumerate(jobs):
            job |= {"het_job_id": 1, "het_job_offset": offset, "het_job_id_set": f"1-{len(jobs)}"}
        starts = together(wishes, set(sizes))
    elif kind == "exclusive":
        jobs[0]["shared"] = "none"
        starts = any(len({sizes[name][:2] for name in some}) == 1 for some in lawful(wishes[0], set(sizes) - {"n0"}))
    else:
        jobs[0]["features"] = "[b|c]"
        starts = any(lawful((*wishes[0][:3], feature), set(sizes)) for feature in "bc")
    found = read_slurm({"nodes": nodes}, {"jobs": [runs, *jobs]})
    plan = solve(found, time_limit_s=5, isolation="thread")
    assert violations(found, plan) == []
    assert {one.job for one in plan.placements} == ({"1", "9"} if starts else {"9"})
