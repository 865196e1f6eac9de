"""A service that is started anew: the same revision, the same bytes, and nothing done twice."""

import json
import random
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from helpers.full_disk import full_disk
from placeopt import BadInput, generate
from placeopt.documents import dumps
from placeopt.service import Refused, Service
from service.calls import ROUND, WAITING, ask, change, now, solved


def state_of(service):
    """What has to outlast the process, byte by byte."""
    return [service.call(name) for name in ("snapshot", "actions", "events")]


def rows(file, table):
    """Number of rows of a table."""
    with closing(sqlite3.connect(file)) as database:
        return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608


def wait_for_snapshot(file):
    """Wait until the snapshot that is due is in the journal; a thread beside the calls writes it."""
    due = """WITH latest AS (SELECT number, length(instance) AS size FROM snapshots ORDER BY number DESC LIMIT 1)
        SELECT count(*) >= 5 AND sum(length(words) + length(steps)) >= (SELECT size FROM latest)
        FROM entries WHERE number > (SELECT number FROM latest)"""
    latest = time.monotonic() + 60
    with closing(sqlite3.connect(file)) as database:
        while database.execute(due).fetchone()[0]:
            assert time.monotonic() < latest, "no snapshot within 60 s"
            time.sleep(0.001)


def urgent(job):
    """Return the step that gives a job a higher priority."""
    return {"do": "change_job", "job": job, "fields": {"priority": 3}}


def random_calls(service, draw, count):
    """Some calls of all kinds, many of which are refused; returns how many were done."""
    done = 0
    for number in range(count):
        found = now(service)
        runs = [held.job for held in found.running]
        waits = [job.id for job in found.jobs if job.id not in runs]
        told = [action["id"] for action in ask(service, "actions", query={"outcome": "open"})["actions"]]
        new = draw.choice(found.jobs).model_copy(update={"id": f"new-{number}"}).model_dump(exclude_defaults=True)
        add, node = {"do": "add_jobs", "jobs": [new]}, draw.choice(found.cluster.nodes).id
        drained = {"do": draw.choice(["drain", "undrain"]), "nodes": [node]}
        steps = [
            [{"do": "remove_jobs", "jobs": [draw.choice(runs or ["none"])]}],
            [{"do": "stop", "jobs": [draw.choice(runs or ["none"])]}],
            [drained, add],
            [{"do": "drain", "nodes": [node], "stop": True}],
            [{"do": "set_time", "now_ms": found.now_ms + 1000}, *(urgent(job) for job in waits[:1])],
            [{"do": draw.choice(["taint", "untaint"]), "taint": {"key": "old"}, "nodes": [node]}],
            [{"do": "label", "labels": {"rack": f"{number}"}, "nodes": [node]}],
            [{"do": "add_nodes", "like": node, "prefix": f"added-{number}"}],
            [{"do": "remove_nodes", "nodes": [node]}],
            [{"do": "fail", "level": "node", "domains": [node]}],
            [{"do": "fail", "level": "gpu", "domains": [f"{node}/gpu0"]}],
            [{"do": "set_policy", "fields": {"name": f"policy-{number}"}}],
            [{"do": "set_amount", "resource": "cpu_millicores", "amount": 10**6 + number, "at": "machine"}],
            [{"do": "change_job", "job": job, "fields": {"value": number}} for job in waits[:1]],
            [{"do": "change_running", "job": job, "fields": {"movable": True}} for job in runs[:1]],
            [add, {"do": "remove_jobs", "jobs": ["none"]}],
        ]
        outcome = {"action": draw.choice(told or ["0.0"]), "result": draw.choice(["done", "failed"])}
        jobs = draw.sample(waits, min(2, len(waits))) or ["none"]
        calls = [
            ("decide", {"jobs": jobs, "preemptible": draw.random() < 0.5}),
            ("decide", {"add_jobs": [new], "movable": True}),
            *(("changes", {"steps": some}) for some in steps),
            ("outcome", {"outcomes": [outcome]}),
        ]
        name, body = draw.choice(calls)
        key = draw.choice([None, f"key-{number}"])
        try:
            reply = ask(service, name, body, key=key)
        except Refused:
            continue
        done += 1
        if key is not None:
            assert ask(service, name, body, key=key) == reply
    return done


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_lead_to_the_same_bytes_after_a_restart(tmp_path, seed, monkeypatch):
    monkeypatch.setattr("placeopt.service.journal.LEAST_ROWS", 10)  # several snapshots
    draw = random.Random(seed)
    with Service(tmp_path) as service:
        service.call("put_cluster", dumps(generate("preempt", jobs=20, nodes=6, gpus=4, seed=seed)))
        assert random_calls(service, draw, 60) > 20
        expected = state_of(service)
    with Service(tmp_path) as service:
        assert state_of(service) == expected
        random_calls(service, draw, 10)  # and it goes on


def test_steps_that_change_nothing_are_done_again(tmp_path):
    """The time that it is already, and what nodes and jobs are already, begin no revision, and a start takes them."""
    with Service(tmp_path) as service:
        service.call("put_cluster", dumps(ROUND))
        waits = next(job for job in ROUND.jobs if job.id not in {held.job for held in ROUND.running})
        for step in (
            {"do": "set_time", "now_ms": ROUND.now_ms},
            {"do": "undrain", "nodes": [ROUND.cluster.nodes[0].id]},
            {"do": "change_job", "job": waits.id, "fields": {"priority": waits.priority}},
        ):
            assert ask(service, "changes", {"steps": [step]})["revision"] == ROUND.revision
        expected = state_of(service)
    with Service(tmp_path) as service:
        assert state_of(service) == expected
        assert ask(service, "changes", {"steps": [{"do": "set_time", "now_ms": 1 + ROUND.now_ms}]})["revision"] == 1


def test_a_round_with_stops_is_done_again(tmp_path):
    with Service(tmp_path) as service:
        service.call("put_cluster", dumps(ROUND))
        assert solved(service, time_limit_s=2, commit=True, movable=True)["plan"]["preempted"]
        expected = state_of(service)
    with Service(tmp_path) as service:
        assert state_of(service) == expected


def add_job(service, number):
    """Add a job under a key; return the revision, or the status of a refusal."""
    try:
        step = ("add_jobs", {"jobs": [{"id": f"new-{number}", "options": [{}]}]})
        return change(service, step, key=f"{number}")["revision"]
    except Refused as refused:
        return refused.status


@pytest.mark.parametrize("count", [1, 6], ids=["alone", "at once"])
def test_changes_that_cannot_be_written_change_nothing(tmp_path, count):
    """Those that wait together share a transaction: it is whole, or none of them is answered as done."""
    with Service(tmp_path) as service, ThreadPoolExecutor(count) as pool:
        service.call("put_cluster", dumps(ROUND))
        before = state_of(service)
        with full_disk():
            assert list(pool.map(lambda number: add_job(service, number), range(count))) == [503] * count
        assert state_of(service) == before
        done = pool.map(lambda number: add_job(service, number), range(count))  # under the keys of before
        assert sorted(done) == list(range(1, count + 1))
        after = service.call("snapshot")
    with Service(tmp_path) as service:
        assert service.call("snapshot") == after


def test_one_service_a_folder(tmp_path):
    with Service(tmp_path), pytest.raises(BadInput, match="another service uses it"):
        Service(tmp_path)
    Service(tmp_path).close()


def test_what_is_no_journal_is_said(tmp_path):
    (tmp_path / "journal.sqlite").write_bytes(b"not a database, at all" * 100)
    with pytest.raises(BadInput, match="cannot be read as a journal"):
        Service(tmp_path)
    shutil.rmtree(tmp_path)
    tmp_path.write_text("a file")
    with pytest.raises(BadInput, match="is not a folder, so it cannot be used for the state"):
        Service(tmp_path)


def test_old_rows_go(tmp_path, monkeypatch):
    monkeypatch.setattr("placeopt.service.journal.LEAST_ROWS", 5)
    monkeypatch.setattr("placeopt.service.journal.KEPT_ROWS", 10)
    monkeypatch.setattr("placeopt.service.durable_cluster.FORGET_EVERY", 5)
    with Service(tmp_path) as service:
        service.call("put_cluster", dumps(ROUND))
        for number in range(1000):
            change(service, ("set_time", {"now_ms": ROUND.now_ms + number + 1}), key=f"{number}")
        expected = service.call("snapshot")
        assert ask(service, "events")["missed"] is False  # those in memory are all there
    file = tmp_path / "journal.sqlite"
    for table, most in (("entries", 600), ("replies", 600), ("snapshots", 2)):
        assert 0 < rows(file, table) <= most
    with Service(tmp_path) as service:
        assert service.call("snapshot") == expected
        assert ask(service, "events", query={"after": "1"})["missed"] is True


@pytest.fixture
def held_back(monkeypatch):
    """Snapshots are not written to files before ``free`` is set; ``begun`` once one is."""
    begun, free = threading.Event(), threading.Event()

    def slow(record):
        begun.set()
        free.wait()
        return dumps(record)

    monkeypatch.setattr("placeopt.service.snapshot_files.dumps", slow)
    yield begun, free
    free.set()


def test_a_snapshot_that_is_written_delays_no_decision(tmp_path, held_back):
    begun, free = held_back
    with Service(tmp_path) as service, ThreadPoolExecutor(1) as pool:
        service.call("put_cluster", dumps(ROUND))
        snapshot = pool.submit(service.call, "snapshot")
        begun.wait()
        assert ask(service, "decide", {"jobs": ["job-000000"]})["revision"] == 1
        assert not snapshot.done()
        free.set()
        assert snapshot.result() == dumps(ROUND)
        assert now(service).revision == 1


@pytest.mark.parametrize("loaded", [False, True])
def test_changes_while_the_journal_takes_a_snapshot_are_kept(tmp_path, monkeypatch, held_back, loaded):
    monkeypatch.setattr("placeopt.service.journal.LEAST_ROWS", 1)
    begun, free = held_back
    jobs = [json.loads(job.model_dump_json(exclude_defaults=True)) for job in ROUND.jobs]
    with Service(tmp_path) as service:
        service.call("put_cluster", dumps(ROUND))
        for number in range(5):  # each as large as the round
            again = [{**job, "id": f"{number}-{job['id']}"} for job in jobs]
            change(service, ("add_jobs", {"jobs": again}))
        assert begun.wait(60)
        if loaded:
            service.call("put_cluster", dumps(ROUND))
        free.set()
        expected = state_of(service)
    with Service(tmp_path) as service:
        assert state_of(service) == expected


def test_what_nothing_is_said_of_is_bounded(tmp_path, monkeypatch):
    """Jobs come, start and end under keys, and no start is ever said to be done: no table grows with them."""
    monkeypatch.setattr("placeopt.service.journal.LEAST_ROWS", 5)
    monkeypatch.setattr("placeopt.service.journal.KEPT_ROWS", 20)
    monkeypatch.setattr("placeopt.service.durable_cluster.FORGET_EVERY", 10)
    instance = generate("preempt", jobs=10, nodes=8, gpus=4, seed=0)
    waiting = sorted({job.id for job in instance.jobs} - {held.job for held in instance.running})
    job = next(job for job in instance.jobs if job.id == waiting[0])
    sizes, file = [], tmp_path / "journal.sqlite"

    def call(name, body, **how):
        reply = ask(service, name, body, **how)
        wait_for_snapshot(file)
        return reply

    with Service(tmp_path) as service:
        service.call("put_cluster", dumps(instance))
        stays = ask(service, "decide", {"jobs": [job.id]})["actions"][0]["id"]
        for number in range(300):
            new = job.model_dump(mode="json", exclude_defaults=True) | {"id": f"new-{number}"}
            steps = [{"do": "remove_jobs", "jobs": [new["id"]]}]
            if not call("decide", {"add_jobs": [new]}, key=f"start-{number}")["actions"]:
                steps = [{"do": "remove_jobs", "jobs": [new["id"]]}]
            elif number % 3 == 0:  # placed twice: the first start is not its last action
                call("changes", {"steps": [{"do": "stop", "jobs": [new["id"]]}]})
                call("decide", {"jobs": [new["id"]]})
            call("changes", {"steps": steps}, key=f"end-{number}")
            if number >= 100:
                tables = ("entries", "replies", "actions", "snapshots", "rounds", "reservations")
                sizes.append([rows(file, table) for table in tables])
        assert stays in [action["id"] for action in ask(service, "actions", query={"outcome": "open"})["actions"]]
        assert ask(service, "outcome", {"outcomes": [{"action": stays, "result": "failed"}]})["waiting"] == [job.id]
    early, late = (list(map(max, zip(*part, strict=True))) for part in (sizes[:100], sizes[100:]))
    assert early == late
    assert max(late[1:3]) <= 40


def test_events_of_many_steps_are_short(tmp_path):
    with Service(tmp_path) as service:
        service.call("put_cluster", dumps(ROUND))
        told = ask(service, "decide", {"jobs": WAITING})["actions"]
        assert len(told) > 3
        failed = [{"action": action["id"], "result": "failed"} for action in told]
        assert len(ask(service, "outcome", {"outcomes": failed})["waiting"]) == len(told)
        words = ask(service, "events")["events"][-1]["words"]
        assert words.endswith("; ...")
        assert words.count("stop ") == 3


def test_a_round_that_was_cut_short_is_told(tmp_path):
    with Service(tmp_path) as service:
        service.call("put_cluster", dumps(ROUND))
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as database, database:
        database.execute("INSERT INTO rounds VALUES ('cut', 0, 5.0)")  # as a process that was killed leaves it
    with Service(tmp_path) as service:
        assert ask(service, "round", path={"id": "cut"})["state"] == "interrupted"
        solved(service, time_limit_s=1, method="fcfs")
    with Service(tmp_path) as service:
        assert ask(service, "rounds")["rounds"] == []


def test_a_committed_round_is_answered_again_after_a_restart(tmp_path):
    with Service(tmp_path) as service:
        service.call("put_cluster", dumps(ROUND))
        name = solved(service, time_limit_s=1, method="fcfs")["id"]
        done = ask(service, "commit", {"round": name}, key="k")
        assert done["committed"]
    with Service(tmp_path) as service:
        assert ask(service, "commit", {"round": name}, key="k") == done
