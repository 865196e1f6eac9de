"""Minimal utility: who is asked for it, and what the sum of eq. 2 and the artifact's formula give, by hand."""

from collections.abc import Mapping
from typing import Any

import pytest

from helpers.machines import SC17_MATRIX, sockets
from helpers.plans import plan_for
from helpers.utilities import TRAFFIC, below_minimum, utility_of, utility_policy
from placeopt import audit
from placeopt.build import Where, instance, job, machine, node, running
from placeopt.model import Domain, Gpu, Instance, Machine, Policy, Postpone, Slowdown


def short(round_: Instance, placed: Mapping[str, Where], **changes: Any) -> list[str]:
    """Return the jobs below their minimum in the plan that places these."""
    return below_minimum(round_, plan_for(round_, placed, **changes))


def minsky() -> Machine:
    """Two sockets of two GPUs, 1 apart inside and 20 across."""
    return sockets(2, 2, gpu_distance_matrix=SC17_MATRIX)


class TestWho:
    """Two GPUs across sockets have utility 253 of the artifact's formula."""

    def round(self, least: int | None = 254, *, runs: bool = False, policy: Policy | None = None) -> Instance:
        pair = job("a", gpus=2, communication=TRAFFIC, utility_min_thousandths=least)
        policy = (
            utility_policy(utility="sc17", changes={"moves_max": 1, "shrinks_max": 1}) if policy is None else policy
        )
        runs_there = [running(pair, [("n0", [0, 2])], movable=True, shrinkable=True)] if runs else []
        return instance(2, [pair, job("b")], machines=[minsky()], running=runs_there, policy=policy)

    where = {"a": [("n0", [0, 2])]}  # noqa: RUF012

    def test_a_job_that_starts_below_its_minimum(self) -> None:
        expected = "minimal utility: job 'a': its utility (sc17) is 253, below its minimum of 254 thousandths"
        assert audit(self.round(), plan_for(self.round(), self.where))[0] == expected
        for fine in (self.round(253), self.round(None)):
            assert short(fine, self.where) == []

    @pytest.mark.parametrize("rule", ["none", "lookahead"])
    def test_another_rule_checks_no_job(self, rule: Any) -> None:
        assert short(self.round(policy=Policy(postpone=Postpone(rule=rule))), self.where) == []

    def test_what_runs_and_stays_is_not_asked_but_what_moves_is(self) -> None:
        round_ = self.round(runs=True)
        assert short(round_, {}) == []
        assert short(round_, {"a": [("n1", [0, 2])]}, moved="a") == ["a"]
        assert short(round_, {"a": [("n1", [0, 1])]}, moved="a") == []

    @pytest.mark.parametrize(("change", "expected"), [("shrunk", []), ("moved", ["a"])])
    def test_a_job_on_a_part_of_its_gpus(self, change: str, expected: list[str]) -> None:
        """Two workers left are across sockets, too: a shrunk job is not asked, one that is restarted starts anew."""
        gang = job("a", workers=3, workers_min=2, communication=TRAFFIC, utility_min_thousandths=900)
        runs = running(gang, [("n0", [0]), ("n0", [2]), ("n0", [3])], shrinkable=True, movable=True)
        policy = utility_policy(utility="sc17", changes={"shrinks_max": 1, "moves_max": 1})
        round_ = instance(1, [gang], machines=[minsky()], running=[runs], policy=policy)
        assert short(round_, {"a": [("n0", [0]), ("n0", [2])]}, **{change: "a"}) == expected

    @pytest.mark.parametrize("utility", ["sum", "sc17"])
    @pytest.mark.parametrize(("least", "expected"), [(1000, []), (1001, ["a"])])
    @pytest.mark.parametrize("gpus", [[], [0]])
    def test_a_minimum_above_one_is_never_reached(
        self, gpus: list[int], least: int, expected: list[str], utility: str
    ) -> None:
        """Also without GPUs, where the utility is 1."""
        one = job("a", gpus=len(gpus), utility_min_thousandths=least)
        round_ = instance(1, [one], machines=[minsky()], policy=utility_policy(utility=utility))
        assert short(round_, {"a": [("n0", gpus)]}) == expected

    def test_each_job_that_starts_is_asked(self) -> None:
        """One that runs, one without a minimum and one that has what it asks for come before."""
        pair = job("a", gpus=2, communication=TRAFFIC, utility_min_thousandths=254)
        runs, fine = (pair.model_copy(update={"id": name}) for name in ("runs", "fine"))
        there = {"running": [running(runs, [("n0", [0, 2])])], "policy": utility_policy(utility="sc17")}
        round_ = instance(3, [runs, job("free"), fine, pair], machines=[minsky()], **there)
        placed = {"free": [("n0", [1])], "fine": [("n1", [0, 1])], "a": [("n2", [0, 2])]}
        assert short(round_, placed) == ["a"]


class TestArtifact:
    """0.2 / (sqrt t + sqrt i), each at least 0.01."""

    def round(self, *jobs: Any, **fields: Any) -> Instance:
        loud = Slowdown(profile="calm", beside="loud", socket_thousandths=333)
        hum = Slowdown(profile="calm", beside="hum", socket_thousandths=1000)
        policy = utility_policy(utility="sc17", share_mode="exclusive")
        return instance(jobs=jobs, machines=[minsky()], policy=policy, slowdowns=(loud, hum), **fields)

    @pytest.mark.parametrize(("gpus", "utility"), [((0, 1), 1000), ((0, 2), 253), ((1, 3), 253)])
    def test_two_gpus(self, gpus: tuple[int, int], utility: int) -> None:
        """Across: t = (20 - 1) / (20 x 2) = 0.475, U = 0.2 / (0.6892 + 0.1) = 0.2534."""
        round_ = self.round(job("a", gpus=2, communication=TRAFFIC))
        assert utility_of(round_, {"a": [("n0", gpus)]}) == utility

    @pytest.mark.parametrize(
        ("others", "utility"),
        [
            ({"loud": 1}, 207),  # i = 1000/1333: 0.2 / (0.1 + 0.8661)
            ({"hum": 1}, 247),  # i = 1/2: 0.2 / (0.1 + 0.7071)
            ({"loud": 1, "quiet": 2}, 280),  # i = 0.7502 / 2
            ({"quiet": 1}, 1000),
            ({"loud": 2}, 1000),  # in the other socket
        ],
    )
    def test_the_mean_over_neighbours(self, others: dict[str, int], utility: int) -> None:
        """Who causes nothing counts in the number only."""
        round_ = self.round(job("a", profile="calm"), *(job(f"b{name}", profile=name) for name in others))
        placed = {"a": [("n0", [0])], **{f"b{name}": [("n0", [gpu])] for name, gpu in others.items()}}
        assert utility_of(round_, placed) == utility

    def test_both_together(self) -> None:
        """0.2 / (0.6892 + 0.8661) = 0.1285."""
        round_ = self.round(job("a", gpus=2, profile="calm", communication=TRAFFIC), job("b", profile="loud"))
        assert utility_of(round_, {"a": [("n0", [0, 2])], "b": [("n0", [1])]}) == 128

    def test_roots_that_are_rational_meet_their_threshold_exactly(self) -> None:
        """
        t = 0.49, i = 0.01 at its least: 0.2 / (0.7 + 0.1) = 0.25 exactly.

        The matrix: 1 at best, 50 here, so 49 / (50 x 2).
        """
        far = ((0, 50, 1), (50, 0, 50), (1, 50, 0))
        pair = job("a", gpus=2, communication=TRAFFIC)
        round_ = instance(
            1, [pair], machines=[machine(gpus=3, gpu_distance_matrix=far)], policy=utility_policy(utility="sc17")
        )
        assert utility_of(round_, {"a": [("n0", [0, 1])]}) == 250

    @pytest.mark.parametrize(("inside", "utility"), [(1, 181), (2, 159), (3, 181), (4, 201)])
    def test_the_worst_path_is_the_longest_times_the_pairs_or_gpus(self, inside: int, utility: int) -> None:
        """
        Machines of one GPU, so the longest distance inside is 0 and counts as 1; 2 apart in a rack, 4 across racks.

        With one of n GPUs outside the path is 2 x (n - 1) longer than the best, of max(n, n (n - 1) / 2): t = 2 / 2,
        4 / 3, 6 / 6, 8 / 10; U = 0.2 / (sqrt t + 0.1).
        """
        nodes = [node(f"n{i}", domain="r0") for i in range(5)] + [node("far", domain="r1")]
        one = machine(gpus=[Gpu(model="A", uplink_weight=1)], uplink_weight=0)
        racks = (Domain(id="r0", uplink_weight=1), Domain(id="r1", uplink_weight=1))
        gang = job("a", workers=inside + 1, communication=TRAFFIC)
        round_ = instance(nodes, [gang], machines=[one], domains=racks, policy=utility_policy(utility="sc17"))
        assert utility_of(round_, {"a": [(f"n{i}", [0]) for i in range(inside)] + [("far", [0])]}) == utility


class TestSum:
    """(a x best/actual path + b / (1 + excess) + d x best/actual free part) / (a + b + d)."""

    def round(self, policy: Policy, **fields: Any) -> Instance:
        """A pair, ``b`` that slows it by a quarter in the socket, and sockets of one and three GPUs."""
        calm = Slowdown(profile="calm", beside="loud", socket_thousandths=250)
        a = job("a", **{"gpus": 2, "communication": TRAFFIC, "profile": "calm", **fields})
        there = {"machines": [sockets(1, 3)], "policy": policy, "slowdowns": (calm,)}
        return instance(2, [a, job("b", profile="loud")], **there)

    @pytest.mark.parametrize(
        ("weights", "utility"),
        [
            # GPUs 0 and 1 beside GPU 2: path 2 / 42, slowed by 250: 0.8; free 0/1 + 1/3 of at best the same: 1
            ((0, 0, 0), 615),  # (1/21 + 0.8 + 1) / 3
            ((500, 500, 0), 423),
            ((200, 300, 500), 749),  # 0.2/21 + 0.24 + 0.5
            ((1000, 0, 0), 47),
            ((0, 1000, 0), 800),
            ((0, 0, 1000), 1000),
        ],
    )
    def test_weights(self, weights: tuple[int, int, int], utility: int) -> None:
        a, b, d = weights
        policy = utility_policy(communication=a, interference=b, fragmentation=d)
        round_ = self.round(policy)
        assert utility_of(round_, {"a": [("n0", [0, 1])], "b": [("n0", [2])]}) == utility

    def test_weights_of_other_costs_have_no_part(self) -> None:
        """700 of Horus beside 300: the three sum to 300, and that is what is divided by."""
        policy = Policy.model_validate(
            {
                "postpone": {"rule": "utility", "utility": "sum"},
                "weights": {"communication": 100, "interference": 200, "fragmentation": 0, "horus": 700},
            }
        )
        placed = {"a": [("n0", [0, 1])], "b": [("n0", [2])]}
        assert utility_of(self.round(policy), placed) == 549  # (1/21 + 2 x 0.8) / 3

    @pytest.mark.parametrize(
        ("mine", "other", "utility"),
        [
            ([0], None, 1000),  # 0/1 + 3/3
            ([2], None, 600),  # 1/1 + 2/3 where 1 would do
            ([2], 0, 1000),  # the small socket is taken: no better place
            ([2], 1, 500),  # 1 + 1/3, at best 0 + 2/3
            ([1, 2], None, 500),  # 1 + 1/3; at best one in each: 0 + 2/3
            ([0, 1], None, 1000),
            ([1, 2, 3], None, 333),  # 1 + 0; at best 0 + 1/3
            ([0, 1, 2, 3], None, 1000),  # nothing is left, however it lies
            ([1, 2, 3], 0, 1000),
        ],
    )
    def test_free_parts_of_sockets(self, mine: list[int], other: int | None, utility: int) -> None:
        """As little left of the small socket as can be: the sum of free parts, at best over as it is."""
        round_ = self.round(utility_policy(fragmentation=1000), gpus=len(mine))
        placed = {"a": [("n0", mine)], **({} if other is None else {"b": [("n0", [other])]})}
        assert utility_of(round_, placed) == utility

    def test_a_gpu_that_others_hold_as_well_would_not_be_free_without_the_job(self) -> None:
        """Halves: alone on its GPU, 600 as above; with another on it, no place would leave more."""
        round_ = self.round(utility_policy(fragmentation=1000), gpus=1, gpu_milli=500)
        half = (round_.jobs[0], job("b", gpu_milli=500))
        round_ = round_.model_copy(update={"jobs": half})
        assert utility_of(round_, {"a": [("n0", [2])]}) == 600
        assert utility_of(round_, {"a": [("n0", [2])], "b": [("n0", [2])]}) == 1000

    def test_free_parts_add_up_over_the_jobs_nodes(self) -> None:
        """One worker on GPU 1 of each node: (1 + 2/3) x 2, at best (0 + 1) x 2; and one of them on GPU 0: 5/3 + 1."""
        round_ = self.round(utility_policy(fragmentation=1000), gpus=1, workers=2)
        assert utility_of(round_, {"a": [("n0", [1]), ("n1", [1])]}) == 600
        assert utility_of(round_, {"a": [("n0", [1]), ("n1", [0])]}) == 750

    def test_gpus_outside_any_socket_are_together(self) -> None:
        """Two of four in a socket: 2 of 2 free and 1 of 2 free."""
        gpus = [Gpu(model="A", part="s0")] * 2 + [Gpu(model="A")] * 3
        kinds, policy = [sockets(0, gpus=gpus)], utility_policy(fragmentation=1000)
        round_ = instance(1, [job("a")], machines=kinds, policy=policy)
        assert utility_of(round_, {"a": [("n0", [3])]}) == 900  # 1 + 2/3, at best 1/2 + 1
        assert utility_of(round_, {"a": [("n0", [1])]}) == 1000
