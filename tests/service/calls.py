"""Calls of a service in this process, with bodies and replies as JSON."""

import json
import time

import pytest

from placeopt import generate
from placeopt.documents import loads
from placeopt.model import Instance
from placeopt.service import Refused

ROUND = generate("preempt", jobs=30, nodes=8, gpus=4, seed=0)
WAITING = [job.id for job in ROUND.jobs if job.id not in {held.job for held in ROUND.running}]


def ask(service, name, body=None, **how):
    return json.loads(service.call(name, b"" if body is None else json.dumps(body).encode(), **how))


def change(service, *steps, **how):
    """Carry out steps, each of them ``do`` and its arguments."""
    return ask(service, "changes", {"steps": [{"do": do, **arguments} for do, arguments in steps]}, **how)


def now(service):
    return loads(Instance, service.call("snapshot"))


def running(service):
    return {held.job: held for held in now(service).running}


def solved(service, name=None, **options):
    """Start a round, or follow one that was started, and return its status when it is over."""
    name = name or ask(service, "start_round", options)["id"]
    while (status := ask(service, "round", path={"id": name}))["state"] in ("queued", "running"):
        time.sleep(0.01)
    return status


def refusal(service, name, body=None, **how):
    """Return why a call is refused; it changes nothing."""
    before = service.call("snapshot")
    with pytest.raises(Refused) as caught:
        ask(service, name, body, **how)
    assert service.call("snapshot") == before
    return caught.value
