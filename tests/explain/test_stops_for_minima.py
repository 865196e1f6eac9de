"""Who has to stop where minimal utilities count: on Minskys by hand, where room and paths alone say too little."""

import pytest

from helpers.plans import plan_for
from helpers.scenarios import two_sockets
from helpers.utilities import TRAFFIC, utility_policy
from placeopt.build import instance, job, running
from placeopt.explain import Explanation, explain
from placeopt.model import Instance, Slowdown

SLOWED = Slowdown(profile="calm", beside="loud", socket_thousandths=333, node_thousandths=333)
VALUES = (5, 1, 2, 3)


def full_minskys(least: int, *, nodes: int = 1, loud_stops: bool = True) -> Instance:
    """
    A pair of GPUs that talk, beside jobs ``n-g``, one on each GPU g of each node n, worth ``VALUES[g]``.

    The job on GPU 0 slows the pair. All may stop, that one only with ``loud_stops``.
    """
    held = {
        (n, g): job(f"{n}-{g}", value=value, profile=None if g else "loud")
        for n in range(nodes)
        for g, value in enumerate(VALUES)
    }
    runs = [running(one, [(f"n{n}", [g])], preemptible=g > 0 or loud_stops) for (n, g), one in held.items()]
    pair = job("pair", gpus=2, communication=TRAFFIC, profile="calm", utility_min_thousandths=least)
    policy = utility_policy(utility="sc17", share_mode="exclusive")
    jobs = [*held.values(), pair]
    return instance(nodes, jobs, machines=[two_sockets()], running=runs, slowdowns=[SLOWED], policy=policy)


def explained(round_: Instance) -> Explanation:
    """Explain the pair beside a plan in which all stay."""
    return explain(round_, plan_for(round_, {}), "pair", isolation="thread", time_limit_s=60)


@pytest.mark.parametrize(("least", "named"), [(100, {"0-1", "0-2"}), (200, {"0-2", "0-3"}), (300, {"0-0", "0-1"})])
def test_a_neighbour_that_slows_it_has_to_stop(least: int, named: set[str]) -> None:
    """Across sockets it has 153, for 3; beside the loud job in a socket 280, for 5; beside two quiet ones 1000."""
    found = explained(full_minskys(least))
    assert found.proven
    assert found.remedies.preempt is not None
    assert {rival.job for rival in found.remedies.preempt.jobs} == named


@pytest.mark.parametrize("nodes", [1, 8])
def test_nobody_who_may_stop_is_enough(nodes: int) -> None:
    """Beside the loud job that stays the pair has 280 at most, on each node: what stops elsewhere does not help it."""
    found = explained(full_minskys(300, nodes=nodes, loud_stops=False))
    assert found.proven
    assert found.remedies.preempt is None
    assert found.remedies.none["preempt"] == "it would not start without all preemptible jobs either"


def test_what_starts_keeps_its_minimum() -> None:
    """The loud pair has room, but would slow the job that starts on GPU 0, which then has 207: it asks for 300."""
    loud = job("pair", gpus=2, profile="loud")
    calm = job("first", profile="calm", utility_min_thousandths=300)
    policy = utility_policy(utility="sc17", share_mode="exclusive")
    round_ = instance(1, [calm, loud], machines=[two_sockets()], slowdowns=[SLOWED], policy=policy)
    found = explain(round_, plan_for(round_, {"first": [("n0", [0])]}), "pair", isolation="thread", time_limit_s=60)
    assert (found.reason, found.proven) == ("postponed", True)
    assert found.best_place is not None
    assert found.best_place.falls_short == ("first",)
    assert found.detail.endswith("on n0; first would fall below the minimum there")
