"""``place(brief=True)``: rounds that one stage settles start whom the whole round starts, in the same places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.live_engine import engine_of
from helpers.scenarios import two_sockets
from placeopt import Instance, violations
from placeopt.build import instance, job, running
from placeopt.check import Ledger, Violation
from placeopt.model import Changes, Communication, Policy, Postpone
from strategies import Choice, rounds, seeded

NOW = 1_000_000


def drawn(choice: Choice, *, changes: bool = False) -> Instance:
    """Minskys on which half of the GPUs are busy, seen by a few jobs of one to four GPUs, some of unknown run time."""
    jobs, held = [], []
    for i in range(choice.number(1, 5)):
        known = None if choice.chance(0.1) else choice.number(1, 29) * 60_000
        jobs.append(job(f"w{i}", gpus=choice.number(1, 4), communication=Communication(weight=1), run_time_ms=known))
    for n, gpu in choice.some([(n, gpu) for n in range(3) for gpu in range(4)]):
        jobs.append(job(f"r{n}-{gpu}"))
        end = NOW + choice.number(1, 19) * 60_000
        held.append(running(jobs[-1], [(f"n{n}", [gpu])], expected_end_ms=end, movable=changes))
    moves = Changes(moves_max=1) if changes else Changes()
    policy = Policy(share_mode="exclusive", postpone=Postpone(rule="lookahead"), changes=moves)
    return instance(3, jobs, machines=[two_sockets()], running=held, now_ms=NOW, policy=policy)


def both(loaded: Instance, **options: object) -> tuple[bool, int]:
    """Compare the brief round with the whole one; return whether it was brief, and how many jobs wait."""
    runs = {one.job for one in loaded.running}
    with engine_of(loaded) as engine:
        short = engine.place(deterministic=True, brief=True, **options)
        whole = engine.place(deterministic=True, warm=False, **options)
        starts = [one for one in whole.placements if one.job not in runs]
        assert [one for one in short.placements if one.job not in runs] == starts
        assert violations(loaded, short) == []
        if short.asked is not None:
            engine.commit(short)
            assert {held.job for held in engine.snapshot.running} == runs | {one.job for one in starts}
    return short.asked is not None, len(whole.unplaced)


def test_look_ahead_decides_the_same() -> None:
    """Where jobs start, should wait, or have no room; most such rounds are settled, and not all."""
    found = [both(drawn(seeded(seed))) for seed in range(40)]
    assert 20 < sum(brief for brief, _ in found) < 40
    assert sum(waiting for brief, waiting in found if brief) > 0


@given(rounds(), st.sampled_from(["drb", "drb-sc17", "sc17-fcfs", "best-fit", "stranding", "random"]))
def test_greedy_decides_the_same(loaded: Instance, method: str) -> None:
    """With minimal utilities, queues and links; traffic graphs and jobs that may change leave more to decide."""
    both(loaded, method=method, prove=False, seed=7)


def test_rounds_that_may_change_what_runs_are_whole() -> None:
    """Look-ahead decides on those that wait only."""
    assert not both(drawn(seeded(0), changes=True))[0]


def test_what_the_ledger_refuses_is_decided_by_the_whole_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of look-ahead, say: stages judge what they find by themselves."""
    with engine_of(drawn(seeded(0))) as engine:
        assert engine.place(deterministic=True, brief=True).asked is not None
        broken = Violation("gpu_share", "node 'n0' GPU 0", "held twice")
        monkeypatch.setattr(Ledger, "violations", lambda *_, **__: [broken])
        assert engine.place(deterministic=True, brief=True).asked is None
