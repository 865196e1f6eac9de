"""A few kills of the service; `tests/campaigns/kill_service.py` does hundreds. Broken services have to be found out."""

import sys

import pytest

from helpers.service_kills import Kills
from helpers.service_model import Contradiction, Effect, State, after
from placeopt import generate

INSTANCE = generate("preempt", jobs=20, nodes=6, gpus=4, seed=0)
BROKEN = """
import sys
from contextlib import contextmanager
from placeopt.service.journal import Journal

@contextmanager
def late(self):  # every fifth change brings those before it to disk, so most are answered before they are there
    if not self._database.in_transaction:
        self._database.execute("BEGIN IMMEDIATE")
    yield
    self.changes = getattr(self, "changes", 0) + 1
    if self.changes % 5 == 0:
        self._database.execute("COMMIT")

@contextmanager
def nothing(self):
    yield

def forget(*_):
    pass

for method, fault in {
    "answered before it is written": {"change": late, "together": nothing},
    "keys forgotten": {"add_reply": forget},
    "actions forgotten": {"add_actions": forget},
    "outcomes forgotten": {"set_outcomes": forget},
}[sys.argv.pop(1)].items():
    getattr(Journal, method)  # there is one to replace
    setattr(Journal, method, fault)
from placeopt.cli.__main__ import main
main()
"""


def test_six_kills_lose_nothing_and_do_nothing_twice(tmp_path):
    moments = ["request", "round", "replay", "answer", "idle", "request"]
    found = Kills(tmp_path, INSTANCE, seed=0).run(moments)
    assert found.faults == []
    assert (found.kills, found.answered > 5, found.entries >= 5) == (6, True, True)


@pytest.mark.parametrize("do", ["remove_jobs", "stop", "change_job"])
def test_a_change_of_a_job_that_comes_later_is_a_contradiction(do):
    """A request whose answer was lost is tried at every revision, also at one before its jobs came."""
    about = {"job": "a", "fields": {"priority": 3}} if do == "change_job" else {"jobs": ["a"]}
    early = [Effect(1, [{"do": do, **about}]), Effect(2, [{"do": "add_jobs", "jobs": [{"id": "a"}]}])]
    with pytest.raises(Contradiction, match="job 'a'"):
        after(State(), early)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("answered before it is written", "lost"),
        pytest.param("keys forgotten", "twice", marks=pytest.mark.night),
        pytest.param("actions forgotten", "lost", marks=pytest.mark.night),
        pytest.param("outcomes forgotten", "lost", marks=pytest.mark.night),
    ],
)
def test_a_broken_service_is_found_out(tmp_path, fault, kind):
    command = (sys.executable, "-c", BROKEN, fault, "serve", "--stdio", "--state")
    found = Kills(tmp_path, INSTANCE, 0, command).run(["idle"] * 3)
    assert kind in {fault.partition(":")[0] for fault in found.faults}
