"""One more node of a type is the same node, whoever asks; `explain_all` has an oracle of its own (test_queue)."""

from hypothesis import event, given, settings

from placeopt import Engine, Instance
from placeopt.whatif import Limits, Patch, add, apply_patch, parse_variation, price, sweep
from strategies import rounds

LIMITS = Limits(time_limit_s=20, threads=1)


def with_one(round_: Instance, machine: str) -> Instance:
    """Return the round with one more node of a machine type, by a patch."""
    step = {"do": "add_nodes", "machine": machine, "count": 1}
    return apply_patch(round_, Patch.model_validate({"steps": [step]})).instance


def counted(round_: Instance) -> Instance:
    """Return the round in which each job counts 1 however it runs."""
    same = {"value": 1, "value_per_worker": 0}
    jobs = [
        job.model_copy(update={"options": tuple(o.model_copy(update=same) for o in job.options)}) for job in round_.jobs
    ]
    return round_.model_copy(update={"jobs": tuple(jobs)})


@settings(max_examples=max(1, settings().max_examples // 5))
@given(round_=rounds(changes=False, standing=False))
def test_all_who_ask_get_the_same_node(engine: Engine, round_: Instance) -> None:
    """With labels, taints, types, domains and quotas: what a patch makes is what `sweep`, `price` and `add` count."""
    prices = {one.name: one for one in price(round_, limits=LIMITS).prices}
    for machine in {node.machine for node in round_.cluster.nodes}:
        none, one = (
            point.outcome for point in sweep(round_, parse_variation(f"nodes:{machine}=0,1"), limits=LIMITS).points
        )
        patched = engine.solve(with_one(round_, machine), time_limit_s=20).levels[0]
        if not (none.value == none.value_bound and one.value == one.value_bound and patched.objective == patched.bound):
            event("not proven")
            continue
        assert one.value == patched.objective
        assert (prices[machine].low, prices[machine].high) == (one.value - none.value,) * 2
        found = add(round_, machine, limits=LIMITS)
        all_run = [
            not engine.solve(counted(made), time_limit_s=20).unplaced for made in (round_, with_one(round_, machine))
        ]
        assert [found.found is not None and found.found <= number for number in (0, 1)] == all_run
