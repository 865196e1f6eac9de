"""Where a job may stand, and how its workers lie: what is told, of whom, and who is exempt."""

from typing import Any

import pytest

from helpers.plans import plan_for, with_assignment
from helpers.referee_messages import Finding, faults, findings, places, rules
from placeopt.build import instance, job, machine, node, option, placement, running
from placeopt.check import judge
from placeopt.model import (
    Changes,
    Domain,
    Gpu,
    Instance,
    LabelExpression,
    Policy,
    Split,
    Taint,
    Toleration,
    WorkerGpus,
)

DOMAINS = (Domain(id="z0", level="zone"), Domain(id="r0", parent="z0"), Domain(id="r1", parent="z0"), Domain(id="r2"))


def tainted(key: str) -> Taint:
    return Taint(key=key)


class TestWhere:
    """``drained``, ``taints``, ``nodes_allowed``, ``node_selector``, ``gpu_model``."""

    def test_all_that_a_node_has_against_a_job(self) -> None:
        """In this order; each taint by itself, but for those tolerated; each label by itself."""
        bad = node("n1", drained=True, taints=tuple(map(tainted, "xyz")), domain="r0", labels={"disk": "hdd"})
        a = job(
            "a",
            tolerations=(Toleration(key="y", operator="Exists"), Toleration(key="w")),
            nodes_allowed=("n0", "n2"),
            nodes_excluded=("n1",),
            node_affinity=((LabelExpression(key="disk", operator="NotIn", values=("hdd",)),), ()),
            node_selector={"disk": "ssd", "rack": "r0", "zone": "z9", "none": "1"},
        )
        round_ = instance([node("n0"), bad, node("n2")], [a], domains=DOMAINS)
        where = "job 'a' on node 'n1'"
        assert faults(round_, {"a": [("n1", [0])]}) == [
            ("drained", where, []),
            ("taints", where, ["'x:NoSchedule'"]),
            ("taints", where, ["'z:NoSchedule'"]),
            ("nodes_allowed", where, ["2"]),
            ("nodes_excluded", where, ["1"]),
            ("node_selector", where, ["'disk'", "'hdd'", "'ssd'"]),
            ("node_selector", where, ["'none'", "'1'"]),
            ("node_selector", where, ["'zone'", "'z0'", "'z9'"]),
            ("node_affinity", where, []),
        ]

    @pytest.mark.parametrize(
        ("selector", "fits"),
        [
            ({"zone": "z0", "rack": "r1"}, ("n1",)),
            ({"zone": "z0"}, ("n0", "n1")),
            ({"rack": "r2"}, ("n2",)),
            ({"disk": "ssd"}, ("n1", "n3")),
            ({"zone": "r0"}, ()),
        ],
    )
    def test_labels_of_the_node_and_of_the_domains_above_it(
        self, selector: dict[str, str], fits: tuple[str, ...]
    ) -> None:
        nodes = [node(f"n{i}", domain=f"r{i}", labels={"disk": "ssd"} if i == 1 else {}) for i in range(3)]
        nodes.append(node("n3", labels={"disk": "ssd"}))
        round_ = instance(nodes, [job("a", node_selector=selector)], domains=DOMAINS)
        assert tuple(n.id for n in nodes if not faults(round_, {"a": [(n.id, [0])]})) == fits

    def test_every_node_of_every_job_is_looked_at(self) -> None:
        """A job that may stand anywhere, an unknown node and a good one come before."""
        jobs = [
            job("free", tolerations=(Toleration(operator="Exists"),)),
            job("a", workers=3, nodes_allowed=("n0",)),
        ]
        round_ = instance([node("n0"), node("n1", taints=(tainted("t"),))], jobs)
        assert places(round_, {"free": [("n1", [1])], "a": [("n9", [0]), ("n0", [0]), ("n1", [0])]}) == [
            ("unknown_node", "job 'a' on node 'n9'"),
            ("taints", "job 'a' on node 'n1'"),
            ("nodes_allowed", "job 'a' on node 'n1'"),
        ]

    @pytest.mark.parametrize(
        ("mark", "rule"), [({"drained": True}, "drained"), ({"taints": (tainted("t"),)}, "taints")]
    )
    def test_a_mark_on_one_node_is_for_that_node(self, mark: dict[str, Any], rule: str) -> None:
        """A job without wishes, in a cluster where one node of three is marked."""
        round_ = instance([node("n0"), node("n1", **mark), node("n2")], [job("a"), job("b")])
        assert rules(round_, {"a": [("n0", [0])], "b": [("n2", [0])]}) == []
        assert rules(round_, {"b": [("n1", [0])]}) == [rule]

    def test_each_gpu_of_another_model_is_reported(self) -> None:
        """0 and 2 are right; 1 and 3 are not; 4 and 9 are not there."""
        gpus = [Gpu(model=model) for model in ("V100", "T4", "A100", "P4")]
        round_ = instance(1, [job("a", gpus=4, gpu_models=("V100", "A100"))], machines=[machine(gpus=gpus)])
        assert faults(round_, {"a": [("n0", [0, 1, 2, 3])]}) == [
            ("gpu_model", "job 'a' on node 'n0'", ["1", "'T4'", "'V100'", "'A100'"]),
            ("gpu_model", "job 'a' on node 'n0'", ["3", "'P4'", "'V100'", "'A100'"]),
        ]
        for gpu in (4, 9):
            assert rules(round_, {"a": [("n0", [gpu, 0, 2, 3])]}) == ["gpu_indexes", "gpu_model"]

    @pytest.mark.parametrize(("name", "expected"), [("x", ["gpu_model"]), ("y", []), ("z", [])])
    def test_the_models_of_the_option_taken_count(self, name: str, expected: list[str]) -> None:
        a = job("a", options=(option("x", gpu_models=("A100",)), option("y", gpu_models=("V100",)), option("z")))
        assert rules(instance(1, [a]), {"a": placement(a, [("n0", [0])], option=name)}) == expected


MARKS = {"drained", "taints", "nodes_allowed", "node_selector"}


class TestExempt:
    """What runs may stay, whole or shrunk, where it could not start; it may not move there."""

    home = (("n0", [0]), ("n0", [1]), ("n1", [0]))

    def round(self, **fields: Any) -> Instance:
        """Both nodes are closed to it."""
        nodes = [node("n0", drained=True, taints=(tainted("t"),)), node("n1", taints=(tainted("t"),))]
        a = job("a", workers=3, workers_min=1, nodes_allowed=(), node_selector={"disk": "ssd"}, **fields)
        policy = Policy(changes=Changes(moves_max=1, shrinks_max=1))
        runs = running(a, self.home, movable=True, shrinkable=True)
        return instance(nodes, [a, job("b")], running=[runs], policy=policy)

    @pytest.mark.parametrize(
        ("where", "fields", "expected"),
        [
            (home, {}, set()),
            (home[:2], {"shrunk": "a"}, set()),
            ([("n0", [0]), ("n0", [1]), ("n0", [2])], {"moved": "a"}, MARKS),
            (home[:2], {"moved": "a"}, MARKS),
            ([("n1", [0]), ("n1", [1]), ("n1", [2])], {"moved": "a"}, MARKS - {"drained"}),
        ],
    )
    def test_it_stays_and_shrinks_and_moves_nowhere(self, where: Any, fields: dict, expected: set[str]) -> None:
        assert set(rules(self.round(), {"a": where}, **fields)) == expected

    def test_others_do_not_start_there(self) -> None:
        assert rules(self.round(), {"b": [("n0", [3])]}) == ["drained", "taints"]

    def test_the_gpu_model_is_no_label(self) -> None:
        """What runs on the wrong model stands; unlike a label it is told, as something that stands."""
        a = job("a", gpu_models=("A100",))
        round_ = instance(1, [a], running=[running(a, [("n0", [0])])])
        found = judge(round_, plan_for(round_, {}))
        assert (found.violations, [one.rule for one in found.standing]) == ([], ["gpu_model"])


class TestShape:
    """``single_node``, ``workers_per_node``, ``split``."""

    nodes = tuple(node(f"n{i}", domain=domain) for i, domain in enumerate(("r0", "r0", "r1", "r1", "r2", None)))

    def judged(self, on: str, **fields: Any) -> list[Finding]:
        """Put a worker on node ``n<digit>`` for every digit."""
        round_ = instance(
            self.nodes, [job("a", workers=len(on), **fields)], domains=DOMAINS, machines=[machine(gpus=8)]
        )
        return faults(round_, {"a": [(f"n{name}", [i]) for i, name in enumerate(on)]})

    @pytest.mark.parametrize(("on", "nodes"), [("000", 1), ("001", 2), ("012", 3)])
    def test_single_node(self, on: str, nodes: int) -> None:
        expected = [("single_node", "job 'a'", [str(nodes)])] if nodes > 1 else []
        assert self.judged(on, single_node=True) == expected
        assert self.judged(on) == []

    @pytest.mark.parametrize(("most", "full"), [(1, ["n0", "n2"]), (2, ["n2"]), (3, []), (None, [])])
    def test_workers_per_node(self, most: int | None, full: list[str]) -> None:
        """Two on n0, one on n1, three on n2; each node above the limit is told."""
        count = {"n0": "2", "n2": "3"}
        expected = [("workers_per_node", f"job 'a' on node '{n}'", [count[n], str(most)]) for n in full]
        assert self.judged("001222", workers_per_node_max=most) == expected

    def test_every_job_is_looked_at(self) -> None:
        a, b = job("a", workers=2, single_node=True), job("b", workers=2, workers_per_node_max=1)
        placed = {"free": [("n0", [0]), ("n1", [0])], "a": [("n0", [1]), ("n1", [1])], "b": [("n0", [2]), ("n0", [3])]}
        assert faults(instance(2, [job("free", workers=2), a, b]), placed) == [
            ("single_node", "job 'a'", ["2"]),
            ("workers_per_node", "job 'b' on node 'n0'", ["2", "1"]),
        ]

    @pytest.mark.parametrize(
        ("on", "split", "expected"),
        [
            ("0123", Split(level="rack", domains=2, workers=2), []),
            ("0022", Split(level="rack", domains=2, workers=2), []),
            ("0012", Split(level="rack", domains=2, workers=2), [["3", "'r0'", "2"], ["1", "'r1'", "2"]]),
            ("0124", Split(level="rack", domains=3), []),
            ("0123", Split(level="rack", domains=3), [["2", "'rack'", "3"]]),
            ("0123", Split(level="rack", domains=1), [["2", "'rack'", "1"]]),
            ("0123", Split(level="zone", domains=1, workers=4), []),
            ("0123", Split(level="node", domains=4, workers=1), []),
            ("0001", Split(level="node", domains=4, workers=1), [["2", "'node'", "4"], ["3", "'n0'", "1"]]),
            # n5 is in no rack, n4 in no zone; the worker there counts in none
            ("005", Split(level="rack", domains=1), [["'n5'"]]),
            ("04", Split(level="zone", domains=1, workers=2), [["'n4'"], ["1", "'z0'", "2"]]),
        ],
    )  # fmt: skip
    def test_splits(self, on: str, split: Split, expected: list[list[str]]) -> None:
        """Number of domains first, then workers in each."""
        assert self.judged(on, splits=(split,)) == [("split", "job 'a'", numbers) for numbers in expected]

    def test_every_split_is_judged(self) -> None:
        splits = (Split(level="zone", domains=1), Split(level="rack", domains=1), Split(level="node", domains=1))
        two = [("split", "job 'a'", ["2", f"'{level}'", "1"]) for level in ("rack", "node")]
        assert self.judged("02", splits=splits) == two

    def test_an_unknown_node_lies_in_no_rack(self) -> None:
        """Its worker counts in no domain, the others do; but a node it is."""
        unknown, two = ("unknown_node", "job 'a' on node 'n9'", []), ("split", "job 'a'", ["2", "'rack'", "1"])
        found = self.judged("092", splits=(Split(level="rack", domains=1),))
        assert found == [unknown, ("split", "job 'a'", ["'n9'"]), two]
        assert self.judged("099", splits=(Split(level="node", domains=2),)) == [unknown]


def test_missing_gpus_of_an_unchecked_record_are_only_reported() -> None:
    """By every rule that looks at GPUs; a plan like this cannot be read from a file, but be made."""
    a = job("a", gpus=2, gpu_models=("V100",), gpu_memory_mib=100)
    round_ = instance(1, [a], machines=[machine(gpus=[Gpu(model="V100", memory_mib=100)] * 4)])
    plan = plan_for(round_, {"a": [("n0", [0, 1])]})
    lost = (WorkerGpus.model_construct(rank=0, gpus=(4, 1)),)
    odd = with_assignment(plan, gpus={"4": 1000, "1": 1000}, workers=lost)
    assert findings(round_, odd) == [("gpu_indexes", "job 'a' on node 'n0'", ["4", "4"])]
