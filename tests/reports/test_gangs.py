"""What users of gang schedulers met, read from Kubernetes' objects and solved: which pods start, and where."""

from collections import Counter
from pathlib import Path

import pytest

from placeopt import solve
from placeopt.formats import read_kubernetes

REPORTS = Path(__file__).parents[1] / "data" / "reports" / "kubernetes"


def starts(name: str) -> Counter[str]:
    """Return the workers that start on each node, of the best plan for one of the readings."""
    round_ = read_kubernetes([REPORTS / f"{name}.json"])
    running = {held.job for held in round_.running}
    plan = solve(round_, isolation="thread")
    assert plan.status == "optimal"
    found: Counter[str] = Counter()
    for placed in plan.placements:
        if placed.job not in running:
            found.update({assigned.node: len(assigned.workers) for assigned in placed.assignments})
    return found


@pytest.mark.parametrize("name", ["aws", "acc", "blk", "clique", "gce", "oci", "topo"])
def test_labels_of_clouds_and_tools_are_levels(name: str) -> None:
    """The pod must stay within one domain of a level that its cloud, driver or topology tool labels."""
    assert sum(starts(f"c09{name}").values()) == 1


def test_levels_nest_by_their_values() -> None:
    """Two racks, each with a leaf of its own, hang under one spine: two pods that must share a spine start."""
    assert starts("c09a") == {"n0": 1, "n1": 1}
