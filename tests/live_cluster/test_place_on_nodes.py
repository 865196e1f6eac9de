"""Decisions on some nodes only: a place there if brute force finds one, and none elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.brute_force import placements
from live_cluster.test_ranking import single
from placeopt import BadInput, Engine, Instance, Unsupported, build, violations
from placeopt.problem import State, compile_problem
from placeopt.terms.rules import fits
from strategies import rounds


@given(rounds(minima=False), st.integers(0, 2**32))
def test_single_workers_go_where_brute_force_may_place_them(loaded: Instance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = single(loaded)
    problem = compile_problem(instance)
    state = State(problem)
    with Engine(isolation="thread") as engine:
        engine.load(instance)
        for job, name in enumerate(problem.job_ids):
            if job in problem.running:
                continue
            some = [node for node in problem.node_ids if rng.random() < 0.5]
            allowed = {problem.node_ids.index(node) for node in some}
            plan = engine.place([name], nodes=some, method="best-fit")
            possible = [p for p in placements(problem, job) if set(p.nodes) <= allowed and fits(state, job, p)]
            assert bool(plan.placements) == bool(possible)
            assert {part.node for placement in plan.placements for part in placement.assignments} <= set(some)
            assert violations(instance, plan) == []


@given(rounds(), st.integers(0, 2**32))
def test_gangs_stay_on_the_nodes(instance: Instance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    running = {held.job for held in instance.running}
    waiting = [job.id for job in instance.jobs if job.id not in running]
    some = [node.id for node in instance.cluster.nodes if rng.random() < 0.7]
    with Engine(isolation="thread") as engine:
        engine.load(instance)
        before = engine.place(waiting, explain=False)
        plan = engine.place(waiting, nodes=some)
        assert {part.node for placement in plan.placements for part in placement.assignments} <= set(some)
        assert violations(instance, plan) == []
        again = engine.place(waiting, explain=False)  # the restriction was that of one call
        assert [p.job for p in again.placements] == [p.job for p in before.placements]


def test_wrong_nodes_are_refused() -> None:
    instance, name = build.instance(1, [build.job("a")]), "a"
    with Engine(isolation="thread") as engine:
        engine.load(instance)
        with pytest.raises(BadInput, match="no node 'x'"):
            engine.place([name], nodes=["x"])
        with pytest.raises(BadInput, match="whole round"):
            engine.place(nodes=[instance.cluster.nodes[0].id])
        with pytest.raises(Unsupported, match="over all nodes"):
            engine.place([name], nodes=[instance.cluster.nodes[0].id], method="drb")
