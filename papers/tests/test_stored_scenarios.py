"""The stored scenarios of the papers are what their generators make."""

import pytest

from placeopt import read_scenario
from placeopt.simulation import Scenario
from placeopt_papers.settings import INSTANCES, settings

STORED = (
    *("sc17-table-1", "sc17-100x5", "sc17-10kx1k", "horus-w-small", "horus-w-large", "horus-trace"),
    *("genie-5", "genie-10", "genie-20", "genie-15", "genie-25", "genie-classes-10-40-50", "genie-classes-20-40-40"),
    *("genie-hours-12", "genie-hours-48", "genie-gpus-32", "genie-gpus-64", "genie-gpus-128"),
    *("dynamoml-12", "dynamoml-16"),
)


@pytest.mark.parametrize("name", STORED)
def test_a_stored_scenario_is_current(name: str) -> None:
    """If this fails, a generator has changed: write it by ``python -m placeopt_papers scenario``, and review it."""
    made = settings()[name].make(0, full=True)
    assert isinstance(made, Scenario)
    path = INSTANCES / "papers" / f"{made.name}.json"
    assert read_scenario(path if path.exists() else path.with_suffix(".json.gz")) == made
