"""Rounds beside variants of them, by hand and against rounds solved alone."""

from collections.abc import Callable
from functools import partial

import pytest

from placeopt import BadInput, Engine, generate
from placeopt.build import instance, job, machine, node, running
from placeopt.edits import AddMachines, Patch, apply
from placeopt.model import Domain, Gpu, Instance, Policy, Queue, Quota, Weights
from placeopt.whatif import Comparison, Limits, compare, parse_variants

SHORT = Limits(time_limit_s=120.0, threads=1)
VALUE_ALONE = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))


def waiting(count: int = 6, quota: int | None = None) -> Instance:
    """One node of four GPUs in a rack; jobs of two GPUs, worth 10 each, wait, those of a queue for its quota."""
    queued = quota is not None
    policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=quota)),)) if queued else None
    jobs = [job(f"j{i}", gpus=2, value=10, queue="q" if queued else None) for i in range(count)]
    return instance([node("n0", domain="rack-0")], jobs, domains=[Domain(id="rack-0")], policy=policy)


def vary(base: Instance, text: str) -> Comparison:
    """Compare the round with variants of it."""
    return compare(base, parse_variants(text, base), limits=SHORT)


@pytest.mark.parametrize(
    ("text", "varied", "settings"),
    [
        ("nodes:n0=0-2", "nodes:n0", ["0", "1", "2"]),
        ("nodes:a:b=1,3", "nodes:a:b", ["1", "3"]),
        ("demand=80-120:20,100,7", "demand", ["80", "100", "120", "7"]),
        ("arrivals=50,100", "arrivals", ["50", "100"]),
        ("quota:q=4", "quota:q", ["4"]),
        ("more=node,rack,quota", "more", ["node m", "rack rack-0", "quota q"]),
        ("machine:m=a:b", "machine:m", ["a:b"]),
    ],
)
def test_variants_are_read(text: str, varied: str, settings: list[str]) -> None:
    """Each setting once, in order; what grows can place what could be placed before."""
    base = apply(waiting(quota=0), [AddMachines(do="add_machines", machines=(machine("a:b"),))])
    found = parse_variants(text, base)
    assert (found.varied, [one.name for one in found.settings]) == (varied, settings)
    assert {one.grows for one in found.settings} == {varied.startswith(("nodes", "more"))}


@pytest.mark.parametrize(
    ("base", "text", "values", "left", "prices"),
    [
        # two jobs a node, six jobs
        (waiting(), "nodes:n0=0-3", [20, 40, 60, 60], [4, 2, 0, 0], [1000, 2000, 3000, 4000]),
        # GPUs of a queue: 2 let one job in, 4 both that there is room for
        (waiting(quota=0), "quota:q=0,2,4,8", [0, 10, 20, 20], [6, 5, 4, 4], [1000] * 4),
    ],
)
def test_numbers_by_hand(base: Instance, text: str, values: list[int], left: list[int], prices: list[int]) -> None:
    """Values, proven; jobs that wait, what the nodes cost, and what is gained."""
    found = vary(base, text)
    assert found.before is not None
    assert [one.outcome.value for one in found.variants] == values
    assert [one.outcome.value_bound for one in found.variants] == values
    assert [one.outcome.jobs_waiting for one in found.variants] == left
    assert [one.outcome.price_milli_per_hour for one in found.variants] == prices
    gains = [value - found.before.value for value in values]
    assert [(one.gain_low, one.gain_high) for one in found.variants] == list(zip(gains, gains, strict=True))
    assert [one.answer for one in found.variants] == ["better" if gain else "equal" for gain in gains]
    view = found.view()
    assert [row[1] for row in view.table("Variants").rows] == values
    assert (view.figure("value as it is"), view.figure("waiting as it is")) == (found.before.value, 6 - values[0] // 10)


def test_rounds_side_by_side() -> None:
    """In processes, the same variants in the same order."""
    base = waiting()
    variants = parse_variants("demand=50,100,150", base)
    one, two = (compare(base, variants, limits=SHORT, jobs=jobs) for jobs in (1, 2))
    assert one.variants == two.variants


ODD = ("", "nodes=1", "demand:x=1", "jobs:x=1", "nodes:m=", "nodes:m=3-1", "nodes:m=a", "demand=0-9999", "quota=3")
REFUSED: list[tuple[str, Callable[[], object]]] = [
    *((r"expected|neither a number", partial(vary, waiting(), text)) for text in ODD),
    ("no machine type and no node of that name", lambda: vary(waiting(), "nodes:x=1")),
    ("no machine type and no node of that name", lambda: vary(waiting(), "nodes:x=0")),
    ("no queue 'x'", lambda: vary(waiting(), "quota:x=1")),
    ("of type 'm' already", lambda: vary(waiting(), "machine:m=m")),  # what runs there would wait for nothing
    ("no machine type 'x'", lambda: vary(waiting(), "machine:m=x")),
    ("expected node, quota", lambda: vary(waiting(), "more=leaf")),
    ("no queue", lambda: vary(waiting(), "more=quota")),
    ("no patches here", lambda: vary(waiting(), "patch=x")),
    ("each once", lambda: vary(waiting(), "more=node,node")),
]


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_what_is_refused(words: str, call: Callable[[], object]) -> None:
    """Before anything is solved."""
    with pytest.raises(BadInput, match=words):
        call()


def test_another_machine_by_hand() -> None:
    """A node of eight GPUs for one of four: four jobs in place of two, 20 more. Back again: worse."""
    big = AddMachines(do="add_machines", machines=(machine("big", gpus=8),))
    base = apply(waiting(), [big])
    (found,) = vary(base, "machine:m=big").variants
    assert (found.gain_low, found.gain_high, found.answer) == (20, 20, "better")
    turn = Patch.model_validate({"steps": ({"do": "replace_nodes", "of": "m", "machine": "big"},)})
    back = Patch.model_validate({"steps": ({"do": "replace_nodes", "nodes": ("n0",), "machine": "m"},)})
    turned = apply(base, turn.steps)
    worse = compare(turned, parse_variants("patch=back", turned, patches={"back": back}.__getitem__), limits=SHORT)
    assert [(one.name, one.answer) for one in worse.variants] == [("back", "worse")]
    assert worse.view().verdict == "bad"


def test_what_ran_there_is_placed_again() -> None:
    """On GPUs of another model it has no place: what it was worth is lost."""
    held = job("held", gpus=2, gpu_models=("V100",), value=7)
    machines = [machine("m"), machine("other", gpus=(Gpu(model="A100"),) * 4)]
    base = instance(1, [held], machines=machines, running=[running(held, [("n0", (0, 1))])])
    (found,) = vary(base, "machine:m=other").variants
    after = found.outcome
    assert (after.displaced, after.jobs_placed, found.gain_high, found.answer) == (1, 0, -7, "worse")


def test_one_more_by_hand() -> None:
    """Two jobs more on a node more, and in a rack more; of quota a job needs two GPUs, so one GPU is worth nothing."""
    found = vary(waiting(), "more=node,rack").variants
    assert [(one.name, one.gain_low, one.gain_high) for one in found] == [("node m", 20, 20), ("rack rack-0", 20, 20)]
    assert vary(waiting(2), "more=node").variants[0].gain_high == 0
    (quota,) = vary(waiting(quota=2000), "more=quota").variants
    assert (quota.gain_low, quota.gain_high) == (0, 0)


@pytest.mark.parametrize("seed", range(4))
def test_gains_are_those_of_rounds_solved_alone(engine: Engine, seed: int) -> None:
    """The interval is the difference of the two rounds' best plans."""
    base = generate("uniform", jobs=30, nodes=6, gpus=4, seed=seed)
    (found,) = vary(base, "more=node").variants
    nodes = (*base.cluster.nodes, base.cluster.nodes[0].model_copy(update={"id": "more"}))
    more = base.model_copy(update={"cluster": base.cluster.model_copy(update={"nodes": nodes})})
    alone = [one.model_copy(update={"policy": VALUE_ALONE}) for one in (base, more)]
    before, after = (engine.solve(one, time_limit_s=20).levels[0] for one in alone)
    assert (before.objective, after.objective) == (before.bound, after.bound)
    assert found.gain_low == found.gain_high == after.objective - before.objective
