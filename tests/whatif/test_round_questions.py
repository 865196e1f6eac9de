"""Whole rounds under other settings: sweeps, swaps and prices, by hand and against rounds solved alone."""

from collections.abc import Callable
from functools import partial

import pytest

from placeopt import BadInput, Engine, generate
from placeopt.build import instance, job, machine, node, running
from placeopt.edits import AddMachines, Patch, apply
from placeopt.model import Domain, Gpu, Instance, Policy, Queue, Quota, Weights
from placeopt.whatif import Limits, parse_variation, price, swap, sweep

SHORT = Limits(time_limit_s=5.0, threads=1)
VALUE_ALONE = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))


def waiting(count: int = 6, quota: int | None = None) -> Instance:
    """One node of four GPUs in a rack; jobs of two GPUs, worth 10 each, wait, those of a queue for its quota."""
    queued = quota is not None
    policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=quota)),)) if queued else None
    jobs = [job(f"j{i}", gpus=2, value=10, queue="q" if queued else None) for i in range(count)]
    return instance([node("n0", domain="rack-0")], jobs, domains=[Domain(id="rack-0")], policy=policy)


@pytest.mark.parametrize(
    ("text", "what", "name", "settings"),
    [
        ("nodes:m=0-2", "nodes", "m", (0, 1, 2)),
        ("nodes:a:b=1,3", "nodes", "a:b", (1, 3)),
        ("demand=80-120:20,100,7", "demand", "", (80, 100, 120, 7)),
        ("quota:q=4", "quota", "q", (4,)),
    ],
)
def test_variations_are_read(text: str, what: str, name: str, settings: tuple[int, ...]) -> None:
    """Each setting once, in order."""
    assert parse_variation(text) == (what, name, settings)


@pytest.mark.parametrize(
    ("base", "text", "values", "left", "prices"),
    [
        # two jobs a node, six jobs
        (waiting(), "nodes:n0=0-3", [20, 40, 60, 60], [4, 2, 0, 0], [1000, 2000, 3000, 4000]),
        # GPUs of a queue: 2 let one job in, 4 both that there is room for
        (waiting(quota=0), "quota:q=0,2,4,8", [0, 10, 20, 20], [6, 5, 4, 4], [1000] * 4),
    ],
)
def test_sweeps_by_hand(base: Instance, text: str, values: list[int], left: list[int], prices: list[int]) -> None:
    """Values, proven; jobs that wait, and what the nodes cost."""
    found = sweep(base, parse_variation(text), limits=SHORT)
    assert [point.setting for point in found.points] == list(parse_variation(text)[2])
    assert [point.outcome.value for point in found.points] == values
    assert [point.outcome.value_bound for point in found.points] == values
    assert [point.outcome.jobs_waiting for point in found.points] == left
    assert [point.outcome.price_milli_per_hour for point in found.points] == prices


def test_sweeps_side_by_side() -> None:
    """In processes, the same points in the same order."""
    variation = parse_variation("demand=50,100,150")
    one, two = (sweep(waiting(), variation, limits=SHORT, jobs=jobs) for jobs in (1, 2))
    assert one.points == two.points


EXPECTED = r"expected|neither a number"
ODD = ("", "nodes=1", "demand:x=1", "jobs:x=1", "nodes:m=", "nodes:m=3-1", "nodes:m=a", "demand=0-9999", "quota=3")
REFUSED: list[tuple[str, Callable[[], object]]] = [
    *((EXPECTED, partial(parse_variation, text)) for text in ODD),
    ("no machine type and no node of that name", lambda: sweep(waiting(), parse_variation("nodes:x=1"))),
    ("no machine type and no node of that name", lambda: sweep(waiting(), parse_variation("nodes:x=0"))),
    ("no queue 'x'", lambda: sweep(waiting(), parse_variation("quota:x=1"))),
    ("of type 'm' already", lambda: swap(waiting(), "m", of="m")),  # what runs there would wait for nothing
    ("no machine type 'x'", lambda: swap(waiting(), "x", of="m")),
    ("expected node, quota", lambda: price(waiting(), ("leaf",))),
    ("no queue", lambda: price(waiting(), ("quota",))),
]


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_what_is_refused(words: str, call: Callable[[], object]) -> None:
    """Before anything is solved."""
    with pytest.raises(BadInput, match=words):
        call()


def test_a_swap_by_hand() -> None:
    """A node of eight GPUs for one of four: four jobs in place of two, 20 more. Back again: worse."""
    big = AddMachines(do="add_machines", machines=(machine("big", gpus=8),))
    base = apply(waiting(), [big])
    found = swap(base, "big", of="m", limits=SHORT)
    assert (found.exchanged, found.gain_low, found.gain_high, found.answer) == (1, 20, 20, "better")
    turn = {"do": "replace_nodes", "of": "m", "machine": "big"}
    turned = apply(base, Patch.model_validate({"steps": (turn,)}).steps)
    assert swap(turned, "m", nodes=("n0",), limits=SHORT).answer == "worse"


def test_what_ran_there_is_placed_again() -> None:
    """On GPUs of another model it has no place: what it was worth is lost."""
    held = job("held", gpus=2, gpu_models=("V100",), value=7)
    machines = [machine("m"), machine("other", gpus=(Gpu(model="A100"),) * 4)]
    base = instance(1, [held], machines=machines, running=[running(held, [("n0", (0, 1))])])
    found = swap(base, "other", of="m", limits=SHORT)
    assert (found.after.displaced, found.after.jobs_placed, found.gain_high, found.answer) == (1, 0, -7, "worse")


def test_prices_by_hand() -> None:
    """Two jobs more on a node more, and in a rack more; of quota a job needs two GPUs, so one GPU is worth nothing."""
    found = price(waiting(), ("node", "rack"), limits=SHORT)
    assert {(one.of, one.name, one.low, one.high, one.by_duals) for one in found.prices} == {
        ("node", "m", 20, 20, 20),
        ("domain", "rack-0", 20, 20, 20),
    }
    assert [one.agreement for one in found.prices] == ["equal", "equal"]
    assert price(waiting(2), limits=SHORT).prices[0].high == 0
    [quota] = price(waiting(quota=2000), ("quota",), limits=SHORT).prices
    assert (quota.low, quota.high, quota.by_duals) == (0, 0, 0)  # the row counts jobs of two GPUs: 3 // 2 is 1


@pytest.mark.parametrize("seed", range(4))
def test_prices_are_those_of_rounds_solved_alone(engine: Engine, seed: int) -> None:
    """The interval holds the difference of the two rounds' best plans; duals bound the larger round."""
    base = generate("uniform", jobs=30, nodes=6, gpus=4, seed=seed)
    [found] = price(base, limits=SHORT).prices
    nodes = (*base.cluster.nodes, base.cluster.nodes[0].model_copy(update={"id": "more"}))
    more = base.model_copy(update={"cluster": base.cluster.model_copy(update={"nodes": nodes})})
    alone = [one.model_copy(update={"policy": VALUE_ALONE}) for one in (base, more)]
    before, after = (engine.solve(one, time_limit_s=20).levels[0] for one in alone)
    assert (before.objective, after.objective) == (before.bound, after.bound)
    assert found.low == found.high == after.objective - before.objective
    assert found.by_duals is not None
    assert 0 <= found.by_duals <= 4 * max(job.options[0].value for job in base.jobs)
