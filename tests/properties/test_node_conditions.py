"""Which nodes admit which jobs: compiled round, referee, ranking, and one more node, against an oracle of its own."""

import numpy as np
from hypothesis import event, given, settings

from helpers.node_conditions import admits, chosen, meets, tolerates
from helpers.plans import plan_for
from placeopt import Engine, build, violations
from placeopt.build import placement
from placeopt.edits import copy_of
from placeopt.model import Job, NodeConditions, Toleration
from placeopt.problem import compile_problem
from placeopt.whatif import Limits, add, fail
from strategies import Choice, choices
from strategies.conditions import TAINTS, make_choosy_round, make_expression, make_labels, make_tolerations

RULES = {"drained", "taints", "nodes_allowed", "nodes_excluded", "node_selector", "node_affinity"}
"""Rules of the referee about the nodes that a job asks for."""
LIMITS = Limits(time_limit_s=20, threads=1)


@settings(max_examples=4 * settings().max_examples)
@given(choice=choices)
def test_expressions_and_tolerations(choice: Choice) -> None:
    """One label, one taint: what the record says of itself."""
    expression, labels = make_expression(choice), make_labels(choice)
    assert expression.accepts(labels.get(expression.key)) == meets(labels, expression)
    for toleration in make_tolerations(choice):
        for taint in TAINTS:
            assert toleration.tolerates(taint) == tolerates(toleration, taint)


@given(choice=choices)
def test_every_floor_says_the_same_of_every_node(engine: Engine, choice: Choice) -> None:
    """Compiled classes, the referee and a live cluster's ranking, node by node."""
    round_ = make_choosy_round(choice)
    problem = compile_problem(round_)
    classes = len(set(problem.node_class.tolist()))
    assert classes <= len(round_.cluster.nodes)
    engine.load(round_)
    for j, job in enumerate(round_.jobs):
        right = [admits(round_, job, node) for node in round_.cluster.nodes]
        (option,) = problem.options_of(j)
        assert problem.options.node_class_ok[option][problem.node_class].tolist() == right
        ranked = {one.node for one in engine.rank(job.id).nodes}
        assert [node.id in ranked for node in round_.cluster.nodes] == right
        for node, admitted in zip(round_.cluster.nodes, right, strict=True):
            found = violations(round_, plan_for(round_, {job.id: placement(job, [(node.id, [0])])}))
            assert all(one.rule in RULES for one in found)
            assert (not found) == admitted
    event(f"{classes} classes")


@given(choice=choices)
def test_nodes_that_no_job_tells_apart_are_one_class(choice: Choice) -> None:
    """Never more classes than nodes differ in what some job asks: each label's values by the questions about it."""
    round_ = make_choosy_round(choice, nodes=9, jobs=2)
    problem = compile_problem(round_)
    answers: dict[int, set[tuple[object, ...]]] = {}
    for node, number in zip(round_.cluster.nodes, problem.node_class.tolist(), strict=True):
        said = tuple(chosen(round_, job, node) for job in round_.jobs)
        answers.setdefault(number, set()).add((node.machine, node.taints, node.drained, said))
    assert all(len(one) == 1 for one in answers.values())
    plain = round_.model_copy(update={"jobs": tuple(Job(id=job.id) for job in round_.jobs)})
    alike = {(node.machine, node.taints, node.drained) for node in round_.cluster.nodes}
    assert len(np.unique(compile_problem(plain).node_class)) == len(alike)


@settings(max_examples=max(1, settings().max_examples // 5))
@given(choice=choices)
def test_nodes_to_add_are_judged_as_all_others(choice: Choice) -> None:
    """On a full cluster, a copy of a node starts a job just if it meets the conditions under a name of its own."""
    round_ = make_choosy_round(choice, nodes=3, jobs=1, drained=0)
    held = [build.job(f"held-{node.id}", gpus=1) for node in round_.cluster.nodes]
    full = build.instance(
        round_.cluster,
        [*round_.jobs, *held],
        running=[build.running(job, [(job.id.removeprefix("held-"), [0])]) for job in held],
    )
    (job,) = round_.jobs
    for node in round_.cluster.nodes:
        copy = copy_of(node, "one-more")
        larger = round_.cluster.model_copy(update={"nodes": (*round_.cluster.nodes, copy)})
        starts = admits(round_.model_copy(update={"cluster": larger}), job, copy)
        assert add(full, node.id, limits=LIMITS).types[0].found == (1 if starts else None)


@settings(max_examples=max(1, settings().max_examples // 2))
@given(choice=choices)
def test_what_is_not_read_is_unknown_just_where_it_matters(choice: Choice) -> None:
    """Failures where some conditions were not read: what all completions say, the strictest and the freest included."""
    round_ = make_choosy_round(choice, nodes=3, jobs=4, drained=0)
    names = [node.id for node in round_.cluster.nodes]
    places = [choice.pick(names) for _ in round_.jobs]
    running = [
        build.running(job, [(place, [j])]) for j, (job, place) in enumerate(zip(round_.jobs, places, strict=True))
    ]
    unread = [choice.chance(0.4) for _ in running]

    def answer(**fields: object) -> str:
        jobs = (job.model_copy(update=fields) if odd else job for job, odd in zip(round_.jobs, unread, strict=True))
        own = (
            job.with_conditions(nodes_allowed=(place,)) if odd and "conditions" not in fields else job
            for job, place, odd in zip(jobs, places, unread, strict=True)
        )
        return fail(build.instance(round_.cluster, own, running=running), "node", limits=LIMITS).answer

    free = NodeConditions(tolerations=(Toleration(operator="Exists"),))
    strictest, freest = answer(), answer(conditions=free)
    found = answer(conditions_unread=True)
    event(f"{strictest}, {freest}: {found}")
    assert found == (strictest if strictest == freest else "unknown")
