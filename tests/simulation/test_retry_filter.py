"""Kinds of jobs that wait are asked for again when there may be room, and only then."""

from pathlib import Path

import pytest

from helpers.scenarios import PLAIN, policy, random_scenario, scenario, timed, two_sockets
from placeopt.build import job, node, placement
from placeopt.model import Cluster, Demand, Placement, Policy, Postpone, Queue
from placeopt.simulation import simulate
from placeopt.simulation.scheduling.free_resources import FreeResources
from placeopt.simulation.scheduling.retry_filter import RetryFilter

CLUSTER = Cluster(machines=(two_sockets(),), nodes=(node("n0"), node("n1")))


class FilledCluster(RetryFilter):
    """A retry filter with the account of free resources that it reads."""

    def __init__(self, rules: Policy) -> None:
        self.resources = FreeResources(CLUSTER, rules)
        super().__init__(self.resources, rules)

    def take(self, placement: Placement, sign: int = 1) -> None:
        """Let a placement start or, with ``sign`` -1, end; no job uses GPU memory."""
        self.resources.take(placement, Demand(), sign)
        if sign < 0:
            self.freed(placement)


def closed(kinds: dict[str, object], rules: Policy = PLAIN) -> FilledCluster:
    """Return the filter of a full cluster, on which no kind fits."""
    retries = FilledCluster(rules)
    for name in ("n0", "n1"):
        for gpu in range(4):
            retries.take(placement(job("x", cpu_millicores=8000), [(name, (gpu,))]))
    for kind, one in kinds.items():
        retries.learn(kind, one)
        retries.closed.add(kind)
    return retries


def ended(retries: FilledCluster, gone: Placement) -> None:
    """Let a placement end."""
    retries.take(gone, -1)
    retries.ended(gone)


def test_a_kind_opens_where_a_worker_of_it_has_room() -> None:
    """One GPU and eight cores come free on a node; two GPUs, and more cores, only with a second job's."""
    retries = closed({"one": job("a"), "cores": job("b", cpu_millicores=8001), "two": job("c", gpus=2)})
    ended(retries, placement(job("x", cpu_millicores=8000), [("n0", (0,))]))
    assert retries.closed == {"cores", "two"}
    ended(retries, placement(job("x", cpu_millicores=8000), [("n1", (0,))]))
    assert retries.closed == {"cores", "two"}
    ended(retries, placement(job("x", cpu_millicores=1), [("n1", (1,))]))
    assert retries.closed == set()


def test_a_gang_opens_when_all_its_workers_have_room_on_any_nodes() -> None:
    """The second worker's GPU comes free elsewhere."""
    retries = closed({"gang": job("g", workers=2)})
    ended(retries, placement(job("x", cpu_millicores=8000), [("n0", (0,))]))
    assert retries.closed == {"gang"}
    ended(retries, placement(job("x", cpu_millicores=8000), [("n1", (3,))]))
    assert retries.closed == set()


def test_a_job_without_room_is_retried_only_after_capacity_is_released() -> None:
    """Be it by an end or by a gift: others may give meanwhile, but what is free has not grown."""
    retries = closed({"one": job("a"), "two": job("c", gpus=2)})
    retries.failed("one")
    retries.failed("two")
    retries.open_all()
    assert retries.cannot_fit("one")
    retries.take(placement(job("x", cpu_millicores=8000), [("n0", (0,))]), -1)
    assert not retries.cannot_fit("one")
    assert retries.cannot_fit("two")
    limited = closed({"one": job("a")}, PLAIN.model_copy(update={"postpone": Postpone(rule="utility")}))
    limited.failed("one")
    assert not limited.cannot_fit("one"), "a place may become good enough by itself"


def test_where_room_is_not_all_that_counts_every_end_opens_all() -> None:
    """A queue's limit is no matter of nodes."""
    retries = closed({"two": job("c", gpus=2)}, PLAIN.model_copy(update={"queues": (Queue(id="q"),)}))
    ended(retries, placement(job("x", cpu_millicores=8000), [("n0", (0,))]))
    assert retries.closed == set()


def test_room_is_room_on_one_gpu() -> None:
    """Half of each of two GPUs is none for a whole one; where jobs have GPUs of their own, half is none for anybody."""
    kinds = {"whole": job("w"), "half": job("h", gpu_milli=500)}
    for mode, left in (("fraction", {"whole"}), ("exclusive", {"whole", "half"})):
        rules = PLAIN.model_copy(update={"share_mode": mode})
        retries = FilledCluster(rules)
        for name in ("n0", "n1"):
            for gpu in range(4):
                retries.take(placement(job("x", gpu_milli=500), [(name, (gpu,))]))
        for kind, one in kinds.items():
            retries.learn(kind, one)
            retries.closed.add(kind)
        gone = placement(job("y", gpus=0, cpu_millicores=1), [("n0", ())])
        retries.take(gone)
        ended(retries, gone)
        assert retries.closed == left


def test_what_others_took_is_room_no_more() -> None:
    """A GPU comes free and is taken: who had found none need not be asked; when it comes free again, he is."""
    retries = closed({"one": job("a")})
    retries.failed("one")
    gone = placement(job("x", cpu_millicores=8000), [("n0", (0,))])
    retries.take(gone, -1)
    assert not retries.cannot_fit("one")
    retries.take(gone)
    assert retries.cannot_fit("one")
    retries.take(gone, -1)
    assert not retries.cannot_fit("one")


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
    monkeypatch.setattr(RetryFilter, "cannot_fit", lambda self, kind: False)
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
    jobs = [timed(str(i), 0, 1000, gpu_utilisation_percent=40) for i in range(9)]
    assert [one.start_ms for one in simulate(scenario(jobs), rules).jobs] == [0] * 8 + [1000]
