"""The calls of a service without a transport: what changes, what is refused, what is told."""

import json
import threading
import time

import pytest

from placeopt import BadInput, Engine, build, violations
from placeopt.documents import dumps, loads
from placeopt.edits import Patch, apply
from placeopt.model import Assignment, Group, Plan, Running, WorkerGpus
from placeopt.service import Refused, Service
from service.calls import ROUND, WAITING, ask, change, now, refusal, running, solved


@pytest.fixture
def service():
    with Service() as made:
        made.call("put_cluster", dumps(ROUND))
        yield made


def test_snapshot_is_the_loaded_file(service):
    assert service.call("snapshot") == dumps(ROUND)


def test_jobs_of_groups_are_left_out_by_name(tmp_path):
    """All others are decided; what runs of such a job stays, also after a restart."""
    tree = build.option(groups=(Group(id="head"), Group(id="tail")))
    waits, runs = (build.job(name, options=[tree]) for name in ("waits", "runs"))
    head = Assignment(node="n0", group="head", gpus={"0": 1000}, workers=(WorkerGpus(rank=0, gpus=(0,)),))
    held = Running(job="runs", option="default", assignments=(head,))
    round_ = build.instance(1, [waits, runs, build.job("flat")], running=[held])
    with Service(tmp_path) as service:
        ask(service, "put_cluster", json.loads(dumps(round_)))
        told = ask(service, "events")["events"][-1]["words"]
    with Service(tmp_path) as service:
        (note,) = now(service).reading
        assert (note.kind, note.names) == ("left out", ("waits", "runs"))
        assert told == f"cluster {round_.name!r} loaded {note}"
        assert note.reason in refusal(service, "explain", path={"job": "waits"}).detail
        assert running(service).keys() == {"runs/0"}
        assert [one["job"] for one in ask(service, "decide", {"jobs": ["flat"]})["placements"]] == ["flat"]


def test_decisions_run_from_then_on_and_tell_what_to_do(service):
    told = ask(service, "decide", {"jobs": WAITING[:3]})
    assert told["revision"] == 1
    assert {placement["job"] for placement in told["placements"]} == set(WAITING[:3]) <= running(service).keys()
    assert [(action["id"], action["action"]["do"]) for action in told["actions"]] == [
        ("1.0", "start"), ("1.1", "start"), ("1.2", "start")
    ]  # fmt: skip


def test_decisions_that_are_not_committed_change_nothing(service):
    before = service.call("snapshot")
    told = ask(service, "decide", {"jobs": WAITING[:1], "commit": False})
    assert len(told["placements"]) == 1
    assert told["actions"] == []
    assert service.call("snapshot") == before


def test_a_job_that_comes_with_the_decision_is_placed(service):
    job = json.loads(ROUND.jobs[-1].model_copy(update={"id": "new"}).model_dump_json(exclude_defaults=True))
    told = ask(service, "decide", {"add_jobs": [job]})
    assert [one["job"] for one in told["placements"] + told["unplaced"]] == ["new"]
    assert told["revision"] == 1 + len(told["placements"])  # it comes, and it starts


def test_the_same_key_does_it_once(service):
    first = service.call("decide", json.dumps({"jobs": WAITING[:2]}).encode(), key="k")
    assert service.call("decide", json.dumps({"jobs": WAITING[:2]}).encode(), key="k") == first
    assert ask(service, "state")["revision"] == 1
    assert refusal(service, "decide", {"jobs": WAITING[2:3]}, key="k").status == 422


def test_changes_are_all_or_nothing(service):
    steps = [{"do": "remove_jobs", "jobs": [ROUND.running[0].job]}, {"do": "remove_jobs", "jobs": ["nobody"]}]
    refused = refusal(service, "changes", {"steps": steps})
    assert refused.status == 422
    assert "'nobody'" in refused.detail
    with pytest.raises(BadInput) as patch:
        apply(ROUND, loads(Patch, json.dumps({"steps": steps[1:]})).steps)
    only = refusal(service, "changes", {"steps": steps[1:]})
    assert (only.detail, only.place) == (str(patch.value), "steps[0].jobs")  # as of a patch file
    assert only.more["faults"] == [fault._asdict() for fault in patch.value.faults]
    assert ask(service, "changes", {"steps": steps[:1]})["revision"] == 1


def test_changes_for_another_revision_are_stale(service):
    refused = refusal(service, "changes", {"steps": [{"do": "set_time", "now_ms": 5}], "revision": 7})
    assert (refused.status, refused.more["revision"]) == (409, 0)


@pytest.mark.parametrize(
    ("name", "body", "how", "status", "place"),
    [
        ("decide", {"jobs": 3}, {}, 400, "jobs"),
        ("decide", {"jobs": []}, {}, 400, "jobs"),
        ("decide", {"jobs": ["nobody"]}, {}, 422, None),
        ("decide", {"jobs": WAITING[:1], "method": "counts-cpsat"}, {}, 422, None),
        ("decide", {"jobs": WAITING[:1], "method": "no such"}, {}, 422, None),
        ("commit", {}, {}, 400, "plan"),
        ("commit", {"round": "none"}, {}, 404, None),
        ("outcome", {"outcomes": [{"action": "9.0", "result": "done"}]}, {}, 404, None),
        ("round", None, {"path": {"id": "x"}}, 404, None),
        ("explain", None, {"path": {"job": "nobody"}}, 404, None),
        ("whatif", {"job": "8"}, {"path": {"verb": "nothing"}}, 404, None),
        ("whatif", {"level": "node"}, {"path": {"verb": "fit"}}, 400, "level"),
        ("whatif", {"job": "8xNothing"}, {"path": {"verb": "fit"}}, 400, None),
        ("events", None, {"query": {"after": "-1"}}, 400, "after"),
        ("snapshot", None, {"query": {"x": "1"}}, 400, "x"),
        ("changes", {"steps": [{"do": "commit"}]}, {}, 400, "steps[0].do"),
        ("nothing", None, {}, 404, None),
    ],
)
def test_refusals_say_what_and_where(service, name, body, how, status, place):
    refused = refusal(service, name, body, **how)
    assert (refused.status, refused.place) == (status, place)
    assert refused.detail


def test_nothing_is_decided_before_a_cluster_is_there():
    with Service() as service:
        for name, body in (
            ("decide", {"jobs": ["a"]}),
            ("start_round", {}),
            ("changes", {"steps": [{"do": "set_time", "now_ms": 5}]}),
        ):
            with pytest.raises(Refused) as caught:
                ask(service, name, body)
            assert caught.value.status == 422


def test_with_a_host_decisions_wait_for_its_word(tmp_path):
    with Service(tmp_path) as service:
        service.call("put_cluster", dumps(ROUND))
        told = ask(service, "decide", {"jobs": WAITING[:2]})["actions"]
    with Service(tmp_path, host_driver=True) as service:
        assert not service.ready
        assert refusal(service, "decide", {"jobs": WAITING[2:3]}).status == 503
        first = told[0]["action"]
        found = now(service)
        runs = tuple(held for held in found.running if held.job != first["job"])  # its start never happened
        service.call("put_cluster", dumps(found.model_copy(update={"running": runs})))
        assert service.ready
        after = {action["id"]: action["outcome"] for action in ask(service, "actions")["actions"]}
        assert after == {told[0]["id"]: "failed", told[1]["id"]: "done"}
        assert ask(service, "state")["revision"] > found.revision


def test_a_failed_start_waits_again(service):
    told = ask(service, "decide", {"jobs": WAITING[:2]})["actions"]
    outcomes = [
        {"action": told[0]["id"], "result": "failed", "detail": "node said no"},
        {"action": told[1]["id"], "result": "done"},
    ]
    assert ask(service, "outcome", {"outcomes": outcomes})["waiting"] == [WAITING[0]]
    assert ask(service, "outcome", {"outcomes": outcomes})["waiting"] == []  # said before
    assert refusal(service, "outcome", {"outcomes": [{"action": told[0]["id"], "result": "done"}]}).status == 422
    assert [one["outcome"] for one in ask(service, "actions")["actions"]] == ["failed", "done"]
    assert WAITING[0] not in running(service)


def test_a_round_lands_beside_decisions(service):
    started = ask(service, "start_round", {"time_limit_s": 2, "commit": True})
    ask(service, "decide", {"jobs": WAITING[:1]})
    status = solved(service, started["id"])
    assert status["state"] == "done"
    assert status["commit"]["revision"] == ask(service, "state")["revision"]
    assert not {job["job"] for job in status["commit"]["refused"]} & set(status["commit"]["committed"])
    listed = ask(service, "rounds")["rounds"][0]
    assert (listed["id"], listed["plan"]) == (started["id"], None)


def test_a_plan_that_stops_jobs_is_told_in_a_safe_order(service):
    plan = solved(service, time_limit_s=2)["plan"]
    assert plan["preempted"]
    done = ask(service, "commit", {"plan": plan})
    kinds = [one["action"]["do"] for one in done["actions"]]
    assert kinds == sorted(kinds)  # preempt before start
    assert running(service).keys() == {placement["job"] for placement in plan["placements"]}
    assert refusal(service, "commit", {"plan": plan}).status == 409


def test_a_round_can_be_stopped(service):
    started = ask(service, "start_round", {"time_limit_s": 100, "method": "assign-cpsat"})
    ask(service, "cancel_round", path={"id": started["id"]})
    assert solved(service, started["id"])["state"] == "cancelled"


def test_questions_are_answered_for_a_revision(service):
    fit = ask(service, "whatif", {"job": "1", "time_limit_s": 5}, path={"verb": "fit"})
    assert (fit["revision"], "more cop" in fit["answer"]["title"]) == (0, True)
    assert ask(service, "explain", path={"job": WAITING[0]})["answer"]["title"].startswith(f"{WAITING[0]}: waiting")
    assert WAITING[0] in ask(service, "explain_all")["answer"]["tables"][0]["rows"][0][-1]


def test_events_tell_changes_and_wait_for_them(service):
    assert [event["number"] for event in ask(service, "events")["events"]] == [1]
    assert ask(service, "events", query={"after": "1"})["events"] == []
    ask(service, "decide", {"jobs": WAITING[:1]})
    told = ask(service, "events", query={"after": "1", "wait_s": "5"})
    assert [event["words"] for event in told["events"]] == [f"job {WAITING[0]!r} started"]


def test_the_queue_is_bounded():
    with Service(most_waiting=1) as service:
        service.call("put_cluster", dumps(ROUND))
        gate, at_work = threading.Event(), threading.Event()
        results = []

        def block():
            service._writer.do(lambda: (at_work.set(), gate.wait()))

        def wait():
            results.append(service.call("snapshot"))

        threads = [threading.Thread(target=block), threading.Thread(target=wait)]
        threads[0].start()
        at_work.wait()
        threads[1].start()
        while not service._writer._queue.full():
            time.sleep(0.001)
        with pytest.raises(Refused) as caught:
            service.call("snapshot")
        gate.set()
        for thread in threads:
            thread.join()
        assert caught.value.status == 503
        assert results == [dumps(ROUND)]


def test_what_runs_after_many_calls_is_legal(service):
    for job in WAITING:
        ask(service, "decide", {"jobs": [job]})
    found = now(service)
    with Service() as other:
        other.call("put_cluster", dumps(found))  # refuses running placements that contradict each other
        plan = solved(other, time_limit_s=1, method="fcfs")["plan"]
    assert not violations(found, loads(Plan, json.dumps(plan)))


@pytest.mark.parametrize("node_fails", [True, False])
def test_a_late_failure_leaves_a_new_start_alone(service, node_fails):
    """On another node, or at the same place as before."""
    first = ask(service, "decide", {"jobs": WAITING[:1]})
    node = first["placements"][0]["assignments"][0]["node"]
    change(service, ("drain", {"nodes": [node], "stop": True}) if node_fails else ("stop", {"jobs": WAITING[:1]}))
    second = ask(service, "decide", {"jobs": WAITING[:1]})
    assert (second["placements"] == first["placements"]) != node_fails
    failed = {"outcomes": [{"action": first["actions"][0]["id"], "result": "failed"}]}
    assert ask(service, "outcome", failed)["waiting"] == []
    held = running(service)[WAITING[0]]
    assert held.assignments[0].node == second["placements"][0]["assignments"][0]["node"]
    assert (held.assignments[0].node != node) == node_fails


def test_a_stop_that_failed_puts_the_job_back(service):
    status = solved(service, time_limit_s=2, commit=True)
    stop = next(one for one in status["commit"]["actions"] if one["action"]["do"] == "preempt")
    job = stop["action"]["job"]
    assert job not in running(service)
    told = ask(service, "outcome", {"outcomes": [{"action": stop["id"], "result": "failed"}]})
    number = int(stop["id"].partition(".")[2])
    lacking = {one["action"]["job"] for one in status["commit"]["actions"] if number in one["action"]["after"]}
    assert set(told["waiting"]) == lacking != set()  # they started in its room
    assert running(service)[job] == next(held for held in ROUND.running if held.job == job)


def test_revisions_never_run_out():
    with Service() as service:
        late = ROUND.model_copy(update={"revision": 2**53})
        with pytest.raises(Refused) as caught:
            service.call("put_cluster", dumps(late))
        assert (caught.value.status, caught.value.place) == (400, "revision")


def test_many_cancelled_rounds_leave_the_next_one_alone(service, monkeypatch):
    blocked = threading.Event()
    solve = Engine.solve

    def wait(engine, instance, **options):
        blocked.wait(30)
        return solve(engine, instance, **options)

    monkeypatch.setattr(Engine, "solve", wait)
    first = ask(service, "start_round", {"time_limit_s": 1, "method": "fcfs"})
    names, refused = [], 0
    for _ in range(130):
        try:
            names.append(ask(service, "start_round", {"time_limit_s": 1})["id"])
        except Refused as error:
            refused += error.status == 503
            continue
        ask(service, "cancel_round", path={"id": names[-1]})
    assert 0 < len(names) < 20
    assert refused == 130 - len(names)
    ask(service, "cancel_round", path={"id": first["id"]})
    blocked.set()
    assert {solved(service, name)["state"] for name in [first["id"], *names]} == {"cancelled"}
    while True:
        try:
            last = ask(service, "start_round", {"time_limit_s": 1, "method": "fcfs"})
            break
        except Refused:
            time.sleep(0.01)
    assert solved(service, last["id"])["state"] == "done"
