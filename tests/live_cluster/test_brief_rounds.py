"""``place(brief=True)``: rounds that one stage settles start whom the whole round starts, in the same places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.live_engine import engine_of
from placeopt import Engine, Instance, violations
from placeopt.build import instance, job, machine, node, running
from placeopt.check import Ledger, Violation
from placeopt.model import Changes, Communication, Gpu, Part, Policy, Postpone
from strategies import rounds

NOW = 1_000_000


def drawn(rng: np.random.Generator, *, changes: bool = False) -> Instance:
    """Minskys on which half of the GPUs are busy, seen by a few jobs of one to four GPUs, some of unknown run time."""
    minsky = machine(
        gpus=[Gpu(model="P100", memory_mib=16_384, part=f"s{i // 2}") for i in range(4)],
        parts=(Part(id="s0", level="socket"), Part(id="s1", level="socket")),
        gpu_distance_matrix=((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0)),
    )
    jobs = [
        job(
            f"w{i}",
            gpus=int(rng.integers(1, 5)),
            communication=Communication(weight=1),
            run_time_ms=None if rng.random() < 0.1 else int(rng.integers(1, 30)) * 60_000,
        )
        for i in range(int(rng.integers(1, 6)))
    ]
    runs = []
    for n in range(3):
        for gpu in np.flatnonzero(rng.random(4) < 0.5).tolist():
            jobs.append(job(f"r{n}-{gpu}"))
            end = NOW + int(rng.integers(1, 20)) * 60_000
            runs.append(running(jobs[-1], [(f"n{n}", [gpu])], expected_end_ms=end, movable=changes))
    policy = Policy(
        share_mode="exclusive",
        postpone=Postpone(rule="lookahead"),
        changes=Changes(moves_max=1) if changes else Changes(),
    )
    nodes = [node(f"n{n}") for n in range(3)]
    return instance(nodes, jobs, machines=[minsky], running=runs, now_ms=NOW, policy=policy)


def both(loaded: Instance, **options: object) -> tuple[bool, int]:
    """Compare the brief round with the whole one; return whether it was brief, and how many jobs wait."""
    runs = {one.job for one in loaded.running}
    with engine_of(loaded) as engine:
        short = engine.place(deterministic=True, brief=True, **options)  # type: ignore[arg-type]
        whole = engine.place(deterministic=True, warm=False, **options)  # type: ignore[arg-type]
        starts = [one for one in whole.placements if one.job not in runs]
        assert [one for one in short.placements if one.job not in runs] == starts
        assert violations(loaded, short) == []
        if short.asked is not None:
            engine.commit(short)
            assert {held.job for held in engine.snapshot.running} == runs | {one.job for one in starts}
    return short.asked is not None, len(whole.unplaced)


def test_look_ahead_decides_the_same() -> None:
    """Where jobs start, should wait, or have no room; most such rounds are settled, and not all."""
    found = [both(drawn(np.random.default_rng(61_000 + seed))) for seed in range(40)]
    assert 20 < sum(brief for brief, _ in found) < 40
    assert sum(waiting for brief, waiting in found if brief) > 0


@given(rounds(), st.sampled_from(["drb", "drb-sc17", "sc17-fcfs", "best-fit", "stranding", "random"]))
def test_greedy_decides_the_same(loaded: Instance, method: str) -> None:
    """With minimal utilities, queues and links; traffic graphs and jobs that may change leave more to decide."""
    both(loaded, method=method, prove=False, seed=7)


@given(rounds(minima=True))
def test_the_ledger_judges_minimal_utility_as_the_referee_does(loaded: Instance) -> None:
    """Of plans for some jobs that were made as if nobody had a minimum, beside those that run."""
    held = {one.job for one in loaded.running}
    ignored = loaded.policy.model_copy(update={"postpone": Postpone()})
    with Engine(ignored, isolation="thread") as engine:
        engine.load(loaded)
        plan = engine.place([one.id for one in loaded.jobs if one.id not in held], explain=False)
    values = plan.policy.model_copy(update={"values": loaded.policy, "digest": loaded.policy.digest})
    plan = plan.model_copy(update={"policy": values})
    found = Ledger(loaded, loaded.policy).violations(loaded, plan)
    assert [str(one) for one in found] == [str(one) for one in violations(loaded, plan)]


def test_rounds_that_may_change_what_runs_are_whole() -> None:
    """Look-ahead decides on those that wait only."""
    assert not both(drawn(np.random.default_rng(61_000), changes=True))[0]


def test_what_the_ledger_refuses_is_decided_by_the_whole_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of look-ahead, say: stages judge what they find by themselves."""
    with engine_of(drawn(np.random.default_rng(61_000))) as engine:
        assert engine.place(deterministic=True, brief=True).asked is not None
        broken = Violation("gpu_share", "node 'n0' GPU 0", "held twice")
        monkeypatch.setattr(Ledger, "violations", lambda *_: [broken])
        assert engine.place(deterministic=True, brief=True).asked is None
