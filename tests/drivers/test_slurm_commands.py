"""What is asked of Slurm's commands, by programs in their place."""

import pytest

from placeopt.drivers import Unreachable
from placeopt.drivers.slurm import JobNow, SlurmCommands, SlurmRefused


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
        commands.scontrol("release", "1")


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


@pytest.fixture
def showing(saying):
    """A reading where ``scontrol show`` of one thing is a line of shell, and every other list is empty."""

    def read(thing, line):
        return saying(
            f'case "$*" in "show {thing}") {line} ;; *version*) echo slurm 23.02 ;; *) echo {{}} ;; esac'
        ).read()

    return read


def test_topology_is_shown_or_there_is_none(showing):
    assert showing("topology", "echo SwitchName=s").topology == "SwitchName=s\n"
    assert showing("topology", "echo No topology information available").topology == ""
    assert showing("topology", "echo unrecognized >&2; exit 1").topology == ""


def test_reservations_are_listed_or_there_is_no_list(showing):
    listed = '{\\"reservations\\": []}'
    assert showing("reservations --json", f'echo "{listed}"').reservations == {"reservations": []}
    assert showing("reservations --json", "echo No reservations in the system").reservations is None
    assert showing("reservations --json", "echo unrecognized option >&2; exit 1").reservations is None
    with pytest.raises(Unreachable):
        showing("reservations --json", "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1")


def test_words_of_slurm_may_be_of_any_encoding(saying):
    with pytest.raises(SlurmRefused, match="no such job \ufffd"):
        saying("printf 'no such job \\377' >&2; exit 1").scontrol("release", "1")


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
        saying("echo 'slurm_update error: Connection reset by peer' >&2; exit 1").scontrol("release", "7")
