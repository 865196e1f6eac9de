"""Jobs below their minimal utility wait, on the Minsky of the SC'17 artifact; its utilities by hand are elsewhere."""

from helpers.machines import SC17_MATRIX, sockets
from helpers.plans import plan_for
from helpers.utilities import below_minimum
from placeopt import audit, solve
from placeopt.build import instance, job, running
from placeopt.check import violations
from placeopt.model import Communication, Job, Machine, Policy, Postpone, Slowdown

POLICY = Policy(postpone=Postpone(rule="utility"), share_mode="exclusive")


def minsky() -> Machine:
    """Two sockets of two GPUs, 1 apart inside and 20 across, as the artifact states them."""
    return sockets(2, 2, gpu_distance_matrix=SC17_MATRIX)


def pair() -> Job:
    """Two GPUs that talk; across sockets their utility is 253."""
    return job("pair", gpus=2, communication=Communication(weight=1), utility_min_thousandths=300)


def test_a_job_below_its_minimum_waits_with_a_reason() -> None:
    """One GPU of each socket is busy: a pair would run across at 253 of the 300 it asks for."""
    a, b = job("a"), job("b")
    runs = [running(a, [("n0", [0])]), running(b, [("n0", [2])])]
    plan = solve(instance(1, [a, b, pair()], machines=[minsky()], running=runs, policy=POLICY), time_limit_s=5)
    (waits,) = plan.unplaced
    assert plan.status == "optimal"
    assert (waits.job, waits.reason) == ("pair", "postponed")
    assert "253" in waits.detail
    assert "300" in waits.detail


def test_the_plan_is_judged_as_a_whole() -> None:
    """A loud neighbour that starts in the same round takes the calm one below its minimum; solve sets them apart."""
    loud = Slowdown(profile="calm", beside="loud", socket_thousandths=333)
    jobs = [job("calm", profile="calm", utility_min_thousandths=300), job("loud", profile="loud")]
    round_ = instance(1, jobs, machines=[minsky()], policy=POLICY, slowdowns=(loud,))
    assert below_minimum(round_, plan_for(round_, {"calm": [("n0", [0])], "loud": [("n0", [1])]})) == ["calm"]
    plan = solve(round_, time_limit_s=5)
    assert plan.levels[0].objective == 2
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []


def test_what_runs_is_not_asked() -> None:
    """A running pair across sockets stays."""
    split = pair()
    round_ = instance(1, [split], machines=[minsky()], running=[running(split, [("n0", [0, 2])])], policy=POLICY)
    assert solve(round_, time_limit_s=5).placements[0].job == "pair"
