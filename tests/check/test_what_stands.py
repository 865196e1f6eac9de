"""
Limits that running jobs broke before the round: told apart from what the plan breaks, of whom, and when they do not.

The referee alone; `tests/whole/test_standing.py` has whole solves.
"""

from typing import Any

import pytest

from helpers.plans import plan_for, with_assignment
from helpers.referee_messages import facts_of, faults, findings
from placeopt.build import instance, job, machine, node, option, running
from placeopt.check import Violation, judge, violations
from placeopt.model import Changes, Domain, Gpu, Instance, Job, Plan, Policy, Queue, Quota, Split, Standing

Known = tuple[str, str | None, str | None]
MAY = {"movable": True, "shrinkable": True, "preemptible": True}
CHANGES = Changes(moves_max=9, shrinks_max=9, preemptions_max=9)


def brief(found: list[Violation]) -> list[Known]:
    return [(one.rule, one.job, one.node) for one in found]


def judged(round_: Instance, plan: Plan) -> tuple[list[Known], list[Known]]:
    """Return what the plan breaks, and what stands; ``violations`` says the first alone."""
    found = judge(round_, plan)
    assert found.violations == violations(round_, plan)
    return brief(found.violations), brief(found.standing)


def one(of: Job, where: Any, *others: Job, **fields: Any) -> Instance:
    """Job ``of`` runs there; ``others`` wait, on two nodes in racks."""
    nodes = fields.pop("nodes", (node("n0", domain="r0"), node("n1", domain="r1")))
    domains = (Domain(id="r0", uplink_mbps=100), Domain(id="r1"))
    policy = fields.pop("policy", Policy()).model_copy(update={"changes": CHANGES})
    return instance(nodes, [of, *others], running=[running(of, where, **MAY)], domains=domains, policy=policy, **fields)


Q = {"policy": Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=999)),))}
S = {"policy": Policy(queues=(Queue(id="q", dominant_share_percent=12),))}
SMALL = dict.fromkeys(("cpu_millicores", "memory_mib", "memory_bandwidth_mbps", "pcie_bandwidth_mbps"), 10)
PAIR, BOTH, HERE = (("n0", [0]), ("n1", [0])), (("n0", [0]), ("n0", [1])), (("n0", [0]),)


def M(**fields: Any) -> dict[str, Any]:  # noqa: N802
    """Return the argument of `one` for a machine type with these fields."""
    return {"machines": [machine(**fields)]}


LIMITS: dict[str, tuple[Job, Any, dict[str, Any], Known]] = {
    "utility": (job("a", utility_thousandths=4, utility_min_thousandths=5), HERE, {}, ("option", "a", None)),
    "node": (job("a"), (("gone", [0]),), {}, ("unknown_node", "a", "gone")),
    "gpu": (job("a"), (("n0", [4]),), {}, ("gpu_indexes", "a", "n0")),
    "gpus": (job("a", gpus=2), (("n0", [3, 4]),), {}, ("gpu_indexes", "a", "n0")),
    "model": (job("a", gpu_models=("T4",)), HERE, {}, ("gpu_model", "a", "n0")),
    "gpu memory": (job("a", gpu_memory_mib=16_385), HERE, {}, ("gpu_memory", "a", "n0")),
    "cpu": (job("a", cpu_millicores=32_001), HERE, {}, ("cpu", "a", "n0")),
    "memory": (job("a", memory_mib=262_145), HERE, {}, ("memory", "a", "n0")),
    "membw": (job("a", memory_bandwidth_mbps=8), HERE, M(memory_bandwidth_mbps=10), ("memory_bandwidth", "a", "n0")),
    "pcie": (job("a", pcie_bandwidth_mbps=11), HERE, M(pcie_bandwidth_mbps=10), ("pcie_bandwidth", "a", "n0")),
    "named": (job("a", resources={"lic": 2}), HERE, M(resources={"lic": 1}), ("resource", "a", "n0")),
    "rack": (job("a", workers=2, network_bandwidth_mbps=76), PAIR, {}, ("uplink", "a", None)),
    "one node": (job("a", workers=2, single_node=True), PAIR, {}, ("single_node", "a", None)),
    "per node": (job("a", workers=2, workers_per_node_max=1), BOTH, {}, ("workers_per_node", "a", "n0")),
    "split": (job("a", workers=2, splits=(Split(level="rack", domains=1),)), PAIR, {}, ("split", "a", None)),
    "quota": (job("a", queue="q"), HERE, Q, ("queue_quota", "a", None)),
    "share": (job("a", queue="q"), HERE, S, ("queue_share", "a", None)),
}
"""A job, where it runs, the cluster or policy, and what stands."""


class TestAlone:
    @pytest.mark.parametrize("name", LIMITS)
    def test_it_stands(self, name: str) -> None:
        """Also beside a job that starts and has no part in it, and in a plan for that job alone."""
        of, where, fields, known = LIMITS[name]
        round_ = one(of, where, job("b"), **fields)
        there = {"b": [("n1", [3])]}
        for plan in (plan_for(round_, {}), plan_for(round_, there), plan_for(round_, there, asked="b")):
            assert judged(round_, plan) == ([], [known])

    @pytest.mark.parametrize("name", LIMITS)
    def test_a_job_that_starts_like_this_breaks_the_limit(self, name: str) -> None:
        """The same job, waiting: nothing stands."""
        of, where, fields, known = LIMITS[name]
        runs = one(of, where, **fields)
        waits = runs.model_copy(update={"running": ()})
        assert judged(waits, plan_for(waits, {of.id: where})) == ([known], [])

    @pytest.mark.parametrize("name", LIMITS)
    def test_so_does_one_that_moves(self, name: str) -> None:
        """From the second node, or from GPU 2 on."""
        of, where, fields, known = LIMITS[name]
        elsewhere = [("n1" if len(where) == 1 else at, [gpu + 2 for gpu in gpus][: len(gpus)]) for at, gpus in where]
        elsewhere = [(at, [min(gpu, 3) - i for i, gpu in enumerate(gpus)]) for at, gpus in elsewhere]
        round_ = one(of, elsewhere, **fields)
        broken, stands = judged(round_, plan_for(round_, {of.id: where}, moved=[of.id]))
        shaped = name in ("one node", "per node", "split")  # a new shape is a fault of the plan, not of who holds what
        assert ((known[0], None, known[2]) if shaped else known) in broken
        assert {rule for rule, *_ in broken} - {known[0]} <= {"running"}  # of one node on two: it may not move at all
        assert stands == []


@pytest.mark.parametrize(("level", "expected"), [("node", []), ("rack", [("split", None, None)] * 2)])
def test_a_job_shrinks_on_a_node_that_is_gone(level: str, expected: list[Known]) -> None:
    """On one node it still is; its rack is not known, so its new shape is not allowed."""
    gang = job("a", workers=2, workers_min=1, splits=(Split(level=level, domains=1),))
    round_ = one(gang, [("gone", [0]), ("gone", [1])])
    broken, _ = judged(round_, plan_for(round_, {"a": [("gone", [0])]}, shrunk=["a"]))
    assert broken == expected


class TestTogether:
    """Limits that several jobs break together."""

    def round(self, *jobs: Job, on: int = 0, waits: tuple[Job, ...] = (), **fields: Any) -> Instance:
        """All of ``jobs`` run on GPU ``on`` of n0, or each on its own where ``on`` is -1."""
        runs = [running(a, [("n0", [i if on < 0 else on])], **MAY) for i, a in enumerate(jobs)]
        policy = fields.pop("policy", Policy()).model_copy(update={"changes": CHANGES})
        return instance(2, [*jobs, *waits], running=runs, policy=policy, **fields)

    @pytest.mark.parametrize(
        ("fields", "rule"), [({"share_mode": "exclusive"}, "gpu_exclusive"), ({"jobs_per_gpu_max": 1}, "gpu_jobs")]
    )
    def test_number_of_jobs(self, fields: dict[str, Any], rule: str) -> None:
        """Two quarters under a policy of one; a third that starts there breaks it, elsewhere it does not."""
        quarters = [job(name, gpu_milli=250) for name in "abc"]
        round_ = self.round(*quarters[:2], waits=(quarters[2],), policy=Policy(**fields))
        together = [(rule, None, "n0")]
        assert judged(round_, plan_for(round_, {})) == ([], together)
        assert judged(round_, plan_for(round_, {"c": [("n0", [1])]})) == ([], together)
        assert judged(round_, plan_for(round_, {"c": [("n0", [0])]})) == (together, [])

    @pytest.mark.parametrize(("milli", "stands"), [(500, True), (501, False)])
    def test_nothing_stands_beyond_the_whole_of_a_gpu(self, milli: int, stands: bool) -> None:
        """500 + 500 on an exclusive GPU stand, 500 + 501 contradict each other; so they do where shares bind."""
        halves = [job("a", gpu_milli=500), job("b", gpu_milli=milli)]
        exclusive = self.round(*halves, policy=Policy(share_mode="exclusive"))
        known = [("gpu_exclusive", None, "n0")]
        beyond = [] if stands else [("gpu_share", None, "n0")]
        assert judged(exclusive, plan_for(exclusive, {})) == (beyond, known)
        shared = self.round(*halves)
        assert judged(shared, plan_for(shared, {})) == (beyond, [])
        three = self.round(*halves, policy=Policy(share_mode="overcommit", jobs_per_gpu_max=1))
        assert judged(three, plan_for(three, {})) == ([], [("gpu_jobs", None, "n0")])

    def test_memory_is_of_those_that_need_some(self) -> None:
        """9,000 each of 16,384 stand; a job without a need may join and is not named, one with a need not."""
        jobs = [job(name, gpu_milli=100, gpu_memory_mib=9_000) for name in "abc"]
        free = job("free", gpu_milli=100)
        round_ = self.round(*jobs[:2], waits=(jobs[2], free))
        known = [("gpu_memory", None, "n0")]
        assert judged(round_, plan_for(round_, {"free": [("n0", [0])]})) == ([], known)
        assert judged(round_, plan_for(round_, {"c": [("n0", [0])]})) == (known, [])
        (found,) = judge(round_, plan_for(round_, {"free": [("n0", [0])]})).standing
        assert facts_of(found)[2] == ["18000", "16384", "'a'", "'b'"]

    @pytest.mark.parametrize("resource", SMALL)
    def test_resources_of_a_node_are_of_those_that_take_some(self, resource: str) -> None:
        """6 + 6 of 10; a job that takes none joins and is not named; one that takes 1 may not."""
        rule = resource.removesuffix("_millicores").removesuffix("_mib").removesuffix("_mbps")
        kind = machine(**{resource: 10})
        policy = Policy.model_validate({"usable": {"memory_bandwidth_percent": 100}})
        takes = [job(name, **{resource: 6}) for name in "ab"]
        others = (job("little", **{resource: 1}), job("none", **{name: 1 for name in SMALL if name != resource}))
        round_ = self.round(*takes, on=-1, waits=others, machines=[kind], policy=policy)
        known = [(rule, None, "n0")]
        beside = plan_for(round_, {"none": [("n0", [2])]})
        assert judged(round_, beside) == ([], known)
        assert facts_of(judge(round_, beside).standing[0])[2][-2:] == ["'a'", "'b'"]
        assert judged(round_, plan_for(round_, {"little": [("n0", [2])]})) == (known, [])
        assert judged(round_, plan_for(round_, {"little": [("n1", [2])]})) == ([], known)

    def test_uplinks_are_of_those_that_load_them(self) -> None:
        """A gang beyond the uplink of its node and rack stands; a second one across is too much, on a node not."""
        gangs = [job(name, workers=2, network_bandwidth_mbps=76) for name in "ab"]
        round_ = one(gangs[0], PAIR, gangs[1], machines=[machine(network_bandwidth_mbps=100)])
        known = [("uplink", "a", "n0"), ("uplink", "a", None), ("uplink", "a", "n1")]
        assert judged(round_, plan_for(round_, {"b": [("n0", [1]), ("n0", [2])]})) == ([], known)
        both = [("uplink", None, "n0"), ("uplink", None, None), ("uplink", None, "n1")]
        assert judged(round_, plan_for(round_, {"b": [("n0", [1]), ("n1", [1])]})) == (both, [])

    @pytest.mark.parametrize(
        ("limit", "rule", "mine", "none"),
        [
            ({"quota": Quota(gpu_milli=1500)}, "queue_quota", {"gpus": 1}, {"gpus": 0, "cpu_millicores": 5}),
            ({"quota": Quota(cpu_millicores=15)}, "queue_quota", {"cpu_millicores": 1}, {"memory_mib": 5}),
            ({"quota": Quota(memory_mib=15)}, "queue_quota", {"memory_mib": 1}, {"cpu_millicores": 5}),
            ({"dominant_share_percent": 12, "borrow_percent": 12}, "queue_share", {"gpus": 1}, {"gpus": 0}),
        ],
    )
    def test_queues_are_of_those_that_hold_the_resource(
        self, limit: dict[str, Any], rule: str, mine: dict[str, int], none: dict[str, int]
    ) -> None:
        """Two jobs of the queue run beyond it; one that takes none of it starts, as does one of another queue."""
        runs = [job(name, queue="q", cpu_millicores=10, memory_mib=10) for name in "ab"]
        waits = (
            job("mine", **{"queue": "q", "gpus": 0, **mine}),
            job("none", **{"queue": "q", **none}),
            job("other", queue="r", cpu_millicores=1, memory_mib=1),
        )
        policy = Policy(queues=(Queue(id="q", **limit), Queue(id="r")))
        round_ = self.round(*runs, on=-1, waits=waits, policy=policy)
        known = [(rule, None, None)]
        gpus = {one.id: list(range(one.options[0].demand.gpus)) for one in waits}
        assert judged(round_, plan_for(round_, {})) == ([], known)
        for name in ("none", "other"):
            assert judged(round_, plan_for(round_, {name: [("n1", gpus[name])]})) == ([], known)
        assert judged(round_, plan_for(round_, {"mine": [("n1", gpus["mine"])]})) == (known, [])

    def test_a_job_that_states_nothing_on_one_of_its_nodes_holds_what_it_states(self) -> None:
        """A gang of 5 cores for each worker that states 0 on the second node adds to what stands all the same."""
        runs, gang = job("a", queue="q", cpu_millicores=10), job("g", queue="q", workers=2, cpu_millicores=5)
        policy = Policy(queues=(Queue(id="q", quota=Quota(cpu_millicores=9)),))
        round_ = self.round(runs, waits=(gang,), policy=policy)
        lie = with_assignment(plan_for(round_, {"g": [("n0", [1]), ("n1", [1])]}), "g", 1, cpu_millicores=0)
        assert judged(round_, lie) == ([("amounts", None, "n1"), ("queue_quota", None, None)], [])

    def test_a_job_that_starts_beside_one_that_stands_is_named_with_it(self) -> None:
        """``job`` is null where several break a limit together."""
        a, b = job("a", cpu_millicores=32_001), job("b", cpu_millicores=1)
        round_ = self.round(a, waits=(b,))
        assert judged(round_, plan_for(round_, {})) == ([], [("cpu", "a", "n0")])
        assert judged(round_, plan_for(round_, {"b": [("n0", [1])]})) == ([("cpu", None, "n0")], [])


class TestShrunk:
    """A job that shrinks keeps its place, so what it still breaks stands; but a new shape must be allowed."""

    def test_what_it_holds_stands(self) -> None:
        """Three workers of 17 cores on two nodes: n0 holds 34 of 32, with or without the third; moved it may not."""
        gang = job("a", workers=3, workers_min=1, cpu_millicores=17_000)
        round_ = one(gang, (("n0", [0]), ("n0", [1]), ("n1", [0])))
        known = [("cpu", "a", "n0")]
        fewer = [("n0", [0]), ("n0", [1])]
        assert judged(round_, plan_for(round_, {"a": fewer}, shrunk=["a"])) == ([], known)
        assert judged(round_, plan_for(round_, {"a": fewer}, moved=["a"])) == (known, [])
        assert judged(round_, plan_for(round_, {"a": [("n0", [0]), ("n1", [0])]}, shrunk=["a"])) == ([], [])

    @pytest.mark.parametrize(
        ("fields", "kept", "rule"),
        [
            ({"workers_per_node_max": 1}, "n0 n0", ("workers_per_node", None, "n0")),
            ({"splits": (Split(level="rack", domains=1),)}, "n0 n1", ("split", None, None)),
            (
                {"splits": (Split(level="rack", domains=1, workers=3),), "workers_min": 3},
                "n0 n1",
                ("split", None, None),
            ),
        ],
    )
    def test_its_shape_does_not(self, fields: dict[str, Any], kept: str, rule: Known) -> None:
        """Two on n0 and one on n1; kept are one of n0 and the one of n1, or both of n0."""
        gang = job("a", workers=3, **{"workers_min": 1, **fields})
        outside = (node("n0", domain="r0"), node("n1", domain=None if "workers_min" in fields else "r1"))
        round_ = one(gang, (("n0", [0]), ("n0", [1]), ("n1", [0])), nodes=outside)
        broken, stands = judged(round_, plan_for(round_, {}))
        assert (broken, {known for known, *_ in stands}) == ([], {rule[0]})
        fewer = [("n0", [0]), ("n0", [1]) if kept == "n0 n0" else ("n1", [0])]
        broken, stands = judged(round_, plan_for(round_, {"a": fewer}, shrunk=["a"]))
        assert rule in broken
        assert {other for other, *_ in broken} <= {rule[0], "workers", "shrunk"}
        assert stands == []


class TestFixed:
    """Jobs that run in a way which no plan may start stay as they are."""

    @pytest.mark.parametrize(
        ("placed", "fields"),
        [
            ({}, {"preempted": "a"}),
            ({"a": [("n0", [0])]}, {"shrunk": "a"}),
            ({"a": [("n0", [1]), ("n0", [2])]}, {"moved": "a"}),
        ],
    )
    def test_a_single_node_job_on_two_nodes(self, placed: dict[str, Any], fields: dict[str, Any]) -> None:
        """Stopped, moved or shrunk: refused; another job that runs is free to go, as is one that may lie so."""
        gang, other = job("a", workers=2, workers_min=1, single_node=True), job("b", single_node=True)
        runs = [running(gang, PAIR, **MAY), running(other, [("n0", [3])], **MAY)]
        round_ = instance(2, [gang, other], running=runs, policy=Policy(changes=CHANGES))
        assert faults(round_, placed, **fields) == [("running", "job 'a'", ["2"])]
        assert faults(round_, {}, preempted="b") == []
        free = round_.model_copy(update={"jobs": (job("a", workers=2, workers_min=1), other)})
        assert faults(free, placed, **fields) == []

    @pytest.mark.parametrize(
        ("policy", "fixed"),
        [
            ({"share_mode": "exclusive"}, True),
            ({"jobs_per_gpu_max": 1}, True),
            ({"jobs_per_gpu_max": 2}, False),
            ({"share_mode": "overcommit", "jobs_per_gpu_max": 1}, True),
            ({}, False),
        ],
    )
    def test_jobs_on_a_gpu_that_too_many_hold(self, policy: dict[str, Any], fixed: bool) -> None:
        """
        Two halves on GPU 2 of n1; a third job alone on its GPU may go, so may a job on the same GPU of n0.

        They are reported in order of their names.
        """
        jobs = [job(name, gpu_milli=500) for name in "bacd"]
        at = (("n1", [2]), ("n1", [2]), ("n1", [3]), ("n0", [2]))
        runs = [running(one, [where], **MAY) for one, where in zip(jobs, at, strict=True)]
        round_ = instance(2, jobs, running=runs, policy=Policy(changes=CHANGES, **policy))
        for names in ("a", "b", "ba", "c", "d"):
            told = [("running", f"job '{name}'", ["2", "'n1'"]) for name in sorted(names) if name in "ab"]
            assert faults(round_, {}, preempted=names) == (told if fixed else []), names

    def test_the_first_such_gpu_is_named_once(self) -> None:
        """A job of GPUs 0 to 2 whose GPUs 1 and 2 two others hold as well; moved with another it is still fixed."""
        wide, b, c = job("a", gpus=3), job("b"), job("c")
        runs = [running(wide, [("n0", [0, 1, 2])], **MAY), running(b, [("n0", [1])]), running(c, [("n0", [2])])]
        policy = Policy(share_mode="overcommit", jobs_per_gpu_max=1, changes=CHANGES)
        round_ = instance(2, [wide, b, c], running=runs, policy=policy)
        assert faults(round_, {"a": [("n1", [0, 1, 2])]}, moved="a") == [("running", "job 'a'", ["1", "'n0'"])]


class TestListed:
    """What the plan says of what stands is true; it need not say it."""

    def round(self) -> Instance:
        """Too many cores on n0 by ``a`` alone, too many jobs on GPU 1 of n1 by two."""
        jobs = [job("a", cpu_millicores=32_001), job("b", gpu_milli=100), job("c", gpu_milli=100), job("w")]
        at = (("n0", [0]), ("n1", [1]), ("n1", [1]))
        runs = [running(one, [where], **MAY) for one, where in zip(jobs, at, strict=False)]
        return instance(2, jobs, running=runs, policy=Policy(jobs_per_gpu_max=1, changes=CHANGES))

    def listed(self, *entries: Known, **fields: Any) -> list[tuple[str, str, list[str]]]:
        round_ = self.round()
        standing = tuple(Standing(job=name, rule=rule, node=at, detail="") for rule, name, at in entries)
        return findings(round_, plan_for(round_, {}, standing=standing, **fields))

    def test_true_entries(self) -> None:
        """In any order, some or all."""
        assert self.listed(("gpu_jobs", None, "n1"), ("cpu", "a", "n0")) == []
        assert self.listed(("cpu", "a", "n0")) == self.listed() == []

    @pytest.mark.parametrize(
        "entry",
        [("cpu", "b", "n0"), ("cpu", None, "n0"), ("memory", "a", "n0"), ("cpu", "a", "n1"), ("cpu", "a", None)],
    )
    def test_false_entries(self, entry: Known) -> None:
        """Another job, rule or node; told by their places in the list."""
        found = self.listed(("cpu", "a", "n0"), entry, ("gpu_jobs", None, "n1"))
        assert found == [("standing", "standing[1]", [f"'{entry[0]}'"])]

    def test_what_was_ended_does_not_stand(self) -> None:
        assert self.listed(("cpu", "a", "n0"), preempted=["a"]) == [("standing", "standing[0]", ["'cpu'"])]

    def test_a_copy_with_other_entries_is_judged(self) -> None:
        """With ``since``, a list of what stands that differs is read."""
        round_ = self.round()
        good = plan_for(round_, {})
        false = good.model_copy(update={"standing": (Standing(job="b", rule="cpu", node="n0", detail=""),)})
        assert [v.rule for v in violations(round_, false, since=good)] == ["standing"]


def test_options_of_which_only_one_stands() -> None:
    """The option that runs counts: another of the job that is below the minimum is none of it."""
    shapes = (option("low", utility_thousandths=1), option("fine", utility_thousandths=9))
    a = job("a", options=shapes, utility_min_thousandths=5)
    gpu = machine(gpus=[Gpu(model="V100")])
    for name, stands in (("low", [("option", "a", None)]), ("fine", [])):
        round_ = instance(1, [a], machines=[gpu], running=[running(a, HERE, option=name)])
        assert judged(round_, plan_for(round_, {})) == ([], stands)
