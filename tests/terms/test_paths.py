"""
How far a job's GPUs are apart, and how near they could be, by hand.

With the whole weight on communication, a job's utility is best path / actual path, in thousandths, rounded down.
"""

from typing import Any

import pytest

from helpers.utilities import TRAFFIC, utility_of, utility_policy
from placeopt.build import instance, job, machine, node
from placeopt.model import Communication, Domain, Edge, Gpu, Instance, Link, Machine, Part

POLICY = utility_policy(communication=1000)
PARTS = (
    Part(id="s0", level="socket"),
    Part(id="w0", level="switch", parent="s0"),
    Part(id="w1", level="switch", parent="s0"),
    Part(id="s1", level="socket"),
    Part(id="m", level="numa", parent="s1"),
)


def gpu(part: str | None = None, model: str = "V100", memory_mib: int = 16_384, **fields: Any) -> Gpu:
    return Gpu(model=model, memory_mib=memory_mib, part=part, **fields)


def tree(**fields: Any) -> Machine:
    """
    Two GPUs on switch w0, one on w1, all of socket s0; one in a NUMA domain of s1; one on the machine itself.

    Path up to the machine: 1 + 10 + 20 = 31, and 1 from the last one.
    """
    return machine(**{"gpus": [gpu("w0"), gpu("w0"), gpu("w1"), gpu("m"), gpu()], "parts": PARTS, **fields})


def pair(**fields: Any) -> Instance:
    """A job of two GPUs that talk, and one node of the machine with these fields."""
    return instance(1, [job("a", gpus=2, communication=TRAFFIC)], machines=[tree(**fields)], policy=POLICY)


@pytest.mark.parametrize(
    ("gpus", "path"), [((0, 1), 2), ((0, 2), 22), ((0, 3), 62), ((0, 4), 32), ((3, 4), 32), ((2, 1), 22)]
)
def test_a_path_climbs_to_the_closest_part_that_both_share(gpus: tuple[int, int], path: int) -> None:
    """GPU 1, switch and NUMA domain 10, socket 20 (SC'17, fig. 7); the nearest two are 2 apart."""
    assert utility_of(pair(), {"a": [("n0", gpus)]}) == 2000 // path


@pytest.mark.parametrize(("socket", "path"), [(7, 30), (0, 16)])
def test_stated_weights_replace_the_defaults(socket: int, path: int) -> None:
    """3 + 5 + 7 on each side, and 3 + 5 + 0: a weight of 0 is a weight."""
    parts = tuple(
        part.model_copy(update={"uplink_weight": 5 if part.level == "switch" else socket})
        for part in (*PARTS[:4], Part(id="w2", level="switch", parent="s1"))
    )
    gpus = [gpu(name, uplink_weight=3) for name in ("w0", "w0", "w1", "w2")]
    round_ = pair(parts=parts, gpus=gpus)
    assert utility_of(round_, {"a": [("n0", [0, 3])]}) == 6000 // path


@pytest.mark.parametrize(
    ("gpus", "path"),
    [((0, 1), 2), ((0, 3), 4), ((1, 3), 6), ((2, 3), 26), ((3, 4), 1), ((0, 4), 5), ((1, 4), 7), ((0, 2), 22)],
)
def test_links_shorten_paths_also_by_way_of_other_gpus(gpus: tuple[int, int], path: int) -> None:
    """0-3 of weight 4 and 3-4 of weight 1; a link of weight 100 beside a path of 2 changes nothing. Best: 1."""
    links = (Link(gpus=(0, 3), weight=4), Link(gpus=(4, 3), weight=1), Link(gpus=(0, 1), weight=100))
    assert utility_of(pair(links=links), {"a": [("n0", gpus)]}) == 1000 // path


def test_a_stated_matrix_is_the_distance() -> None:
    """3 at best, 8 here; the tree, which says 2 and 22, does not count."""
    matrix = [[0 if a == b else 8 for b in range(5)] for a in range(5)]
    matrix[3][4] = matrix[4][3] = 3
    round_ = pair(gpu_distance_matrix=tuple(map(tuple, matrix)))
    assert utility_of(round_, {"a": [("n0", [0, 1])]}) == 375
    assert utility_of(round_, {"a": [("n0", [3, 4])]}) == 1000


class TestAcross:
    """Nodes of one GPU: two racks in a zone, one rack outside, one node in no rack."""

    domains = (Domain(id="z", level="zone"), Domain(id="r0", parent="z"), Domain(id="r1", parent="z"), Domain(id="r2"))
    nodes = tuple(node(f"n{i}", domain=rack) for i, rack in enumerate(("r0", "r0", "r1", "r2", None)))

    def utility(self, where: tuple[int, int], **fields: Any) -> int:
        one = machine(gpus=1, uplink_weight=fields.pop("uplink_weight", None))
        a = job("a", workers=2, communication=TRAFFIC)
        round_ = instance(self.nodes, [a], machines=[one], domains=fields.pop("domains", self.domains), policy=POLICY)
        return utility_of(round_, {"a": [(f"n{i}", [0]) for i in where]})

    @pytest.mark.parametrize(
        ("where", "path"), [((0, 1), 202), ((0, 2), 602), ((1, 3), 1002), ((4, 0), 802), ((3, 4), 402)]
    )
    def test_a_domain_weighs_200_for_each_level_below_it(self, where: tuple[int, int], path: int) -> None:
        """GPU 1, machine 100, rack 200, zone 400; racks without a zone hang on the network."""
        assert self.utility(where) == 202_000 // path

    @pytest.mark.parametrize(
        ("where", "path"), [((0, 1), 20), ((0, 2), 20), ((1, 3), 427), ((4, 0), 227), ((3, 4), 220)]
    )
    def test_stated_uplinks(self, where: tuple[int, int], path: int) -> None:
        """Machine 9, racks of the zone 0, the zone 207: 10 + 0 + 207 against 10 + 200 and 10."""
        domains = (
            Domain(id="z", level="zone", uplink_weight=207),
            Domain(id="r0", parent="z", uplink_weight=0),
            Domain(id="r1", parent="z", uplink_weight=0),
            Domain(id="r2"),
        )
        assert self.utility(where, domains=domains, uplink_weight=9) == 20_000 // path

    def test_a_machine_uplink_of_0_is_stated(self) -> None:
        """2 in a rack, 402 across racks."""
        assert self.utility((0, 2), uplink_weight=0) == 2000 // 402


def flat(*paths: int) -> Machine:
    """Three or four GPUs with these distances: 01, 02, 12, and 03, 13, 23."""
    far = dict(zip(((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)), paths, strict=False))
    gpus = range(3 if len(paths) == 3 else 4)
    rows = tuple(tuple(0 if a == b else far[min(a, b), max(a, b)] for b in gpus) for a in gpus)
    return machine(gpus=len(gpus), gpu_distance_matrix=rows)


def of_300(*pair: int) -> dict[str, Any]:
    """300 GPUs, each pair 9 apart but one that is 1."""
    rows = [[0 if a == b else 1 if {a, b} == set(pair) else 9 for b in range(300)] for a in range(300)]
    return {"gpus": 2, "nodes": 1, "machines": [machine(gpus=300, gpu_distance_matrix=tuple(map(tuple, rows)))]}


MODELS = {"machines": [tree(gpus=[gpu("w0"), gpu("w0", "A100", 20_000), gpu("w1"), gpu("m", "A100", 20_000)])]}
FLAT, PAIRS = {"machines": [machine()]}, {"machines": [machine(gpus=2)], "nodes": 4}
RACKS = (Domain(id="r0"), Domain(id="r1"))
APART = {
    "workers": 2, "workers_per_node_max": 1, "domains": RACKS, **FLAT,
    "nodes": [node("n0", domain="r0"), node("n1", domain="r0"), node("n2", domain="r1")],
}  # fmt: skip
HERE = [node("n0", "near", domain="r0"), node("n1", "far", domain="r1"), node("n2", "far", domain="r1")]
KINDS = {"workers": 2, "domains": RACKS, "machines": [machine("near", 1), machine("far", 1, uplink_weight=300)]}
CPUS = {"nodes": [node("n0"), node("n1", "cpu"), node("n2", "cpu")], "machines": [tree(), machine("cpu", 0)]}
FAR, NEAR = machine("far", [gpu("w0"), gpu("w1")], parts=PARTS), machine("near", 2)
GROWN, TIES = [flat(1, 5, 1, 2, 2, 9)], [flat(2, 2, 9, 2, 9, 1)]
UNEVEN = {"workers": 2, "workers_per_node_max": 1, "machines": [machine(gpus=[gpu("s0"), gpu()], parts=PARTS[:1])]}
ROUND = ("machines", "nodes", "domains")
BEST: dict[str, tuple[str, dict[str, Any], int, int]] = {
    # only GPUs that the job may hold count: of the model asked for, one stands on each socket, so 62 is the best
    "by model": ("n0:1,3", {"gpus": 2, "gpu_models": ("A100", "H100"), **MODELS}, 1, 1),
    "by memory": ("n0:1,3", {"gpus": 2, "gpu_memory_mib": 20_000, **MODELS}, 1, 1),
    "by memory, at the edge": ("n0:1,3", {"gpus": 2, "gpu_memory_mib": 16_385, **MODELS}, 1, 1),
    "memory that all have": ("n0:1,3", {"gpus": 2, "gpu_memory_mib": 16_384, **MODELS}, 2, 62),
    # workers are dealt out as near as nodes are: at most 2 on a node, 2 + 2 x 202 for three; on three nodes 3 x 202
    "two and one": ("n0:0 n0:1 n1:0", {"workers": 3, "workers_per_node_max": 2, **FLAT}, 1, 1),
    "one each": ("n0:0 n1:0 n2:0", {"workers": 3, "workers_per_node_max": 2, **FLAT}, 406, 606),
    # three workers of two GPUs on machines of four, each pair 2 apart, 202 across nodes: two workers on a node (6 x 2)
    # and one on another (2), 4 x 2 pairs across: 14 + 8 x 202 = 1630; on three nodes 3 x 2 + 12 x 202 = 2430
    "workers of several GPUs": ("n0:0,1 n1:0,1 n2:0,1", {"workers": 3, "gpus": 2, **FLAT}, 1630, 2430),
    # four GPUs on machines of two: 2 + 2 + 4 x 202; on four nodes 6 x 202
    "too large for a node": ("n0:0 n1:0 n2:0 n3:0", {"workers": 4, **PAIRS}, 812, 1212),
    # anti-affinity: the best is the nearest two nodes, not two GPUs of one
    "one per node, in a rack": ("n0:0 n1:3", APART, 1, 1),
    "one per node, across racks": ("n0:0 n2:3", APART, 202, 602),
    # uplinks 100, 300 and 300: 101 + 301 where each kind stands in the rack, 2 x 301 where the first is elsewhere; the
    # nodes here are one of the first and one of the second kind, in different racks: 101 + 200 + 301 + 200
    "two of the far kind in a rack": ("n0:0 n1:0", {**KINDS, "nodes": HERE}, 602, 802),
    "both kinds in a rack": ("n0:0 n1:0", {**KINDS, "nodes": [*HERE, node("n3", "far", domain="r0")]}, 402, 802),
    "two of the near kind": ("n0:0 n1:0", {**KINDS, "nodes": [*HERE, node("n3", "near", domain="r0")]}, 202, 802),
    "two of the near kind elsewhere": (
        "n0:0 n1:0", {**KINDS, "nodes": [*HERE, *(node(f"n{i}", "near", domain="r1") for i in (3, 4))]}, 202, 802),
    "no other two nodes": ("n0:0 n1:0", {**KINDS, "nodes": HERE[:2]}, 1, 1),
    # one GPU hangs on the machine (1), one in a socket (1 + 20): the best across is 2 x 101
    "the nearest GPU of a node": ("n0:0 n1:0", UNEVEN, 202, 242),
    # one node has GPUs, so there is no way across, and the best is inside it
    "two workers, one node with GPUs": ("n0:0 n0:3", {"workers": 2, **CPUS}, 2, 62),
    "on a single node": ("n0:0 n0:3", {"workers": 2, "single_node": True, **CPUS}, 2, 62),
    "one worker, one node with GPUs": ("n0:0,3", {"gpus": 2, **CPUS}, 2, 62),
    # a pair 22 apart on this machine, 2 on another type; one that is only listed does not count
    "the best machine": (
        "n0:0,1", {"gpus": 2, "machines": [FAR, NEAR], "nodes": [node("n0", "far"), node("n1", "near")]}, 2, 22),
    "a machine that is only listed": (
        "n0:0,1", {"gpus": 2, "machines": [FAR, NEAR], "nodes": [node("n0", "far"), node("n1", "far")]}, 1, 1),
    "the best machine for two workers": (
        "n0:0 n0:1",
        {"workers": 2, "single_node": True, "machines": [FAR, NEAR], "nodes": [node("n1", "near"), node("n0", "far")]},
        2, 22),
    # a job grows from its best GPU: 01: 1, 12: 1, 02: 5, 03: 2, 13: 2, 23: 9; grown from 2: 1 + (5 + 1) = 7; from 0:
    # 1 + (2 + 2) = 5; four GPUs have one path, 20
    "grown from 0": ("n0:0,1,3", {"gpus": 3, "machines": GROWN}, 1, 1),
    "grown from 2": ("n0:0,1,2", {"gpus": 3, "machines": GROWN}, 5, 7),
    "grown from 3": ("n0:1,2,3", {"gpus": 3, "machines": GROWN}, 5, 12),
    "all of them": ("n0:0,1,2,3", {"gpus": 4, "machines": GROWN}, 1, 1),
    # of equally near GPUs the first is taken: 01: 2, 02: 2, 03: 2, 12: 9, 13: 9, 23: 1; from 0 by way of 1 it is
    # 2 + (2 + 9) = 13, by way of 2 it would be 2 + (1 + 2) = 5, but nearest first from 2 is 3 (1), then 0 (2 + 2): 5
    # as well; without GPU 3 there are 01: 2, 02: 2, 12: 9 only: 13
    "of equals the first": ("n0:0,1,2", {"gpus": 3, "machines": TIES}, 5, 13),
    "without the last GPU": ("n0:0,1,2", {"gpus": 3, "machines": [flat(2, 2, 9)]}, 1, 1),
    # of more than 256 GPUs evenly spaced ones are starts: (16,777,216 // 90,000) = 186, i x 300 // 186: 0, 1, 3, 4, 6,
    # ...; 2 and 5 are none, so the pair of them is found from neither: the best is 9
    "a pair that is no start": ("n0:10,11", of_300(2, 5), 9, 9),
    "a pair with a start": ("n0:10,11", of_300(2, 4), 1, 9),
    "a pair with the first": ("n0:10,11", of_300(0, 299), 1, 9),
    # edges are traffic too: with neither weight nor edges a job is as well off anywhere, with an edge all pairs count
    "no traffic": ("n0:0 n0:3", {"workers": 2, "communication": Communication()}, 1, 1),
    "an edge": (
        "n0:0 n0:3", {"workers": 2, "communication": Communication(edges=(Edge(ranks=(0, 1), weight=3),))}, 2, 62),
    "one GPU has no path": ("n0:3", {}, 1, 1),
}  # fmt: skip
"""Node and GPUs of each worker; fields of the job and of the round; the best path, and the one there."""


@pytest.mark.parametrize("name", BEST)
def test_the_path_with_which_the_actual_one_is_compared(name: str) -> None:
    where, fields, best, path = BEST[name]
    of_round = {"machines": [tree()], "nodes": 3, **{key: fields[key] for key in ROUND if key in fields}}
    a = job("a", **{"communication": TRAFFIC, **{key: fields[key] for key in fields if key not in ROUND}})
    workers = [worker.split(":") for worker in where.split()]
    placed = [(at, [int(one) for one in gpus.split(",")]) for at, gpus in workers]
    assert utility_of(instance(jobs=[a], policy=POLICY, **of_round), {"a": placed}) == 1000 * best // path
