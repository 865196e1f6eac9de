"""What is said of the cluster is true in all completions of what was not read, and what is not differs between two."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from hypothesis import event, given, settings

from placeopt import Engine, Instance, build
from placeopt.edits import edit_instance
from placeopt.model import (
    Amounts,
    Assignment,
    Changes,
    Demand,
    Job,
    LabelExpression,
    NodeConditions,
    Option,
    ReadingNote,
    Relation,
    Running,
    Toleration,
    Weights,
    WorkerGpus,
)
from placeopt.whatif import Limits, add, compare, defrag, fail, fit, parse_variants
from strategies import Choice, choices
from strategies.conditions import make_choosy_round

LIMITS = Limits(time_limit_s=20, threads=1, method="counts")
ANYWHERE = {
    "conditions": NodeConditions(tolerations=(Toleration(operator="Exists"),)),
    "conditions_unread": False,
}
Answer = Callable[[Engine, Instance], tuple[object, str]]


def asks_more(choice: Choice, job: Job) -> Job:
    """Return the job with what it takes besides a GPU, and what it has against others."""
    taken = {name: 1 for name in ("port", "claim") if choice.chance(0.3)}
    demand = job.options[0].demand.model_copy(update={"resources": Amounts(taken)})
    options = (job.options[0].model_copy(update={"demand": demand}),)
    selector = (LabelExpression(key="app", operator="In", values=("a",)),)
    apart = Relation(kind="apart", level=choice.pick(("node", "rack")), selector=selector)
    labels, relations = ({"app": "a"} if choice.chance(0.4) else {}), ((apart,) if choice.chance(0.2) else ())
    return job.model_copy(update={"options": options, "labels": labels, "relations": relations})


def make_reading(choice: Choice) -> Instance:
    """Return a round with running and waiting jobs of which some things were not read."""
    round_ = make_choosy_round(choice, nodes=3, jobs=4, drained=0)
    drained = [node.id for node in round_.cluster.nodes if choice.chance(0.3)]
    nodes = tuple(node.model_copy(update={"drained": node.id in drained}) for node in round_.cluster.nodes)
    machines = [build.machine(gpus=4, resources={"port": 1, "claim": 4})]
    jobs, running, kept, ports = [], [], [], {node.id for node in nodes}
    for number, job in enumerate(asks_more(choice, job) for job in round_.jobs):
        place, what = choice.pick(nodes).id, choice.pick(("read", "conditions", "kept"))
        port = job.options[0].demand.resources.get("port", 0)
        if choice.chance(0.4) or (port and place not in ports):
            jobs.append(job)
            continue
        ports -= {place} if port else set()
        there = job.with_conditions(nodes_allowed=(place,))
        jobs.append(there.model_copy(update={"conditions_unread": True}) if what == "conditions" else job)
        running.append(build.running(job, [(place, [number])], movable=choice.chance(0.7)))
        if what == "kept":
            kept.append(job.id)
    left_out = ("gone",) if choice.chance(0.15) else ()
    not_eligible = ("later",) if choice.chance(0.5) else ()
    notes = tuple(
        ReadingNote(kind=kind, reason="not read", names=tuple(names))
        for kind, names in (
            ("drained", drained),
            ("kept as running", kept),
            ("left out", left_out),
            ("not eligible", not_eligible),
        )
        if names
    )
    policy = round_.policy.model_copy(update={"changes": Changes(moves_max=2)})
    domains = round_.cluster.domains
    made = build.instance(nodes, jobs, machines=machines, running=running, domains=domains, policy=policy)
    return edit_instance(made, reading=notes)


def completions(reading: Instance) -> Iterator[Instance]:
    """Yield the round with every combination of what the unread nodes and jobs may be, each at both ends."""
    noted = {note.kind: set(note.names) for note in reading.reading}
    drained, kept = noted.get("drained", set()), noted.get("kept as running", set())
    unread = [job.id for job in reading.jobs if job.conditions_unread]
    places = {held.job: held.assignments[0].node for held in reading.running if held.job in kept}
    odd = [*sorted(drained), *sorted(kept), *unread]
    for free in product((False, True), repeat=len(odd)):
        open_ = {name for name, is_free in zip(odd, free, strict=True) if is_free}
        nodes = tuple(
            node.model_copy(update={"drained": False}) if node.id in drained & open_ else node
            for node in reading.cluster.nodes
        )
        yield edit_instance(
            reading,
            cluster=reading.cluster.model_copy(update={"nodes": nodes}),
            jobs=tuple(_completed(job, job.id in open_, places.get(job.id)) for job in reading.jobs),
            running=tuple(_held(held, held.job in kept, held.job in open_) for held in reading.running),
            reading=(),
        )


def _completed(job: Job, free: bool, place: str | None) -> Job:
    """Return a job of unread conditions, or, with a ``place``, one of which nothing was read, at one of its ends."""
    if not free:
        read = job.model_copy(update={"conditions_unread": False})
        return job.with_conditions(nodes_allowed=(place,)) if place else read
    nothing = {"options": (Option(demand=Demand(gpus=0), value=job.options[0].value),), "relations": ()}
    return job.model_copy(update={**ANYWHERE, **(nothing if place else {})})


def _held(held: Running, kept: bool, nothing: bool) -> Running:
    """What was not read holds nothing and goes anywhere, or all that was assumed, and stays."""
    place = (Assignment(node=held.assignments[0].node, workers=(WorkerGpus(rank=0),)),)
    free = {"assignments": place, "movable": True}
    return held.model_copy(update=free if nothing else {"movable": False}) if kept else held


def failures(engine: Engine, round_: Instance) -> tuple[object, str]:
    """N+1: the answer itself says what is unknown."""
    found = fail(round_, "node", limits=LIMITS)
    return found.answer, found.of


def optimum(engine: Engine, round_: Instance) -> tuple[object, str]:
    """The best value of a plan."""
    plan = engine.solve(round_.model_copy(update={"policy": _worth_alone(round_)}), time_limit_s=20, method="counts")
    assert plan.status == "optimal"
    return plan.levels[0].objective, plan.of


def _worth_alone(round_: Instance) -> object:
    weights = Weights(communication=0, interference=0, fragmentation=0)
    return round_.policy.model_copy(update={"weights": weights})


def needed(engine: Engine, round_: Instance) -> tuple[object, str]:
    """Nodes that are missing."""
    answer = add(round_, round_.cluster.nodes[0].machine, limits=LIMITS)
    return answer.types, answer.of


def copies(engine: Engine, round_: Instance) -> tuple[object, str]:
    """Copies of a job that fit."""
    found = fit(round_, build.job("one", gpus=1), LIMITS)
    return (found.found, found.most), found.of


def emptied(engine: Engine, round_: Instance) -> tuple[object, str]:
    """Most domains that moves can empty."""
    found = defrag(round_, "node", limits=LIMITS)
    return found.most, found.of


def prices(engine: Engine, round_: Instance) -> tuple[object, str]:
    """The value of the round, and of one more node."""
    found = compare(round_, parse_variants("more=node", round_), limits=LIMITS)
    assert found.before is not None
    return (found.before.value, [(one.gain_low, one.gain_high) for one in found.variants]), found.of


@pytest.mark.parametrize("question", [failures, optimum, needed, copies, emptied, prices])
@settings(max_examples=max(1, settings().max_examples // 5))
@given(choice=choices)
def test_the_cluster_and_the_reading(engine: Engine, question: Answer, choice: Choice) -> None:
    """Just where two completions differ, the answer is one of the reading."""
    reading = make_reading(choice)
    said, of = question(engine, reading)
    true = [question(engine, round_) for round_ in completions(reading)]
    assert {one for _, one in true} == {"cluster"}
    answers = {repr(answer) for answer, _ in true}
    left_out = any(note.kind == "left out" for note in reading.reading)
    event(f"{of}, {len(answers) > 1}")
    if question in (optimum, needed, prices) and left_out:  # whatever such a job asks for and is worth
        assert of == "reading"
    elif question is failures and len(answers) > 1:
        assert (said, of) == ("unknown", "reading")
    elif question is emptied:  # what the search finds may differ
        assert of == "reading" or answers == {repr(said)}
    else:
        assert (of == "cluster") == (len(answers) == 1)
        assert of == "reading" or answers == {repr(said)}


def test_what_was_kept_unread_stays(engine: Engine) -> None:
    """A mark that it may be moved does not say where it could run: a round leaves it where it is."""
    kept, other, waits = build.job("kept"), build.job("other"), build.job("waits", gpus=2)
    runs = [build.running(kept, [("n0", [0])], movable=True), build.running(other, [("n1", [0])])]
    round_ = build.instance(
        2,
        [kept, other, waits],
        machines=[build.machine(gpus=2)],
        running=runs,
        policy=build.instance().policy.model_copy(update={"changes": Changes(moves_max=1)}),
    )
    assert optimum(engine, round_) == (3, "cluster")  # `kept` beside `other`
    note = ReadingNote(kind="kept as running", reason="not read", names=("kept",))
    assert optimum(engine, edit_instance(round_, reading=(note,))) == (2, "reading")  # 3, were it to hold nothing
