"""Running pods are stopped through the eviction API; what takes their room starts once they are gone."""

from collections.abc import Callable

import pytest

from drivers.conftest import Driven
from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import Cluster, node, pod
from placeopt.drivers.kubernetes import driver
from placeopt.model import Instance

Connect = Callable[..., Driven]


@pytest.fixture(autouse=True)
def low_jobs_may_be_preempted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader says what may be preempted; here all jobs called low, which are worth little."""
    read = driver.read_kubernetes

    def with_flags(*args: object, **options: object) -> Instance:
        found = read(*args, **options)  # type: ignore[arg-type]
        running = tuple(
            held.model_copy(update={"preemptible": True}) if "/low" in held.job else held for held in found.running
        )
        jobs = tuple(
            job.model_copy(update={"options": tuple(o.model_copy(update={"value": 1}) for o in job.options)})
            if "/low" in job.id
            else job
            for job in found.jobs
        )
        return found.model_copy(update={"running": running, "jobs": jobs})

    monkeypatch.setattr(driver, "read_kubernetes", with_flags)


def evictions(api: KubernetesApi) -> list[str]:
    return [path.split("/")[-2] for _, path, _ in api.writes if path.endswith("eviction")]


def running(api: KubernetesApi) -> set[str]:
    return {p["metadata"]["name"] for p in api.all("pods") if p["status"]["phase"] == "Running"}


def start_low(api: KubernetesApi, cluster: Cluster, driven: Driven) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(pod("low", 8))
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
        cluster.submit(pod("low", 8))

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
    cluster.submit(pod("low", 8, owned=False))
    driven = connect()
    driven.turn()
    cluster.turn()
    cluster.turn()
    cluster.submit(pod("high", 8))
    assert driven.turn().placed == 0
    assert evictions(api) == []
