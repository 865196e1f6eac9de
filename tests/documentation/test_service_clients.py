"""The programs of docs/service_clients.md, built from the page and run against the service."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from placeopt import generate
from placeopt.formats import dumps
from placeopt.service import Service

PAGE = Path(__file__).resolve().parents[2] / "docs" / "service_clients.md"
ROUND = generate("preempt", jobs=30, nodes=8, gpus=4, seed=0)
TOOLS = {
    "java": ("java", "Client.java", [], ["java", "Client.java"]),
    "c": ("gcc", "client.c", ["gcc", "-Wall", "-Werror", "-o", "client", "client.c"], ["./client"]),
}


@pytest.fixture(params=list(TOOLS))
def client(request, tmp_path):
    """A function that runs the program of a language in a folder that has the instance."""
    tool, name, build, run = TOOLS[request.param]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    source = re.search(rf"^```{request.param}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert source is not None
    (tmp_path / name).write_text(source[1])
    command = tmp_path / "bin" / "placeopt"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m placeopt.cli "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}
    if build:
        subprocess.run(build, cwd=tmp_path, check=True, timeout=120)
    (tmp_path / "round.json").write_bytes(dumps(ROUND))

    def ask(*jobs):
        arguments = [*run, "round.json", *jobs]
        return subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    return ask


def test_a_client_gets_the_decisions_of_the_service(client):
    jobs = ["job-000000", "job-000001"]
    with Service() as service:
        service.call("put_cluster", dumps(ROUND))
        expected = json.loads(service.call("decide", json.dumps({"jobs": jobs}).encode()))
    done = client(*jobs)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reply"] == expected
    assert {one["job"] for one in (*expected["placements"], *expected["unplaced"])} == set(jobs)
    assert expected["placements"]


def test_a_client_fails_where_the_service_refuses(client):
    done = client("nobody")
    assert done.returncode != 0
    assert '"status":422' in done.stdout + done.stderr
