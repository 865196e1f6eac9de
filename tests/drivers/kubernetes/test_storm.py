"""Much goes wrong at once, for two drivers; `tests/campaigns/kubernetes_run.py` does the same with 500 pods."""

from pathlib import Path

import pytest

from helpers.kubernetes_storm import Storm
from helpers.night import nightly


@pytest.mark.parametrize("seed", nightly([0, 1], 0))
def test_nothing_is_started_twice_and_gangs_start_whole(tmp_path: Path, seed: int) -> None:
    found = Storm(tmp_path / "kubeconfig.json", seed, pods=50, nodes=10).run()
    assert found.faults == []
    assert found.ended == found.pods >= 50
    assert sum(found.events.values()) > 10


@pytest.mark.parametrize(
    "policy", nightly(["placeopt", "topo-aware-p", "horus-f", "dynamoml", "soda", "genie"], "horus-f", "soda")
)
def test_the_same_holds_under_policies_of_papers(tmp_path: Path, policy: str) -> None:
    """Jobs one by one, in the order of a queue; horus gives each GPU to one job, as device plugins do."""
    found = Storm(tmp_path / "kubeconfig.json", 3, pods=50, nodes=10, policy=policy).run()
    assert found.faults == []
    assert found.ended == found.pods >= 50
