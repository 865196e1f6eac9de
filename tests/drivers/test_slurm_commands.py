"""What is asked of Slurm's commands and of slurmrestd, by programs and a socket in their place."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from placeopt import Unsupported
from placeopt.drivers import Unreachable
from placeopt.drivers.slurm import JobNow, ReadThroughRestd, SlurmCommands, SlurmRefused


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


@pytest.mark.parametrize(
    ("version", "lists"),
    [
        ("slurm-wlm 22.05.8", "sinfo --json"),
        ("slurm 20.11.4", "sinfo --json"),
        ("slurm 23.02.0", "scontrol show nodes --json"),
        ("slurm 25.11.1", "scontrol show nodes --json"),
        ("something", "scontrol show nodes --json"),
    ],
)
def test_which_command_lists_nodes(version: str, lists: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = f'case "$*" in *version*) echo {version} ;; *json*) echo "{{\\"by\\": \\"$(basename $0) $*\\"}}" ;; esac'
    for name in ("sinfo", "squeue", "scontrol"):
        (tmp_path / name).write_text(f"#!/bin/sh\n{said}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    reading = SlurmCommands().read()
    assert (reading.nodes, reading.jobs) == ({"by": lists}, {"by": "squeue --json"})


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("PENDING|JobHeldUser|0", JobNow("PENDING", "JobHeldUser", 0)),
        ("PENDING|JobHeldUser,None|0", JobNow("PENDING", "JobHeldUser", 0)),
        ("", None),
    ],
)
def test_the_state_of_one_job(line: str, now: JobNow | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "squeue").write_text(f"#!/bin/sh\necho '{line}'\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert SlurmCommands().job_now("7") == now
    assert now is None or now.held_by_user


def test_who_holds_a_job() -> None:
    assert not JobNow("RUNNING", "JobHeldUser", 0).held_by_user
    assert not JobNow("PENDING", "JobHeldUser", 5).held_by_user


class Restd(BaseHTTPRequestHandler):
    """Answers as slurmrestd of several versions does: the lists name the path that was asked for."""

    versions: tuple[str, ...] = ()

    def do_GET(self) -> None:
        paths = {f"/{path}": {} for path in self.versions}
        body = json.dumps({"paths": paths} if "openapi" in self.path else {"by": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def restd(tmp_path: Path, commands: SlurmCommands) -> Iterator[ReadThroughRestd]:
    with socketserver.ThreadingUnixStreamServer(str(tmp_path / "restd"), Restd) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield ReadThroughRestd(commands, str(tmp_path / "restd"))
        server.shutdown()


def test_slurmrestd_is_asked_in_its_newest_version(restd: ReadThroughRestd, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = ("slurm/v0.0.41/jobs/", "slurm/v0.0.42/jobs/", "slurmdb/v0.0.43/jobs/", "slurm/v0.0.43/nodes/")
    monkeypatch.setattr(Restd, "versions", slurm)
    reading = restd.read()
    assert "/slurm/v0.0.42/" in reading.jobs["by"]
    monkeypatch.setattr(Restd, "versions", ())


def test_a_slurmrestd_without_a_known_version_is_named(restd: ReadThroughRestd) -> None:
    with pytest.raises(Unsupported):
        restd.read()
