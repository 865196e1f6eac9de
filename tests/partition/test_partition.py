"""A round in parts: every job and node in one, running jobs where they are, one checked plan of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.builders import instance, job, machine, node, running
from helpers.small_rounds import random_round
from placeopt import BadInput, Instance, solve, solve_in_parts, violations
from placeopt.generators import generate
from placeopt.model import Domain, Policy
from placeopt.model.policy import Queue, Quota
from placeopt.partition import WAYS, split
from placeopt.partition.split import deal, groups_of
from placeopt.solving.audit import audit

RACKS = (Domain(id="r0"), Domain(id="r1"))


def racked(*jobs: object, **fields: object) -> Instance:
    """Four nodes of two GPUs in two racks."""
    nodes = [node(f"n{i}", domain=f"r{i % 2}") for i in range(4)]
    return instance(nodes, jobs, machines=[machine(gpus=2)], domains=RACKS, **fields)  # type: ignore[arg-type]


class TestGroups:
    """What may not be torn apart."""

    def test_running_jobs_and_racks_tie_nodes(self) -> None:
        """Alone, by a gang on two nodes, and by rack."""
        gang = job("g", workers=2)
        round_ = racked(gang, running=[running(gang, [("n0", [0]), ("n3", [0])])])
        assert groups_of(racked(), by_domain=False) == [(0,), (1,), (2,), (3,)]
        assert groups_of(round_, by_domain=False) == [(0, 3), (1,), (2,)]
        assert groups_of(racked(), by_domain=True) == [(0, 2), (1, 3)]
        assert groups_of(round_, by_domain=True) == [(0, 1, 2, 3)]

    def test_groups_go_to_the_lightest_part(self) -> None:
        """By weight, not by number."""
        weight = np.array([5.0, 1.0, 1.0, 2.0])
        assert deal([(0,), (3,), (1,), (2,)], weight, 2) == [[0], [1, 2, 3]]
        assert deal([(0, 1, 2, 3)], weight, 3) == [[0, 1, 2, 3]]


class TestQueues:
    """What a queue may hold is a matter of the whole."""

    def test_a_share_of_the_cluster_is_one_of_the_whole(self) -> None:
        """Four of eight GPUs, all on one side: half of the cluster, all of its part, which was refused."""
        held = [job(f"h{i}", gpus=2, queue="q") for i in range(2)]
        queue = Queue(id="q", dominant_share_percent=40, borrow_percent=10, quota=Quota(memory_mib=5))
        round_ = racked(
            *held,
            job("w", queue="q"),
            job("x", gpus=2),
            running=[running(one, [(f"n{2 * i}", [0, 1])]) for i, one in enumerate(held)],
            policy=Policy(queues=(queue,)),
        )
        whole = Queue(id="q", quota=Quota(gpu_milli=4000, cpu_millicores=64_000, memory_mib=5))
        assert [part.policy.queues for part in split(round_, 2, "rack")] == [(whole,), (whole,)]
        plan = solve_in_parts(round_, parts=2, by="rack", jobs=1, time_limit_s=5)
        assert violations(round_, plan) == []
        assert [one.job for one in plan.unplaced] == ["w"]


class TestSplit:
    """Rounds of parts."""

    @pytest.mark.parametrize("by", WAYS)
    @pytest.mark.parametrize("seed", range(8))
    def test_every_job_and_node_is_in_one_part(self, by: str, seed: int) -> None:
        """Also where features are drawn; the parts are lawful instances."""
        round_ = random_round(np.random.default_rng(seed))
        parts = split(round_, 2, by, seed)  # type: ignore[arg-type]
        assert sorted(n.id for p in parts for n in p.cluster.nodes) == sorted(n.id for n in round_.cluster.nodes)
        assert sorted(j.id for p in parts for j in p.jobs) == sorted(j.id for j in round_.jobs)
        assert sorted(r.job for p in parts for r in p.running) == sorted(r.job for r in round_.running)
        for part in parts:
            Instance.model_validate(part.model_dump())

    def test_jobs_go_where_they_may_run(self) -> None:
        """A list of allowed nodes is followed, and cut."""
        jobs = [job(f"j{i}", nodes_allowed=("n1",)) for i in range(3)]
        parts = split(racked(*jobs), 2, "rack")
        assert {j.id for p in parts for j in p.jobs if any(n.id == "n1" for n in p.cluster.nodes)} == {"j0", "j1", "j2"}
        assert all(j.nodes_allowed == ("n1",) for p in parts for j in p.jobs)

    def test_prices_balance_dear_types(self) -> None:
        """Two nodes of a type that all jobs need, two that none does: a part gets one of each."""
        from placeopt.model import Gpu

        kinds = [machine("dear", gpus=[Gpu(model="A")]), machine("idle", gpus=[Gpu(model="B")])]
        nodes = [node("a0", "dear"), node("a1", "dear"), node("b0", "idle"), node("b1", "idle")]
        round_ = instance(nodes, [job(f"j{i}", gpu_models=("A",)) for i in range(2)], machines=kinds)
        for seed in range(5):
            parts = split(round_, 2, "price", seed)
            assert [sorted(n.machine for n in p.cluster.nodes) for p in parts] == [["dear", "idle"]] * 2
            assert [len(p.jobs) for p in parts] == [1, 1]

    def test_bad_arguments_are_reported_with_what_was_expected(self) -> None:
        """Before anything is built."""
        with pytest.raises(BadInput, match="parts: 0; expected 1 or more"):
            split(racked(), 0)
        with pytest.raises(BadInput, match="by: 'colour'; expected one of random, rack, price"):
            split(racked(), 2, "colour")  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="jobs: 0"):
            solve_in_parts(racked(), parts=2, jobs=0)


class TestWhole:
    """What comes of it."""

    @pytest.mark.parametrize("by", WAYS)
    def test_the_plan_is_checked_as_a_whole_and_never_worse_than_greedy(self, by: str) -> None:
        """One process, deterministic, so twice the same."""
        round_ = generate("gangs", jobs=12, nodes=8, gpus=4, seed=2)
        plans = [
            solve_in_parts(round_, parts=2, by=by, jobs=1, time_limit_s=4, deterministic=True)  # type: ignore[arg-type]
            for _ in range(2)
        ]
        greedy = solve(round_, method="stranding", deterministic=True, time_limit_s=4)
        assert plans[0] == plans[1]
        assert violations(round_, plans[0]) == []
        assert audit(round_, plans[0]) == []
        assert plans[0].levels[0].objective >= greedy.levels[0].objective
        assert plans[0].levels[0].bound is not None

    def test_what_fits_in_no_part_is_placed_in_the_whole(self) -> None:
        """A gang over all nodes."""
        round_ = racked(job("wide", workers=8))
        plan = solve_in_parts(round_, parts=2, by="rack", jobs=1)
        assert [p.job for p in plan.placements] == ["wide"]

    def test_parts_run_in_processes_of_their_own(self) -> None:
        """With two jobs at a time."""
        round_ = generate("uniform", jobs=8, nodes=4, gpus=4, seed=1)
        plan = solve_in_parts(round_, parts=2, jobs=2, time_limit_s=60)
        assert violations(round_, plan) == []
        assert any(stage.name == "joined" for stage in plan.stages)
