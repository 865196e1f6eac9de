"""Kinds of jobs that wait are asked for again when there may be room, and only then."""

from pathlib import Path

import pytest

from builders import job, node, placement
from placeopt.model import Cluster, Placement, Policy
from placeopt.model.policy import Postpone, Queue
from placeopt.simulation import simulate
from placeopt.simulation.scheduling.retry_filter import RetryFilter
from scenarios import PLAIN, policy, random_scenario, scenario, timed, two_sockets

CLUSTER = Cluster(machines=(two_sockets(),), nodes=(node("n0"), node("n1")))


def closed(kinds: dict[str, object], rules: Policy = PLAIN) -> RetryFilter:
    """Return the openings of a full cluster, on which every kind was asked for in vain."""
    openings = RetryFilter(CLUSTER, rules)
    for name in ("n0", "n1"):
        for gpu in range(4):
            openings.take(placement(job("x", cpu_millicores=8000), [(name, (gpu,))]))
    for kind, one in kinds.items():
        openings.learn(kind, one)
        openings.closed.add(kind)
    return openings


def ended(openings: RetryFilter, gone: Placement) -> None:
    """Let a placement end."""
    openings.take(gone, -1)
    openings.ended(gone)


def test_a_kind_opens_where_a_worker_of_it_has_room() -> None:
    """One GPU and eight cores come free on a node; two GPUs, and more cores, only with a second job's."""
    openings = closed({"one": job("a"), "cores": job("b", cpu_millicores=8001), "two": job("c", gpus=2)})
    ended(openings, placement(job("x", cpu_millicores=8000), [("n0", (0,))]))
    assert openings.closed == {"cores", "two"}
    ended(openings, placement(job("x", cpu_millicores=8000), [("n1", (0,))]))
    assert openings.closed == {"cores", "two"}
    ended(openings, placement(job("x", cpu_millicores=1), [("n1", (1,))]))
    assert openings.closed == set()


def test_a_gang_opens_when_all_its_workers_have_room_on_any_nodes() -> None:
    """The second worker's GPU comes free elsewhere."""
    openings = closed({"gang": job("g", workers=2)})
    ended(openings, placement(job("x", cpu_millicores=8000), [("n0", (0,))]))
    assert openings.closed == {"gang"}
    ended(openings, placement(job("x", cpu_millicores=8000), [("n1", (3,))]))
    assert openings.closed == set()


def test_who_found_no_room_is_not_asked_again_until_some_is_given_up() -> None:
    """Be it by an end or by a gift: others may give meanwhile, but what is free has not grown."""
    openings = closed({"one": job("a"), "two": job("c", gpus=2)})
    openings.failed("one")
    openings.failed("two")
    openings.open_all()
    assert openings.has_no_room("one")
    openings.take(placement(job("x", cpu_millicores=8000), [("n0", (0,))]), -1)
    assert not openings.has_no_room("one")
    assert openings.has_no_room("two")
    limited = closed({"one": job("a")}, PLAIN.model_copy(update={"postpone": Postpone(rule="utility")}))
    limited.failed("one")
    assert not limited.has_no_room("one"), "a place may become good enough by itself"


def test_where_room_is_not_all_that_counts_every_end_opens_all() -> None:
    """A queue's limit is no matter of nodes."""
    openings = closed({"two": job("c", gpus=2)}, PLAIN.model_copy(update={"queues": (Queue(id="q"),)}))
    ended(openings, placement(job("x", cpu_millicores=8000), [("n0", (0,))]))
    assert openings.closed == set()


def test_room_is_room_on_one_gpu() -> None:
    """Half of each of two GPUs is none for a whole one; where jobs have GPUs of their own, half is none for anybody."""
    kinds = {"whole": job("w"), "half": job("h", gpu_milli=500)}
    for mode, left in (("fraction", {"whole"}), ("exclusive", {"whole", "half"})):
        rules = PLAIN.model_copy(update={"share_mode": mode})
        openings = RetryFilter(CLUSTER, rules)
        for name in ("n0", "n1"):
            for gpu in range(4):
                openings.take(placement(job("x", gpu_milli=500), [(name, (gpu,))]))
        for kind, one in kinds.items():
            openings.learn(kind, one)
            openings.closed.add(kind)
        gone = placement(job("y", gpus=0, cpu_millicores=1), [("n0", ())])
        openings.take(gone)
        ended(openings, gone)
        assert openings.closed == left


def test_what_others_took_is_room_no_more() -> None:
    """A GPU comes free and is taken: who had found none need not be asked; when it comes free again, he is."""
    openings = closed({"one": job("a")})
    openings.failed("one")
    gone = placement(job("x", cpu_millicores=8000), [("n0", (0,))])
    openings.take(gone, -1)
    assert not openings.has_no_room("one")
    openings.take(gone)
    assert openings.has_no_room("one")
    openings.take(gone, -1)
    assert not openings.has_no_room("one")


@pytest.mark.parametrize("share_mode", ["fraction", "exclusive", "overcommit"])
@pytest.mark.parametrize("seed", range(4))
def test_the_same_is_decided_as_when_all_are_always_asked(
    seed: int, share_mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte; and fewer are asked."""
    shared = {"share_mode": share_mode, "jobs_per_gpu_max": None if share_mode == "exclusive" else 2}
    rules = policy("best-fit", policy=PLAIN.model_copy(update=shared))
    world = random_scenario(seed, jobs=80, nodes=2)
    opened = []
    real = RetryFilter._open
    monkeypatch.setattr(RetryFilter, "_open", lambda self, nodes: (real(self, nodes), opened.append(len(self.closed))))
    simulate(world, rules, log=tmp_path / "some")
    monkeypatch.setattr(RetryFilter, "_open", lambda self, nodes: self.open_all())
    monkeypatch.setattr(RetryFilter, "has_no_room", lambda self, kind: False)
    simulate(world, rules, log=tmp_path / "all")
    assert (tmp_path / "some").read_bytes() == (tmp_path / "all").read_bytes()
    assert sum(opened) > 0


def test_where_inference_may_stop_others_only_inference_is_asked_again_at_every_round() -> None:
    """
    A full node; every arrival holds a round, and inference stops the CPU job that came in between.

    The training job waits for an end: nobody would stop for it.
    """
    jobs = [
        timed("held", 0, 9000, gpus=4, cpu_millicores=24_000, kind="inference"),
        timed("training", 1, 1000, cpu_millicores=8000),
        timed("answers", 2, 1000, gpus=0, cpu_millicores=16_000, kind="inference"),
        timed("cores", 3, 1000, gpus=0, cpu_millicores=8000, kind="cpu"),
        timed("more", 4, 1000, gpus=0, cpu_millicores=8000, kind="inference"),
    ]
    history = simulate(scenario(jobs), policy("best-fit", order="inference_first", preempts="inference"))
    assert {one.job: (one.start_ms, one.stops) for one in history.jobs} == {
        "held": (0, 0),
        "training": (9000, 0),
        "answers": (9000, 0),
        "cores": (3, 1),
        "more": (4, 0),
    }


def test_gpus_that_are_shared_take_as_many_as_they_may() -> None:
    """Two jobs on each of four GPUs, though the third pair asks for more than all there is."""
    rules = policy("best-fit", policy=PLAIN.model_copy(update={"share_mode": "overcommit", "jobs_per_gpu_max": 2}))
    jobs = [timed(str(i), 0, 1000) for i in range(9)]
    assert [one.start_ms for one in simulate(scenario(jobs), rules).jobs] == [0] * 8 + [1000]
