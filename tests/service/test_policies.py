"""Rounds of a service under a scheduling policy: decided by its rules, committed under its policy, and kept."""

import json

import pytest

from placeopt import BadInput
from placeopt.build import instance, job, machine
from placeopt.build import running as running_at
from placeopt.documents import dumps
from placeopt.scheduling import TelemetryFile, named_policy
from placeopt.service import Service
from service.calls import ROUND, now, refusal, running, solved


@pytest.mark.parametrize("name", ["horus", "dynamoml", "soda", "genie", "topo-aware-p", "placeopt", "rounds"])
def test_a_round_is_decided_by_the_policy_and_outlives_the_service(name, tmp_path):
    rules = named_policy(name)
    with Service(tmp_path, scheduling=rules) as service:
        service.call("put_cluster", dumps(ROUND))
        before = running(service)
        done = solved(service, commit=True, deterministic=True)
        assert done["state"] == "done", done
        assert done["plan"]["policy"]["name"] == name
        assert done["commit"]["refused"] == []
        started = {one["job"] for one in done["plan"]["placements"]} - before.keys()
        assert started
        assert started <= running(service).keys()
        again = solved(service, commit=True, deterministic=True)
        assert again["state"] == "done", again
        kept = now(service)
        assert kept.policy.name == name
    with Service(tmp_path, scheduling=rules) as service:
        assert now(service) == kept
        assert solved(service, commit=True, deterministic=True)["state"] == "done"


def test_a_method_of_the_request_is_refused():
    with Service(scheduling=named_policy("horus")) as service:
        service.call("put_cluster", dumps(ROUND))
        refused = refusal(service, "start_round", {"method": "fcfs"})
        assert (refused.status, refused.place) == (400, "method")
        assert "policy 'horus' has its own" in refused.detail


def test_a_policy_that_watches_speeds_is_refused_at_the_start(tmp_path):
    """And leaves the folder free."""
    with pytest.raises(BadInput, match="'pab': watches how fast jobs run"):
        Service(tmp_path, scheduling=named_policy("pab"))
    with Service(tmp_path):
        pass


def test_what_is_measured_corrects_the_estimates_of_rounds(tmp_path):
    """A job that waits is of the profile of one that runs: it counts with the utilisation that was measured."""
    measures = tmp_path / "use.json"
    measures.write_text(json.dumps({"gpu_utilisation_percent": {"runs": 43}}))
    runs, waits = (job(name, profile="p", gpu_utilisation_percent=90) for name in ("runs", "waits"))
    round_ = instance(1, [runs, waits], machines=[machine(gpus=2)], running=[running_at(runs, [("n0", [0])])])
    rules = named_policy("fcfs")
    with Service(scheduling=rules, telemetry=TelemetryFile(str(measures))) as service:
        service.call("put_cluster", dumps(round_))
        done = solved(service, deterministic=True)
        assert done["fired"] == {"method fcfs: placed": 1, "telemetry: corrected": 2}
        assert [one["job"] for one in done["plan"]["placements"]] == ["runs", "waits"]
