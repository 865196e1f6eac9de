"""Queues that lend a part of their quota, and quotas by flavor of nodes: known answers, and brute force."""

from itertools import product
from typing import Any

import pytest

from helpers.night import seeds
from helpers.plans import NO_COSTS, plan_for
from helpers.queues import placed
from helpers.solved import compare_methods
from placeopt import BadInput, solve
from placeopt.build import instance, job, machine, node, running
from placeopt.check import Ledger, violations
from placeopt.documents import loads
from placeopt.explain import explain
from placeopt.model import Changes, Flavor, FlavorAllowance, Instance, Policy, Queue, Quota
from placeopt.whatif import compare, parse_variants
from strategies.choice import Choice, seeded

FLAVORS = (Flavor(id="fast", gpu_models=("H100",)), Flavor(id="zone-b", node_selector={"zone": "b"}))


def gpus(count: int | None) -> Quota:
    """Return that many GPUs; None: nothing is stated."""
    return Quota() if count is None else Quota(gpu_milli=1000 * count)


def queue(name: str, quota: int | None = None, borrow: int | None = None, lend: int | None = None, **of: Any) -> Queue:
    """Return a queue, amounts in GPUs; ``flavors`` as flavor -> quota."""
    flavors = tuple(FlavorAllowance(flavor=flavor, quota=gpus(most)) for flavor, most in of.pop("flavors", {}).items())
    return Queue(id=name, quota=gpus(quota), borrow=gpus(borrow), lend=gpus(lend), flavors=flavors, **of)


def round_of(queues: tuple[Queue, ...], changes: Changes | None = None, **count: int) -> Instance:
    """So many jobs of one GPU in each queue; four H100 on node n0, four V100 on n1 in zone b."""
    machines = [machine("fast", 4, model="H100"), machine("slow", 4, model="V100")]
    nodes = [node("n0", "fast"), node("n1", "slow", labels={"zone": "b"})]
    jobs = [job(f"{name}{i}", queue=name) for name, n in count.items() for i in range(n)]
    policy = Policy(queues=queues, flavors=FLAVORS, changes=changes or Changes(), weights=NO_COSTS)
    return instance(nodes, jobs, machines=machines, policy=policy)


class TestLend:
    """A cohort of 8 GPUs of two queues, each of quota 4 that may borrow 4; b lends 1."""

    COHORT = (queue("top", 8), queue("a", 4, 4, parent="top"), queue("b", 4, 4, 1, parent="top"))

    def test_others_take_what_is_lent(self) -> None:
        assert placed(round_of(self.COHORT, a=8)) == {"a": 5}
        assert placed(round_of(self.COHORT, a=8, b=2)) == {"a": 5, "b": 2}
        assert placed(round_of(self.COHORT, b=8)) == {"b": 8}
        assert sum(placed(round_of(self.COHORT, a=8, b=8)).values()) == 8

    def test_what_is_kept_counts_in_all_queues_above(self) -> None:
        """Kueue: the cohort inside has 2 lendable GPUs of a's 4, of which it lends 1."""
        tree = (queue("top", 7), queue("in", 4, 0, 1, parent="top"), queue("a", 4, 0, 2, parent="in"))
        tree = (*tree, queue("c", 0, 7, parent="in"), queue("d", 3, 4, parent="top"))
        assert placed(round_of(tree, d=8)) == {"d": 4}
        assert placed(round_of(tree, c=8)) == {"c": 2}

    def test_referee_ledger_and_explanation(self) -> None:
        round_ = round_of(self.COHORT, a=7)
        where: Any = {f"a{i}": [(f"n{i // 4}", [i % 4])] for i in range(6)}
        (broken,) = violations(round_, plan_for(round_, where))
        assert (broken.rule, broken.where) == ("queue_quota", "queue 'top'")
        assert "6000 of 8000 gpu_milli" in broken.message
        assert "3000 kept by queues below it" in broken.message
        runs = tuple(running(one, where[one.id]) for one in round_.jobs[:5])
        ledger = Ledger(round_.model_copy(update={"running": runs}), round_.policy)
        some = plan_for(round_, {"a5": where["a5"]}, asked=["a5"])
        assert [one.rule for one in ledger.violations(round_, some)] == ["queue_quota"]
        plan = solve(round_, time_limit_s=20, isolation="thread")
        told = explain(round_, plan, plan.unplaced[0].job)
        assert "queue" in {one.group for one in told.conflict}

    def test_what_would_have_to_leave_for_a_job(self) -> None:
        """One of a, although those of b are worth less: b keeps what they would give back."""
        round_ = round_of(self.COHORT)
        worth = {"a": 5, "b": 1}
        jobs = tuple(
            job(f"{name}{i}", queue=name, value=worth[name]) for name, n in (("a", 6), ("b", 2)) for i in range(n)
        )
        full = round_.model_copy(update={"jobs": jobs})
        plan = solve(full, time_limit_s=20, isolation="thread")
        outvoted = explain(full, plan, plan.unplaced[0].job).outvoted_by
        assert outvoted is not None
        assert [rival.job[0] for rival in outvoted.jobs] == ["a"]
        assert outvoted.proven


class TestFlavors:
    """Quotas of the nodes of a GPU model or with a label."""

    def test_each_has_its_own_quota(self) -> None:
        assert placed(round_of((queue("a", flavors={"fast": 1, "zone-b": 2}),), a=8)) == {"a": 3}
        assert placed(round_of((queue("a", flavors={"fast": None}),), a=8)) == {"a": 4}
        assert placed(round_of((queue("top", flavors={"fast": 3}), queue("a", parent="top")), a=8)) == {"a": 3}

    def test_a_group_starts_on_one_of_them(self) -> None:
        """5 workers would need both nodes; in two groups they are on one each."""
        round_ = round_of((queue("a", flavors={"fast": 4, "zone-b": 4}),))
        gang = job("a0", queue="a", workers=5)
        apart = round_.model_copy(update={"jobs": (gang,)})
        assert placed(apart) == {}
        where = {"a0": [("n0", [0]), ("n0", [1]), ("n0", [2]), ("n0", [3]), ("n1", [0])]}
        rules = [one.rule for one in violations(apart, plan_for(apart, where))]
        assert rules == ["flavor", "queue_quota"]
        assert placed(round_.model_copy(update={"jobs": (job("a0", queue="a", workers=4),)})) == {"a": 1}

    def test_the_round_under_other_quotas(self) -> None:
        round_ = round_of((queue("a", flavors={"fast": 1, "zone-b": 1}),), a=8)
        found = compare(round_, parse_variants("quota:a@fast=0,2,4", round_))
        assert [one.outcome.value for one in found.variants] == [1, 3, 5]

    def test_unknown_ones_are_refused(self) -> None:
        with pytest.raises(BadInput, match="no flavor 'x'"):
            loads(Policy, '{"queues": [{"id": "a", "flavors": [{"flavor": "x"}]}]}')


def make_small(choice: Choice) -> Instance:
    """Draw a tree of queues that lend, with or without flavors, and jobs in them of which some run."""
    flavored, queues = choice.chance(0.6), list[Queue]()

    def amounts() -> dict[str, Any]:
        drawn = {"quota": choice.maybe(0.8, 0, 5), "borrow": choice.maybe(0.7, 0, 2), "lend": choice.maybe(0.7, 0, 3)}
        return {name: gpus(amount) for name, amount in drawn.items()}

    for i in range(choice.number(2, 5)):
        parent = choice.pick(queues).id if queues and choice.chance(0.8) else None
        names = [flavor.id for flavor in FLAVORS if flavored and choice.chance(0.5)]
        flavors = tuple(FlavorAllowance(flavor=name, **amounts()) for name in names)
        queues.append(Queue(id=f"q{i}", parent=parent, flavors=flavors, **amounts()))
    changes = Changes(preemptions_max=choice.number(0, 2), preemption_price=choice.number(0, 1))
    base = round_of(tuple(choice.shuffled(queues)), changes)
    jobs, runs, free = [], [], {"n0": [0, 1, 2, 3], "n1": [0, 1, 2, 3]}
    for i in range(choice.number(2, 6)):
        count, name = choice.number(1, 2), choice.pick([*(one.id for one in queues), None])
        jobs.append(job(f"j{i}", gpus=count, queue=name, value=choice.number(1, 9)))
        at = choice.pick(["n0", "n1"])
        if choice.chance(0.3) and len(free[at]) >= count:
            held = [free[at].pop() for _ in range(count)]
            runs.append(running(jobs[-1], [(at, held)], preemptible=choice.chance(0.7)))
    policy = base.policy if flavored else base.policy.model_copy(update={"flavors": ()})
    return base.model_copy(update={"jobs": tuple(jobs), "running": tuple(runs), "policy": policy})


class Oracle:
    """All outcomes of a small round, and whether they keep the limits of queues: node of each job, None for none."""

    def __init__(self, round_: Instance) -> None:
        self.round, self.policy = round_, round_.policy
        self.queues = {one.id: one for one in round_.policy.queues}
        self.running = {one.job: one.assignments[0].node for one in round_.running}
        self.flavor = {"n0": "fast", "n1": "zone-b"} if round_.policy.flavors else {}

    def named(self, name: str | None) -> set[str]:
        """Return the flavors of the nearest queue that names some."""
        while name is not None and not self.queues[name].flavors:
            name = self.queues[name].parent
        return set() if name is None else {one.flavor for one in self.queues[name].flavors}

    def chain(self, name: str | None) -> list[str]:
        return [] if name is None else [name, *self.chain(self.queues[name].parent)]

    def allowance(self, name: str, flavor: str | None) -> Any:
        own = self.queues[name]
        return own if flavor is None else next((one for one in own.flavors if one.flavor == flavor), None)

    def counted(self, name: str, flavor: str | None, at: dict[str, str]) -> int:
        total = 0
        for one in self.round.jobs:
            charged = self.flavor.get(at.get(one.id, "")) if one.id in at else None
            charged = charged if charged in self.named(one.queue) else None
            if one.id in at and one.queue == name and flavor in (None, charged):
                total += 1000 * one.options[0].demand.gpus
        for below in self.queues.values():
            if below.parent == name:
                own, kept = self.allowance(below.id, flavor), 0
                if own is not None and own.quota.gpu_milli is not None and own.lend.gpu_milli is not None:
                    kept = own.quota.gpu_milli - own.lend.gpu_milli
                total += max(kept, self.counted(below.id, flavor, at))
        return total

    def is_lawful(self, at: dict[str, str]) -> bool:
        new = [one for one in self.round.jobs if one.id in at and one.id not in self.running]
        for one in new:
            if self.named(one.queue) and self.flavor[at[one.id]] not in self.named(one.queue):
                return False
        for node_id in ("n0", "n1"):
            if sum(one.options[0].demand.gpus for one in self.round.jobs if at.get(one.id) == node_id) > 4:
                return False
        for name, flavor in product(self.queues, (None, "fast", "zone-b")):
            own = self.allowance(name, flavor)
            if own is None or own.quota.gpu_milli is None:
                continue
            takes = any(
                name in self.chain(one.queue) and (flavor is None or self.charged(one, at) == flavor) for one in new
            )
            if takes and self.counted(name, flavor, at) > own.quota.gpu_milli + (own.borrow.gpu_milli or 0):
                return False
        return True

    def charged(self, one: Any, at: dict[str, str]) -> str | None:
        flavor = self.flavor.get(at[one.id])
        return flavor if flavor in self.named(one.queue) else None

    def outcomes(self) -> list[tuple[int, dict[str, str]]]:
        """Return value and nodes of all outcomes, lawful or not, the best first."""
        changes, found = self.policy.changes, []
        stoppable = {one.job for one in self.round.running if one.preemptible}
        choices = []
        for one in self.round.jobs:
            places = [self.running[one.id]] if one.id in self.running else ["n0", "n1"]
            choices.append([*places, None] if one.id not in self.running or one.id in stoppable else places)
        for drawn in product(*choices):
            at = {one.id: place for one, place in zip(self.round.jobs, drawn, strict=True) if place is not None}
            stopped = len(self.running.keys() - at.keys())
            if stopped <= changes.preemptions_max:
                value = sum(one.options[0].value for one in self.round.jobs if one.id in at)
                found.append((value - stopped * changes.preemption_price, at))
        return sorted(found, key=lambda one: -one[0])


@pytest.mark.parametrize("seed", seeds(40))
def test_the_optimum_is_that_of_brute_force(seed: int) -> None:
    round_ = make_small(seeded(f"lend-{seed}"))
    oracle = Oracle(round_)
    best = next(value for value, at in oracle.outcomes() if oracle.is_lawful(at))
    exact = ("auto", "counts", "assignment")
    compare_methods(round_, best, (*exact, "filling-costs", "fcfs"), exact=exact)


@pytest.mark.parametrize("seed", seeds(40))
def test_the_referee_agrees_with_brute_force(seed: int) -> None:
    """Up to 60 outcomes of a round each, lawful ones and others, that have room on both nodes."""
    choice = seeded(f"lend-{seed}")
    oracle = Oracle(make_small(choice))
    round_ = oracle.round
    for _, at in choice.shuffled(oracle.outcomes())[:60]:
        free = {"n0": [0, 1, 2, 3], "n1": [0, 1, 2, 3]}
        held = {one.job: [int(gpu) for gpu in one.assignments[0].gpus] for one in round_.running}
        for name, indices in held.items():
            free[oracle.running[name]] = [gpu for gpu in free[oracle.running[name]] if gpu not in indices]
        where = {}
        for one in round_.jobs:
            if one.id in at:
                indices = held.get(one.id) or free[at[one.id]][: one.options[0].demand.gpus]
                free[at[one.id]] = [gpu for gpu in free[at[one.id]] if gpu not in indices]
                where[one.id] = [(at[one.id], indices)]
        if all(
            len(indices) == one.options[0].demand.gpus for one in round_.jobs for _, indices in where.get(one.id, ())
        ):
            stopped = {name for name in oracle.running if name not in at}
            plan = plan_for(round_, where, preempted=sorted(stopped)) if stopped else plan_for(round_, where)
            assert (violations(round_, plan) == []) == oracle.is_lawful(at)
