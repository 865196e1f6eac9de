"""Running pods are stopped through the eviction API; what takes their room starts once they are gone."""

from collections.abc import Callable
from functools import partial

import pytest

from drivers.conftest import Driven
from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import Cluster, Object, node, pod
from placeopt.formats import PriorityRule

Connect = Callable[..., Driven]


RULE = PriorityRule(value_per_gpu_of={"batch": 1})
MAY_BE_PREEMPTED = {"placeopt.io/preemptible": "true"}


@pytest.fixture
def connect(connect: Connect) -> Connect:
    """Drivers with a rule by which low jobs are worth little."""
    return partial(connect, rule=RULE)


def low(**more: bool) -> Object:
    """A pod of little value that its owner lets others replace."""
    return pod("low", 8, annotations=dict(MAY_BE_PREEMPTED), priorityClassName="batch", **more)


def evictions(api: KubernetesApi) -> list[str]:
    return [path.split("/")[-2] for _, path, _ in api.writes if path.endswith("eviction")]


def running(api: KubernetesApi) -> set[str]:
    return {p["metadata"]["name"] for p in api.all("pods") if p["status"]["phase"] == "Running"}


def start_low(api: KubernetesApi, cluster: Cluster, driven: Driven) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(low())
    driven.turn()
    cluster.turn()
    cluster.turn()
    assert running(api) == {"low"}


def test_the_start_waits_until_the_victim_is_gone(api: KubernetesApi, cluster: Cluster, connect: Connect) -> None:
    driven = connect()
    start_low(api, cluster, driven)
    cluster.holds.add("low")
    cluster.submit(pod("high", 8))
    report = driven.turn()
    assert (report.evicted, report.started, report.deferred) == (1, 0, 1)
    for one in (driven, driven, connect()):  # it is still there: nothing starts, nothing more is evicted
        report = one.turn()
        assert (report.evicted, report.started, report.deferred) == (0, 0, 1)
    cluster.holds.clear()
    cluster.turn()
    assert driven.turn().started == 1
    cluster.turn()
    cluster.turn()
    assert running(api) == {"high"}
    assert evictions(api) == ["low"]


def test_a_disruption_budget_is_heeded_and_its_job_left_alone_for_a_while(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    """429: the victim stays, what needs its room waits, and the next rounds do without it."""
    driven = connect()
    start_low(api, cluster, driven)
    api.budgets.append(({}, 1))
    cluster.submit(pod("high", 8))
    report = driven.turn()
    assert (report.evicted, report.refused, report.started, report.deferred) == (0, 1, 0, 1)
    assert "disruption budget" in report.notes[-1]
    report = driven.turn()
    assert (report.placed, report.refused) == (0, 0)
    assert running(api) == {"low"}


def test_another_pod_of_the_same_name_is_not_evicted(api: KubernetesApi, cluster: Cluster, connect: Connect) -> None:
    """The UID is a precondition: 409, and the pod that has the name now stays."""
    driven = connect()
    start_low(api, cluster, driven)
    victim = api.get("pods", "low")
    assert victim is not None
    api.deleted = lambda found: None

    def before(method: str, path: str, body: object) -> None:
        api.before = lambda method, path, body: None
        api.remove("pods", "low")
        cluster.submit(low())

    cluster.submit(pod("high", 8))
    api.before = before
    driven.turn()
    found = api.get("pods", "low")
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]
    assert evictions(api) == []


def test_a_running_pod_without_a_controller_is_no_victim(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(low(owned=False))
    driven = connect()
    driven.turn()
    cluster.turn()
    cluster.turn()
    cluster.submit(pod("high", 8))
    assert driven.turn().placed == 0
    assert evictions(api) == []


@pytest.mark.parametrize(
    ("annotations", "rule", "evicted"),
    [
        ({}, RULE, 0),
        ({}, PriorityRule(value_per_gpu_of={"batch": 1}, preemptible={"batch": True}), 1),
        ({"placeopt.io/preemptible": "false"}, PriorityRule(preemptible={"batch": True}), 0),
        (MAY_BE_PREEMPTED, PriorityRule(), 0),
    ],
)
def test_rule_and_annotations_decide_who_is_a_victim_and_for_whom(
    api: KubernetesApi,
    cluster: Cluster,
    connect: Connect,
    annotations: dict[str, str],
    rule: PriorityRule,
    evicted: int,
) -> None:
    """The last: a job worth as much is no reason to stop one."""
    api.add("nodes", node("n0"))
    cluster.submit(pod("low", 8, annotations=dict(annotations), priorityClassName="batch"))
    driven = connect(rule=rule)
    driven.turn()
    cluster.turn()
    cluster.turn()
    cluster.submit(pod("high", 8))
    assert driven.turn().evicted == evicted
