"""Every broken file of the campaign, by the command line: exit code 3, the field by name, the target untouched."""

import subprocess
import sys
from pathlib import Path

import pytest

from campaigns.broken_files import FAULTS, Fault
from helpers.command_line import Cli


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_broken_file(cli: Cli, tmp_path: Path, fault: Fault) -> None:
    """In this process, for there are hundreds."""
    path, out = tmp_path / "broken.json", tmp_path / "plan.json"
    path.write_bytes(fault.data)
    out.write_text("as before")
    done = cli("solve", path, "--out", out, "--time-limit", 1)
    assert done.code == 3
    assert done.out == ""
    assert done.err.startswith(f"error: {path}")
    assert fault.expected_field in done.err
    assert out.read_text() == "as before"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["broken.json", "plan.json"]


@pytest.mark.parametrize("fault", [FAULTS[0], FAULTS[len(FAULTS) // 2], FAULTS[-1]], ids=lambda fault: fault.name)
def test_broken_file_by_a_process_of_its_own(tmp_path: Path, fault: Fault) -> None:
    """As a user meets it."""
    path = tmp_path / "broken.json"
    path.write_bytes(fault.data)
    done = subprocess.run(
        [sys.executable, "-m", "placeopt.cli", "check", path, path], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3
    assert fault.expected_field in done.stderr
    assert "Traceback" not in done.stderr
