"""An earlier plan is a candidate, no more; and ranks go where their traffic is cheap."""

from placeopt import Engine, violations
from placeopt.build import instance, job, machine, node, option
from placeopt.model import Communication, Edge, Gpu, Part


def test_an_earlier_plan_wins_where_greedy_is_worse(engine: Engine) -> None:
    """Two nodes of 4 GPUs, jobs of 2, 3, 1 and 2 in this order: first fit puts 2 + 1 and 3, and the last one waits."""
    jobs = [job("a", gpus=2), job("b", gpus=3), job("c", gpus=1), job("d", gpus=2)]
    round_ = instance(2, jobs)
    assert engine.solve(round_, method="fcfs", time_limit_s=5).levels[0].objective == 3
    exact = engine.solve(round_, method="counts", time_limit_s=5)
    assert exact.levels[0].objective == 4
    again = engine.solve(round_, method="fcfs", time_limit_s=5, previous=exact)
    stage = next(stage for stage in again.stages if stage.name == "previous")
    assert (stage.outcome, stage.detail) == ("improved", "4 of 4 earlier placements hold")
    assert again.levels[0].objective == 4
    assert violations(round_, again) == []
    bigger = instance(2, [*jobs[:2], job("c", gpus=4), jobs[3]])  # a job that has changed is decided anew
    changed = engine.solve(bigger, method="fcfs", time_limit_s=5, previous=exact)
    assert "3 of 4 earlier placements hold" in next(s.detail for s in changed.stages if s.name == "previous")
    assert violations(bigger, changed) == []


def test_ranks_follow_their_traffic(engine: Engine) -> None:
    """
    A ring of four workers 0-2-1-3-0 on two sockets of two GPUs, 2 apart inside and 42 across.

    In rank order, {0, 1} and {2, 3} share the sockets: all four edges cross, 168. Best: two edges cross, 88.
    """
    parts = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))
    gpus = tuple(Gpu(model="G", memory_mib=0, part=f"s{i // 2}") for i in range(4))
    box = machine(parts=parts, gpus=gpus)
    edges = tuple(Edge(ranks=ranks, weight=1) for ranks in ((0, 2), (2, 1), (1, 3), (3, 0)))
    ring = job("ring", options=(option(gpus=1, workers=4, single_node=True),), communication=Communication(edges=edges))
    round_ = instance([node("n0", machine="m")], [ring], machines=[box])
    plan = engine.solve(round_, method="stranding", time_limit_s=5)
    assert plan.costs["communication"].raw == 88
    assert any(stage.name == "ranks" and stage.outcome == "improved" for stage in plan.stages)
    whole = engine.solve(round_, method="annealing", deterministic=True)
    assert whole.costs["communication"].raw == 88
    assert any(stage.name == "drb-again" and stage.outcome == "improved" for stage in whole.stages)
