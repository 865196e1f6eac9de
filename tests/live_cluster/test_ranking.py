"""Nodes for one job: just those on which brute force finds a place for a worker, and true reasons for the others."""

from __future__ import annotations

import pytest
from hypothesis import given

from helpers.brute_force import placements
from placeopt import BadInput, Engine, Instance, Unsupported, generate
from placeopt.model import Communication
from placeopt.problem import State, compile_problem
from placeopt.terms.rules import fits
from strategies import rounds


def single(instance: Instance) -> Instance:
    """Let every waiting job have one worker, so that a worker's place is the job's."""
    running = {held.job for held in instance.running}
    jobs = []
    for job in instance.jobs:
        if job.id not in running:
            options = tuple(
                option.model_copy(update={"workers": 1, "workers_min": None, "splits": (), "value_per_extra_worker": 0})
                for option in job.options
            )
            job = job.model_copy(update={"options": options, "communication": Communication()})
        jobs.append(job)
    return instance.model_copy(update={"jobs": tuple(jobs)})


@given(rounds(minima=False) | rounds(minima=False, resources=True))
def test_nodes_are_those_of_brute_force(loaded: Instance) -> None:
    instance = single(loaded)
    problem = compile_problem(instance)
    state = State(problem)
    with Engine(isolation="thread") as engine:
        engine.load(instance)
        for job, name in enumerate(problem.job_ids):
            if job in problem.running:
                continue
            found = engine.rank(name, method="best-fit")
            possible = {
                problem.node_ids[place.nodes[0]] for place in placements(problem, job) if fits(state, job, place)
            }
            assert {entry.node for entry in found.nodes} == possible
            assert set(found.refused) == set(problem.node_ids) - possible
            scores = [entry.score for entry in found.nodes if entry.option == found.nodes[0].option]
            assert None not in scores
            assert scores == sorted(scores)


def test_reasons_are_the_first_true_ones() -> None:
    """A drained node, one with few GPUs left, and one that the caller did not ask for."""
    instance = generate("gangs", jobs=60, nodes=3, gpus=8, seed=1)
    running = {held.job for held in instance.running}
    alone = [job for job in instance.jobs if job.id not in running and job.options[0].workers == 1]
    eight = next(job for job in alone if job.options[0].demand.gpus == 8)
    one = next(job for job in alone if job.options[0].demand.gpus == 1)
    with Engine(isolation="thread") as engine:
        engine.load(instance.model_copy(update={"running": ()}))
        busy = engine.place([one.id]).placements[0].assignments[0].node
        engine.commit(engine.place([one.id]))
        others = [node.id for node in instance.cluster.nodes if node.id != busy]
        engine.update(nodes={others[0]: "drain"})
        found = engine.rank(eight.id)
        assert [(entry.node, entry.workers) for entry in found.nodes] == [(others[1], 1)]
        assert found.refused[others[0]] == "the node is drained and takes no new work"
        assert found.refused[busy].endswith("of 8 GPUs have room")
        assert engine.rank(eight.id, [busy]).nodes == ()
        assert set(engine.rank(eight.id, [busy]).refused) == {busy}
        with pytest.raises(BadInput, match="no node 'x'"):
            engine.rank(eight.id, ["x"])
        with pytest.raises(BadInput, match="waits"):
            engine.rank(one.id)
        with pytest.raises(Unsupported, match="single nodes"):
            engine.rank(eight.id, method="auto")
