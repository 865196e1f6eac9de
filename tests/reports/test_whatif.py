"""What planners of other systems got wrong, as rounds with the right answer."""

from pathlib import Path

import pytest

from placeopt import Instance, build, read_instance, solve
from placeopt.explain import explain_all
from placeopt.whatif import Limits, add, compare, fail, parse_variants

REPORTS = Path(__file__).parents[1] / "data" / "reports" / "plan"
LIMITS = Limits(time_limit_s=20)


def report(name: str) -> Instance:
    """Read one of the rounds."""
    return read_instance(REPORTS / f"{name}.json")


def test_what_is_right_already() -> None:
    """`explain` says that one more node starts the two that wait, and `add` counts two nodes beside the tainted one."""
    made = report("label")
    found = explain_all(made, solve(made, isolation="thread"))
    assert "one more node of type 'm'" in {freed.change for freed in found.changes}
    assert add(report("taint"), "m", limits=LIMITS).found == (2,)


def test_a_node_of_a_type_has_the_labels_of_the_type() -> None:
    """Ten jobs select the label that both nodes bear, and two of them wait."""
    assert add(report("label"), "m", limits=LIMITS).found == (1,)


def test_one_more_node_is_the_same_for_whoever_asks() -> None:
    """Five jobs wait beside a tainted node and a free one; a node of the type, whose taint one has, starts four."""
    base = report("taint")
    (node,) = compare(base, parse_variants("more=node", base), limits=LIMITS).variants
    assert (node.gain_low, node.gain_high) == (40, 40)


def test_a_varied_quota_keeps_the_other_resources() -> None:
    """Four GPUs and, as before, three cores: three jobs of a GPU and a core run."""
    base = report("quota")
    (one,) = compare(base, parse_variants("quota:Q=4", base), limits=LIMITS).variants
    assert one.outcome.jobs_placed == 3


@pytest.mark.parametrize(("name", "lost"), [("prio", {"nb1", "nb2"}), ("f", {"small"})])
def test_a_failure_gives_up_what_is_worth_least(name: str, lost: set[str]) -> None:
    """The production job of 6 GPUs stays and notebooks go; so stays the job of 7 GPUs, and that of one goes."""
    worst = next(one for one in fail(report(name), "node", limits=LIMITS).scenarios if one.domains == ("x",))
    assert set(worst.lost_jobs or ()) == lost


def test_a_hostname_is_the_nodes_own() -> None:
    """A job that names a node's hostname is not helped by a copy of the node; one that names its pool is."""
    labels = {"host": "n0", "pool": "train"}
    base = [build.node("n0", labels=labels), build.node("n1", labels={**labels, "host": "n1"})]
    runs = [build.job(f"r{i}", gpus=4) for i in range(2)]
    held = [build.running(one, [(f"n{i}", [0, 1, 2, 3])]) for i, one in enumerate(runs)]
    for label, found in (("host", None), ("pool", 1)):
        waits = build.job("waits", node_selector={label: labels[label]})
        round_ = build.instance(base, [*runs, waits], running=held)
        of_types = [add(round_, name, limits=LIMITS).types[0].found for name in ("n0", base[0].machine)]
        assert of_types == [found, found]
