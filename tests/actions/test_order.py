"""Actions of a plan: in every order that ``after`` allows no limit is broken on the way, and the end is the plan."""

from collections.abc import Iterable

import pytest
from hypothesis import event, given, settings

from helpers.brute_force import placements
from helpers.plan_records import at_request, plan_of, standing
from helpers.plans import plan_for
from placeopt import BadInput, plan_actions, solve
from placeopt.actions import Action
from placeopt.build import instance, job, machine, running
from placeopt.check import violations
from placeopt.model import Changes, Group, Instance, Job, JobOrigin, Option, Origin, Placement, Plan, Policy, Running
from placeopt.problem import Move, State, compile_problem
from placeopt.terms.rules import fits
from strategies import Choice, choices, rounds

Workers = list[tuple[int, str, frozenset[int]]]


def changeable(round_: Instance) -> Instance:
    """Allow every change of what runs."""
    flags = {"movable": True, "shrinkable": True, "preemptible": True}
    changes = Changes(moves_max=9, shrinks_max=9, preemptions_max=9)
    policy = round_.policy.model_copy(update={"changes": changes})
    running = tuple(held.model_copy(update=flags) for held in round_.running)
    return round_.model_copy(update={"running": running, "policy": policy})


def any_plan(choice: Choice, round_: Instance) -> Plan | None:
    """Place jobs at random, wherever they run now; None if a rule about changes refuses it."""
    problem = compile_problem(round_)
    state = State(problem, (None,) * problem.num_jobs)
    for j in choice.shuffled(range(problem.num_jobs)):
        open_to = [placement for placement in placements(problem, j) if fits(state, j, placement)]
        if open_to and choice.chance(0.9):
            state.apply(Move(j, choice.pick(open_to)))
    plan = plan_of(problem, tuple(state.placements))
    return None if violations(round_, plan) else plan


def order_of(choice: Choice, actions: tuple[Action, ...]) -> list[Action]:
    """Return the actions in some order in which each comes after those that it names."""
    order: list[int] = []
    while len(order) < len(actions):
        order.append(
            choice.pick([n for n, one in enumerate(actions) if n not in order and set(one.after) <= set(order)])
        )
    return [actions[n] for n in order]


def workers_of(held: Placement) -> Workers:
    """Return rank, node and GPUs of each worker."""
    return sorted((w.rank, at.node, frozenset(w.gpus)) for at in held.assignments for w in at.workers)


@settings(max_examples=settings().max_examples * 2)
@given(rounds(changes=True, minima=False), choices)
def test_room_is_free_before_it_is_used(round_: Instance, choice: Choice) -> None:
    """In three orders of the actions of any lawful plan."""
    round_ = changeable(round_)
    plan = any_plan(choice, round_)
    if plan is None:
        return
    actions, then = plan_actions(round_, plan), {held.job: held for held in plan.placements}

    def limits(runs: Iterable[Running]) -> set[tuple[str | None, str, str | None]]:
        return standing(round_.model_copy(update={"running": tuple(at_request(round_, held) for held in runs)}))

    before = limits(round_.running)
    for _ in range(3):
        runs = {held.job: held for held in round_.running}
        for action in order_of(choice, actions):
            if action.do == "preempt":
                del runs[action.job]
            else:
                assert (action.do == "start") == (action.job not in runs)
                held = then[action.job]
                runs[action.job] = Running(**{name: getattr(held, name) for name in Placement.model_fields})
            assert limits(runs.values()) <= before
        assert {name: workers_of(held) for name, held in runs.items()} == {
            name: workers_of(held) for name, held in then.items()
        }
    for action in actions:
        event(f"{action.do}{' after others' if action.after else ''}")


def two_jobs() -> Instance:
    """Two jobs of one or two workers run on two nodes of two GPUs, and every change is allowed."""
    pods = tuple(Origin(name=f"team/pod-{rank}", id=f"uid-{rank}") for rank in range(2))
    jobs = [
        job(name, workers=2, workers_min=1, origin=JobOrigin(name="train", id=str(number), workers=pods))
        for number, name in enumerate("ab")
    ]
    runs = [running(one, [(f"n{i}", [0]), (f"n{i}", [1])]) for i, one in enumerate(jobs)]
    return changeable(instance(2, jobs, machines=[machine(gpus=2)], running=runs))


def test_a_ring_is_broken_by_a_stop() -> None:
    """Two jobs change places: one stops, the other moves, the first starts."""
    round_ = two_jobs()
    placed = {"a": [("n1", [0]), ("n1", [1])], "b": [("n0", [0]), ("n0", [1])]}
    actions = plan_actions(round_, plan_for(round_, placed, moved=["a", "b"]))
    assert [(action.do, action.job, action.after) for action in actions] == [
        ("preempt", "b", ()),
        ("move", "a", (0,)),
        ("start", "b", (0, 1)),
    ]
    assert [part.node for part in actions[1].leaves] == ["n0", "n0"]
    assert [part.node for part in actions[1].parts] == ["n1", "n1"]


def test_workers_that_stay_keep_their_names() -> None:
    """Job a keeps one of its workers, and b stops: what goes is named by the rank that it had."""
    round_ = two_jobs()
    plan = plan_for(round_, {"a": [("n0", [0])]}, shrunk=["a"], preempted=["b"])
    stop, shrink = plan_actions(round_, plan)
    assert (stop.do, stop.job, stop.parts, len(stop.leaves)) == ("preempt", "b", (), 2)
    assert (shrink.do, shrink.job, shrink.origin) == ("shrink", "a", Origin(name="train", id="0"))
    (stays,), (goes,) = shrink.parts, shrink.leaves
    assert (stays.rank, stays.gpus, stays.origin) == (0, (0,), Origin(name="team/pod-0", id="uid-0"))
    assert (goes.rank, goes.gpus, goes.origin) == (1, (1,), Origin(name="team/pod-1", id="uid-1"))


def test_what_stays_has_no_action() -> None:
    """And a plan that breaks a rule is refused."""
    round_ = two_jobs()
    assert plan_actions(round_, plan_for(round_, {})) == ()
    with pytest.raises(BadInput, match="neither in placements nor in unplaced"):
        plan_actions(round_, plan_for(round_, {}).model_copy(update={"placements": ()}))


def test_of_a_gang_that_runs_in_part_the_workers_that_it_lacks_start() -> None:
    """A leader and a worker run; the other worker starts where a job is stopped for it."""
    origin = JobOrigin(name="g", workers=tuple(Origin(name=f"g-{i}") for i in range(3)))
    option = Option(groups=(Group(id="lead"), Group(id="work", workers=2)), value=9)
    tree, other = Job(id="g", options=(option,), origin=origin), job("other", gpus=2, value=1)
    runs = [
        running(tree, [("n0", [0], "lead"), ("n0", [1], "work")]),
        running(other, [("n1", [0, 1])], preemptible=True),
    ]
    policy = Policy(changes=Changes(preemptions_max=1))
    round_ = instance(2, [tree, other], machines=[machine(gpus=2)], running=runs, policy=policy)
    plan = solve(round_, time_limit_s=20, isolation="thread")
    stop, start = plan_actions(round_, plan)
    assert (stop.do, stop.job, start.do, start.job, start.after) == ("preempt", "other", "start", "g", (0,))
    assert [(part.rank, part.node, part.origin.name) for part in start.parts] == [(2, "n1", "g-2")]
    assert start.leaves == ()
