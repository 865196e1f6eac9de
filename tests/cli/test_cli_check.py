"""``placeopt check``: ok, or what is wrong; by hand-made lies."""

import json
from pathlib import Path
from typing import Any

from helpers.command_line import DGX1, MINSKY, Cli


def changed(plan: Path, tmp_path: Path, **fields: Any) -> Path:
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({**json.loads(plan.read_text()), **fields}))
    return path


def test_ok(cli: Cli, minsky_plan: Path) -> None:
    assert cli("check", MINSKY, minsky_plan) == (0, "ok: 3 jobs placed, 1 waiting\n", "")
    done = cli("check", MINSKY, minsky_plan, "--json")
    assert (done.code, done.data) == (0, {"ok": True, "violations": [], "audit": [], "standing": []})


def test_violations_are_listed(cli: Cli, minsky_plan: Path, tmp_path: Path) -> None:
    """All jobs left out: each is named with its rule, exit code 1."""
    lie = changed(minsky_plan, tmp_path, placements=[])
    done = cli("check", MINSKY, lie)
    assert done.code == 1
    assert done.out.startswith("not ok: ")
    assert "[account]" in done.out
    found = cli("check", MINSKY, lie, "--json").data
    assert found["ok"] is False
    assert {violation["rule"] for violation in found["violations"]} >= {"account"}


def test_false_statements_are_listed(cli: Cli, minsky_plan: Path, tmp_path: Path) -> None:
    """The placement is allowed, but the plan claims a bound below its value."""
    plan = json.loads(minsky_plan.read_text())
    plan["levels"][0]["bound"] = 3999
    lie = changed(minsky_plan, tmp_path, levels=plan["levels"])
    done = cli("check", MINSKY, lie)
    assert done.code == 1
    assert "wrong side" in done.out
    assert cli("check", MINSKY, lie, "--json").data["audit"]


def test_only_twenty_are_shown(cli: Cli, tmp_path: Path, minsky_plan: Path) -> None:
    """The rest is counted, and the page is kept."""
    many = [{"job": f"j{i}", "reason": "outvoted", "detail": ""} for i in range(50)]
    done = cli("check", MINSKY, changed(minsky_plan, tmp_path, unplaced=many))
    assert done.out.count("[account]") == 20
    assert "more" in done.out.splitlines()[-1]
    assert max(map(len, done.out.splitlines())) <= 100


def test_plan_of_another_round(cli: Cli, minsky_plan: Path) -> None:
    """That is a violation, not an error."""
    done = cli("check", DGX1, minsky_plan)
    assert done.code == 1
    assert "[reference]" in done.out
