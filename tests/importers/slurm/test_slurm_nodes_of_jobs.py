"""Slurm: whole nodes, sets of features, heterogeneous jobs and parts of GPUs, against all sets of nodes."""

from collections.abc import Callable
from itertools import combinations, product
from random import Random
from typing import Any

import pytest

from helpers.imported_rounds import left_out, notes_of
from helpers.night import seeds
from helpers.slurm_files import RUNS, WAITS, read
from helpers.solved import planned
from placeopt.importers import read_slurm

TWO = {"max_nodes": 2, "tres_req_str": "cpu=4,mem=2G,node=2"}


def test_exclusive_nodes_of_unlike_kinds() -> None:
    """Whole nodes of each kind are an option, worth the same; several nodes of a job are of one kind."""
    found = read(WAITS | {"shared": "none", "partition": "gpu,vis", "tres_per_node": "gres:gpu:1"})
    (job,) = found.jobs
    sizes = {option.id: (option.demand.gpus, option.demand.cpu_millicores, option.value) for option in job.options}
    assert {"nodes1:64cpu-4xa100", "nodes1:32cpu-2xl40s"} <= sizes.keys()
    assert len({value for *_, value in sizes.values()}) == 1
    plan = planned(found)
    (placed,) = plan.placements
    (part,) = placed.assignments
    assert len(part.gpus) == found.cluster.gpus_by_node[part.node]
    pair = read(WAITS | TWO | {"tasks": 2, "shared": "none", "partition": "gpu,vis"})
    assert {option.workers for option in pair.jobs[0].options} == {2}
    assert "--exclusive have nodes of one kind each" in notes_of(pair)


def test_a_matching_set_is_an_option_for_each_of_its_alternatives() -> None:
    """``[a|b]``: all nodes have the first feature, or all have the second; three are the fewest that tell."""
    three = {"max_nodes": 3, "tasks": 3, "tres_req_str": "cpu=3,mem=3G,node=3", "tres_per_node": "gres:gpu:1"}
    found = read(WAITS | three | {"partition": "gpu,vis", "features": "[l40s|ib]"})
    assert [option.id for option in found.jobs[0].options] == [
        *("nodes3:gpu:l40s", "nodes3:gpu:ib", "nodes3:vis:l40s", "nodes3:vis:ib"),
    ]
    plan = planned(found)
    assert [part.node for part in plan.placements[0].assignments] == ["gpu01", "gpu02", "gpu03"]


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
    plan = planned(found)
    assert len(plan.placements) - len(found.running) == started


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
TASKS = {"tasks": 4, "tres_req_str": "cpu=4,mem=1G", "memory_per_node": None, "memory_per_cpu": 10}
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
    plan = planned(found)
    placed = next(one for one in plan.placements if one.job == "2")
    assert sorted(len(part.gpus) for part in placed.assignments) == [1, 3]
    assert len({part.node for part in placed.assignments}) == 2
    alone = read(head | {"features": "ib", "excluded_nodes": "gpu[02-03]"}, tail | {"required_nodes": ""}, state="down")
    assert not planned(alone).placements, "the first component has no node"
    named = read(head, tail | {"required_nodes": "gpu03"})
    (placed,) = planned(named).placements
    assert {len(part.gpus): part.node for part in placed.assignments}[1] == "gpu03"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"job_state": "RUNNING", "nodes": "gpu02", "tres_alloc_str": "cpu=1,mem=1G,node=1"}, NOT_ALL),
        ({"state_reason": "Dependency"}, "waiting for Dependency: 2 (2, 3)."),
        (TASKS, "a heterogeneous job that has several workers on a node: 2 (2, 3)."),
        ({"shared": "user", "user_name": "ada"}, "a component alone keeps other jobs off its nodes: 2 (2, 3)."),
        ({"contiguous": True}, "states contiguous, which is not read: 2 (2, 3)."),
        ({"tres_req_str": "cpu=x"}, "cannot be read: tres_req_str: 2 (2, 3)."),
    ],
)
def test_heterogeneous_jobs_that_are_left_out(other: dict[str, Any], reason: str) -> None:
    """As a whole, by what one component asks for."""
    found = read(HEAD, TAIL | other, WAITS | {"job_id": 9})
    assert [line.removeprefix("a heterogeneous job of which ") for line in left_out(found)] == [reason]
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


KINDS: dict[str, tuple[dict[str, Any], Callable[[set[str], dict[str, dict[str, Any]]], bool]]] = {
    "components": ({}, lambda some, nodes: True),
    "exclusive": (
        {"shared": "none"},
        lambda some, nodes: (
            "n0" not in some and len({str(nodes[n]["gres"]) + str(nodes[n]["cpus"]) for n in some}) == 1
        ),
    ),
    "set": ({"features": "[b|c]"}, lambda some, nodes: any(having(nodes, f) >= some for f in "bc")),
    "named": ({"required_nodes": "n[1-1]"}, lambda some, nodes: "n1" in some),
    "counted": ({"features": "b*1"}, lambda some, nodes: bool(having(nodes, "b") & some)),
    "of two kinds": (
        {"features": "[(a|b)*1&c*1]"},
        lambda some, nodes: any(
            one in having(nodes, "a") | having(nodes, "b") and some - {one} <= having(nodes, "c")
            for one in some
            if len(some) > 1
        ),
    ),
    "beside a set": (
        {"features": "a&[b|c]"},
        lambda some, nodes: any(having(nodes, "a") & having(nodes, f) >= some for f in "bc"),
    ),
    "preferred": (
        {"features": "a", "prefer": "b|c"},
        lambda some, nodes: some <= having(nodes, "a") or some <= having(nodes, "b") | having(nodes, "c"),
    ),
    "partitions": ({"partition": "p,q"}, lambda some, nodes: any(having(nodes, p, "partitions") >= some for p in "pq")),
    "reservations": (
        {"resv_name": "r,s"},
        lambda some, nodes: any(having(nodes, r, "reservation") >= some for r in "rs"),
    ),
    "sizes": (
        {"sockets_per_node": 2, "minimum_tmp_disk_per_node": 50},
        lambda some, nodes: all(nodes[n]["sockets"] >= 2 and nodes[n]["temporary_disk"] >= 50 for n in some),
    ),
    "cores": ({"threads_per_core": 1}, lambda some, nodes: True),
}
"""Fields of a job, and whether it may be on some nodes."""


def having(nodes: dict[str, dict[str, Any]], word: str, field: str = "active_features") -> set[str]:
    return {name for name, node in nodes.items() if word in node[field]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(12))
def test_a_job_starts_where_some_sets_of_nodes_are_lawful(kind: str, seed: int) -> None:
    """On nodes of unlike sizes and features, one of which is partly used."""
    rng = Random(seed)
    sizes = {
        f"n{n}": (rng.choice([1, 2, 4]), rng.choice([4, 8]), rng.sample("abc", rng.randint(0, 3))) for n in range(4)
    }
    nodes = {
        name: {"name": name, "cpus": cpus, "real_memory": 9, "gres": f"gpu:x:{gpus}", "state": "idle"}
        | {"active_features": some, "sockets": rng.choice([1, 2]), "temporary_disk": rng.choice([10, 50, 100])}
        | {"partitions": rng.choice(["p", "pq", "q"]), "reservation": rng.choice("rst"), "threads": 2, "cores": 2}
        for name, (gpus, cpus, some) in sizes.items()
    }
    for node in nodes.values():
        node["partitions"] = [*node["partitions"]] if kind == "partitions" else ["p"]
        node["reservation"] = node["reservation"] if kind == "reservations" else ""
    runs = RUNS | {
        "job_id": 9,
        "nodes": "n0",
        "gres_detail": ["gpu:x:1(IDX:0)"],
        "tres_alloc_str": "cpu=1,mem=1M,node=1",
    }
    asked = [wish(rng, number) for number in range(1, rng.randint(3, 4) if kind == "components" else 2)]
    jobs, wishes = [job for job, _ in asked], [one for _, one in asked]
    fields, allowed = KINDS[kind]
    each = 2 if kind == "cores" else 1  # CPUs of a core

    def lawful(wanted: Asked, free: set[str]) -> list[set[str]]:
        count, gpus, cpus, features = wanted
        fit = [
            name
            for name in sorted(free)
            if sizes[name][0] - (name == "n0") >= gpus and sizes[name][1] - (name == "n0") >= each * cpus
            if set(features.replace("&", "")) <= set(sizes[name][2]) or "features" in fields
        ]
        return [some for some in map(set, combinations(fit, count)) if allowed(some, nodes)]

    def together(rest: list[Asked], free: set[str]) -> bool:
        return not rest or any(together(rest[1:], free - some) for some in lawful(rest[0], free))

    for offset, job in enumerate(jobs):
        parts = {"het_job_id": 1, "het_job_offset": offset, "het_job_id_set": f"1-{len(jobs)}"}
        job |= {**fields, **(parts if kind == "components" else {})}
    starts = together(wishes, set(sizes))
    found = read_slurm({"nodes": [*nodes.values()]}, {"jobs": [runs, *jobs]})
    plan = planned(found)
    assert {one.job for one in plan.placements} == ({"1", "9"} if starts else {"9"})


@pytest.mark.parametrize("word", ["user", "mcs"])
@pytest.mark.parametrize("seed", seeds(12))
def test_jobs_that_keep_others_off_their_nodes(word: str, seed: int) -> None:
    """As many start as in the best of all assignments: of one worker each, on nodes of which some are partly used."""
    rng = Random(seed)
    nodes = [
        {"name": f"n{n}", "cpus": 8, "real_memory": 99, "gres": "gpu:x:3", "state": "idle", "partitions": ["p"]}
        for n in range(3)
    ]
    running, jobs = rng.randint(0, 2), []
    for number in range(1, running + rng.randint(2, 4)):
        there = {"job_state": "RUNNING", "nodes": f"n{number - 1}", "gres_detail": ["gpu:x:1"]}
        there |= {"tres_alloc_str": "cpu=1,mem=1M,node=1"} if number <= running else {}
        job = WAITS | {"job_id": number, "partition": "p", "max_nodes": 1, "tres_per_node": "gres:gpu:1"}
        job |= {"user_name": rng.choice("xyz"), "mcs_label": rng.choice("xyz"), "memory_per_node": 1}
        alone = rng.random() < 0.4
        job |= {"exclusive": [word] if alone else [], **(there if number <= running else {})}
        jobs.append(job | ({} if word == "mcs" and alone else {"mcs_label": ""}))

    def apart(one: dict[str, Any], other: dict[str, Any]) -> bool:
        """Whether two jobs may not share a node: by users, or by labels that only jobs with ``--exclusive`` have."""
        field = "user_name" if word == "user" else "mcs_label"
        return bool(one["exclusive"] or other["exclusive"]) and one[field] != other[field]

    held = {number: number for number in range(running)}
    most = 0
    for places in product(*([held[number]] if number in held else [None, 0, 1, 2] for number in range(len(jobs)))):
        pairs = [
            (a, b) for a, b in combinations(range(len(jobs)), 2) if places[a] is not None and places[a] == places[b]
        ]
        full = any(places.count(n) > 3 for n in range(3))
        if not full and not any(apart(jobs[a], jobs[b]) for a, b in pairs):
            most = max(most, sum(place is not None for place in places))
    found = read_slurm({"nodes": nodes}, {"jobs": jobs})
    plan = planned(found)
    assert (left_out(found), len(plan.placements)) == ([], most)


@pytest.mark.parametrize(("who", "starts"), [("ada", True), ("bob", False)])
def test_a_node_of_a_user_takes_no_other(who: str, starts: bool) -> None:
    """As partitions with ``ExclusiveUser`` do; where no listed job of the user is there, the node is drained."""
    owned = {"owner": "ada", "required_nodes": "gpu01"}
    waits = WAITS | {"user_name": who, "required_nodes": "gpu01", "max_nodes": 1}
    found = read(RUNS | {"user_name": "ada"}, waits, owner=owned["owner"])
    assert len(planned(found).placements) == 1 + starts
    hidden = read(waits, owner="ada", alloc_cpus=0)
    assert "Drained, a user owns it whose jobs are not listed: 1 (gpu01)." in notes_of(hidden)
