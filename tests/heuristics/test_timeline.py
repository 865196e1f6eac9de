"""Look-ahead's timeline: what it takes a short way to is what the long way gives."""

import numpy as np
import pytest

from placeopt.build import instance, job, machine, node, running
from placeopt.heuristics import lookahead, order_jobs
from placeopt.heuristics.lookahead import look_ahead
from placeopt.heuristics.timeline import Seen, Start, Timeline
from placeopt.model import Communication, Gpu, Instance, Interference, Job, Machine, Part, Policy, Postpone, Slowdown
from placeopt.problem import Move, Placement, compile_problem
from placeopt.terms.costs.utility import company_of, path_excess, run_time_ms, spread_of
from placeopt.terms.rules import fits

NOW = 1_000_000


class LongWay(Timeline):
    """
    Jobs are put there to see how long all run then, and no place is left out because another one is like it, or because
    it was asked for before; nothing is remembered, every moment is tried, on all nodes, in the state of that moment.
    """

    def earliest_ms(self, job: int) -> int | None:
        return self.now

    def _changes_suffice(self, job: int) -> bool:
        return False

    def take(self, job: int, *, if_room_now: bool = False) -> Start | None:
        self._choices.clear()
        return super().take(job, if_room_now=if_room_now)

    def _best(self, job: int, at: int, *, heed: bool = True, evaluated: set[Seen] | None = None) -> Start | None:
        del evaluated
        self._estimates.clear()
        return super()._best(job, at, heed=heed)

    def _effects(self, job: int, placement: Placement) -> tuple[int, int]:
        state = self.state
        assert fits(state, job, placement)
        beside = {other for node in placement.nodes for other in state.node_jobs[node]}
        alone = {other: run_time_ms(state, other) or 0 for other in beside}
        undo = state.apply(Move(job, placement))
        excess = path_excess(state.problem, placement, spread_of(state.problem, job)) + company_of(state, job)
        harm = sum((run_time_ms(state, other) or 0) - alone[other] for other in beside)
        state.apply(undo)
        return excess, harm

    def _alike(self, placement: Placement) -> None:
        del placement


def sockets(name: str, across: int) -> Machine:
    """Two sockets of two GPUs each."""
    far = [across] * 2
    return machine(
        name,
        gpus=[Gpu(model="P100", memory_mib=16_384, part=f"s{i // 2}") for i in range(4)],
        parts=(Part(id="s0", level="socket"), Part(id="s1", level="socket")),
        gpu_distance_matrix=((0, 1, *far), (1, 0, *far), (*far, 0, 1), (*far, 1, 0)),
    )


def drawn(rng: np.random.Generator, model: str) -> Instance:
    """
    Machines of two kinds, idle ones among them; on half of the GPUs jobs that disturb each other, some of them on two
    machines; others wait.
    """

    def one(name: str, gpus: int, workers: int = 1) -> Job:
        return job(
            name,
            workers=workers,
            gpus=gpus,
            run_time_ms=int(rng.integers(1, 30)) * 60_000,
            profile=str(rng.choice(["a", "b"])),
            gpu_utilisation_percent=40,
            communication=Communication(weight=1),
        )

    nodes = [node(f"n{i}", str(rng.choice(["near", "far"]))) for i in range(7)]
    jobs = [one(f"w{i}", int(rng.integers(1, 4))) for i in range(8)]
    jobs += [one(f"g{i}", int(rng.integers(1, 3)), workers=2) for i in range(2)]
    where = [[(f"n{i}", [gpu])] for i in range(5) for gpu in range(1, 4) if rng.random() < 0.6]
    where += [[(f"n{i}", [0]), (f"n{i + 1}", [0])] for i in range(0, 4, 2) if rng.random() < 0.8]
    runs = []
    for i, workers in enumerate(where):
        jobs.append(one(f"r{i}", 1, len(workers)))
        end = NOW + int(rng.integers(1, 20)) * 60_000
        runs.append(running(jobs[-1], workers, expected_end_ms=end))
    slowdowns = (
        Slowdown(profile=one, beside=other, socket_thousandths=int(rng.integers(900)), node_thousandths=100)
        for one in "ab"
        for other in "ab"
    )
    return instance(
        nodes,
        jobs,
        machines=[sockets("near", 2), sockets("far", 20)],
        running=runs,
        slowdowns=tuple(slowdowns),
        now_ms=NOW,
        policy=Policy(interference=Interference(model=model), postpone=Postpone(rule="lookahead")),
    )


@pytest.mark.parametrize("model", ["pairwise", "worst", "curve"])
def test_the_short_way_decides_the_same(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In rounds some of which make jobs wait."""
    waits = 0
    for seed in range(4):
        problem = compile_problem(drawn(np.random.default_rng(31_000 + seed), model))
        order = order_jobs(problem, "fcfs")
        found = look_ahead(problem, order)
        with monkeypatch.context() as patched:
            patched.setattr(lookahead, "Timeline", LongWay)
            assert look_ahead(problem, order) == found
        waits += len(found.waits)
    assert waits > 0


def test_looks_beyond_the_fullest_nodes() -> None:
    """On all of those somebody disturbs; the only quiet place is the one that scores keep for others."""
    loud = [job(f"r{i}", gpus=2, run_time_ms=600_000, profile="a") for i in range(12)]
    coming = job("w", gpus=1, run_time_ms=600_000, profile="a")
    problem = compile_problem(
        instance(
            [node(f"n{i}", "near") for i in range(13)],
            [*loud, coming],
            machines=[sockets("near", 2)],
            running=[running(one, [(f"n{i}", [0, 2])], expected_end_ms=NOW + 600_000) for i, one in enumerate(loud)],
            slowdowns=(Slowdown(profile="a", beside="a", socket_thousandths=900),),
            now_ms=NOW,
            policy=Policy(postpone=Postpone(rule="lookahead")),
        )
    )
    start = look_ahead(problem, order_jobs(problem, "fcfs")).starts[12]
    assert start.nodes == (12,)
