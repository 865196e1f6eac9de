"""The driver against a Slurm in memory: what it starts, what it never touches, and what it knows after a crash."""

import itertools
import json

import pytest

from drivers.driver_steps import EVERY_S, came_of, driver, started, step, steps
from drivers.fake_slurm import GPUS, FakeJob, FakeSlurm
from placeopt import BadInput, Engine
from placeopt.drivers.slurm import Ownership, SlurmDriver, SlurmOptions, SlurmRefused, read_note
from placeopt.errors import BadArgument
from placeopt.model import Policy, Weights
from placeopt.scheduling import Scheduling

TRIES = 5
"""Failed starts of a job after which it is left held: docs/slurm.md."""


def test_held_jobs_start_where_the_plan_says_and_nothing_else_is_touched():
    """Jobs of others, under an operator's hold, with a word that looks alike, dependent ones and part of a job stay."""
    others = [
        FakeJob("10", held="nobody", comment=""),
        FakeJob("11", held="admin"),
        FakeJob("12", comment="notplaceopt placeopt-2"),
        FakeJob("13", held="user", comment=""),
        FakeJob("14", dependency="afterok:1(unfulfilled)"),
        FakeJob("15", eligible_s=5000),
        FakeJob("16", het_job_id=16),
        FakeJob("17", het_job_id=16, comment=""),
    ]
    slurm = FakeSlurm(jobs=[FakeJob("1", gpus=4), FakeJob("2", nodes=2, gpus=2), *others])
    first, second = steps(slurm, 2)
    assert started(first).keys() == {"1", "2"}
    assert {o.job: o.kind for o in second.outcomes} == {"1": "as-planned", "2": "as-planned"}
    assert [tuple(slurm.jobs[job].on) for job in ("1", "2")] == [started(first)[job] for job in ("1", "2")]
    assert (second.gpus_as_advised, second.gpus_known) == (2, 2)
    assert not any(f" {job.id}" in line for line in slurm.log for job in others)
    part = "a component of the heterogeneous job does not wait"
    assert first.left_out == {"waiting for Dependency": 1, "waiting for BeginTime": 1, part: 1}


def components(one: int = 1, each: int = 3, **fields: object) -> list[FakeJob]:
    """A node of ``one`` GPU, and two nodes of ``each`` GPUs, which start together."""
    return [FakeJob("8", gpus=one, het_job_id=8, **fields), FakeJob("9", nodes=2, gpus=each, het_job_id=8, **fields)]


def test_components_of_a_heterogeneous_job_start_together_where_the_plan_says():
    """One release after a note and a list of closed nodes for each; what they exclude themselves is theirs again."""
    whole = FakeJob(
        "1", nodes=2, gpus=GPUS
    )  # of fewer GPUs than a node has, a plan may advise any, Slurm takes the first
    slurm = FakeSlurm(5, [*components(GPUS, GPUS, excluded=["n0"]), whole])
    running = driver(slurm)
    first = step(running, slurm)
    assert started(first).keys() == {"1", "8"}
    assert len(set(started(first)["8"])) == 3
    mine = [line for line in slurm.log if not line.startswith("update 1 ") and line != "release 1"]
    assert mine == ["update 8+0 AdminComment ExcNodeList", "update 8+1 AdminComment ExcNodeList", "release 8"]
    second = step(running, slurm)
    assert {(o.job, o.kind) for o in second.outcomes} == {(job, "as-planned") for job in "189"}
    assert (*slurm.jobs["8"].on, *slurm.jobs["9"].on) == started(first)["8"]
    assert (second.gpus_as_advised, second.gpus_known) == (3, 3)


def test_a_heterogeneous_job_that_does_not_start_is_taken_back_whole():
    """Its components are held again and exclude what they excluded; later it starts elsewhere."""
    slurm = FakeSlurm(4, components(excluded=["n0"]))
    slurm.accepts = {"n0"}
    running = driver(slurm)
    records = [step(running, slurm) for _ in range(8)]
    assert started(records[0]).keys() == {"8"}
    assert {o.job for record in records for o in record.outcomes if o.kind == "not-started"} == {"8", "9"}
    assert [(job.held, job.excluded) for job in slurm.jobs.values()] == [("user", ["n0"])] * 2
    slurm.accepts = set(slurm.names)
    while slurm.jobs["8"].state != "RUNNING":
        assert slurm.now_s < 5000
        step(running, slurm)
    assert slurm.starts == {"8": 1, "9": 1}


def test_a_heterogeneous_job_of_a_partition_is_held_whole():
    slurm = FakeSlurm(4, components(held="nobody", comment=""))
    running = driver(slurm, "partition=gpu")
    running.run_round()
    assert slurm.log == ["update 8+0 AdminComment", "update 8+1 AdminComment", "uhold 8"]
    step(running, slurm)
    assert slurm.starts == {"8": 1, "9": 1}


def test_jobs_of_groups_stop_no_round():
    """One chooses among sets of nodes, which is a condition of each option; another runs in unlike components."""
    components = [FakeJob(str(job), gpus=gpus, het_job_id=8) for job, gpus in ((8, 1), (9, 2))]
    for component, node in zip(components, ("n0", "n1"), strict=True):
        component.state, component.on, component.held = "RUNNING", [node], "nobody"
    one_set = FakeJob("1", nodes=2, gpus=4, features="[a|b]")
    slurm = FakeSlurm(6, jobs=[*components, one_set, FakeJob("2", gpus=4)])
    slurm.features |= {"n1": "a", "n2": "a", "n3": "b", "n4": "b"}
    running = driver(slurm)
    first = step(running, slurm)
    assert first.left_out == {}
    assert started(first).keys() == {"1", "2"}
    assert started(first)["1"] == ("n3", "n4")  # of the other set a node is taken
    slurm.jobs["3"] = FakeJob("3", gpus=3)
    second = step(running, slurm)
    assert (started(second).keys(), came_of(second, "as-planned")) == ({"3"}, 2)


def test_no_job_is_released_that_would_run_into_a_maintenance():
    """It begins in 90 minutes, on all nodes but one."""
    slurm = FakeSlurm(
        jobs=[FakeJob("1", limit_min=60), FakeJob("2", limit_min=120), FakeJob("3", nodes=2, limit_min=120)]
    )
    begins = {"start_time": slurm.now_s + 5400, "end_time": slurm.now_s + 99_999}
    slurm.reserved = {"reservations": [{"name": "m", "flags": ["MAINT"], "node_list": "n[0-2]", **begins}]}
    (first,) = steps(slurm, 1)
    assert started(first).keys() == {"1", "2"}
    assert started(first)["2"] == ("n3",)


def test_what_slurm_gave_is_scored_as_the_plan_was():
    """Where Slurm does as the plan says the costs are equal; on other nodes they are those of the other nodes."""
    first, second = steps(FakeSlurm(2, [FakeJob("1", gpus=1), FakeJob("2", gpus=3)]), 2)
    assert first.costs_planned == second.costs_obtained == {"fragmentation": 0}
    slurm = FakeSlurm(2, [FakeJob("1", gpus=1), FakeJob("2", gpus=3)])
    running = driver(slurm)
    running.run_round()
    slurm.jobs["2"].required = ["n1"]
    slurm.schedule()
    third = running.run_round()
    assert (came_of(third, "as-planned"), came_of(third, "elsewhere")) == (1, 1)
    assert [(o.kind, o.planned, o.got) for o in third.outcomes if o.job == "2"] == [("elsewhere", ("n0",), ("n1",))]
    assert third.costs_obtained == {"fragmentation": 4}


def test_what_slurm_gave_is_scored_by_the_drivers_policy():
    """Which has no costs; that of the reading has."""
    none = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))
    policies = [Scheduling(name="own", policy=policy) for policy in (Policy(), none)]
    obtained = [steps(FakeSlurm(2, [FakeJob("1")]), 2, policy=policy)[1].costs_obtained for policy in policies]
    assert obtained == [{"fragmentation": 3}, {}]  # GPUs left of four


def test_a_job_that_has_ended_by_the_next_reading_ran_as_planned():
    slurm = FakeSlurm(jobs=[FakeJob("1")])
    running = driver(slurm)
    step(running, slurm)
    slurm.jobs["1"].state = "COMPLETED"
    (outcome,) = running.run_round().outcomes
    assert (outcome.kind, outcome.planned, outcome.got) == ("as-planned", ("n0",), ("n0",))


class LaterSlurm(FakeSlurm):
    """The same in the form of data parser v0.0.42 and later, written by hand: numbers as objects, states as lists."""

    def read(self):
        found = super().read()
        for job in found.jobs["jobs"]:
            for key, value in job.items():
                if isinstance(value, int) and key not in ("job_id", "restart_cnt", "nice"):
                    job[key] = {"set": True, "infinite": False, "number": value}
            job["job_state"] = [job["job_state"]]
            job["hold"] = job["state_reason"] == "JobHeldUser"
        for node in found.nodes["nodes"]:
            node["state"] = [node["state"].upper()]
        return found


def test_lists_in_the_form_of_later_versions_drive_the_same_round():
    jobs = [FakeJob("1", gpus=4), FakeJob("2", nodes=2, gpus=2), FakeJob("3", held="admin")]
    first, second = steps(LaterSlurm(jobs=jobs), 2)
    assert started(first).keys() == {"1", "2"}
    assert came_of(second, "as-planned") == 2
    assert jobs[2].held == "admin"


def test_the_longer_a_job_waits_for_its_length_the_sooner_it_starts():
    """Two jobs for one place: the later one first where its limit is short and its wait long in proportion."""
    for waited_s, limit_min, first in ((0, 60, "1"), (3000, 60, "2"), (3000, 10_000, "1")):
        early = FakeJob("1", gpus=4, submitted_s=9_000 - 100, limit_min=60)
        late = FakeJob("2", gpus=3, submitted_s=9_000 - waited_s, limit_min=limit_min)
        slurm = FakeSlurm(1, [early, late])
        slurm.now_s = 9_000
        assert started(*steps(slurm, 1)).keys() == {first}


def test_a_round_that_starts_nothing_changes_nothing():
    slurm = FakeSlurm(1, [FakeJob("1", gpus=4, held="nobody", state="RUNNING", on=["n0"]), FakeJob("2", gpus=4)])
    (record,) = steps(slurm, 1)
    assert (record.waiting, record.running, slurm.log) == (1, 1, [])


def test_a_dry_run_sends_nothing_and_names_the_commands():
    slurm = FakeSlurm(jobs=[FakeJob("1"), FakeJob("2")])
    commands = []
    options = SlurmOptions(every_s=EVERY_S, dry_run=True)
    running = SlurmDriver(slurm, Engine(isolation="thread"), options, on_command=commands.append, clock=lambda: 1000.0)
    running.run_round()
    assert running.run_round().outcomes == []
    assert slurm.log == []
    releases = [line for line in commands if line.startswith("scontrol release")]
    assert releases[:2] == ["scontrol release 1", "scontrol release 2"]


def test_the_note_states_round_plan_and_nodes_and_keeps_what_others_wrote():
    slurm = FakeSlurm(jobs=[FakeJob("1", nodes=2, gpus=3, admin_comment="ticket 7")])
    (record,) = steps(slurm, 1)
    assert slurm.jobs["1"].admin_comment.startswith('ticket 7 | placeopt/1 {"kind":"start","job":"1",')
    note = read_note(slurm.jobs["1"].admin_comment)
    assert (note.round, note.nodes, len(note.plan)) == (record.id, started(record)["1"], 16)
    (action,) = json.loads(record.json())["actions"]
    assert (action["nodes"], action["gpus_advised"]) == (["n0", "n1"], [[0, 1, 2], [0, 1, 2]])


def test_without_the_right_to_the_admin_comment_the_comment_holds_the_note():
    slurm = FakeSlurm(jobs=[FakeJob("1"), FakeJob("2")])
    slurm.may_write_admin_comment = False
    _, second = steps(slurm, 2)
    assert slurm.jobs["1"].comment.startswith('placeopt | placeopt/1 {"kind":"start","job":"1",')
    assert came_of(second, "as-planned") == 2
    assert sum("AdminComment" in line for line in slurm.log) == 1


def test_no_more_actions_than_allowed():
    slurm = FakeSlurm(jobs=[FakeJob(str(i)) for i in range(1, 8)])
    records = steps(slurm, 3, max_actions=3)
    assert [(record.count("start"), record.deferred) for record in records] == [(3, 4), (3, 1), (1, 0)]


def test_a_released_job_holds_its_place_until_it_runs():
    """Slurm takes its time: the next round must not give the nodes to another job."""
    slurm = FakeSlurm(1, [FakeJob("1", gpus=4)])
    running = driver(slurm, patience_s=100)
    running.run_round()
    slurm.jobs["2"] = FakeJob("2", gpus=4)
    second = running.run_round()
    assert (second.running, second.gpus_used, started(second)) == (1, 4, {})
    slurm.schedule()
    assert came_of(running.run_round(), "as-planned") == 1


def test_a_job_that_does_not_start_is_taken_back_and_its_nodes_are_left_alone():
    slurm = FakeSlurm(2, [FakeJob("1", gpus=4)])
    slurm.accepts = {"n1"}
    records = steps(slurm, 12, patience_s=15)
    assert [nodes for record in records for nodes in started(record).values()] == [("n0",), ("n1",)]
    assert (slurm.jobs["1"].state, slurm.jobs["1"].on) == ("RUNNING", ["n1"])


def test_a_job_that_never_starts_is_left_held_after_a_few_tries_and_pauses_grow():
    """It must not be started for ever; its own list of nodes is what it was."""
    slurm = FakeSlurm(1, [FakeJob("1", required=["n0"])])
    slurm.accepts = set()
    times = [10 * number for number, record in enumerate(steps(slurm, 200, patience_s=15)) if started(record)]
    assert len(times) == TRIES
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert gaps == sorted(gaps)
    assert gaps[-1] > 2 * gaps[0]
    job = slurm.jobs["1"]
    assert (job.held, job.required) == ("user", ["n0"])
    note = read_note(job.admin_comment)
    assert (note.kind, note.why) == ("given-up", "Resources")


def test_a_start_that_is_requeued_at_once_again_and_again_ends():
    slurm = FakeSlurm(2, [FakeJob("1")])
    running = driver(slurm)
    for _ in range(300):
        step(running, slurm, 5)
        if slurm.jobs["1"].state == "RUNNING":
            slurm.requeue("1")
    assert slurm.starts["1"] == TRIES
    assert slurm.jobs["1"].held == "user"


def test_a_job_that_ran_for_long_before_its_node_failed_is_placed_again():
    slurm = FakeSlurm(2, [FakeJob("1")])
    running = driver(slurm)
    step(running, slurm)
    step(running, slurm, 5000)
    lost = slurm.jobs["1"].on[0]
    slurm.requeue("1")
    slurm.node_states[lost] = "down"
    for _ in range(4):
        step(running, slurm)
    assert slurm.jobs["1"].state == "RUNNING"
    assert slurm.jobs["1"].on != [lost]


def test_a_job_that_slurm_requeues_into_a_hold_is_named_and_left_alone():
    """As after a prolog that failed: the hold is Slurm's, and an operator's to release."""
    slurm = FakeSlurm(2, [FakeJob("1")])
    running = driver(slurm)
    step(running, slurm)
    slurm.requeue("1")
    slurm.jobs["1"].held, slurm.jobs["1"].description = "admin", "launch failed requeued held"
    changes = slurm.changes
    record = running.run_round()
    assert "job 1 requeued, planned on n0: JobHeldAdmin, launch failed requeued held" in record.line()
    assert slurm.changes == changes
    assert running.run_round().outcomes == []


def test_two_jobs_that_fail_at_once_close_a_node_and_one_does_not():
    slurm = FakeSlurm(1, [FakeJob("1", gpus=4), FakeJob("2", gpus=4), FakeJob("3", gpus=4)])
    running = driver(slurm)
    closed = []
    for _ in range(4):
        running.run_round()
        slurm.schedule()
        for job in slurm.jobs.values():
            if job.state == "RUNNING":
                slurm.end(job.id, "FAILED")
        slurm.now_s += 10
        closed.append(bool(running.run_round().closed))
    assert closed[:2] == [False, True]


def test_a_refused_start_waits_longer_each_time():
    slurm = FakeSlurm(1, [FakeJob("1")])
    words = SlurmRefused("scontrol update: Requested node configuration is not available for job 1")
    slurm.answers = {0: words}
    first, second, *_ = steps(slurm, 5)
    assert first.count("start", "refused") == 1
    assert came_of(second, "as-planned") == 0
    assert slurm.jobs["1"].state == "RUNNING"
    note = read_note(slurm.jobs["1"].admin_comment)
    assert note.tries == 1


def test_a_partition_is_held_when_jobs_come_and_what_slurm_was_quicker_with_is_adopted():
    quick = FakeJob("1", held="nobody", comment="", gpus=4, state="RUNNING", on=["n3"])
    slow = FakeJob("2", held="nobody", comment="", gpus=4, restarts=2)
    by_user = FakeJob("3", held="user", comment="")
    elsewhere = FakeJob("4", held="nobody", comment="", partition="other")
    slurm = FakeSlurm(jobs=[quick, slow, by_user, elsewhere])
    running = driver(slurm, "partition=gpu")
    first = running.run_round()
    assert [(a.do, a.job) for a in first.actions] == [("hold", "2")]
    assert read_note(slow.admin_comment).restarts == 2
    second = running.run_round()
    assert (second.running, started(second).keys()) == (1, {"2"})
    assert started(second)["2"] != ("n3",)
    assert (slow.held, by_user.held, elsewhere.held) == ("nobody", "user", "nobody")
    assert (by_user.admin_comment, elsewhere.admin_comment, quick.admin_comment) == ("", "", "")
    assert slurm.broken_rules == []


def test_a_dry_run_of_a_partition_plans_what_it_would_hold():
    slurm = FakeSlurm(jobs=[FakeJob("1", held="nobody", comment="")])
    running = driver(slurm, "partition=gpu", dry_run=True)
    assert started(running.run_round()).keys() == {"1"}
    assert slurm.log == []


@pytest.mark.parametrize("change", ["run", "release", "admin", "gone"])
def test_a_job_that_changed_after_the_reading_is_left_alone(change, monkeypatch):
    slurm = FakeSlurm(1, [FakeJob("1")])
    read = slurm.read

    def read_then_change():
        found = read()
        job = slurm.jobs["1"]
        if change == "run":
            job.state, job.on, job.held = "RUNNING", ["n0"], "nobody"
        elif change == "gone":
            del slurm.jobs["1"]
        else:
            job.held = {"release": "nobody", "admin": "admin"}[change]
        return found

    monkeypatch.setattr(slurm, "read", read_then_change)
    assert driver(slurm).run_round().count("start", "changed") == 1
    assert slurm.log == []


@pytest.mark.parametrize("ends", [False, True])
def test_a_start_that_is_taken_back_too_late_runs_on(monkeypatch, ends):
    """It begins to run, or has ended, before the hold: the hold is undone, its nodes are not changed."""
    slurm = FakeSlurm(1, [FakeJob("1")])
    slurm.accepts = set()
    running = driver(slurm, patience_s=15)
    step(running, slurm)
    slurm.now_s += 100
    hold = slurm.user_hold

    def hold_too_late(job):
        slurm.accepts = {"n0"}
        slurm.schedule()
        hold(job)
        if ends:
            slurm.end("1")

    monkeypatch.setattr(slurm, "user_hold", hold_too_late)
    report = running.run_round()
    assert (report.count("take-back", "changed"), report.refused) == (1, 0)
    job = slurm.jobs["1"]
    assert (job.state, job.held, job.on) == (("COMPLETED", "user") if ends else ("RUNNING", "nobody")) + (["n0"],)
    assert slurm.broken_rules == []


def test_switches_are_read_as_slurm_shows_them():
    """A gang lies below one of them, as costs of communication ask; a line that cannot be read is named."""
    slurm = FakeSlurm(jobs=[FakeJob("1", nodes=2, gpus=3), FakeJob("2", nodes=2, gpus=3)])
    slurm.switches = "SwitchName=s0 Nodes=n[0,3]\nSwitchName=s1 Nodes=n[1-2]\nSwitchName=top Switches=s[0-1]\n"
    (first,) = steps(slurm, 1)
    assert {frozenset(nodes) for nodes in started(first).values()} == {frozenset({"n0", "n3"}), frozenset({"n1", "n2"})}
    slurm.switches = "SwitchName=s0 Knots=n0\n"
    with pytest.raises(BadInput, match="scontrol show topology, line 1: 'Knots=n0'"):
        driver(slurm).run_round()


def test_a_list_that_is_none_is_bad_input(monkeypatch):
    slurm = FakeSlurm(1, [FakeJob("1")])
    monkeypatch.setattr(slurm.jobs["1"], "entry", lambda: {"job_state": "PENDING"})
    with pytest.raises(BadInput, match="job_id"):
        driver(slurm).run_round()


@pytest.mark.parametrize("text", ["", "all", "partition=", "partition=a b", "Held"])
def test_whose_jobs_is_stated_in_one_of_two_ways(text):
    with pytest.raises(BadArgument, match="held or partition=NAME"):
        Ownership.parse(text)
