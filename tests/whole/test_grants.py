"""A job is granted above its request, up to its limit, what no job on its GPU requests."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from helpers.grant_cases import CASES
from helpers.granted_shares import wrong_shares
from helpers.live_engine import release, update
from helpers.scenarios import policy as scheduling
from helpers.scenarios import scenario, timed
from placeopt import BadInput, Engine, audit
from placeopt.build import instance, job, machine, placement, running
from placeopt.check import violations
from placeopt.model import Changes, Instance, Placement, Plan, Policy, Queue, Quota
from placeopt.problem import compile_problem
from placeopt.scheduling import Scheduling, named_policy
from placeopt.simulation import Scenario, round_at, simulate
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


def solved(engine: Engine, round_: Instance) -> Plan:
    """Solve, and insist on proof, referee and audit."""
    plan = engine.solve(round_, time_limit_s=30)
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []
    assert plan.status == "optimal"
    return plan


class TestRule:
    @pytest.mark.parametrize("name", CASES)
    def test_by_hand(self, engine: Engine, name: str) -> None:
        """The cases of the referee; what a job is granted above its request is not counted as placed."""
        asked = CASES[name]
        plan = solved(engine, one_gpu(*((job_, low, high) for job_, (low, high, _) in asked.items())))
        assert shares(plan) == {job_: [due] for job_, (_, _, due) in asked.items()}
        assert plan.facts["gpu_milli_placed"] == sum(low for low, _, _ in asked.values())

    @pytest.mark.parametrize("mode", ["exclusive", "overcommit"])
    def test_other_modes_grant_nothing_above_the_request(self, engine: Engine, mode: str) -> None:
        """A job has the GPU to itself anyway, or the sum of shares means nothing."""
        rules = Policy(share_mode=mode, jobs_per_gpu_max=2 if mode == "overcommit" else None)
        assert shares(solved(engine, one_gpu(("a", 250, 1000), policy=rules))) == {"a": [250]}

    def test_each_gpu_of_a_gang_by_itself(self, engine: Engine) -> None:
        """Two workers, one beside another job: 1000 on the one GPU, 250 + 500 x 750 / 750 = 750 on the other."""
        a = job("a", workers=2, gpu_milli=250, gpu_milli_limit=1000)
        b = job("b", gpu_milli=250, nodes_allowed=("n0",))
        assert shares(solved(engine, instance(1, [a, b], machines=[machine(gpus=2)]))) == {"a": [750, 1000], "b": [250]}


DEAR = Changes(moves_max=1, shrinks_max=1, preemptions_max=1, move_price=99, preemption_price=99)
"""All changes are dear, and a newcomer is worth 1."""


class TestRunning:
    """What is granted to a running job above its request is free for others, and changes at no price."""

    @pytest.mark.parametrize(
        ("asked", "holds", "changes", "expected"),
        [
            ([("a", 250, 1000), ("b", 750, None)], 1000, Changes(), {"a": [250], "b": [750]}),
            ([("a", 250, 900)], 250, Changes(), {"a": [900]}),  # the file says 250; alone it is granted its limit
            # the rest of 50, 750 : 200 = 39.5 : 10.5, remainder to a
            ([("a", 250, 1000), ("b", 700, 900)], 1000, DEAR, {"a": [290], "b": [710]}),
        ],
    )
    def test_the_part_above_the_request_makes_room(
        self, engine: Engine, asked: list[Asked], holds: int, changes: Changes, expected: dict[str, list[int]]
    ) -> None:
        """The job that runs is neither moved nor shrunk, and what it has less costs nothing."""
        plan = solved(engine, one_gpu(*asked, runs={"a": holds}, policy=Policy(changes=changes)))
        assert shares(plan) == expected
        assert (plan.moved, plan.shrunk, plan.preempted) == ((), (), ())
        assert plan.facts["gpu_milli_placed"] == sum(request for _, request, _ in asked)
        assert plan.levels[0].objective == len(asked)

    def test_a_preempted_job_frees_its_request(self, engine: Engine) -> None:
        """What it held above was free before."""
        allowed = Policy(changes=Changes(preemptions_max=1))
        jobs = [job("a", gpu_milli=250, gpu_milli_limit=1000), job("b", gpus=1, value=9)]
        held = [running(jobs[0], [("n0", [0])], milli=1000, preemptible=True)]
        plan = solved(engine, instance(1, jobs, machines=[machine(gpus=1)], running=held, policy=allowed))
        assert [(stop.job, stop.freed_gpu_milli) for stop in plan.preempted] == [("a", 250)]

    def test_queues_count_requests(self, engine: Engine) -> None:
        """A quota of 500: the running job's 1000 by grant are 250 of it."""
        jobs = [job(name, gpu_milli=250, gpu_milli_limit=1000, queue="q") for name in "abc"]
        rules = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=500)),))
        held = [running(jobs[0], [("n0", [0])], milli=1000)]
        plan = solved(engine, instance(1, jobs, running=held, policy=rules))
        assert plan.facts["gpu_milli_placed"] == 500

    def test_a_file_that_gives_more_than_a_gpu_contradicts_itself(self, engine: Engine) -> None:
        """1000 and 250 of one GPU: bad input to a round and to a load; by requests alone they would fit."""
        round_ = one_gpu(("a", 250, 1000), ("b", 250, None), runs={"a": 1000, "b": 250})
        for refused in (engine.solve, compile_problem, lambda file: Engine(isolation="thread").load(file)):
            with pytest.raises(BadInput, match=r"'n0' gpu 0: 1250 of 1000 milli held by jobs 'a', 'b'"):
                refused(round_)
        rules = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
        assert engine.solve(round_.model_copy(update={"policy": rules})).facts["jobs_placed"] == 2


class TestLiveCluster:
    def test_plans_for_some_jobs_and_snapshots(self) -> None:
        """Worked by hand: a alone 1000; b beside it 375, and the snapshot says 625 and 375; b ends: 1000 again."""
        with Engine(isolation="thread") as live:
            live.load(one_gpu(("a", 250, 1000), ("b", 250, 500), ("c", 600, None)))
            assert shares(live.place(["a", "b"])) == {"a": [625], "b": [375]}  # of one plan: what is left beside both
            plan = live.place(["a"])
            assert shares(plan) == {"a": [1000]}
            assert plan.facts["gpu_milli_placed"] == 250
            live.commit(plan)
            plan = live.place(["b"])
            assert shares(plan) == {"b": [375]}
            live.commit(plan)
            assert shares(live.snapshot) == {"a": [625], "b": [375]}
            assert live.place(["c"]).placements == ()  # 600 beside requests of 500
            whole = live.place()
            assert shares(whole) == {"a": [625], "b": [375]}
            revision = live.revision
            live.commit(whole)
            assert live.revision == revision  # shares alone are no change
            release(live, "b")
            assert shares(live.snapshot) == {"a": [1000]}
            live.commit(live.place(["c"]))
            assert shares(live.snapshot) == {"a": [400], "c": [600]}
            Engine(isolation="thread").load(live.snapshot)

    def test_limits_that_come_with_an_update(self) -> None:
        with Engine(isolation="thread") as live:
            live.load(one_gpu(("a", 250, None)))
            update(live, add_jobs=[job("b", gpu_milli=250, gpu_milli_limit=1000)])
            live.commit(live.place(["a", "b"]))
            assert shares(live.snapshot) == {"a": [250], "b": [750]}


class TestSimulation:
    """Jobs that share a GPU go as fast as their shares, and logs and moments state them."""

    world = scenario(
        [
            timed("a", 0, 1000, gpu_milli=250, gpu_milli_limit=1000, gpu_utilisation_percent=20),
            timed("b", 500, 300, gpu_milli=250, gpu_milli_limit=500),
            *(timed(f"full{i}", 0, 9000) for i in range(3)),
        ]
    )

    @pytest.mark.parametrize("how", [scheduling("best-fit"), named_policy("dynamoml")], ids=["best-fit", "dynamoml"])
    def test_speed(self, how: Scheduling) -> None:
        """
        a alone does 500 ms of work by 500. Then b comes, and a takes 1000 / 625 = 1.6 of its time, b 500 / 375 = 4/3.

        The slowdown is kept in thousandths, rounded up: 1334. b needs 400.2 ms and ends at 901; by then a has done
        401 / 1.6 = 250.6 more, and ends 249.4 later alone, at 1151. DynamoML grants limits above requests (3.1), and
        its file says nothing else.
        """
        ends = {one.job: one.end_ms for one in simulate(self.world, how).jobs}
        assert (ends["a"], ends["b"]) == (1151, 901)
        departures = () if how.source is None else how.source.departures
        assert not [told for told in departures if "limit" in told or "share" in told.lower()]

    @pytest.mark.parametrize("mode", ["exclusive", "overcommit"])
    def test_other_modes_slow_no_job_by_shares(self, mode: str) -> None:
        """There a job has the GPU to itself, or what shares cost is interference."""
        rules = Policy(share_mode=mode, jobs_per_gpu_max=2 if mode == "overcommit" else None)
        history = simulate(self.world, scheduling("best-fit", policy=rules))
        assert next(one.end_ms for one in history.jobs if one.job == "a") == 1000

    @pytest.mark.parametrize("rounds", ["each", "whole"])
    def test_log_and_moments(self, rounds: str, tmp_path: Path) -> None:
        """Each line says what is granted after its round; a moment what all hold then."""
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

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"preempts": {"rule": "srtf"}, "order": {"rule": "srtf"}},
            {"rounds": "whole", "policy": Policy(changes=Changes(moves_max=2, shrinks_max=2, preemptions_max=2))},
        ],
        ids=["one by one", "preempting", "whole rounds that change what runs"],
    )
    @settings(max_examples=settings().max_examples // 3)
    @given(world=scenarios(most_jobs=40, limits=True))
    def test_random_scenarios(self, fields: Any, world: Scenario) -> None:
        """Moments state the rule's shares."""
        history = simulate(world, scheduling("best-fit", **fields))
        assert history.finished
        for at in sorted({one.end_ms - 1 for one in history.jobs if one.end_ms is not None})[:6]:  # something runs then
            moment = round_at(history, at)
            assert wrong_shares(moment, moment.running) == []
            compile_problem(moment)


def test_a_plan_carried_out_is_a_round(engine: Engine) -> None:
    """What a plan grants is what runs then."""
    round_ = one_gpu(("a", 250, 1000), ("b", 250, 500), ("c", 300, None))
    after = after_plan(round_, solved(engine, round_))
    assert sum(milli for held in shares(after).values() for milli in held) == 1000
    assert violations(after, engine.solve(after)) == []


def test_placements_of_others_are_granted_what_is_left() -> None:
    """Another scheduler states requests; what it grants above is no fault of its, a share out of range is one."""
    round_ = one_gpu(("a", 250, 1000), ("b", 250, 500), runs={"a": 1000})
    assert round_.running_gpu_milli == 250  # what is granted above counts as free
    theirs = placement(round_.jobs[1], [("n0", [0])])
    assert review(round_, plan_of(round_, [theirs])).valid
    beyond = placement(round_.jobs[1], [("n0", [0])], milli=501)
    assert review(round_, plan_of(round_, [beyond])).violations[0].startswith("gpu_milli")
    nobody = Placement(job="nobody", option="default", assignments=theirs.assignments)
    assert not review(round_, plan_of(round_, [nobody])).valid
