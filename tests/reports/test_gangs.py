"""What users of gang schedulers met, read from Kubernetes' objects and solved: which pods start, and where."""

from collections import Counter
from pathlib import Path

import pytest

from placeopt import solve
from placeopt.importers import read_kubernetes

REPORTS = Path(__file__).parents[1] / "data" / "reports" / "kubernetes"


def starts(name: str) -> Counter[str]:
    """Return the workers that start on each node, of the best plan for one of the readings."""
    round_ = read_kubernetes([REPORTS / f"{name}.json"])
    running = {held.job for held in round_.running}
    plan = solve(round_, isolation="thread")
    assert plan.status == "optimal"
    found: Counter[str] = Counter()
    for placed in plan.placements:
        for assigned in placed.assignments if placed.job not in running else ():
            found[assigned.node] += len(assigned.workers)
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Kueue: the pods of one Workload, which must share a rack: two racks of one node, one rack of two nodes for
        # three pods, one labelled node
        ("c17a", {}),
        ("c17b", {}),
        ("c17d", {}),
        # YuniKorn: two of three fit; two pods take the room of two placeholders
        ("c04a", {}),
        ("c04b", {"n0": 1, "n1": 1}),
        # Koordinator: three nodes do not hold both gangs of a gang group
        ("c05a", {}),
        # Volcano: four members are being deleted, and there is one GPU for the four that replace them
        ("c13a", {}),
        # two of four members have succeeded
        ("c06a", {"n0": 2}),
        # Kueue: the rack of the pod that runs is full
        ("c21a", {}),
        ("c21c", {}),
        ("c21d", {"n0": 1, "n1": 1, "n2": 1}),
        # LeaderReady: the leader starts, and its workers are made later
        ("c06c", {"n0": 1}),
        # Ray: nobody asked for a gang
        ("c06f", {"n0": 3}),
        ("c06g", {"n0": 2}),
        # replicas that must share a zone with each other
        ("c30a", {"n0": 2}),
        ("c30b", {"n0": 1}),
        ("c11e", {"n0": 1}),
        # two PodSets, each within a rack of its own, or one within a rack and one within the block
        ("c08a", {"n0": 1, "n1": 1, "n2": 1, "n3": 1}),
        ("c08b", {"n0": 1, "n1": 1, "n2": 1, "n3": 1}),
        # a launcher without GPUs beside two workers of eight
        ("c06e", {"n0": 2, "n1": 1}),
    ],
)
def test_what_starts(name: str, expected: dict[str, int]) -> None:
    """What belongs together starts together, and what does not, does not."""
    assert starts(name) == expected


def test_unlike_roles_and_slices() -> None:
    """Front end, prefill and two decoders start together; four workers in slices of two, all within one rack."""
    found = read_kubernetes([REPORTS / "roles.json"])
    roles, slices = (job.options[0] for job in found.jobs)
    assert [(one.id, one.workers, one.demand.gpus) for one in roles.groups] == [
        ("d/fe", 1, 0),
        ("d/pre-0", 1, 1),
        ("d/dec-0", 2, 4),
    ]
    assert [(one.level, one.segment) for one in slices.spread] == [("rack", 2)]
    assert sum(starts("roles").values()) == 8


def test_a_workload_of_kueue_waits() -> None:
    """Four pods of eight GPUs that are not made before Kueue admits them are one job that waits."""
    (job,) = read_kubernetes([REPORTS / "c11f.json"]).jobs
    assert (job.id, job.queue, job.options[0].workers, job.options[0].demand.gpus) == ("ml/job-a", "q", 4, 8)
    assert starts("c11f") == {}


@pytest.mark.parametrize("name", ["aws", "acc", "blk", "clique", "gce", "oci", "topo"])
def test_labels_of_clouds_and_tools_are_levels(name: str) -> None:
    """The pod must stay within one domain of a level that its cloud, driver or topology tool labels."""
    assert sum(starts(f"c09{name}").values()) == 1


def test_levels_nest_by_their_values() -> None:
    """Two racks, each with a leaf of its own, hang under one spine: two pods that must share a spine start."""
    assert starts("c09a") == {"n0": 1, "n1": 1}
