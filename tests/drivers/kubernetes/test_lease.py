"""One driver of several holds the Lease; one that lost it writes nothing more."""

import threading

import pytest

from helpers.kubernetes_cluster import pod
from placeopt.drivers.kubernetes import Api, Lease


class Leases:
    """Makes the leases of several drivers, on one clock."""

    def __init__(self, config):
        self.api, self.now = Api(str(config)), 1000.0

    def of(self, holder):
        stop = threading.Event()
        return Lease(self.api, self.api.namespace, holder, stop, duration_s=15.0, clock=lambda: self.now)


@pytest.fixture
def leases(world):
    return Leases(world.config)


@pytest.fixture
def one(leases):
    made = leases.of("one")
    made.renew()
    return made


@pytest.fixture
def two(leases):
    return leases.of("two")


def test_the_first_takes_it_and_the_second_waits_until_it_ends(world, leases, one, two):
    two.renew()
    assert (one.is_held, two.is_held, two.other) == (True, False, "one")
    leases.now += 9.0
    one.renew()
    leases.now += 9.0
    two.renew()
    assert (one.is_held, two.is_held) == (True, False)  # it was renewed 9 s ago
    leases.now += 1.1
    assert not one.is_held  # it stops itself before another one may begin
    leases.now += 14.0
    two.renew()
    assert two.is_held
    one.renew()
    assert (one.is_held, one.other) == (False, "two")
    assert world.api.get("leases", "placeopt", "placeopt")["spec"]["leaseTransitions"] == 2


def test_two_that_try_at_once_do_not_both_get_it(world, leases, one, two):
    leases.now += 60.0
    two.renew()  # sees the record for the first time, and waits
    leases.now += 60.0

    def other_first(method, path, body):
        world.calm()
        one.renew()

    world.api.before = other_first
    two.renew()
    assert (one.is_held, two.is_held) == (True, False)


def test_a_released_lease_is_free_at_once(one, two):
    one.release()
    two.renew()
    assert (one.is_held, two.is_held) == (False, True)


def test_a_server_that_does_not_answer_ends_it_by_time(world, leases, one):
    world.api.down = True
    one.renew()
    assert one.is_held
    leases.now += 10.1
    one.renew()
    assert not one.is_held


def test_without_the_lease_nothing_is_written(world, leases, one):
    world.add_nodes("n0")
    driven = world.connect()
    driven.driver.lease = mine = leases.of("mine")
    mine.renew()
    world.submit(pod("a"), pod("b"))
    assert driven.turn().remarks == ["another driver is active: one"]
    assert len(world.api.writes) == 1
    leases.now += 20.0
    mine.renew()

    def lose(method, path, body):
        leases.now += 20.0  # after the first pod

    world.api.after = lose
    report = driven.turn()
    assert (report.started, report.deferred) == (1, 1)


def test_two_drivers_at_once_start_nothing_twice(world):
    """The Lease is no fence: both act on the same list, and the versions that their patches name decide."""
    world.add_nodes("n0", "n1")
    world.submit(*(pod(f"p{i}", 2) for i in range(8)))
    one, two = world.connect(), world.connect()
    one.catch_up()
    two.catch_up()
    world.at("lift", None, two.driver.turn)
    one.driver.turn()
    world.cluster.turn()
    assert sorted(world.written("lift")) == [f"p{i}" for i in range(8)]
    assert [len(nodes) for nodes in world.cluster.bindings.values()] == [1] * 8
