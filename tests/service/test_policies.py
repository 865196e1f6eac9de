"""Rounds of a service under a scheduling policy: decided by its rules, committed under its policy, and kept."""

import pytest

from placeopt import BadInput
from placeopt.documents import dumps
from placeopt.scheduling import named_policy
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
