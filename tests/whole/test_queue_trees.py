"""Queues below others: what the jobs of all queues below one hold together."""

from itertools import combinations
from typing import Any

import pytest

from helpers.night import seeds
from helpers.plans import plan_for
from helpers.queues import placed
from helpers.referee_messages import findings
from helpers.solved import compare_methods
from placeopt import BadInput, solve
from placeopt.build import instance, job, running
from placeopt.check import Ledger
from placeopt.documents import loads
from placeopt.explain import explain
from placeopt.model import Changes, Instance, Policy, Queue, Quota
from strategies.choice import Choice, seeded


def queue(name: str, gpus: int | None, borrow: int = 0, **fields: Any) -> Queue:
    """Return a queue with quota and borrowing in whole GPUs."""
    quota = Quota() if gpus is None else Quota(gpu_milli=1000 * gpus)
    return Queue(id=name, quota=quota, borrow=Quota(gpu_milli=1000 * borrow), **fields)


COHORT = (queue("cohort", 4), queue("a", 2, 2, parent="cohort"), queue("b", 2, 2, parent="cohort"))


def round_of(queues: tuple[Queue, ...], **count: int) -> Instance:
    """So many jobs of one GPU in each queue, on two nodes of four GPUs."""
    jobs = [job(f"{name}{i}", queue=name) for name, n in count.items() for i in range(n)]
    return instance(2, jobs, policy=Policy(queues=queues))


class TestCohort:
    """Two queues of quota 2 that may borrow 2 each, in one cohort of 4."""

    def test_together_they_hold_as_much_as_the_cohort(self) -> None:
        assert sum(placed(round_of(COHORT, a=4, b=4)).values()) == 4
        assert placed(round_of(COHORT, a=4)) == {"a": 4}
        assert placed(round_of(COHORT, a=1, b=4)) in ({"a": 1, "b": 3}, {"b": 4})
        assert placed(round_of((queue("a", 2, 2), queue("b", 2, 2)), a=4, b=4)) == {"a": 4, "b": 4}

    def test_jobs_of_the_cohort_itself_and_of_no_queue(self) -> None:
        round_ = round_of(COHORT, a=2, b=1, cohort=2)
        assert sum(placed(round_).values()) == 4
        free = round_.model_copy(update={"jobs": (*round_.jobs, job("n0"), job("n1"))})
        assert placed(free)["n"] == 2

    def test_a_cohort_of_cohorts(self) -> None:
        """3 of all, 2 of the inner one."""
        queues = (
            queue("top", 3),
            queue("inner", 2, parent="top"),
            queue("a", 9, parent="inner"),
            queue("b", 9, parent="top"),
        )
        assert placed(round_of(queues, a=4)) == {"a": 2}
        assert sum(placed(round_of(queues, a=4, b=4)).values()) == 3

    def test_a_share_of_the_cluster(self) -> None:
        """Half of 8 GPUs, whatever the queues below may hold."""
        queues = (Queue(id="top", dominant_share_percent=50), queue("a", None, parent="top"))
        assert placed(round_of(queues, a=8)) == {"a": 4}

    def test_what_the_referee_and_the_explanation_say(self) -> None:
        round_ = round_of(COHORT, a=3, b=2)
        where: Any = {f"a{i}": [("n0", [i])] for i in range(3)} | {f"b{i}": [("n1", [i])] for i in range(2)}
        plan = plan_for(round_, where)
        jobs = [f"'{name}'" for name in ("a0", "a1", "a2", "b0", "b1")]
        assert findings(round_, plan) == [("queue_quota", "queue 'cohort'", ["5000", "4000", "4000", "0", *jobs])]
        best = solve(round_, time_limit_s=20, isolation="thread")
        (waiting,) = best.unplaced
        told = explain(round_, best, waiting.job)
        assert [one.group for one in told.conflict][:1] in (["queue"], ["gpu_count"])
        assert "queue" in {one.group for one in told.conflict}

    def test_a_job_is_stopped_for_one_of_another_queue(self) -> None:
        """The cohort is full; one of a low value gives way."""
        round_ = round_of(COHORT, a=4)
        runs = [running(one, [("n0", [i])], preemptible=True) for i, one in enumerate(round_.jobs)]
        policy = round_.policy.model_copy(update={"changes": Changes(preemptions_max=1)})
        more = job("b9", queue="b", value=9)
        full = round_.model_copy(update={"jobs": (*round_.jobs, more), "running": tuple(runs), "policy": policy})
        assert placed(full) == {"a": 3, "b": 1}
        ledger = Ledger(full, policy)
        some = plan_for(full, {"b9": [("n1", [0])]}, asked=["b9"])
        assert [one.rule for one in ledger.violations(full, some)] == ["queue_quota"]
        ledger.stop("a0")
        assert ledger.violations(full, some) == []


@pytest.mark.parametrize(
    ("queues", "words"),
    [
        ('[{"id": "a", "parent": "b"}]', "no queue 'b'"),
        ('[{"id": "a", "parent": "a"}]', "above itself"),
        ('[{"id": "a", "parent": "b"}, {"id": "b", "parent": "c"}, {"id": "c", "parent": "b"}]', "above itself"),
    ],
)
def test_what_is_no_tree_is_refused(queues: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        loads(Policy, f'{{"queues": {queues}}}')


def make_small(choice: Choice) -> Instance:
    """Draw a tree of up to five queues, and up to eight jobs of one or two GPUs in them."""
    queues: list[Queue] = []
    for i in range(choice.number(1, 5)):
        parent = choice.pick(queues).id if queues and choice.chance(0.7) else None
        queues.append(queue(f"q{i}", choice.maybe(0.7, 0, 4), choice.number(0, 2), parent=parent))
    names = [one.id for one in queues]
    jobs = [
        job(f"j{i}", gpus=choice.number(1, 2), queue=choice.pick(names), value=choice.number(1, 9))
        for i in range(choice.number(1, 8))
    ]
    return instance(2, jobs, policy=Policy(queues=tuple(choice.shuffled(queues))))


def best_value(round_: Instance) -> int:
    """Return the most that a set of jobs is worth that keeps all quotas, counted by hand, and finds room."""
    parents = {one.id: one.parent for one in round_.policy.queues}
    most = {one.id: (one.quota.gpu_milli, one.borrow.gpu_milli or 0) for one in round_.policy.queues}
    best = 0
    for size in range(len(round_.jobs) + 1):
        for some in combinations(round_.jobs, size):
            held = dict.fromkeys(parents, 0)
            gpus = [one.options[0].demand.gpus for one in some]
            for one, count in zip(some, gpus, strict=True):
                at = one.queue
                while at is not None:
                    held[at] += 1000 * count
                    at = parents[at]
            kept = all(quota is None or held[name] <= quota + more for name, (quota, more) in most.items())
            if kept and sum(gpus) <= 8 and gpus.count(2) <= 4:
                best = max(best, sum(one.options[0].value for one in some))
    return best


@pytest.mark.parametrize("seed", seeds(40))
def test_the_optimum_is_that_of_brute_force(seed: int) -> None:
    round_ = make_small(seeded(f"queue-trees-{seed}"))
    methods = ("auto", "filling-costs", "counts", "assignment", "fcfs")
    compare_methods(round_, best_value(round_), methods, exact=("auto",))
