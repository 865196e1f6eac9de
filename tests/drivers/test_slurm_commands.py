"""What is asked of Slurm's commands and of slurmrestd, by programs and a socket in their place."""

import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from placeopt import Unsupported
from placeopt.drivers import Unreachable
from placeopt.drivers.slurm import JobNow, ReadThroughRestd, SlurmCommands, SlurmRefused


@pytest.fixture
def saying(tmp_path, monkeypatch):
    """Slurm's commands, each of which is a line of a shell."""

    def write(line):
        for name in ("sinfo", "squeue", "scontrol"):
            (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")  # the shell itself stays found
        return SlurmCommands()

    return write


@pytest.fixture
def commands(saying):
    return saying("echo 'fatal: Could not establish a configuration source' >&2; exit 1")


def test_lists_that_are_refused_are_no_answer(commands):
    """The loop tries again and says why; a job that is refused is another matter."""
    with pytest.raises(Unreachable, match="sinfo --version: fatal: Could not establish a configuration source"):
        commands.read()
    with pytest.raises(SlurmRefused):
        commands.release("1")


@pytest.mark.parametrize("broken", ["sinfo", "squeue", "scontrol"])
def test_a_list_with_errors_is_no_answer(broken, saying):
    """Slurm 22.05 prints it while the controller starts anew, with exit code 0: it is not an empty cluster."""
    lists = '\\"nodes\\": [], \\"reservations\\": []'
    error = '{\\"errors\\": [{\\"error\\": \\"Unspecified error\\"}], ' + lists + "}"
    good = '{\\"errors\\": [], ' + lists + "}"
    lines = f'[ $(basename $0) = {broken} ] && echo "{error}" || echo "{good}"'
    with pytest.raises(Unreachable, match=rf"{broken} .*--json: .*Unspecified error"):
        saying(f'case "$*" in *version*) echo slurm-wlm 22.05.8 ;; *json*) {lines} ;; esac').read()


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
def test_which_command_lists_nodes(version, lists, saying):
    by = '"{\\"by\\": \\"$(basename $0) $*\\"}"'
    reading = saying(f'case "$*" in *version*) echo {version} ;; *json*) echo {by} ;; esac').read()
    assert (reading.nodes, reading.jobs) == ({"by": lists}, {"by": "squeue --json"})


def test_topology_is_shown_or_there_is_none(saying):
    assert saying('[ "$*" = "show topology" ] && echo SwitchName=s').topology() == "SwitchName=s\n"
    assert saying("echo No topology information available").topology() == ""


def test_reservations_are_listed_or_there_is_no_list(saying):
    listed = '{\\"reservations\\": []}'
    assert saying(f'[ "$*" = "show reservations --json" ] && echo "{listed}"').reservations() == {"reservations": []}
    assert saying("echo No reservations in the system").reservations() is None
    assert saying("echo unrecognized option >&2; exit 1").reservations() is None
    with pytest.raises(Unreachable):
        saying("echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1").reservations()


def test_words_of_slurm_may_be_of_any_encoding(saying):
    with pytest.raises(SlurmRefused, match="no such job \ufffd"):
        saying("printf 'no such job \\377' >&2; exit 1").release("1")


@pytest.mark.parametrize(
    ("line", "now", "held"),
    [
        ("PENDING|JobHeldUser|0", JobNow("PENDING", "JobHeldUser", 0), True),
        ("PENDING|JobHeldUser,None|0", JobNow("PENDING", "JobHeldUser", 0), True),
        ("RUNNING|JobHeldUser|0", JobNow("RUNNING", "JobHeldUser", 0), False),
        ("PENDING|JobHeldUser|5", JobNow("PENDING", "JobHeldUser", 5), False),
        ("", None, False),
    ],
)
def test_the_state_of_one_job(line, now, held, saying):
    assert saying(f"echo '{line}'").job_now("7") == now
    assert now is None or now.held_by_user == held


@pytest.mark.parametrize(
    "words", ["slurm_load_jobs error: Connection reset by peer", "slurm_load_jobs error: what now"]
)
def test_a_state_that_cannot_be_read_is_no_refusal(words, saying):
    """As while the controller begins: a refusal would end the driver."""
    with pytest.raises(Unreachable, match=words):
        saying(f"echo '{words}' >&2; exit 1").job_now("7")


def test_a_change_that_is_cut_off_may_have_been_made(saying):
    with pytest.raises(Unreachable, match="reset"):
        saying("echo 'slurm_update error: Connection reset by peer' >&2; exit 1").release("7")


class Restd(BaseHTTPRequestHandler):
    """Answers as slurmrestd of several versions does: the lists name the path that was asked for."""

    versions = ()

    def do_GET(self):
        paths = {f"/{path}": {} for path in self.versions}
        body = json.dumps({"paths": paths} if "openapi" in self.path else {"by": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass


@pytest.fixture
def restd(tmp_path, commands):
    with socketserver.ThreadingUnixStreamServer(str(tmp_path / "restd"), Restd) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield ReadThroughRestd(commands, str(tmp_path / "restd"))
        server.shutdown()


def test_slurmrestd_is_asked_in_its_newest_version(restd, monkeypatch):
    slurm = ("slurm/v0.0.41/jobs/", "slurm/v0.0.42/jobs/", "slurmdb/v0.0.43/jobs/", "slurm/v0.0.43/nodes/")
    monkeypatch.setattr(Restd, "versions", slurm)
    assert "/slurm/v0.0.42/" in restd.read().jobs["by"]


def test_a_slurmrestd_without_a_known_version_is_named(restd):
    with pytest.raises(Unsupported):
        restd.read()
