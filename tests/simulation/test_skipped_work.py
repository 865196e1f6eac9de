"""What a simulation leaves out decides nothing: the same bytes, with fewer decisions and checks."""

import random
from pathlib import Path

import pytest

from helpers.changing_scenarios import lively_scenario
from helpers.scenarios import PLAIN, policy, scenario, timed, two_sockets
from placeopt import Engine
from placeopt.build import job, node, option, placement
from placeopt.check import Ledger
from placeopt.model import Cluster, Demand, Instance
from placeopt.simulation import PreemptionRule, simulate
from placeopt.simulation.event_queue import EventQueue
from placeopt.simulation.scheduling.attained_service import AttainedService
from placeopt.simulation.scheduling.free_resources import FreeResources
from placeopt.simulation.scheduling.job_by_job import JobByJob
from placeopt.simulation.scheduling.preemption_rules import HigherServiceLevel, InferenceFirst, LowerPriority

RULES = {
    "las": {"order": "las", "preempts": "las", "levels_gpu_s": (5, 30), "quantum_ms": 1000},
    "priority": {"order": "priority", "preempts": "priority"},
    "inference": {"order": "inference_first", "preempts": "inference"},
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(3))
def test_the_same_is_decided_as_when_every_eviction_is_tried_in_every_round(
    seed: int, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log, history and number of rounds are the same; a log made with rounds left out can be resumed."""
    world, rules = lively_scenario(seed, jobs=60), policy("best-fit", policy=PLAIN, **RULES[rule])
    tried = []
    real = JobByJob._place_with_evictions
    monkeypatch.setattr(JobByJob, "_place_with_evictions", lambda *given: (tried.append(1), real(*given))[1])
    some = simulate(world, rules, log=tmp_path / "some")
    few = len(tried)
    for kind in (HigherServiceLevel, LowerPriority, InferenceFirst):
        monkeypatch.setattr(kind, "constant_until", PreemptionRule.constant_until)
    every = simulate(world, rules, log=tmp_path / "every")
    assert (tmp_path / "some").read_bytes() == (tmp_path / "every").read_bytes()
    assert (some.jobs, some.rounds.held) == (every.jobs, every.rounds.held)
    assert few <= len(tried) - few
    again = simulate(world, rules, log=tmp_path / "some", resume=True)
    assert (again.jobs, again.rounds.held) == (some.jobs, some.rounds.held)


def test_rounds_in_which_nothing_can_change_are_counted_and_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs of an hour on one node: one waits, and no level is left to rise after half a minute."""
    rules = policy("best-fit", policy=PLAIN, **RULES["las"])
    decided = []
    real = JobByJob.decide
    monkeypatch.setattr(JobByJob, "decide", lambda *given: (decided.append(1), real(*given))[1])
    jobs = [timed("a", 0, 3_600_000, gpus=4), timed("b", 500, 3_600_000, gpus=4)]
    history = simulate(scenario(jobs), rules)
    assert history.finished
    assert history.rounds.held > 3000 > 100 > len(decided)


def test_levels_rise_when_foretold() -> None:
    """4 GPUs make 10 GPU-seconds in 2.5 s; what has risen, and what has stopped, tells of no earlier time."""
    service = AttainedService((10, 100))
    service.start("a", 4000, 1000)
    assert (service.next_rise_ms(1000), service.level("a", 3499), service.level("a", 3500)) == (3500, 0, 1)
    assert service.next_rise_ms(3500) == 26_000
    service.start("cpu", 0, 4000)
    assert (service.next_rise_ms(4000), service.next_rise_ms(26_000)) == (26_000, None)


@pytest.mark.parametrize("share_mode", ["fraction", "exclusive", "overcommit"])
def test_counts_of_workers_follow_what_starts_and_ends(share_mode: str) -> None:
    """As if all nodes were asked anew, also after the journal was emptied."""
    cluster = Cluster(machines=(two_sockets(),), nodes=tuple(node(f"n{i}") for i in range(3)))
    dice = random.Random(0)
    rules = PLAIN.model_copy(update={"share_mode": share_mode, "jobs_per_gpu_max": None})
    free = FreeResources(cluster, rules)
    shapes = [job("x", options=(option(workers=w, gpus=g, gpu_milli=1000),)) for w in (1, 2, 5) for g in (0, 1, 3)]
    held: list[object] = []
    for turn in range(1500):
        if held and dice.random() < 0.5:
            free.take(held.pop(dice.randrange(len(held))), Demand(), -1)
        else:
            held.append(placement(job("y"), [(f"n{dice.randrange(3)}", (dice.randrange(4),))]))
            free.take(held[-1], Demand())
        if turn % 3 == 0:
            one, idle = dice.choice(shapes), dice.random() < 0.3
            only = one.options[0]
            room = [free.workers_on(name, only, only.workers, idle=idle) for name in ("n0", "n1", "n2")]
            expected = (max(room) if only.single_node else sum(room)) >= only.workers
            assert free.fits(one, only, only.workers, idle=idle) == expected


def test_arrivals_stand_in_the_order_of_events() -> None:
    """The same as if each was an event of its own, in either form of time."""
    dice = random.Random(1)
    arrivals = [(f"j{i}", dice.randrange(2000)) for i in range(40)]
    for step in (None, 500):
        apart, together = EventQueue(step, None), EventQueue(step, None)
        together.add_arrivals(arrivals)
        for name, at_ms in arrivals:
            apart.add("arrival", name, at_ms)
        for queue in (apart, together):
            queue.end("e", 1000)
            queue.add("leave", "l", 1000)
            queue.round_after("arrival", 1000)
        assert len(apart) == len(together) == 43
        assert [apart.next() for _ in range(43)] == [together.next() for _ in range(43)]


def test_only_the_very_plan_that_was_made_last_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of it is another plan, from anywhere."""
    judged = []
    real = Ledger.violations
    monkeypatch.setattr(Ledger, "violations", lambda *given: (judged.append(1), real(*given))[1])
    cluster = Cluster(machines=(two_sockets(),), nodes=(node("n0"),))
    with Engine() as engine:
        engine.load(Instance(cluster=cluster, jobs=(job("a"), job("b"))))
        plan = engine.place(["a"])
        assert len(judged) == 1
        engine.commit(plan)
        assert len(judged) == 1
        engine.commit(engine.place(["b"]).model_copy())
        assert len(judged) == 3
