"""The compiled packing of nodes takes the steps of its source: the same fillings, bounds and numbers of branches."""

from array import array
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from placeopt.errors import OutOfTime
from placeopt.formulations.fillings import packing


def from_source() -> ModuleType:
    """The module as plain Python, whichever form is installed."""
    spec = spec_from_file_location("packing_source", Path(packing.__file__).with_name("packing.py"))
    source = module_from_spec(spec)
    spec.loader.exec_module(source)
    return source


def searched(module: ModuleType, seed: int) -> tuple[list[list[int]], int, int, int]:
    """What a search of a drawn node comes to."""
    rng = np.random.default_rng(seed)
    items, gpus = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    pays, weight, milli = (
        rng.integers(1, 50, items),
        rng.integers(1, 20, items),
        rng.choice([330, 510, 660, 1000], items),
    )
    order = np.argsort(-pays / weight)

    def row(values: np.ndarray) -> array:
        return array("q", values.ravel().tolist())

    node = module.Packing(
        pays=row(pays[order]),
        wide=row(np.where(milli < 1000, 1, rng.integers(1, gpus + 1, items))),
        milli=row(milli),
        most=row(rng.integers(1, 5, items)),
        weight=row(weight[order]),
        need=row(rng.integers(0, 5, (items, 2))),
        free=row(rng.integers(5, 15, 2)),
        left=row(np.sort(rng.choice([400, 700, 1000], gpus))),
    )
    node.best, node.most_steps = int(rng.integers(0, 30)), int(rng.choice([10, 100, 10_000]))
    module.fill(node, int(rng.integers(10, 60)))
    return node.found, node.best, node.open, node.steps


def test_the_source_searches() -> None:
    """Drawn nodes are not all alike: some searches find several fillings, some end early with something open."""
    outcomes = [searched(from_source(), seed) for seed in range(60)]
    assert sum(len(found) > 1 for found, *_ in outcomes) > 20
    assert sum(still > best for _, best, still, _ in outcomes) > 5


def test_both_forms_search_alike() -> None:
    """Of 300 nodes."""
    if packing.__file__.endswith(".py"):
        pytest.skip("the packing of nodes is not compiled here")
    source = from_source()
    for seed in range(300):
        assert searched(packing, seed) == searched(source, seed)


@pytest.mark.parametrize("form", ["source", "product"])
def test_the_clock_ends_a_search_within_a_node(form: str) -> None:
    """Soon, however many branches it might take: items of equal worth leave nothing to cut off."""
    module = from_source() if form == "source" else packing

    def row(number: int, times: int) -> array:
        return array("q", [number] * times)

    def over() -> None:
        raise OutOfTime("now")

    items, gpus = 40, 16
    node = module.Packing(
        pays=array("q", range(1000 + items, 1000, -1)),
        wide=row(1, items),
        milli=row(1000, items),
        most=row(1, items),
        weight=row(1, items),
        need=row(0, items),
        free=row(0, 1),
        left=row(1000, gpus - 1) + row(1, 1),
    )
    node.most_steps, node.check_time = 1 << 40, over
    with pytest.raises(OutOfTime):
        module.fill(node, gpus)
    assert node.steps < 100_000


@pytest.mark.parametrize("form", ["source", "product"])
def test_room_is_kept_for_as_many_items_as_a_node_holds(form: str) -> None:
    """Not for all of 3,000 different ones: lists of that many items for each of them would take 150 MB."""
    module = from_source() if form == "source" else packing
    items, gpus = 3000, 8

    def row(*numbers: int) -> array:
        return array("q", numbers)

    node = module.Packing(
        pays=array("q", range(2 * items, items, -1)),
        wide=row(1) * items,
        milli=row(500) * items,
        most=row(1) * items,
        weight=row(1) * items,
        need=row(1, 500) * (items - 5) + row(1, 0) * 5,
        free=row(100_000, 1000 * gpus),
        left=row(1000) * gpus,
    )
    assert len(node.held) == 1 + 16 + 5
    node.most_steps = 10_000
    module.fill(node, 21)
    assert len(node.found[0]) == 1
    assert max(map(len, node.found)) == 16
