"""A job is granted above its request, up to its limit, what no job on its GPU requests."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from helpers.granted_shares import wrong_shares
from helpers.plans import plan_for
from helpers.scenarios import policy as scheduling
from helpers.scenarios import scenario, timed
from placeopt import BadInput, Engine, audit, solve
from placeopt.build import instance, job, machine, placement, running
from placeopt.check import violations
from placeopt.model import Changes, Instance, Placement, Plan, Policy, Queue, Quota, Scenario
from placeopt.problem import compile_problem
from placeopt.problem.grants import grants
from placeopt.simulation import named_policy, round_at, simulate
from placeopt.whatif import after_plan, plan_of, review
from strategies import scenarios

Asked = tuple[str, int, int | None]
"""Id, request and limit of a job."""


def shares(plan: Plan | Instance) -> dict[str, list[int]]:
    """Return the shares that each placed job holds, in the order of its nodes and GPUs."""
    placed = plan.placements if isinstance(plan, Plan) else plan.running
    return {p.job: [milli for a in p.assignments for milli in a.gpus.values()] for p in placed}


def one_gpu(*asked: Asked, runs: dict[str, int] | None = None, **fields: Any) -> Instance:
    """Build a round of one GPU; ``runs``: the jobs that run, and what they hold of it."""
    jobs = [job(name, gpu_milli=request, gpu_milli_limit=limit) for name, request, limit in asked]
    may = {"movable": True, "shrinkable": True, "preemptible": True}
    held = [running(one, [("n0", [0])], milli=(runs or {})[one.id], **may) for one in jobs if one.id in (runs or {})]
    return instance(1, jobs, machines=[machine(gpus=1)], running=held, **fields)


def solved(round_: Instance) -> Plan:
    """Solve, and insist on proof, referee and audit."""
    plan = solve(round_)
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []
    assert plan.status == "optimal"
    return plan


class TestRule:
    """Who gets how much."""

    def test_the_rest_of_a_gpu_is_granted_in_proportion_to_limit_minus_request(self) -> None:
        """
        Worked by hand: requests 250 and 250, limits 1000 and 500.

        The rest is 1000 - 500 = 500; the weights are 750 and 250; so 375 and 125 are granted on top: 625 and 375.
        """
        plan = solved(one_gpu(("a", 250, 1000), ("b", 250, 500)))
        assert shares(plan) == {"a": [625], "b": [375]}
        assert plan.facts["gpu_milli_placed"] == 500  # requests

    def test_a_job_alone_is_granted_its_limit(self) -> None:
        """As reported: request 250, limit 1000, an idle GPU; 250 was granted."""
        assert shares(solved(one_gpu(("a", 250, 1000)))) == {"a": [1000]}
        assert shares(solved(one_gpu(("a", 250, 600)))) == {"a": [600]}
        assert shares(solved(one_gpu(("a", 250, None)))) == {"a": [250]}

    @pytest.mark.parametrize(
        ("bounds", "expected"),
        [
            ({"c": (100, 1000), "a": (100, 1000), "b": (100, 1000)}, {"a": 334, "b": 333, "c": 333}),
            ({"a": (500, 500), "b": (500, 1000)}, {"a": 500, "b": 500}),
            ({"a": (200, 300), "b": (200, 400)}, {"a": 300, "b": 400}),
            ({"a": (100, 101), "b": (100, 1000), "c": (799, 799)}, {"a": 101, "b": 100, "c": 799}),
            ({"a": (100, 100), "b": (100, 1000), "c": (799, 800)}, {"a": 100, "b": 101, "c": 799}),
            ({"a10": (1, 1000), "a9": (1, 1000), "b": (1, 999)}, {"a10": 334, "a9": 333, "b": 333}),
            ({"a": (700, 1000), "b": (700, 1000)}, {"a": 700, "b": 700}),
            ({}, {}),
        ],
    )
    def test_by_hand(self, bounds: dict[str, tuple[int, int]], expected: dict[str, int]) -> None:
        """
        Remainders by id (as text, so a10 is before a9), limits as caps, nothing where requests fill the GPU or more.

        Of the sixth: R = 997 and w = 999, 999 and 998, so 332.44, 332.44 and 332.11: 996 in all, and one goes to a10.
        """
        assert grants(bounds) == expected

    def test_the_rule_holds_for_every_mix(self) -> None:
        """All of min(rest, wishes) is granted, nobody is below his request, above his limit, or a thousandth off."""
        for first in range(0, 1000, 37):
            for second in range(1, 1000 - first, 53):
                bounds = {"x": (second, 1000), "y": (first + 1, min(1000, first + 200)), "z": (1, 400)}
                if sum(low for low, _ in bounds.values()) > 1000:
                    continue
                found = grants(bounds)
                rest = 1000 - sum(low for low, _ in bounds.values())
                wanted = sum(high - low for low, high in bounds.values())
                assert sum(found.values()) == 1000 - rest + min(rest, wanted)
                for name, (low, high) in bounds.items():
                    assert low <= found[name] <= high
                    assert abs(found[name] - low - min(rest, wanted) * (high - low) / wanted) < 1

    @pytest.mark.parametrize("mode", ["exclusive", "overcommit"])
    def test_other_modes_grant_nothing_above_the_request(self, mode: str) -> None:
        """A job has the GPU to itself anyway, or the sum of shares means nothing."""
        rules = Policy(share_mode=mode, jobs_per_gpu_max=2 if mode == "overcommit" else None)
        assert shares(solved(one_gpu(("a", 250, 1000), policy=rules))) == {"a": [250]}

    def test_each_gpu_of_a_gang_by_itself(self) -> None:
        """Two workers, one beside another job: 1000 on the one GPU, 250 + 500 x 750 / 750 = 750 on the other."""
        a = job("a", workers=2, gpu_milli=250, gpu_milli_limit=1000)
        b = job("b", gpu_milli=250, nodes_allowed=("n0",))
        assert shares(solved(instance(1, [a, b], machines=[machine(gpus=2)]))) == {"a": [750, 1000], "b": [250]}


class TestRunning:
    """What is granted to a running job above its request is free for others, and changes at no price."""

    def test_the_part_above_the_request_makes_room(self) -> None:
        """A running job holds all of the GPU by grant; 750 fit beside it, and it is neither moved nor shrunk."""
        round_ = one_gpu(("a", 250, 1000), ("b", 750, None), runs={"a": 1000}, policy=Policy(changes=Changes()))
        plan = solved(round_)
        assert shares(plan) == {"a": [250], "b": [750]}
        assert (plan.moved, plan.shrunk, plan.preempted) == ((), (), ())
        assert plan.facts["gpu_milli_placed"] == 1000

    def test_it_is_given_back_when_the_neighbour_is_gone(self) -> None:
        """The file says 250; alone the job is granted its limit."""
        assert shares(solved(one_gpu(("a", 250, 900), runs={"a": 250}))) == {"a": [900]}

    def test_a_change_of_share_costs_nothing(self) -> None:
        """Prices of all changes are dear, and the newcomer is worth 1."""
        dear = Changes(moves_max=1, shrinks_max=1, preemptions_max=1, move_price=99, preemption_price=99)
        plan = solved(one_gpu(("a", 250, 1000), ("b", 700, 900), runs={"a": 1000}, policy=Policy(changes=dear)))
        assert shares(plan) == {"a": [290], "b": [710]}  # the rest of 50, 750 : 200 = 39.5 : 10.5, remainder to a
        assert plan.levels[0].objective == 2

    def test_a_preempted_job_frees_its_request(self) -> None:
        """What it held above was free before."""
        allowed = Policy(changes=Changes(preemptions_max=1))
        jobs = [job("a", gpu_milli=250, gpu_milli_limit=1000), job("b", gpus=1, value=9)]
        held = [running(jobs[0], [("n0", [0])], milli=1000, preemptible=True)]
        plan = solved(instance(1, jobs, machines=[machine(gpus=1)], running=held, policy=allowed))
        assert [(stop.job, stop.freed_gpu_milli) for stop in plan.preempted] == [("a", 250)]

    def test_queues_count_requests(self) -> None:
        """A quota of 500: the running job's 1000 by grant are 250 of it."""
        jobs = [job(name, gpu_milli=250, gpu_milli_limit=1000, queue="q") for name in "abc"]
        rules = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=500)),))
        held = [running(jobs[0], [("n0", [0])], milli=1000)]
        plan = solved(instance(1, jobs, running=held, policy=rules))
        assert plan.facts["gpu_milli_placed"] == 500

    def test_a_file_that_gives_more_than_a_gpu_contradicts_itself(self) -> None:
        """1000 and 250 of one GPU: bad input to a round and to a load; by requests alone they would fit."""
        round_ = one_gpu(("a", 250, 1000), ("b", 250, None), runs={"a": 1000, "b": 250})
        for refused in (solve, compile_problem, lambda file: Engine(isolation="thread").load(file)):
            with pytest.raises(BadInput, match=r"'n0' gpu 0: 1250 of 1000 milli held by jobs 'a', 'b'"):
                refused(round_)
        rules = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
        assert solve(round_, policy=rules).facts["jobs_placed"] == 2


class TestReferee:
    """The referee states the rule by itself."""

    def test_each_share_is_what_the_rule_grants(self) -> None:
        """A thousandth more or less, of a new job or of a running one, is refused, and no other rule is broken."""
        round_ = one_gpu(("a", 250, 1000), ("b", 250, 500), runs={"a": 1000})
        for a, b, expected in (
            (625, 375, set()),
            (624, 375, {"gpu_grant"}),
            (625, 376, {"gpu_grant"}),
            (250, 250, {"gpu_grant"}),
            (249, 375, {"gpu_milli"}),
        ):
            held = {
                one.id: placement(one, [("n0", [0])], milli=milli)
                for one, milli in zip(round_.jobs, (a, b), strict=True)
            }
            assert {v.rule for v in violations(round_, plan_for(round_, held))} == expected

    def test_messages(self) -> None:
        """What was found, what was expected, and the range."""
        round_ = one_gpu(("a", 250, 1000))
        plan = plan_for(round_, {"a": placement(round_.jobs[0], [("n0", [0])], milli=250)})
        assert [v.message for v in violations(round_, plan)] == [
            "job 'a' on node 'n0': 250 milli of GPU 0, expected 1000 of 250 to 1000"
        ]


class TestResident:
    """A cluster between rounds."""

    def test_plans_for_some_jobs_and_snapshots(self) -> None:
        """Worked by hand: a alone 1000; b beside it 375, and the snapshot says 625 and 375; b ends: 1000 again."""
        with Engine(isolation="thread") as engine:
            engine.load(one_gpu(("a", 250, 1000), ("b", 250, 500), ("c", 600, None)))
            plan = engine.place(["a"])
            assert shares(plan) == {"a": [1000]}
            assert plan.facts["gpu_milli_placed"] == 250
            engine.commit(plan)
            plan = engine.place(["b"])
            assert shares(plan) == {"b": [375]}
            engine.commit(plan)
            assert shares(engine.snapshot) == {"a": [625], "b": [375]}
            assert engine.place(["c"]).placements == ()  # 600 beside requests of 500
            whole = engine.place()
            assert shares(whole) == {"a": [625], "b": [375]}
            revision = engine.revision
            engine.commit(whole)
            assert engine.revision == revision  # shares alone are no change
            engine.release("b")
            assert shares(engine.snapshot) == {"a": [1000]}
            engine.commit(engine.place(["c"]))
            assert shares(engine.snapshot) == {"a": [400], "c": [600]}
            Engine(isolation="thread").load(engine.snapshot)

    def test_jobs_of_one_plan_share_the_rest(self) -> None:
        """Placed one after the other, each is granted what is left beside both."""
        with Engine(isolation="thread") as engine:
            engine.load(one_gpu(("a", 250, 1000), ("b", 250, 500)))
            assert shares(engine.place(["a", "b"])) == {"a": [625], "b": [375]}

    def test_limits_that_come_with_an_update(self) -> None:
        """The cluster was loaded without any."""
        with Engine(isolation="thread") as engine:
            engine.load(one_gpu(("a", 250, None)))
            engine.update(add_jobs=[job("b", gpu_milli=250, gpu_milli_limit=1000)])
            engine.commit(engine.place(["a", "b"]))
            assert shares(engine.snapshot) == {"a": [250], "b": [750]}


class TestSimulation:
    """Jobs that share a GPU go as fast as their shares, and logs and moments state them."""

    world = scenario(
        [
            timed("a", 0, 1000, gpu_milli=250, gpu_milli_limit=1000, gpu_utilisation_percent=20),
            timed("b", 500, 300, gpu_milli=250, gpu_milli_limit=500),
            *(timed(f"full{i}", 0, 9000) for i in range(3)),
        ]
    )

    def test_speed(self) -> None:
        """
        a alone does 500 ms of work by 500. Then b comes, and a takes 1000 / 625 = 1.6 of its time, b 500 / 375 = 4/3.

        The slowdown is kept in thousandths, rounded up: 1334. b needs 400.2 ms and ends at 901; by then a has done
        401 / 1.6 = 250.6 more, and ends 249.4 later alone, at 1151.
        """
        ends = {one.job: one.end_ms for one in simulate(self.world, scheduling("best-fit")).jobs}
        assert (ends["a"], ends["b"]) == (1151, 901)

    def test_dynamoml_grants_and_its_file_says_nothing_else(self) -> None:
        """The paper's limits above requests (3.1) are handed out under the policy, too."""
        rules = named_policy("dynamoml")
        ends = {one.job: one.end_ms for one in simulate(self.world, rules).jobs}
        assert (ends["a"], ends["b"]) == (1151, 901)
        assert rules.source is not None
        assert not [told for told in rules.source.departures if "limit" in told or "share" in told.lower()]

    @pytest.mark.parametrize("mode", ["exclusive", "overcommit"])
    def test_other_modes_slow_no_job_by_shares(self, mode: str) -> None:
        """There a job has the GPU to itself, or what shares cost is interference."""
        rules = Policy(share_mode=mode, jobs_per_gpu_max=2 if mode == "overcommit" else None)
        history = simulate(self.world, scheduling("best-fit", policy=rules))
        assert next(one.end_ms for one in history.jobs if one.job == "a") == 1000

    @pytest.mark.parametrize("rounds", ["each", "whole"])
    def test_log_and_moments(self, rounds: str, tmp_path: Path) -> None:
        """Each line says what is granted after its round; a moment what all hold then; the log can be played again."""
        log = tmp_path / "log.jsonl"
        how = scheduling("best-fit", rounds=rounds)
        history = simulate(self.world, how, log=log)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        told = {one["job"]: one["assignments"][0]["gpus"] for line in lines for one in line.get("start", ())}
        assert sorted(told["a"].values()) == [1000]
        assert sorted(told["b"].values()) == [375]
        moment = round_at(history, 600)
        assert (shares(moment)["a"], shares(moment)["b"]) == ([625], [375])
        assert shares(round_at(history, 400))["a"] == [1000]
        spans = {one.job: one.spans[0].placement.assignments[0].gpus for one in history.jobs}
        assert list(spans["a"].values()) == [250]  # what the books keep is the request
        before = log.read_bytes()
        again = simulate(self.world, how, log=log, resume=True)
        assert [one.end_ms for one in again.jobs] == [one.end_ms for one in history.jobs]
        assert log.read_bytes() == before

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"preempts": "srtf", "order": "srtf"},
            {"rounds": "whole", "policy": Policy(changes=Changes(moves_max=2, shrinks_max=2, preemptions_max=2))},
        ],
        ids=["one by one", "preempting", "whole rounds that change what runs"],
    )
    @settings(max_examples=settings().max_examples // 6)
    @given(world=scenarios(most_jobs=40, limits=True))
    def test_random_scenarios(self, tmp_path_factory: pytest.TempPathFactory, fields: Any, world: Scenario) -> None:
        """Moments state the rule's shares; what the log decided is accepted by the referee when it is played again."""
        log = tmp_path_factory.mktemp("log") / "log.jsonl"
        how = scheduling("best-fit", **fields)
        history = simulate(world, how, log=log)
        assert history.finished
        for at in sorted({one.end_ms - 1 for one in history.jobs if one.end_ms is not None})[:6]:  # something runs then
            moment = round_at(history, at)
            assert wrong_shares(moment, moment.running) == []
            compile_problem(moment)
        again = simulate(world, how, log=log, resume=True)
        assert again.jobs == history.jobs


class TestWhatIf:
    """What others read shares for."""

    def test_a_plan_carried_out_is_a_round(self) -> None:
        """What a plan grants is what runs then."""
        round_ = one_gpu(("a", 250, 1000), ("b", 250, 500), ("c", 300, None))
        after = after_plan(round_, solved(round_))
        assert sum(milli for held in shares(after).values() for milli in held) == 1000
        assert violations(after, solve(after)) == []

    def test_placements_of_others_are_granted_what_is_left(self) -> None:
        """Another scheduler states requests; what it grants above is no fault of its, a share out of range is one."""
        round_ = one_gpu(("a", 250, 1000), ("b", 250, 500), runs={"a": 1000})
        theirs = placement(round_.jobs[1], [("n0", [0])])
        assert review(round_, plan_of(round_, [theirs])).valid
        beyond = placement(round_.jobs[1], [("n0", [0])], milli=501)
        assert review(round_, plan_of(round_, [beyond])).violations[0].startswith("gpu_milli")
        nobody = Placement(job="nobody", option="default", assignments=theirs.assignments)
        assert not review(round_, plan_of(round_, [nobody])).valid

    def test_what_runs_counts_by_its_request(self) -> None:
        """``report`` and the statistics of sets say how much is taken: what is granted above is free."""
        assert one_gpu(("a", 250, 1000), runs={"a": 1000}).running_gpu_milli == 250
