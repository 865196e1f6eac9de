"""The ledger judges a plan for some jobs as the whole referee does, whatever happened to the cluster before."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.plans import plan_for
from helpers.referee_messages import facts_of
from placeopt.build import instance, job, machine, node, running
from placeopt.check import Ledger, violations
from placeopt.model import Changes, Domain, Instance, Placement, Plan, Policy, Queue, Quota, Running, Taint
from strategies import Choice, make_plan, make_round, strategy


def as_running(held: Placement, **fields: Any) -> Running:
    return Running(job=held.job, option=held.option, assignments=held.assignments, **fields)


def broken(found: list[Any]) -> list[tuple[str, str]]:
    return sorted((violation.rule, violation.where) for violation in found)


Case = tuple[Instance, tuple[Placement, ...], Policy]
"""A round of which about half of a lawful plan runs, the rest of that plan, and the policy without postponing."""


def make_halves(choice: Choice) -> Case:
    """Draw a round, a lawful plan, and which half of it runs."""
    round_ = make_round(choice, running=False, minima=False)
    plan = make_plan(choice, round_)
    runs = tuple(as_running(held) for held in plan.placements if choice.chance(0.5))
    names = {one.job for one in runs}
    rest = tuple(held for held in plan.placements if held.job not in names)
    return round_.model_copy(update={"running": runs}), rest, round_.policy


def squeezed(choice: Choice, round_: Instance, rest: tuple[Placement, ...]) -> tuple[Placement, ...]:
    """Put some assignments on other nodes, so that places, GPUs, nodes, uplinks and queues are overfull."""
    out = []
    for held in rest:
        first, *others = held.assignments
        free = {node.id for node in round_.cluster.nodes} - {other.node for other in others}
        if choice.chance(0.5) and free:
            first = first.model_copy(update={"node": choice.pick(sorted(free))})
        out.append(held.model_copy(update={"assignments": (first, *others)}))
    return tuple(out)


def broken_rules(ledger: Ledger, round_: Instance, plan: Plan) -> list[tuple[str, str]]:
    """Return the rules and places of the ledger, which must be those of the referee."""
    mine = broken(ledger.violations(round_, plan))
    assert mine == broken(violations(round_, plan))
    return mine


@given(case=strategy(make_halves)(), data=st.data())
def test_random_plans_for_some_jobs_right_and_wrong(case: Case, data: st.DataObject) -> None:
    """From a whole snapshot, and grown by ``start`` after jobs that ran elsewhere for a while or stopped again."""
    round_, rest, policy = case
    asked = tuple(held.job for held in rest)
    grown = Ledger(round_.model_copy(update={"running": ()}), policy)
    for held in rest:
        grown.start(as_running(held))
    for one in round_.running:
        if len(one.assignments) == 1:
            elsewhere = data.draw(st.sampled_from(round_.cluster.nodes)).id
            first = one.assignments[0].model_copy(update={"node": elsewhere})
            grown.start(one.model_copy(update={"assignments": (first,)}))
        grown.start(one)
    for held in rest:
        assert grown.stop(held.job) == as_running(held)
    moved = [data.draw(strategy(squeezed)(round_, rest)) for _ in range(6)]
    wanted = [(rest, asked), *((placements, asked) for placements in moved), (rest[1:], asked[:-1])]
    plans = [
        plan_for(round_, {held.job: held for held in placements}, asked=jobs, policy=policy)
        for placements, jobs in wanted
    ]
    for ledger in (Ledger(round_, policy), grown):
        for plan in plans:
            broken_rules(ledger, round_, plan)


class TestHand:
    """Two racks, an uplink of 1000 MB/s each, a queue of 3 GPUs and a share of 50 %."""

    domains = (Domain(id="r0", uplink_mbps=1000), Domain(id="r1", uplink_mbps=1000))
    policy = Policy(
        queues=(Queue(id="q", quota=Quota(gpu_milli=3000)), Queue(id="s", dominant_share_percent=50)), changes=Changes()
    )

    def round(self, *runs: str, **fields: Any) -> Instance:
        """Gangs ``a``, ``b`` across and ``c`` on n1, 375 MB/s, queue ``q``; ``x``, ``y`` of queue ``s``."""
        gangs = [job(n, workers=2, gpu_milli=500, network_bandwidth_mbps=375, queue="q") for n in "abc"]
        cpus = [job(n, workers=2, gpus=0, network_bandwidth_mbps=125, cpu_millicores=9) for n in "uvw"]
        singles = [job(n, gpus=2, queue="s") for n in "xy"]
        jobs = [*gangs, *cpus, *singles]
        nodes = [node("n0", domain="r0"), node("n1", domain="r1")]
        where: Any = {n: [("n0", [i % 2]), ("n1", [i % 2])] for i, n in enumerate("ab")}
        where["c"] = [("n1", [0]), ("n1", [1])]
        where |= {n: [("n0", []), ("n1", [])] for n in "uvw"}
        where |= {"x": [("n0", [2, 3])], "y": [("n1", [2, 3])]}
        return instance(
            nodes,
            jobs,
            domains=self.domains,
            running=[running(one, where[one.id]) for one in jobs if one.id in runs],
            policy=self.policy,
            **fields,
        )

    def judged(self, ledger: Ledger, round_: Instance, **placed: Any) -> list[tuple[str, str]]:
        """Judge the plan for these jobs, which the referee judges alike."""
        return broken_rules(ledger, round_, plan_for(round_, placed, asked=placed, policy=self.policy))

    def test_uplinks_are_sums_of_all_that_runs(self) -> None:
        """375 + 375 of GPU jobs fill 75 %; a third gang is too much. CPU jobs have 25 %: 125 + 125."""
        full = self.round("a", "b", "u", "v")
        ledger = Ledger(full, self.policy)
        across = [("n0", [3]), ("n1", [3])]
        both = [("uplink", "domain 'r0' uplink"), ("uplink", "domain 'r1' uplink")]
        assert self.judged(ledger, full, c=across) == both
        assert self.judged(ledger, full, w=[("n0", []), ("n1", [])]) == both
        assert self.judged(ledger, full, c=[("n0", [2]), ("n0", [3])]) == []
        found = ledger.violations(full, plan_for(full, {"c": across}, asked="c", policy=self.policy))
        assert facts_of(found[0]) == ("uplink", "domain 'r0' uplink", ["1125", "75", "1000", "'c'", "'a'", "'b'"])
        less = self.round("a", "u")
        assert self.judged(Ledger(less, self.policy), less, c=across) == []

    def test_queues_are_sums_of_all_that_runs(self) -> None:
        """1000 each: the quota of 3000 takes three gangs; the share of 8 GPUs takes two jobs of 2."""
        round_ = self.round("a", "b", "c", "x", "y")
        little = (job("d", gpu_milli=1, queue="q"), job("z", gpu_milli=1, queue="s"))
        round_ = round_.model_copy(update={"jobs": (*round_.jobs, *little)})
        ledger = Ledger(round_, self.policy)
        assert self.judged(ledger, round_, d=[("n0", [0])]) == [("queue_quota", "queue 'q'")]
        assert self.judged(ledger, round_, z=[("n0", [0])]) == [("queue_share", "queue 's'")]
        assert ledger.stop("a").job == "a"
        fewer = round_.model_copy(update={"running": round_.running[1:]})
        assert self.judged(ledger, fewer, d=[("n0", [0])]) == []

    def test_on_node(self) -> None:
        """In the order in which they came; a job that starts elsewhere leaves."""
        round_ = self.round("a", "x")
        ledger = Ledger(round_, self.policy)
        assert (ledger.on_node("n0"), ledger.on_node("n1"), ledger.on_node("n9")) == (("a", "x"), ("a",), ())
        moved = running(round_.jobs[0], [("n1", [0]), ("n1", [1])])
        ledger.start(moved)
        assert (ledger.on_node("n0"), ledger.on_node("n1")) == (("x",), ("a",))
        assert ledger.directory.running["a"] is moved
        assert ledger.stop("x") == round_.running[1]
        assert ledger.on_node("n0") == ()
        assert list(ledger.directory.running) == ["a"]

    def test_a_node_that_comes_and_goes(self) -> None:
        """It adds to the cluster's total, so to what a share is of: 50 % of 8 GPUs, of 12, and of 8 again."""
        round_ = self.round("x", "y")
        round_ = round_.model_copy(update={"jobs": (*round_.jobs, job("z", gpus=1, queue="s"))})
        ledger, third = Ledger(round_, self.policy), node("n2", domain="r1")
        share = [("queue_share", "queue 's'")]
        assert self.judged(ledger, round_, z=[("n0", [0])]) == share
        ledger.put_node(third)
        assert self.judged(ledger, self.with_nodes(round_, *round_.cluster.nodes, third), z=[("n2", [0])]) == []
        ledger.remove_node("n2")
        assert self.judged(ledger, round_, z=[("n0", [0])]) == share
        assert self.judged(ledger, round_, z=[("n2", [0])]) == [*share, ("unknown_node", "job 'z' on node 'n2'")]

    def test_the_total_is_counted_anew_with_every_change(self) -> None:
        """
        A share of 10 % of the nodes there are: 4 + 2 GPUs are 600 milli, 4 + 4 are 800, 4 are 400.

        Replaced by a smaller machine and back, taken away, and put back: 1 milli more is too much each time.
        """
        kinds = (machine(), machine("half", 2))
        policy = Policy(queues=(Queue(id="s", dominant_share_percent=10),))
        sizes = (400, 401, 600, 601, 800, 801)
        jobs = [job(f"j{milli}", gpu_milli=milli, queue="s") for milli in sizes]
        n0, n1, half = node("n0"), node("n1"), node("n1", "half")
        round_ = instance([n0, n1], jobs, machines=kinds, policy=policy)
        ledger = Ledger(round_, policy)
        self.policy = policy
        for step, nodes, most in (
            (None, (n0, n1), 800),
            (half, (n0, half), 600),
            (half, (n0, half), 600),
            (n1, (n0, n1), 800),
            ("n1", (n0,), 400),
            (half, (n0, half), 600),
            ("n1", (n0,), 400),
            (n1, (n0, n1), 800),
        ):
            if isinstance(step, str):
                ledger.remove_node(step)
            elif step is not None:
                ledger.put_node(step)
            now = self.with_nodes(round_, *nodes)
            found = [m for m in sizes if self.judged(ledger, now, **{f"j{m}": [("n0", [0])]})]
            assert found == [m for m in sizes if m > most]

    @staticmethod
    def with_nodes(round_: Instance, *nodes: Any) -> Instance:
        return round_.model_copy(update={"cluster": round_.cluster.model_copy(update={"nodes": nodes})})

    def test_a_node_that_is_replaced(self) -> None:
        """Drained, tainted, of another domain, of another machine; what runs there stays, and loads the new uplink."""
        machines = (machine(), machine("half", 2))
        round_ = self.round("a", "b")
        round_ = round_.model_copy(update={"cluster": round_.cluster.model_copy(update={"machines": machines})})
        ledger = Ledger(round_, self.policy)
        n0, n1 = round_.cluster.nodes
        here, across = {"x": [("n0", [2, 3])]}, {"c": [("n0", [2]), ("n1", [2])]}
        r0, r1 = ("uplink", "domain 'r0' uplink"), ("uplink", "domain 'r1' uplink")
        for update, placed, expected in (
            ({"drained": True}, here, [("drained", "job 'x' on node 'n0'")]),
            ({"taints": (Taint(key="t"),)}, here, [("taints", "job 'x' on node 'n0'")]),
            ({"drained": False}, here, []),
            ({"machine": "half"}, here, [("gpu_indexes", "job 'x' on node 'n0'")]),
            ({"machine": "m"}, here, []),
            ({"domain": "r1"}, across, []),
            ({"domain": None}, across, [r1]),
            ({"domain": "r0"}, across, [r0, r1]),
        ):
            new = n0.model_copy(update=update)
            ledger.put_node(new)
            assert self.judged(ledger, self.with_nodes(round_, new, n1), **placed) == expected
        assert ledger.on_node("n0") == ("a", "b")

    def test_a_plan_that_touches_a_marked_node_among_others(self) -> None:
        """Marks come and go with nodes: after each the cluster has as many as it has."""
        round_ = self.round()
        ledger = Ledger(round_, self.policy)
        n0, n1 = round_.cluster.nodes
        marked, place = n1.model_copy(update={"drained": True}), {"x": [("n1", [0, 1])]}
        for new, expected in ((marked, ["drained"]), (n1, []), (marked, ["drained"])):
            ledger.put_node(new)
            found = self.judged(ledger, self.with_nodes(round_, n0, new), **place)
            assert [rule for rule, _ in found] == expected
        ledger.remove_node("n1")
        ledger.put_node(n1)
        assert self.judged(ledger, round_, **place) == []


class TestExactly:
    """Totals to the last unit, whatever was asked of the ledger before: quotas are just full, then one too little."""

    use = {"gpus": 1, "cpu_millicores": 7, "memory_mib": 9}  # noqa: RUF012

    def round(self, **quota: int) -> tuple[Instance, Plan]:
        """Jobs ``a`` and ``b`` run, ``c`` starts: three times as much as each takes."""
        policy = Policy(queues=(Queue(id="q", quota=Quota(**quota)),))
        jobs = [job(name, queue="q", **self.use) for name in "abc"]
        runs = [running(one, [(f"n{i}", [0])]) for i, one in enumerate(jobs[:2])]
        round_ = instance(2, jobs, running=runs, policy=policy)
        return round_, plan_for(round_, {"c": [("n0", [1])]}, asked="c")

    TOUCHED: dict[str, Callable[[Ledger, Instance], object]] = {  # noqa: RUF012
        "nothing": lambda ledger, round_: None,
        "started again": lambda ledger, round_: ledger.start(round_.running[0]),
        "stopped and started": lambda ledger, round_: ledger.start(ledger.stop("a")),
        "elsewhere for a while": lambda ledger, round_: (
            ledger.start(running(round_.jobs[0], [("n1", [3])])),
            ledger.start(round_.running[0]),
        ),
        "asked what stands": lambda ledger, round_: [
            ledger.standing(nodes, plan_for(round_, {})) for nodes in (["n0"], ["n0", "n1"])
        ],
        "its node replaced": lambda ledger, round_: [
            ledger.put_node(new) for new in (node("n0", labels={"x": "1"}), node("n0"))
        ],
        "asked for a plan": lambda ledger, round_: broken_rules(
            ledger, round_, plan_for(round_, {"c": [("n1", [1])]}, asked="c")
        ),
    }
    """Something done to a ledger that leaves it as it was."""

    @pytest.mark.parametrize(("field", "full"), [("gpu_milli", 3000), ("cpu_millicores", 21), ("memory_mib", 27)])
    @pytest.mark.parametrize("how", TOUCHED)
    def test_just_full_and_one_too_little(self, field: str, full: int, how: str) -> None:
        for quota, expected in ((full, []), (full - 1, [("queue_quota", "queue 'q'")])):
            round_, plan = self.round(**{field: quota})
            ledger = Ledger(round_, round_.policy)
            self.TOUCHED[how](ledger, round_)
            assert broken_rules(ledger, round_, plan) == expected

    def test_a_node_that_is_gone_and_held(self) -> None:
        """A plan that names it is wrong, and nothing more is said of it."""
        gone = job("r", workers=2)
        round_ = instance(1, [gone, job("a")], running=[running(gone, [("n0", [0]), ("gone", [0])])])
        plan = plan_for(round_, {"a": [("gone", [1])]}, asked="a")
        assert broken_rules(Ledger(round_, round_.policy), round_, plan) == [("unknown_node", "job 'a' on node 'gone'")]


class TestStanding:
    """What runs on some nodes is judged by itself; beyond a limit it stands, beyond the whole of a GPU it cannot."""

    def ledger(self, **fields: Any) -> tuple[Ledger, Instance]:
        """Gangs of two workers of 600 milli, ``a`` on GPU 0 of n0 and n1, ``b`` on GPU 0 of n1 and n2, one on n3."""
        policy = Policy(share_mode="overcommit", jobs_per_gpu_max=2, queues=(Queue(id="q", quota=Quota(gpu_milli=1)),))
        half = {"gpu_milli": 600, "cpu_millicores": 20_000, "network_bandwidth_mbps": 10, "queue": "q"}
        jobs = [job("a", workers=2, **half), job("b", workers=2, **half), job("c", **half), job("new", **half)]
        where = ([("n0", [0]), ("n1", [0])], [("n1", [0]), ("n2", [0])], [("n3", [0])])
        runs = [running(one, at) for one, at in zip(jobs, where, strict=False)]
        nodes = [node(f"n{i}", domain="r") for i in range(4)]
        domains = [Domain(id="r", uplink_mbps=1)]
        round_ = instance(nodes, jobs, running=runs, domains=domains, policy=policy)
        return Ledger(round_, policy), round_

    @pytest.mark.parametrize(
        ("nodes", "found"),
        [
            (["n1"], ["node 'n1' gpu 0"]),
            (["n0"], ["node 'n1' gpu 0"]),  # its job is on n1 as well
            (["n2", "n3"], ["node 'n1' gpu 0"]),
            (["n0", "n1", "n2", "n3"], ["node 'n1' gpu 0"]),
            (["n3"], []),
            ([], []),
        ],
    )
    def test_more_than_the_whole_of_a_gpu(self, nodes: list[str], found: list[str]) -> None:
        """1200 where shares bind; quota, cores and uplink are broken too, and stand. Asking changes nothing."""
        ledger, round_ = self.ledger()
        binding = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=1)),))
        told, bound = [("gpu_share", where) for where in found], Ledger(round_, binding)
        for _ in range(2):
            assert broken(bound.standing(nodes, plan_for(instance(1), {}, policy=binding))) == told
        assert ledger.standing(nodes, plan_for(instance(1), {}, policy=round_.policy)) == []
        plan = plan_for(round_, {"new": [("n0", [0])]}, asked=["new"])
        assert [rule for rule, _ in broken_rules(ledger, round_, plan)] == ["cpu", "queue_quota"]
        assert sorted(ledger.on_node("n1")) == ["a", "b"]
