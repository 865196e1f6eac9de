"""Reading from slurmrestd on its unix socket; changes go through the commands all the same."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Mapping
from typing import Any

from placeopt.drivers.json_answer import json_object
from placeopt.drivers.slurm.commands import TIMEOUT_S, JobNow, Slurm, SlurmReading
from placeopt.drivers.unreachable import Unreachable
from placeopt.errors import Unsupported

MAX_BYTES = 2**30
_PATH = re.compile(r"/slurm/v0\.0\.([0-9]{1,4})/jobs/?\Z")


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path, self._timeout_s = path, timeout_s

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self._timeout_s)
        self.sock.connect(self._path)


class ReadThroughRestd:
    """
    Slurm whose lists come from slurmrestd; single jobs and changes go through ``commands``.

    ``path``: Of the socket. The newest version that the server offers is taken.
    """

    def __init__(self, commands: Slurm, path: str, timeout_s: float = TIMEOUT_S) -> None:
        self._commands, self._path, self._timeout_s = commands, path, timeout_s
        self._version: int | None = None

    def read(self) -> SlurmReading:
        """Return nodes, then jobs."""
        if self._version is None:
            self._version = newest_version(self._get("/openapi/v3"))
        base = f"/slurm/v0.0.{self._version}"
        nodes = self._get(f"{base}/nodes")
        return SlurmReading(nodes, self._get(f"{base}/jobs"), self.topology(), self.reservations())

    def topology(self) -> str:
        """Return ``scontrol show topology``; empty where Slurm has none."""
        return self._commands.topology()

    def reservations(self) -> dict[str, Any] | None:
        """Return ``scontrol show reservations --json``; None where Slurm prints no such list."""
        return self._commands.reservations()

    def job_now(self, job: str) -> JobNow | None:
        """Return the state of a job; None if it is gone."""
        return self._commands.job_now(job)

    def update(self, job: str, fields: Mapping[str, str]) -> None:
        """Set fields of a job."""
        self._commands.update(job, fields)

    def release(self, job: str) -> None:
        """Release a held job."""
        self._commands.release(job)

    def user_hold(self, job: str) -> None:
        """Place a hold that the job's owner can release."""
        self._commands.user_hold(job)

    def requeue_hold(self, job: str) -> None:
        """Stop a batch job that runs; it waits again, under a hold that its owner can release."""
        self._commands.requeue_hold(job)

    def _get(self, path: str) -> dict[str, Any]:
        connection = _UnixConnection(self._path, self._timeout_s)
        try:
            connection.request("GET", path, headers={"Accept": "application/json"})
            reply = connection.getresponse()
            body = reply.read(MAX_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"slurmrestd at {self._path}: {type(error).__name__}: {error}") from None
        finally:
            connection.close()
        if reply.status != http.client.OK:
            raise Unreachable(f"slurmrestd at {self._path}: GET {path}: {reply.status} {reply.reason}")
        return json_object(body, f"slurmrestd at {self._path}: GET {path}")


def newest_version(openapi: Mapping[str, Any]) -> int:
    """Return the newest data parser version whose list of jobs a server offers, by its OpenAPI document."""
    paths = openapi.get("paths")
    found = [_PATH.search(path) for path in paths] if isinstance(paths, dict) else []
    versions = [int(match[1]) for match in found if match is not None]
    if not versions:
        raise Unsupported("slurmrestd: its OpenAPI document names no /slurm/v0.0.N/jobs")
    return max(versions)
