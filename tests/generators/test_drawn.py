"""Scenarios drawn anew."""

import pytest

from helpers.scenarios import scenario, timed
from placeopt import BadInput
from placeopt.generators import drawn_anew

WORLD = scenario([timed("a", 0, 1000), timed("b", 5, 2000, gpus=2)])


def test_jobs_are_drawn_and_come_at_the_rate() -> None:
    """Of both kinds, with their true run times; a thousand a minute within a tenth."""
    made = drawn_anew(WORLD, jobs=2000, nodes=12, per_minute=1000, seed=1)
    assert [node.id for node in made.cluster.nodes[::11]] == ["node-00", "node-11"]
    assert {one.job.options for one in made.arrivals} == {one.job.options for one in WORLD.arrivals}
    moments = [one.job.arrival_ms for one in made.arrivals]
    assert moments == sorted(moments)
    assert moments[-1] == pytest.approx(120_000, rel=0.1)
    assert made == drawn_anew(WORLD, jobs=2000, nodes=12, per_minute=1000, seed=1)
    assert made != drawn_anew(WORLD, jobs=2000, nodes=12, per_minute=1000, seed=2)


@pytest.mark.parametrize("fields", [{"jobs": 0}, {"nodes": 0}, {"per_minute": 0}])
def test_numbers_out_of_range_are_refused(fields: dict) -> None:
    """With the range."""
    with pytest.raises(BadInput, match="expected 1 to"):
        drawn_anew(WORLD, **{"jobs": 1, "nodes": 1, "per_minute": 1, **fields})
