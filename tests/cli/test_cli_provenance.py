"""Every answer states the document, its digest, command, settings, seed, versions and time: JSON, text and report."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from helpers.command_line import GANGS, INSTANCES, Cli
from placeopt import read_instance, read_scenario

UNIFORM = INSTANCES / "generated" / "uniform-20x4x4-s0.json.gz"
TRACE = INSTANCES / "papers" / "sc17-workloads-5.json"
QUICK = ("--time-limit", 2, "--quiet")
VERBS: dict[str, tuple[object, ...]] = {
    "fit": (GANGS, "--job", "2x4", *QUICK),
    "fail": (GANGS, "--level", "rack", *QUICK),
    "add": (UNIFORM, "--node-type", "uniform-4gpu", *QUICK),
    "compare": (UNIFORM, "--vary", "machine:uniform-4gpu=new", *QUICK),
    "clear": (GANGS, *QUICK),
    "defrag": (GANGS, "--all-movable", *QUICK),
}
WRITES = {"edit"}
"""Verbs that write a file and answer nothing."""


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    machine = read_instance(UNIFORM).cluster.machines[0].model_copy(update={"id": "new"})
    path = tmp_path / "new.json"
    text = machine.model_dump_json(exclude_defaults=True)
    path.write_text(f'{{"steps": [{{"do": "add_machines", "machines": [{text}]}}]}}')
    return path


def whole(told: dict[str, Any]) -> None:
    assert told["command"].startswith("placeopt ")
    assert told["versions"]["placeopt"]
    assert datetime.fromisoformat(told["time"]).tzinfo is not None
    assert re.fullmatch("[0-9a-f]{64}", told["answer_digest"])
    assert "as_json" not in told["settings"]


def test_all_verbs_are_walked(cli: Cli) -> None:
    """A new verb must be added above."""
    assert set(re.findall(r"^│ (\w+) ", cli("whatif", "--help").out, re.MULTILINE)) == VERBS.keys() | WRITES


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_whatif(cli: Cli, patch: Path, verb: str) -> None:
    options = (*VERBS[verb], *(("--patch", patch) if verb == "compare" else ()))
    done = cli("whatif", verb, *options, "--json")
    told = done.data["provenance"]
    whole(told)
    if verb != "compare":  # which asks about the patched instance
        assert told["instance"]["digest"] == read_instance(str(options[0])).digest
    assert told["command"].split()[1:3] == ["whatif", verb]
    assert told["seed"] == 0
    short = told["instance"]["digest"][:12]
    assert f"{told['instance']['name']}, digest {short}; " in cli("whatif", verb, *options).words


def test_audit_and_simulate(cli: Cli, tmp_path: Path) -> None:
    """The same there; of simulate printed, written, and on the page."""
    told = cli("audit", GANGS, "--json", *QUICK).data["provenance"]
    whole(told)
    assert told["settings"]["time_limit"] == 2
    command = ("simulate", TRACE, "--policy", "fcfs,best-fit", "--seed", 3, "--out", tmp_path)
    done = cli(*command, "--json")
    assert (tmp_path / "simulations.json").read_text() == done.out
    told = dict(done.view.provenance)
    whole(told)
    assert (told["instance"]["digest"], told["seed"]) == (read_scenario(TRACE).digest, 3)
    assert "; seed 3; placeopt " in cli(*command).out
    assert "; seed 3; placeopt " in cli("show", tmp_path).out
    assert cli("show", tmp_path, "--out", tmp_path / "r.html").code == 0
    assert told["answer_digest"] in (tmp_path / "r.html").read_text()


def test_the_digest_of_an_answer_repeats(cli: Cli) -> None:
    """Time and duration are not in it; the answer is."""
    first, again, other = (
        cli("whatif", "fit", GANGS, "--job", job, "--json", "--quiet").data["provenance"]["answer_digest"]
        for job in ("2x4", "2x4", "4")
    )
    assert first == again != other
