"""Slurm's commands where Slurm is not as expected, by programs of these names."""

from __future__ import annotations

from pathlib import Path

import pytest

from placeopt.drivers import Unreachable
from placeopt.drivers.slurm import SlurmCommands, SlurmRefused


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmCommands:
    """Every command fails in these words."""
    for name in ("sinfo", "squeue", "scontrol"):
        (tmp_path / name).write_text(
            "#!/bin/sh\necho 'fatal: Could not establish a configuration source' >&2\nexit 1\n"
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")  # the shell itself stays found
    return SlurmCommands()


def test_lists_that_are_refused_are_no_answer(commands: SlurmCommands) -> None:
    """The loop tries again and says why; a job that is refused is another matter."""
    with pytest.raises(Unreachable, match="sinfo --version: fatal: Could not establish a configuration source"):
        commands.read()
    with pytest.raises(SlurmRefused):
        commands.release("1")
