"""Brief answers to rounds that one stage settles: they start whom the whole round starts, in the same places."""

import numpy as np
import pytest

from helpers.small_rounds import random_round
from placeopt import Engine, Instance, violations
from placeopt.build import instance, job, machine, node, running
from placeopt.check import Ledger, Violation
from placeopt.model import Changes, Communication, Gpu, Part, Policy, Postpone

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


def test_they_are_the_decisions_of_the_whole_round() -> None:
    """Where jobs start, had better wait, or have no room; most such rounds are settled, and not all."""
    brief, waited = 0, 0
    for seed in range(40):
        loaded = drawn(np.random.default_rng(61_000 + seed))
        with Engine(isolation="thread") as engine:
            engine.load(loaded)
            short = engine.place(deterministic=True, brief=True)
            whole = engine.place(deterministic=True, warm=False)
            runs = {one.job for one in loaded.running}
            assert [one for one in short.placements if one.job not in runs] == [
                one for one in whole.placements if one.job not in runs
            ]
            assert violations(loaded, short) == []
            if short.asked is not None:
                brief += 1
                waited += len(whole.unplaced)
                engine.commit(short)
                assert set(short.asked) <= {one.job for one in engine.snapshot.running}
    assert 20 < brief < 40
    assert waited > 0


@pytest.mark.parametrize("method", ["drb", "drb-sc17", "sc17-fcfs", "best-fit", "stranding", "random"])
def test_greedy_rounds_of_every_feature(method: str) -> None:
    """With minimal utilities, queues and links; traffic graphs and jobs that may change leave more to decide."""
    brief = started = 0
    for seed in range(40):
        loaded = random_round(np.random.default_rng(seed), named=seed % 3 == 2)
        if loaded.policy.postpone.rule == "lookahead":
            continue
        with Engine(isolation="thread") as engine:
            engine.load(loaded)
            told = {"method": method, "deterministic": True, "warm": False, "prove": False, "seed": seed}
            short, whole = engine.place(**told, brief=True), engine.place(**told)
            runs = {one.job for one in loaded.running}
            starts = [one for one in whole.placements if one.job not in runs]
            assert [one for one in short.placements if one.job not in runs] == starts, seed
            assert violations(loaded, short) == []
            if short.asked is not None:
                assert short.asked == tuple(one.job for one in starts)
                brief, started = brief + 1, started + len(starts)
                engine.commit(short)
    assert brief > 15
    assert started > 20


def test_the_ledger_judges_minimal_utility_as_the_referee_does() -> None:
    """Of plans for some jobs that were made as if nobody had a minimum, beside those that run."""
    refused = 0
    for seed in range(60):
        loaded = random_round(np.random.default_rng(seed), named=seed % 3 == 2)
        held = {one.job for one in loaded.running}
        utility = loaded.policy.model_copy(update={"postpone": Postpone(rule="utility")})
        least = [
            one if one.id in held else one.model_copy(update={"utility_min_thousandths": 450}) for one in loaded.jobs
        ]
        loaded = loaded.model_copy(update={"jobs": tuple(least), "policy": utility})
        ignored = loaded.policy.model_copy(update={"postpone": Postpone()})
        with Engine(ignored, isolation="thread") as engine:
            engine.load(loaded)
            plan = engine.place([job.id for job in loaded.jobs if job.id not in held], explain=False)
        values = plan.policy.model_copy(update={"values": utility, "digest": utility.digest})
        plan = plan.model_copy(update={"policy": values})
        found = Ledger(loaded, utility).violations(loaded, plan)
        assert [str(one) for one in found] == [str(one) for one in violations(loaded, plan)], seed
        refused += any(one.rule == "minimal_utility" for one in found)
    assert refused > 2


def test_rounds_that_may_change_what_runs_are_whole() -> None:
    """Look-ahead decides on those that wait only."""
    with Engine(isolation="thread") as engine:
        engine.load(drawn(np.random.default_rng(61_000), changes=True))
        assert engine.place(deterministic=True, brief=True).asked is None


def test_what_the_ledger_refuses_is_decided_by_the_whole_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of look-ahead, say: stages judge what they find by themselves."""
    with Engine(isolation="thread") as engine:
        engine.load(drawn(np.random.default_rng(61_000)))
        assert engine.place(deterministic=True, brief=True).asked is not None
        broken = Violation("gpu_share", "node 'n0' GPU 0", "held twice")
        monkeypatch.setattr(Ledger, "violations", lambda *_: [broken])
        assert engine.place(deterministic=True, brief=True).asked is None
