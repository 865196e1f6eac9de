"""Slurm: what `placeopt import slurm` says about situations from public reports."""

import random
from itertools import accumulate, combinations
from pathlib import Path

import pytest

from helpers.imported_rounds import notes_of
from helpers.night import seeds
from helpers.solved import planned
from placeopt import Instance, solve, violations
from placeopt.build import cluster, instance, job, machine, node
from placeopt.importers import read_slurm
from placeopt.importers.topo import read_topo
from placeopt.model import BlockSize, Demand, Group
from placeopt.whatif import Limits, fit, parse_job

DATA = Path(__file__).resolve().parents[1] / "data" / "reports" / "slurm"
TOPO = DATA.parent / "topo"


def reading(name: str, topology: str | None = None, preemption: str | None = None) -> Instance:
    return read_slurm(
        DATA / f"{name}.nodes.json",
        DATA / f"{name}.jobs.json",
        None if topology is None else DATA / topology,
        preemption=[] if preemption is None else [DATA / preemption],
    )


def test_memory_of_the_system_is_not_given() -> None:
    """Of 512,000 MiB MemSpecLimit keeps 32,000: 500,000 are never free."""
    found = reading("memspec")
    assert found.cluster.machines[0].memory_mib == 480_000
    assert planned(found).placements == ()


def test_a_job_is_not_preempted_before_its_time() -> None:
    """PreemptExemptTime of an hour; the job started a minute ago."""
    assert [held.preemptible for held in reading("preempt", preemption="preempt.conf").running] == [False]


def test_a_list_of_sizes_is_no_range() -> None:
    """``-N 2,4,8`` on three free nodes: two."""
    found = reading("sizes")
    assert [option.workers for option in found.jobs[0].options] == [2, 4, 8]
    (placement,) = planned(found).placements
    assert len(placement.assignments) == 2


def test_a_job_does_not_cross_blocks() -> None:
    """Two and one nodes are free in blocks of four: three nodes wait, whoever asks."""
    found = reading("block_strict", topology="block_strict.conf")
    plan = planned(found)
    assert {one.job for one in plan.unplaced} == {"20"}
    assert plan.status == "optimal"
    answer = fit(found, parse_job("3x8", found), Limits(time_limit_s=5))
    assert (answer.found, answer.most) == (0, 0)
    assert fit(found, parse_job("2x8", found), Limits(time_limit_s=5)).found == 1


NODES = {"cpus": 8, "real_memory": 8000, "gres": "gpu:a100:1", "state": "idle", "partitions": ["gpu"]}
WAITS = {"job_state": "PENDING", "partition": "gpu", "state_reason": "Priority", "priority": 5}


def is_lawful(nodes: set[int], sizes: list[int], held: list[int]) -> bool:
    """Slurm's topology/block, by its text: the first size that holds them, in as few blocks of the size below."""
    starts = [0, *accumulate(held)]
    for place, size in enumerate([*sizes, 0]):
        if size and size < len(nodes):
            continue
        of_size = size // sizes[0] if size else len(held)
        blocks = [set(range(starts[b], starts[min(b + of_size, len(held))])) for b in range(0, len(held), of_size)]
        if not place:
            return any(nodes <= block for block in blocks)
        part = sizes[place - 1] // sizes[0]
        parts = [set(range(starts[b], starts[min(b + part, len(held))])) for b in range(0, len(held), part)]
        touched = sum(bool(nodes & one) for one in parts)
        return any(nodes <= block for block in blocks) and touched <= -(-len(nodes) // sizes[place - 1])
    raise AssertionError


@pytest.mark.parametrize("seed", seeds(25))
def test_gangs_in_blocks_against_all_sets_of_nodes(seed: int, tmp_path: Path) -> None:
    """Up to five blocks of two nodes, some drained: a gang starts exactly where some set of free nodes is lawful."""
    rng = random.Random(seed)
    held = [2] * rng.randint(2, 5)
    sizes = rng.choice([[2], [2, 4], [2, 8], [2, 4, 8]])
    count = sum(held)
    free = {n for n in range(count) if rng.random() < 0.7}
    text = "".join(f"BlockName=b{b} Nodes=n[{2 * b}-{2 * b + 1}]\n" for b in range(len(held)))
    (tmp_path / "topology.conf").write_text(text + f"BlockSizes={','.join(map(str, sizes))}\n")
    nodes = [{"name": f"n{n}", **NODES, "state": "idle" if n in free else "down"} for n in range(count)]
    for wanted in range(2, count + 1):
        job = {"job_id": 1, **WAITS, "tasks": wanted, "tres_per_node": "gres:gpu:1", "max_nodes": wanted}
        job["tres_req_str"] = f"cpu={wanted},mem=1M,node={wanted}"
        found = read_slurm({"nodes": nodes}, {"jobs": [job]}, tmp_path / "topology.conf")
        plan = planned(found)
        lawful = any(is_lawful(set(some), sizes, held) for some in combinations(sorted(free), wanted))
        assert bool(plan.placements) == lawful, (wanted, sizes, free)
        for placement in plan.placements:
            assert is_lawful({int(one.node[1:]) for one in placement.assignments}, sizes, held)


def test_a_segment_is_in_one_block() -> None:
    """``--segment=4``: two nodes are free in each of two blocks of four."""
    plan = planned(reading("segment", topology="blocks.conf"))
    assert ([one.job for one in plan.unplaced], plan.status) == (["2"], "optimal")


def in_segments(
    nodes: list[int], segment: int, block: int, *, spread: bool, used: frozenset[int] = frozenset()
) -> bool:
    """Try all ways to take segments off: each in one run of ``block`` nodes, with ``spread`` in a run of its own."""
    if not nodes:
        return True
    first, *rest = nodes
    run = first // block
    return not (spread and run in used) and any(
        in_segments([n for n in rest if n not in some], segment, block, spread=spread, used=used | {run})
        for some in combinations([n for n in rest if n // block == run], segment - 1)
    )


@pytest.mark.parametrize("seed", seeds(25))
def test_segments_against_all_sets_of_nodes(seed: int, tmp_path: Path) -> None:
    """Blocks of three nodes, two of which make one of six: a job starts exactly where some set of nodes is lawful."""
    rng = random.Random(seed)
    blocks = rng.randint(2, 3)
    free = [n for n in range(3 * blocks) if rng.random() < 0.75]
    text = "".join(f"BlockName=b{b} Nodes=n[{3 * b}-{3 * b + 2}]\n" for b in range(blocks)) + "BlockSizes=3,6\n"
    (tmp_path / "topology.conf").write_text(text)
    nodes = [{"name": f"n{n}", **NODES, "state": "idle" if n in free else "down"} for n in range(3 * blocks)]
    segment = rng.choice([1, 2, 3, 4])
    flags = [word for word in ("SPREAD_SEGMENTS", "CONSOLIDATE_SEGMENTS") if segment < 4 and rng.random() < 0.4]
    block = 3 if segment <= 3 else 6
    for wanted in range(segment, 3 * blocks + 1, segment):
        job = {"job_id": 1, **WAITS, "tasks": wanted, "tres_per_node": "gres:gpu:1", "max_nodes": wanted}
        job |= {"tres_req_str": f"cpu={wanted},mem=1M,node={wanted}", "segment_size": segment, "flags": flags}
        found = read_slurm({"nodes": nodes}, {"jobs": [job]}, tmp_path / "topology.conf")
        plan = planned(found)

        def is_lawful_here(some: list[int], wanted: int = wanted) -> bool:
            spread = "SPREAD_SEGMENTS" in flags
            whole = wanted // segment * 3 if spread else wanted
            together = next((size for size in (3, 6) if size >= whole), 3 * blocks)
            consolidated = "CONSOLIDATE_SEGMENTS" not in flags or len({n // together for n in some}) == 1
            return consolidated and in_segments(some, segment, block, spread=spread)

        lawful = any(is_lawful_here(list(some)) for some in combinations(free, wanted))
        assert bool(plan.placements) == lawful, (wanted, segment, flags, free)
        for placement in plan.placements:
            assert is_lawful_here(sorted(int(one.node[1:]) for one in placement.assignments))


@pytest.mark.parametrize(
    ("fields", "topology", "reason"),
    [
        ({"segment_size": 2}, None, "states segment_size, and no topology is given"),
        ({"segment_size": 2}, "SwitchName=s Nodes=n[0-5]", None),  # only blocks have segments
        ({"segment_size": 5}, "blocks", None),  # larger than the job
        ({"segment_size": 3}, "blocks", "asks for segments that do not divide its nodes"),
        ({"segment_size": 2, "max_nodes": 6}, "blocks", "states segment_size, and no fixed number"),
        ({"segment_size": 4, "flags": ["SPREAD_SEGMENTS"]}, "blocks", "asks for segments over several blocks"),
    ],
)
def test_segments_that_are_not_read(
    fields: dict[str, object], topology: str | None, reason: str | None, tmp_path: Path
) -> None:
    blocks = "BlockName=a Nodes=n[0-2]\nBlockName=b Nodes=n[3-5]\nBlockSizes=3,6"
    (tmp_path / "topology.conf").write_text(blocks if topology == "blocks" else topology or "")
    nodes = [{"name": f"n{n}", **NODES} for n in range(6)]
    job = {"job_id": 1, **WAITS, "tasks": 4, "tres_per_node": "gres:gpu:1", "max_nodes": 4, **fields}
    job["tres_req_str"] = "cpu=4,mem=1M,node=4"
    found = read_slurm({"nodes": nodes}, {"jobs": [job]}, tmp_path / "topology.conf" if topology else None)
    assert (len(found.jobs), reason is None or reason in notes_of(found)) == (reason is None, True)


FORMS = [
    ("multiparent.conf", {"s0": "s4", "s1": "s4", "s2": "s4", "s3": "s4", "s4": None}),
    ("topology.yaml", {"s1": "sw_root", "s2": "sw_root", "sw_root": None}),
]


@pytest.mark.parametrize(("name", "parents"), FORMS)
def test_forms_of_topology(name: str, parents: dict[str, str | None]) -> None:
    """The spines of a fat tree are one domain; topology.yaml states the same as topology.conf."""
    fabric = read_topo([TOPO / name])
    assert {domain.id: domain.parent for domain in fabric.domains} == parents
    assert len(fabric.node_domains) == 8


def test_a_gang_lies_under_one_of_several_roots(tmp_path: Path) -> None:
    """Two fabrics of unlike height, two nodes each: no gang of three. A node under no switch is drained."""
    text = "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\nSwitchName=c Switches=b\n"
    (tmp_path / "topology.conf").write_text(text)
    nodes = [{"name": f"n{n}", **NODES} for n in range(5)]
    for wanted, starts in ((2, True), (3, False)):
        job = {"job_id": 1, **WAITS, "tasks": wanted, "tres_per_node": "gres:gpu:1", "max_nodes": wanted}
        job["tres_req_str"] = f"cpu={wanted},mem=1M,node={wanted}"
        found = read_slurm({"nodes": nodes}, {"jobs": [job]}, tmp_path / "topology.conf")
        assert bool(planned(found).placements) == starts
        assert "Switches have several roots" in notes_of(found)
        assert [one.id for one in found.cluster.nodes if one.drained] == ["n4"]


@pytest.mark.parametrize(
    ("switches", "nodes", "starts"),
    [(0, 3, True), (1, 2, True), (1, 3, False), (3, 3, True), (2, 3, True), (2, 4, True)],
)
def test_a_gang_under_one_leaf_switch(tmp_path: Path, switches: int, nodes: int, starts: bool) -> None:
    """Two switches of two nodes under a third one."""
    text = "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\nSwitchName=c Switches=a,b\n"
    (tmp_path / "topology.conf").write_text(text)
    job = {"job_id": 1, **WAITS, "tasks": nodes, "tres_per_node": "gres:gpu:1", "max_nodes": nodes}
    job |= {"tres_req_str": f"cpu={nodes},mem=1M,node={nodes}", "required_switches": switches}
    listed = [{"name": f"n{n}", **NODES} for n in range(4)]
    found = read_slurm({"nodes": listed}, {"jobs": [job]}, tmp_path / "topology.conf")
    assert bool(planned(found).placements) == starts


@pytest.mark.parametrize(("free", "starts"), [((0, 1), True), ((0, 2), False), ((1, 3), False), ((1, 2, 3), True)])
@pytest.mark.parametrize("form", ["gang", "roles", "prefers"])
def test_all_forms_of_gangs_obey_blocks(form: str, free: tuple[int, ...], starts: bool) -> None:
    """Two blocks of two nodes, a gang of two: alike workers, two roles, and one that prefers a level."""
    asked = {
        "gang": job("j", workers=2, gpus=2),
        "roles": job(
            "j", demand=Demand(), groups=(Group(id="a", demand=Demand(gpus=2)), Group(id="b", demand=Demand(gpus=2)))
        ),
        "prefers": job("j", workers=2, gpus=2, prefer=("node",)),
    }[form]
    there = cluster([node(f"n{n}", drained=n not in free) for n in range(4)], machines=[machine(gpus=2)], racks=2)
    in_blocks = there.model_copy(update={"block_sizes": (BlockSize(level="rack", nodes=2),)})
    found, apart = (instance(one, [asked], name="blocks") for one in (in_blocks, there))
    plan, anywhere = (solve(one, time_limit_s=5, isolation="thread") for one in (found, apart))
    assert (len(plan.placements), len(anywhere.placements), plan.status) == (starts, 1, "optimal")
    same = anywhere.model_copy(update={"instance": plan.instance, "policy": plan.policy})
    first = sum(held.node in ("n0", "n1") for held in anywhere.placements[0].assignments)
    assert bool([one for one in violations(found, same) if one.rule == "split"]) == (first == 1)
