"""The programs of docs/service_clients.md and the commands of docs/service_http.md, run as the pages show them."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from placeopt import generate
from placeopt.documents import dumps
from placeopt.service import Service

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROUND = generate("preempt", jobs=30, nodes=8, gpus=4, seed=0)
TOOLS = {
    "java": ("java", "Client.java", [], ["java", "Client.java"]),
    "c": ("gcc", "client.c", ["gcc", "-Wall", "-Werror", "-o", "client", "client.c"], ["./client"]),
}


def shown(page, language):
    """Return the first block of a language on a page."""
    found = re.search(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def with_command(folder):
    """Return an environment in which the shell finds ``placeopt``."""
    command = folder / "bin" / "placeopt"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m placeopt.cli "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(params=list(TOOLS))
def client(request, tmp_path):
    """A function that runs the program of a language in a folder that has the instance."""
    tool, name, build, run = TOOLS[request.param]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    (tmp_path / name).write_text(shown("service_clients.md", request.param))
    environment = with_command(tmp_path)
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


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_http_page(tmp_path):
    """Its first block, pasted whole."""
    block = shown("service_http.md", "sh").replace("curl ", "curl --silent --show-error --fail-with-body ")
    command = ["bash", "-e", "-c", block.replace("&\n", "&\ntrap 'kill $!; wait' EXIT\n", 1)]
    done = subprocess.run(
        command, cwd=tmp_path, env=with_command(tmp_path), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert '"revision":1,"placements":[{"job":"job-000001"' in done.stdout
