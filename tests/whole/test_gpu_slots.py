"""GPUs with profiles: shares at slots, against brute force over all starts."""

from itertools import combinations, product
from typing import Any

import pytest

from helpers.live_engine import assert_as_if_fresh, engine_of, set_policy, step
from helpers.night import seeds
from helpers.plans import NO_COSTS, plan_for
from helpers.solved import compare_methods
from placeopt import BadInput, solve
from placeopt.actions import plan_actions
from placeopt.build import instance, job, machine, node
from placeopt.check import violations
from placeopt.documents import dumps, loads
from placeopt.explain import explain
from placeopt.model import (
    Assignment,
    Changes,
    Gpu,
    Instance,
    Machine,
    Plan,
    Policy,
    Profile,
    Running,
    WorkerGpus,
)
from placeopt.topology import MIG_GPUS, mig_profiles
from strategies.choice import Choice, seeded

Geometry = dict[str | None, tuple[int, tuple[int, ...]]]
"""Profile -> width and starts; None: of jobs that name none."""
A100: Geometry = {
    "1g.10gb": (1, (0, 1, 2, 3, 4, 5, 6)),
    "1g.20gb": (2, (0, 2, 4, 6)),
    "2g.20gb": (2, (0, 2, 4)),
    "3g.40gb": (4, (0, 4)),
    "4g.40gb": (4, (0,)),
    "7g.80gb": (8, (0,)),
}
ON_DEMAND: Geometry = {**A100, None: (8, (0,))}
A30: Geometry = {"1g.6gb": (1, (0, 1, 2, 3)), "2g.12gb": (2, (0, 2)), "4g.24gb": (4, (0,))}


def gpu(geometry: Geometry | None) -> Gpu:
    """Return a GPU with such profiles; None: with none."""
    profiles = (Profile(id=name, width=width, starts=starts) for name, (width, starts) in (geometry or {}).items())
    return Gpu(model="A100", memory_mib=81_920, profiles=tuple(profiles))


def round_of(*wanted: str, gpus: int = 1, running: tuple[Running, ...] = (), **fields: Any) -> Instance:
    """Return a round of one node of A100s, and a job for each profile: ``j0``, ``j1``, ..."""
    jobs = [job(f"j{i}", gpu_milli=125, gpu_profile=name) for i, name in enumerate(wanted)]
    machines = [machine("m", [gpu(A100)] * gpus)]
    return instance(1, jobs, machines=machines, running=running, policy=Policy(weights=NO_COSTS, **fields))


def runs(name: str, start: int, *, at: tuple[str, int] = ("n0", 0), milli: int = 125, **fields: Any) -> Running:
    """Return a job with a share of a GPU from a slot on."""
    held = Assignment(
        node=at[0],
        gpus={str(at[1]): milli},
        starts={str(at[1]): start},
        workers=(WorkerGpus(rank=0, gpus=(at[1],)),),
    )
    return Running(job=name, option="default", assignments=(held,), **fields)


def slots(plan: Plan) -> dict[str, int]:
    """Return the first slot of each job's share."""
    return {one.job: start for one in plan.placements for a in one.assignments for start in a.starts.values()}


class TestOneGpu:
    """What NVIDIA allows of an A100 with 80 GB."""

    @pytest.mark.parametrize(
        ("wanted", "placed"),
        [
            (["1g.10gb"] * 8, 7),
            (["3g.40gb", "3g.40gb", "1g.10gb"], 2),
            (["4g.40gb", "3g.40gb"], 2),
            (["4g.40gb", "4g.40gb"], 1),
            (["3g.40gb", "2g.20gb", "2g.20gb"], 3),
            (["4g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"], 3),
            (["1g.20gb"] * 4, 4),
            (["7g.80gb", "1g.10gb"], 1),
        ],
    )
    def test_as_many_as_have_slots(self, wanted: list[str], placed: int) -> None:
        round_ = round_of(*wanted)
        plan = solve(round_, time_limit_s=20, isolation="thread")
        assert (plan.status, len(plan.placements), violations(round_, plan)) == ("optimal", placed, [])
        taken = [
            slot
            for one in plan.placements
            for slot in range(slots(plan)[one.job], slots(plan)[one.job] + A100[wanted[int(one.job[1:])]][0])
        ]
        assert len(taken) == len(set(taken))
        assert loads(Plan, dumps(plan)) == plan

    def test_new_shares_leave_room_for_wide_ones(self) -> None:
        """Beside it a 4g.40gb fits."""
        assert slots(solve(round_of("1g.10gb"), time_limit_s=20, isolation="thread"))["j0"] >= 4

    def test_running_shares_keep_their_slots(self) -> None:
        """A 1g at slot 1 leaves one 3g, at slot 4; a move to another GPU, where it is allowed, leaves both."""
        one = runs("j0", 1, movable=True)
        stays = solve(round_of("1g.10gb", "3g.40gb", "3g.40gb", running=(one,)), time_limit_s=20, isolation="thread")
        assert slots(stays).keys() == {"j0", "j1"} or slots(stays).keys() == {"j0", "j2"}
        assert 4 in slots(stays).values()
        wanted = ["1g.10gb", *["3g.40gb"] * 3]
        two = round_of(*wanted, gpus=2, running=(one,), changes=Changes(moves_max=1))
        moved = solve(two, time_limit_s=20, isolation="thread")
        assert len(moved.placements) == 4
        assert violations(two, moved) == []

    def test_shares_of_any_size_need_gpus_without_profiles(self) -> None:
        whole = [job("whole", value=5), job("half", gpu_milli=500), job("one", gpu_milli=125, gpu_profile="1g.10gb")]
        round_ = instance(1, whole, machines=[machine("m", [gpu(A100), gpu(None)])])
        plan = solve(round_, time_limit_s=20, isolation="thread")
        held = {one.job: next(iter(one.assignments[0].gpus)) for one in plan.placements}
        assert held["one"] == "0"
        assert held["whole"] == "1"
        assert [one.job for one in plan.unplaced] == ["half"]


def test_a_share_starts_after_the_one_that_leaves_its_slots() -> None:
    """One slot is all that it lacks, of which the share of a GPU says nothing."""
    three = [runs(f"j{i}", start, preemptible=True) for i, start in enumerate((0, 4, 6))]
    round_ = round_of(
        "1g.10gb", "1g.10gb", "1g.10gb", "4g.40gb", running=tuple(three), changes=Changes(preemptions_max=1)
    )
    dear = round_.jobs[3].model_copy(update={"options": (round_.jobs[3].options[0].valued(9),)})
    full = round_.model_copy(update={"jobs": (*round_.jobs[:3], dear)})
    plan = solve(full, time_limit_s=20, isolation="thread")
    stop, start = plan_actions(full, plan)
    assert (stop.do, stop.job, start.do, start.job) == ("preempt", "j0", "start", "j3")
    assert start.after == (0,)


def test_profiles_of_well_known_gpus() -> None:
    """As NVIDIA names and places them; a fully divided GPU takes as many of each as its table says."""
    for name, geometry in (("A100-80GB", A100), ("H100-80GB", A100), ("A30-24GB", A30)):
        assert {one.id: (one.width, one.starts) for one in mig_profiles(name)} == geometry
    assert [one.id for one in mig_profiles("H200-141GB")][-1] == "7g.141gb"
    assert all(len(mig_profiles(name)) in (3, 6) for name in MIG_GPUS)
    with pytest.raises(BadInput, match="no profiles of 'T4'; there are: A30-24GB"):
        mig_profiles("T4")


def test_a_gpu_that_is_divided_on_demand() -> None:
    """Whole for jobs without a profile, also several of them, or in shares; beside it a GPU without profiles."""
    wanted = [
        job("two", gpus=2, value=9),
        job("one", gpus=1, value=5),
        job("small", gpu_milli=125, gpu_profile="1g.10gb"),
    ]
    round_ = instance(1, wanted, machines=[machine("m", [gpu(ON_DEMAND), gpu(ON_DEMAND), gpu(None)])])
    plan = solve(round_, time_limit_s=20, isolation="thread")
    assert [one.job for one in plan.unplaced] == ["small"]
    assert plan.status == "optimal"
    assert violations(round_, plan) == []
    two = next(one.assignments[0] for one in plan.placements if one.job == "two")
    assert two.starts == {index: 0 for index in two.gpus if index != "2"}


class TestReferee:
    """Every fault of a slot is found."""

    @pytest.mark.parametrize(
        ("starts", "words"),
        [
            ((0, 0), "2 of 1 shares in slot 0 held by jobs 'j0', 'j1'"),
            ((7, 0), "begins at slot 7"),
            ((None, 0), "begins at slot None"),
        ],
    )
    def test_what_is_wrong(self, starts: tuple[int | None, int], words: str) -> None:
        round_ = round_of("1g.10gb", "3g.40gb")
        given = {}
        for name, start in zip(("j0", "j1"), starts, strict=True):
            held = runs(name, start or 0).assignments[0]
            held = held if start is not None else held.model_copy(update={"starts": {}})
            given[name] = (
                plan_for(round_, {name: [("n0", [0])]}).placements[0].model_copy(update={"assignments": (held,)})
            )
        (found,) = violations(round_, plan_for(round_, given))
        assert found.rule == "gpu_slots"
        assert words in found.message

    def test_wrong_profiles_and_moved_slots(self) -> None:
        round_ = round_of("2g.12gb")
        held = plan_for(round_, {"j0": [("n0", [0])]})
        assert "of profile '2g.12gb', the GPU has '1g.10gb'" in violations(round_, held)[0].message
        runs_ = round_of("1g.10gb", running=(runs("j0", 1),))
        other = plan_for(runs_, {}).placements[0].model_copy(update={"assignments": runs("j0", 2).assignments})
        assert "a job that stays keeps slot 1" in violations(runs_, plan_for(runs_, {"j0": other}))[0].message

    def test_running_shares_that_meet_are_refused(self) -> None:
        with pytest.raises(BadInput, match="shares in slot 1 held by"):
            solve(round_of("1g.10gb", "4g.40gb", running=(runs("j0", 1), runs("j1", 0))), isolation="thread")


def test_why_a_share_waits() -> None:
    """Slots are the reason, and who holds them is named."""
    round_ = round_of("1g.10gb", "4g.40gb", running=(runs("j0", 1),))
    told = explain(round_, solve(round_, time_limit_s=20, isolation="thread"), "j1")
    assert [one.group for one in told.conflict] == ["gpu_count", "gpu_profile"]
    jobs = [job(f"j{i}", gpu_milli=125, gpu_profile=name, value=5 - i) for i, name in enumerate(["3g.40gb", "4g.40gb"])]
    more = job("j2", gpu_milli=125, gpu_profile="2g.20gb", value=1)
    full = round_.model_copy(update={"jobs": (*jobs, more), "running": ()})
    outvoted = explain(full, solve(full, time_limit_s=20, isolation="thread"), "j2").outvoted_by
    assert outvoted is not None
    assert ([one.job for one in outvoted.jobs], outvoted.proven) == (["j1"], True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"id": "p", "width": 8, "starts": [8]}', "at most"),
        ('{"id": "p", "width": 1, "starts": [0, 0]}', "appears twice"),
        ('{"id": "p", "width": 0, "starts": [0]}', "width"),
    ],
)
def test_profiles_that_are_none(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        loads(
            Machine,
            f'{{"id": "m", "cpu_millicores": 1, "memory_mib": 1, "gpus": [{{"model": "x", "profiles": [{text}]}}]}}',
        )


class Case:
    """A small round over GPUs with different geometries, and all that may become of its jobs."""

    def __init__(self, choice: Choice) -> None:
        odd = {
            f"p{i}": (w := choice.number(1, 4), tuple(sorted({choice.number(0, 6 - w) for _ in range(3)})))
            for i in range(2)
        }
        self.geometries = [
            choice.pick([A100, ON_DEMAND, ON_DEMAND, A30, odd, None]) for _ in range(choice.number(1, 3))
        ]
        apart = choice.chance(0.4) and len(self.geometries) > 1
        gpus = [gpu(geometry) for geometry in self.geometries]
        machines = [machine("a", gpus[:1]), machine("b", gpus[1:])] if apart else [machine("a", gpus)]
        nodes = [node("n0", "a"), node("n1", "b")] if apart else [node("n0", "a")]
        self.places = [("n1", i - 1) if apart and i else ("n0", i) for i in range(len(gpus))]
        changes = Changes(
            moves_max=choice.number(0, 2),
            preemptions_max=choice.number(0, 1),
            move_price=choice.number(0, 1),
            preemption_price=1,
        )
        jobs, running, held = [], [], dict[int, list[tuple[str, int]]]()
        for i in range(choice.number(2, 6)):
            g = choice.number(0, len(gpus) - 1)
            geometry = self.geometries[g]
            name = choice.pick(
                [*(geometry or {"7g.80gb": None}), None] if choice.chance(0.2) else [*(geometry or {})] or [None]
            )
            milli, workers = (125, choice.pick([1, 1, 1, 2])) if name else (choice.pick([300, 1000]), 1)
            many = choice.pick([1, 2]) if milli == 1000 else 1
            value = choice.number(1, 9)
            jobs.append(job(f"j{i}", workers=workers, gpus=many, gpu_milli=milli, gpu_profile=name, value=value))
            if geometry and name in geometry and workers == many == 1 and choice.chance(0.4):
                free = [s for s in geometry[name][1] if fits(geometry, [*held.get(g, []), (name, s)], [])]
                if free:
                    start = choice.pick(free)
                    held.setdefault(g, []).append((name, start))
                    may = {"movable": choice.chance(0.6), "preemptible": choice.chance(0.5)}
                    running.append(runs(f"j{i}", start, at=self.places[g], milli=milli, **may))
        self.round = instance(
            nodes, jobs, machines=machines, running=running, policy=Policy(changes=changes, weights=NO_COSTS)
        )

    def best(self) -> int:
        """Return the most that any lawful outcome is worth."""
        changes, now = self.round.policy.changes, {one.job: one for one in self.round.running}
        choices: list[list[tuple[int, int, int, Any]]] = []  # value, moves, stops, (GPUs, profile, share, start)
        for one in self.round.jobs:
            option, demand = one.options[0], one.options[0].demand
            name, value = demand.gpu_profile, option.value
            suits = [g for g, of in enumerate(self.geometries) if (name in of if of else name is None)]
            sets = combinations(suits, option.workers * demand.gpus)
            near = (g for g in sets if demand.gpus == 1 or len({self.places[one][0] for one in g}) == 1)
            places = [(gpus, name, demand.gpu_milli, None) for gpus in near]
            if one.id not in now:
                choices.append([(0, 0, 0, None), *((value, 0, 0, place) for place in places)])
                continue
            held = now[one.id].assignments[0]
            ((index, start),) = held.starts.items()
            here = (self.places.index((held.node, int(index))),)
            choices.append([(value, 0, 0, (here, name, demand.gpu_milli, start))])
            if now[one.id].movable:
                choices[-1] += [(value - changes.move_price, 1, 0, place) for place in places if place[0] != here]
            if now[one.id].preemptible:
                choices[-1].append((-changes.preemption_price, 0, 1, None))
        drawn = sorted(product(*choices), key=lambda all_: -sum(one[0] for one in all_))
        return next(sum(one[0] for one in all_) for all_ in drawn if self._is_lawful(all_))

    def _is_lawful(self, drawn: tuple[tuple[int, int, int, Any], ...]) -> bool:
        changes = self.round.policy.changes
        if sum(one[1] for one in drawn) > changes.moves_max or sum(one[2] for one in drawn) > changes.preemptions_max:
            return False
        for g, geometry in enumerate(self.geometries):
            here = [one[3] for one in drawn if one[3] is not None and g in one[3][0]]
            if geometry is None:
                if sum(milli for _, _, milli, _ in here) > 1000:
                    return False
            else:
                fixed = [(name, start) for _, name, _, start in here if start is not None]
                if not fits(geometry, fixed, [name for _, name, _, start in here if start is None]):
                    return False
        return True


def fits(geometry: Geometry, fixed: list[tuple[str, int]], free: list[str]) -> bool:
    """Return whether shares with a start and others have slots of their own, by trying every start."""
    for starts in product(*(geometry[name][1] for name in free)):
        every = [*fixed, *zip(free, starts, strict=True)]
        taken = [slot for name, start in every for slot in range(start, start + geometry[name][0])]
        if len(taken) == len(set(taken)):
            return True
    return False


@pytest.mark.parametrize("seed", seeds(60))
def test_the_optimum_is_that_of_brute_force(seed: int) -> None:
    case = Case(seeded(f"gpu-slots-{seed}"))
    exact = ("auto", "counts", "assignment")
    plans = compare_methods(case.round, case.best(), (*exact, "best-fit", "filling-costs"), exact=exact)
    assert all(stage.outcome not in ("failed", "refused") for plan in plans for stage in plan.stages)


@pytest.mark.parametrize("seed", seeds(40))
def test_the_referee_agrees_with_an_oracle(seed: int) -> None:
    """Shares at any slots of any GPUs, legal or not, some of them of jobs that run: 30 plans of a round."""
    choice = seeded(f"gpu-slots-{seed}")
    case = Case(choice)
    now = {one.job: one for one in case.round.running}
    alone = [one for one in case.round.jobs if one.options[0].workers == one.options[0].demand.gpus == 1]
    single = [one for one in alone if one.id in now or one.options[0].demand.gpu_profile]
    for _ in range(30):
        held, legal = dict[int, list[int]](), True
        given = {}
        for one in single:
            name, start = one.options[0].demand.gpu_profile, choice.number(0, 7)
            g = choice.number(0, len(case.geometries) - 1)
            if one.id in now:
                before = now[one.id].assignments[0]
                ((index, former),) = before.starts.items()
                g = case.places.index((before.node, int(index)))
                start = former if choice.chance(0.9) else start
                legal &= start == former
            elif choice.chance(0.5):
                continue
            width, starts = (case.geometries[g] or {}).get(name, (0, ()))
            legal &= start in starts
            held.setdefault(g, []).extend(range(start, start + width))
            node_id, number = case.places[g]
            placed = plan_for(case.round, {one.id: [(node_id, [number])]})
            record = next(other for other in placed.placements if other.job == one.id)
            at = record.assignments[0].model_copy(update={"starts": {str(number): start}})
            given[one.id] = record.model_copy(update={"assignments": (at,)})
        legal &= all(len(slots_) == len(set(slots_)) for slots_ in held.values())
        found = {one.rule for one in violations(case.round, plan_for(case.round, given))}
        assert found <= {"gpu_slots", "gpu_share"}
        assert (not found) == legal


@pytest.mark.parametrize("seed", seeds(16))
def test_a_live_cluster_is_what_a_fresh_one_would_be(seed: int) -> None:
    """Random reports, decisions and rounds; a round of what waits finds the optimum beside what stays."""
    choice = seeded(f"gpu-slots-{seed}")
    with engine_of(Case(choice).round) as engine:
        for _ in range(4):
            step(choice, engine, failing_gpus=True)
            assert_as_if_fresh(engine)
            now = engine.snapshot
            fixed = {"moves_max": 0, "preemptions_max": 0, "shrinks_max": 0}
            policy = now.policy.model_copy(update={"changes": now.policy.changes.model_copy(update=fixed)})
            set_policy(engine, policy)
            plan, anew = engine.place(waiting_only=True), solve(engine.snapshot, isolation="thread")
            beside = sum(
                one.option(held.option).value for held in now.running for one in now.jobs if one.id == held.job
            )
            assert plan.levels[0].objective == anew.levels[0].objective - beside
            assert violations(engine.snapshot, plan) == []
