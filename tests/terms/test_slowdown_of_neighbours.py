"""
By how much a job is slowed by those beside it, by hand.

With the whole weight on interference, a job's utility is 1 / (1 + excess): 10^6 // (1000 + excess in thousandths).
"""

from typing import Any, Literal

import pytest

from helpers.utilities import utility_of, utility_policy
from placeopt.build import instance, job, machine
from placeopt.model import Gpu, Instance, Interference, Part, Policy, Slowdown, SlowdownCurve

LOUD = Slowdown(
    profile="calm", beside="loud", gpu_thousandths=500, switch_thousandths=400, socket_thousandths=300,
    node_thousandths=200,
)  # fmt: skip
HUM = Slowdown(profile="calm", beside="hum", gpu_thousandths=0, node_thousandths=70)
SLOWDOWNS = (LOUD, HUM, LOUD.model_copy(update={"beside": "calm"}))
PARTS = (
    Part(id="s0", level="socket"),
    Part(id="w0", level="switch", parent="s0"),
    Part(id="w1", level="switch", parent="s0"),
    Part(id="m", level="numa"),
)
MACHINE = machine(gpus=[Gpu(model="A", part=part) for part in ("w0", "w0", "w1", "s0", "m", "m", None)], parts=PARTS)


def slowed(excess: int) -> int:
    return 1_000_000 // (1000 + excess)


def round_of(*profiles: str | None, model: Literal["pairwise", "worst"] = "pairwise", **fields: Any) -> Instance:
    """Job ``a`` of profile ``calm`` and jobs ``b0``, ``b1``, ... of these; ``fields`` go to all."""
    jobs = [job("a", profile="calm", **fields)]
    jobs += [job(f"b{i}", profile=profile, **fields) for i, profile in enumerate(profiles)]
    return instance(2, jobs, machines=[MACHINE], policy=_policy(model), slowdowns=SLOWDOWNS)


def _policy(model: str, **fields: Any) -> Policy:
    policy = utility_policy(interference=1000, jobs_per_gpu_max=4, share_mode="overcommit")
    return policy.model_copy(update={"interference": Interference.model_validate({"model": model, **fields})})


SEVERAL = ("loud", "hum", "quiet", None)  # the last two have no entry, and no profile
CASES: dict[str, tuple[tuple[str | None, ...], dict[str, Any], tuple[str, ...], int]] = {
    "on the GPU itself": (("loud",), {}, ("n0:0", "n0:0"), 500),
    "on another of the switch": (("loud",), {}, ("n0:0", "n0:1"), 400),
    "on another switch of the socket": (("loud",), {}, ("n0:0", "n0:2"), 300),
    "on the socket itself": (("loud",), {}, ("n0:2", "n0:3"), 300),
    "on the node": (("loud",), {}, ("n0:0", "n0:4"), 200),
    "in a NUMA domain, which is no level of slowdowns": (("loud",), {}, ("n0:4", "n0:5"), 200),
    "on a GPU in no part": (("loud",), {}, ("n0:6", "n0:6"), 500),
    "beside a GPU in no part, which is in no socket": (("loud",), {}, ("n0:6", "n0:3"), 200),
    "on another node": (("loud",), {}, ("n0:0", "n1:0"), 0),
    "at a level that is left out": (("hum",), {}, ("n0:0", "n0:0"), 0),
    "at a wider level, which is stated": (("hum",), {}, ("n0:0", "n0:4"), 70),
    "several by pairs: 500 on the GPU, 70 on the node": (SEVERAL, {}, ("n0:0", "n0:0", "n0:4", "n0:1", "n0:2"), 570),
    "the worst of several": (SEVERAL, {"model": "worst"}, ("n0:0", "n0:0", "n0:4", "n0:1", "n0:2"), 500),
    "two workers beside one of two nodes: once for the job": (
        ("loud",), {"workers": 2}, ("n0:0 n1:0", "n0:2 n0:3"), 300),
    "two workers beside two on two nodes": (("loud",), {"workers": 2}, ("n0:0 n1:0", "n0:2 n1:1"), 400),
    "alone": ((), {}, ("n0:0",), 0),
    "alone, at worst": ((), {"model": "worst"}, ("n0:0",), 0),
}  # fmt: skip
"""Profiles of the neighbours of ``a``, fields of the round, where ``a`` and they are, and how much it is slowed."""


@pytest.mark.parametrize("name", CASES)
def test_the_closest_domain_that_two_jobs_share_counts(name: str) -> None:
    """No job slows itself, although its profile disturbs its like."""
    profiles, fields, where, excess = CASES[name]
    round_ = round_of(*profiles, **fields)
    placed = {}
    for one, on in zip(round_.jobs, where, strict=True):
        placed[one.id] = [(at.split(":")[0], [int(at.split(":")[1])]) for at in on.split()]
    assert utility_of(round_, placed) == slowed(excess)


def test_two_gpus_outside_all_parts_share_the_node_only() -> None:
    """Both are in no switch and no socket, which is no switch that they share."""
    round_ = round_of("loud")
    loose = machine(gpus=[Gpu(model="A"), Gpu(model="A")])
    cluster = round_.cluster.model_copy(update={"machines": (loose,)})
    alike = round_.model_copy(update={"cluster": cluster})
    assert utility_of(alike, {"a": [("n0", [0])], "b0": [("n0", [1])]}) == slowed(200)


@pytest.mark.parametrize(("mine", "theirs"), [(1, 0), (0, 1)])
def test_jobs_without_gpus_disturb_no_job(mine: int, theirs: int) -> None:
    """A CPU job has no part in it, neither as one nor as the other."""
    jobs = (job("a", gpus=mine, profile="calm"), job("b0", gpus=theirs, profile="loud"))
    placed = {"a": [("n0", [0] * mine)], "b0": [("n0", [0] * theirs)]}
    assert utility_of(round_of("loud").model_copy(update={"jobs": jobs}), placed) == 1000


class TestCurve:
    """By the cumulative utilisation of a shared GPU: 1 + (f(1) - 1) x up to 1, f(x) above."""

    def utility(self, percents: tuple[int, ...], where: tuple[int, ...], **curve: Any) -> int:
        jobs = [job(f"j{i}", gpu_utilisation_percent=percent) for i, percent in enumerate(percents)]
        round_ = instance(1, jobs, policy=_policy("curve", **curve))
        return utility_of(round_, {f"j{i}": [("n0", [gpu])] for i, gpu in enumerate(where)}, "j0")

    @pytest.mark.parametrize(
        ("curve", "percents", "excess"),
        [
            ("rtx-2080", (60, 40), 164),  # f(1) = 1.16664 - 0.00302 + 0.00004 = 1.16366
            ("rtx-2080", (30, 20), 82),  # half of it: 0.08183
            ("rtx-2080", (60, 60), 676),  # 1.6799616 - 0.003624 + 0.00004 - 1
            ("rtx-2080", (61, 40), 187),  # 1.190089 - 0.003050 + 0.00004 - 1: above 1 it is f itself
            ("gtx-1080", (50, 50), 315),  # 1.32198 - 0.00728 + 0.00006 = 1.31476
            ("gtx-1080", (100, 50), 1964),  # 2.974455 - 0.01092 + 0.00006 - 1
            ("gtx-1080", (0, 0), 0),
        ],
    )
    def test_published_curves(self, curve: str, percents: tuple[int, ...], excess: int) -> None:
        assert self.utility(percents, (0, 0), curve=curve) == slowed(excess)

    @pytest.mark.parametrize(("percents", "excess"), [((25, 25), 150), ((50, 50), 300), ((100, 50), 1650)])
    def test_a_curve_of_ones_own(self, percents: tuple[int, ...], excess: int) -> None:
        """f(1) = 1.3; f(1.5) = 2.25 + 0.3 + 0.1."""
        own = SlowdownCurve(square_millionths=1_000_000, linear_millionths=200_000, constant_millionths=100_000)
        assert self.utility(percents, (0, 0), curve=own.model_dump()) == slowed(excess)

    def test_thousandths_are_rounded(self) -> None:
        """f(1) = 1.6 is 600 thousandths, and 1 / 1.6 is 0.625 exactly."""
        own = SlowdownCurve(square_millionths=1_600_000)
        assert self.utility((50, 50), (0, 0), curve=own.model_dump()) == 625

    @pytest.mark.parametrize(("linear", "utility"), [(0, 1), (1000, 0)])
    def test_coefficients_are_millionths(self, linear: int, utility: int) -> None:
        """f(1) = 1000 is a utility of 0.001 just so, 1000.001 is below it."""
        own = SlowdownCurve(square_millionths=10**9, linear_millionths=linear)
        assert self.utility((50, 50), (0, 0), curve=own.model_dump()) == utility

    def test_a_job_that_shares_no_gpu_is_not_slowed(self) -> None:
        """Alone on its GPU a job runs as alone; and what others do on other GPUs does not count."""
        assert self.utility((60, 60), (0, 1)) == 1000
        assert self.utility((30, 20, 90), (0, 0, 1)) == slowed(82)

    def test_three_on_a_gpu(self) -> None:
        """20 + 20 + 60: each sees the GPU in full use, and the largest counts, not the sum."""
        assert self.utility((20, 20, 60), (0, 0, 0)) == slowed(164)

    def test_the_fullest_shared_gpu_counts(self) -> None:
        """Two GPUs of its own, one shared at 50 %, the other at 100 %."""
        jobs = [job("a", gpus=2, gpu_utilisation_percent=30), job("b", gpu_utilisation_percent=20)]
        jobs += [job("c", gpus=2, gpu_utilisation_percent=70)]
        round_ = instance(1, jobs, policy=_policy("curve"))
        assert utility_of(round_, {"a": [("n0", [0, 1])], "b": [("n0", [0])]}) == slowed(82)
        assert utility_of(round_, {"a": [("n0", [0, 1])], "b": [("n0", [0])], "c": [("n0", [1, 2])]}) == slowed(164)
        assert utility_of(round_, {"a": [("n0", [0, 1])], "c": [("n0", [1, 2])]}) == slowed(164)
        far = {"a": [("n0", [0, 1])], "c": [("n0", [2, 3])]}
        assert utility_of(round_, far) == 1000
