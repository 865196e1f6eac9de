"""Nodes for one job: just those on which brute force finds a place for a worker, and true reasons for the others."""

from __future__ import annotations

from typing import Literal

from hypothesis import given

from helpers.brute_force import placements
from helpers.live_engine import engine_of, places, refuses
from placeopt import Engine, Instance, Policy, build, violations
from placeopt.build import instance, job, node, running
from placeopt.model import Communication, Flavor, FlavorAllowance, LabelExpression, Queue, Quota, Relation
from placeopt.problem import State, compile_problem
from placeopt.terms.rules import fits
from strategies import Choice, choices, rounds


def single(loaded: Instance) -> Instance:
    """Let every waiting job have one worker, so that a worker's place is the job's."""
    held = {one.job for one in loaded.running}
    alone = {"workers": 1, "workers_min": None, "splits": (), "value_per_worker": 0}
    jobs = []
    for one in loaded.jobs:
        options = tuple(option.model_copy(update=alone) for option in one.options)
        update = {"options": options, "communication": Communication()}
        jobs.append(one if one.id in held else one.model_copy(update=update))
    return loaded.model_copy(update={"jobs": tuple(jobs)})


@given(rounds(minima=False) | rounds(minima=False, resources=True), choices)
def test_nodes_are_those_of_brute_force(loaded: Instance, choice: Choice) -> None:
    """In a ranking of all nodes; and in a decision on some of them, where there is a place if one of them has it."""
    loaded = single(loaded)
    problem = compile_problem(loaded)
    state = State(problem)
    with engine_of(loaded) as engine:
        for number, name in enumerate(problem.job_ids):
            if number in problem.running:
                continue
            possible = {problem.node_ids[p.nodes[0]] for p in placements(problem, number) if fits(state, number, p)}
            found = engine.rank(name, method="best-fit")
            assert {entry.node for entry in found.nodes} == possible
            assert set(found.refused) == set(problem.node_ids) - possible
            scores = [entry.score for entry in found.nodes if entry.option == found.nodes[0].option]
            assert None not in scores
            assert scores == sorted(scores)
            some = choice.some(problem.node_ids)
            plan = engine.place([name], nodes=some, method="best-fit")
            assert bool(plan.placements) == bool(possible & set(some))
            assert {at.node for held in plan.placements for at in held.assignments} <= set(some)
            assert violations(loaded, plan) == []


@given(rounds(), choices)
def test_gangs_stay_on_the_nodes(loaded: Instance, choice: Choice) -> None:
    """For one call: the next one looks at all nodes again."""
    held = {one.job for one in loaded.running}
    waiting = [one.id for one in loaded.jobs if one.id not in held]
    some = choice.some([one.id for one in loaded.cluster.nodes], 0.7)
    with engine_of(loaded) as engine:
        before = engine.place(waiting, explain=False)
        plan = engine.place(waiting, nodes=some)
        assert {at for where in places(plan).values() for at, _ in where} <= set(some)
        assert violations(loaded, plan) == []
        assert places(engine.place(waiting, explain=False)).keys() == places(before).keys()


def test_reasons_are_the_first_true_ones() -> None:
    """A drained node, one with few GPUs left, and one that the caller did not ask for."""
    runs, wide = job("runs"), job("wide", gpus=4)
    useless = job("useless", utility_min_thousandths=500, utility_thousandths=400)
    nodes = [node("drained", drained=True), node("busy"), node("free")]
    with engine_of(nodes, [runs, wide, useless], running=[running(runs, [("busy", [0])])]) as engine:
        found = engine.rank("wide")
        assert [(entry.node, entry.workers) for entry in found.nodes] == [("free", 1)]
        assert found.refused["drained"] == "the node is drained and takes no new work"
        assert found.refused["busy"] == "3 of 4 GPUs have room"
        below = "the option's utility is below the minimum of the job"
        assert set(engine.rank("useless").refused.values()) == {below}
        asked = engine.rank("wide", ["busy"])
        assert (asked.nodes, set(asked.refused)) == ((), {"busy"})


def test_each_node_is_refused_for_its_own_flavor() -> None:
    """One has no quota left, one too few GPUs, one no flavor that the queue may use."""
    quotas = {"none": 0, "some": 9000}
    allowances = tuple(FlavorAllowance(flavor=name, quota=Quota(gpu_milli=most)) for name, most in quotas.items())
    flavors = tuple(Flavor(id=name, node_selector={"pool": name}) for name in quotas)
    nodes = [*(node(name, labels={"pool": name}) for name in quotas), node("other")]
    policy = Policy(queues=(Queue(id="q", flavors=allowances),), flavors=flavors)
    with engine_of(nodes, [job("wide", gpus=5, queue="q")], policy=policy) as engine:
        assert engine.rank("wide").refused == {
            "none": "the queue of the job has no room for it",
            "some": "4 of 5 GPUs are of a model and size that the job can use",
            "other": "jobs of its queue run on nodes of other flavors",
        }


def test_what_is_refused() -> None:
    """Nodes that are not there, jobs that run, methods that decide over all nodes."""
    runs = job("runs")
    loaded = instance(1, [runs, job("waits")], running=[running(runs, [("n0", [0])])])
    with engine_of(loaded) as engine:
        refuses(
            engine,
            [
                ("no node 'x'", lambda e: e.rank("waits", ["x"])),
                ("waits", lambda e: e.rank("runs")),
                ("single nodes", lambda e: e.rank("waits", method="auto")),
                ("no node 'x'", lambda e: e.place(["waits"], nodes=["x"])),
                ("whole round", lambda e: e.place(nodes=["n0"])),
                ("over all nodes", lambda e: e.place(["waits"], nodes=["n0"], method="drb")),
            ],
        )


def test_nodes_that_relations_close_are_refused() -> None:
    """A job apart from databases by node, one that databases keep apart from, and one that has to be near to one."""

    def related(kind: Literal["apart", "near"], app: str) -> Relation:
        return Relation(kind=kind, level="node", selector=(LabelExpression(key="app", operator="In", values=(app,)),))

    db = build.job("db", labels={"app": "db"}, relations=(related("apart", "batch"),))
    jobs = [
        build.job("web", relations=(related("apart", "db"),)),
        build.job("batch", labels={"app": "batch"}),
        build.job("cache", relations=(related("near", "db"),)),
        build.job("other"),
    ]
    round_ = build.instance(2, [db, *jobs], running=[build.running(db, [("n0", [0])])])
    with Engine() as engine:
        engine.load(round_)
        found = {job.id: engine.rank(job.id) for job in jobs}
    open_ = {name: sorted(one.node for one in ranking.nodes) for name, ranking in found.items()}
    assert open_ == {"web": ["n1"], "batch": ["n1"], "cache": ["n0"], "other": ["n0", "n1"]}
    words = "relations between the job and running ones keep it off the node"
    assert [found[name].refused for name in ("web", "cache")] == [{"n0": words}, {"n1": words}]
