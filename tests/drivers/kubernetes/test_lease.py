"""One driver of several holds the Lease; one that lost it writes nothing more."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from drivers.conftest import Driven
from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import Cluster, node, pod
from placeopt.drivers.kubernetes import Api, Lease


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lease_of(api: KubernetesApi, config: Path, clock: Clock) -> Callable[[str], Lease]:
    connection = Api(str(config))
    return lambda holder: Lease(
        connection, connection.namespace, holder, threading.Event(), duration_s=15.0, clock=clock
    )


def test_the_first_takes_it_and_the_second_waits_until_it_ends(
    api: KubernetesApi, clock: Clock, lease_of: Callable[[str], Lease]
) -> None:
    one, two = lease_of("one"), lease_of("two")
    one.renew()
    two.renew()
    assert (one.is_held, two.is_held, two.other) == (True, False, "one")
    clock.now += 9.0
    one.renew()
    clock.now += 9.0
    two.renew()
    assert (one.is_held, two.is_held) == (True, False)  # it was renewed 9 s ago
    clock.now += 1.1
    assert not one.is_held  # it stops itself before another one may begin
    clock.now += 14.0
    two.renew()
    assert two.is_held
    one.renew()
    assert (one.is_held, one.other) == (False, "two")
    found = api.get("leases", "placeopt", "placeopt")
    assert found is not None
    assert found["spec"]["leaseTransitions"] == 2


def test_two_that_try_at_once_do_not_both_get_it(
    api: KubernetesApi, clock: Clock, lease_of: Callable[[str], Lease]
) -> None:
    one, two = lease_of("one"), lease_of("two")
    one.renew()
    clock.now += 60.0
    two.renew()  # sees the record for the first time, and waits
    clock.now += 60.0

    def other_first(method: str, path: str, body: object) -> None:
        api.before = lambda method, path, body: None
        one.renew()

    api.before = other_first
    two.renew()
    assert (one.is_held, two.is_held) == (True, False)


def test_a_released_lease_is_free_at_once(clock: Clock, lease_of: Callable[[str], Lease]) -> None:
    one, two = lease_of("one"), lease_of("two")
    one.renew()
    one.release()
    two.renew()
    assert (one.is_held, two.is_held) == (False, True)


def test_a_server_that_does_not_answer_ends_it_by_time(
    api: KubernetesApi, clock: Clock, lease_of: Callable[[str], Lease]
) -> None:
    one = lease_of("one")
    one.renew()
    api.down = True
    one.renew()
    assert one.is_held
    clock.now += 10.1
    one.renew()
    assert not one.is_held


def test_without_the_lease_nothing_is_written(
    api: KubernetesApi,
    cluster: Cluster,
    connect: Callable[..., Driven],
    clock: Clock,
    lease_of: Callable[[str], Lease],
) -> None:
    api.add("nodes", node("n0"))
    other = lease_of("other")
    other.renew()
    driven = connect()
    driven.driver.lease = mine = lease_of("mine")
    mine.renew()
    cluster.submit(pod("a"), pod("b"))
    assert driven.turn().notes == ["another driver is active: other"]
    assert len(api.writes) == 1
    clock.now += 20.0
    mine.renew()

    def lose(method: str, path: str, body: object) -> None:
        clock.now += 20.0  # after the first pod

    api.after = lose
    report = driven.turn()
    assert (report.started, report.deferred) == (1, 1)


def test_two_drivers_at_once_start_nothing_twice(
    api: KubernetesApi, cluster: Cluster, connect: Callable[..., Driven]
) -> None:
    """The Lease is no fence: both act on the same list, and the versions that their patches name decide."""
    api.add("nodes", node("n0"))
    api.add("nodes", node("n1"))
    cluster.submit(*(pod(f"p{i}", 2) for i in range(8)))
    one, two = connect(), connect()
    one.catch_up()
    two.catch_up()

    def both(method: str, path: str, body: object) -> None:
        api.before = lambda method, path, body: None
        two.driver.turn()

    api.before = both
    one.driver.turn()
    cluster.turn()
    lifted = [path for method, path, body in api.writes if method == "PATCH" and "spec" in body]
    assert len(lifted) == len(set(lifted)) == 8
    assert all(len(nodes) == 1 for nodes in cluster.bindings.values())
    assert len(cluster.bindings) == 8
