"""The service as a child process that answers JSON lines."""

import io
import json
import signal
import subprocess
import sys

import pytest

from helpers.service_child import SERVE
from placeopt.documents import dumps
from placeopt.service import Service, serve_lines
from service.calls import ROUND


def answers(*lines):
    written = []
    with Service() as service:
        serve_lines(service, io.BytesIO(b"".join(lines)), written.append)
    return [json.loads(line) for line in written]


def line(**members):
    return json.dumps(members).encode() + b"\n"


LOAD = line(id=1, call="put_cluster", body=json.loads(dumps(ROUND)))


def test_lines_are_answered_in_order():
    told = answers(
        LOAD,
        b"\n",
        line(id="two", call="decide", body={"jobs": ["job-000000"]}, key="k"),
        line(id="two", call="decide", body={"jobs": ["job-000000"]}, key="k"),
        line(id=3, call="events", query={"after": 0}),
    )
    assert [answer["id"] for answer in told] == [1, "two", "two", 3]
    assert told[1] == told[2]
    assert told[3]["reply"]["last"] == 2


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"nonsense\n", 400),
        (b"[]\n", 400),
        (b"[" * 100_000 + b"\n", 400),
        (b'{"id": 1, "call": "state"} {}\n', 400),
        (b'{"id": 1 "call": "state"}\n', 400),
        (b"{1: 2}\n", 400),
        (b'{"id": NaN, "call": "state"}\n', 400),
        (b"\xff\n", 400),
        (b'{"call": "decide", "body": {"jobs": NaN}}\n', 400),
        (b"{}\n", 404),
        (line(id=1, call="nothing"), 404),
        (line(id=1, call="snapshot", other=2), 400),
        (line(id=1, call="round"), 400),
        (line(id=1, call="round", path={"id": "a", "other": "b"}), 400),
        (line(id=1, call="decide", body={"jobs": ["a"]}), 422),
        (line(id=1, call="decide", key=3), 400),
        (line(id=1, call="events", query=[]), 400),
    ],
)
def test_wrong_lines_are_refused_and_the_next_is_answered(text, status):
    told = answers(text, line(id=2, call="state"))
    assert told[0]["error"]["status"] == status
    assert told[1]["reply"]["nodes"] == 0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b'{"id": 1, "call": "state", "call": "snapshot"}\n', "call"),
        (b'{"id": 1, "call": "decide", "body": {"jobs": ["a"]}, "body": {"jobs": ["b"]}}\n', "body"),
        (b'{"id": 1, "call": "decide", "body": {"jobs": ["a"], "jobs": ["b"]}}\n', "jobs"),
        (b'{"id": 1, "call": "decide", "body": {"add_jobs": [{"id": "a", "id": "b"}]}}\n', "add_jobs[0].id"),
        (b'{"id": 1, "call": "round", "path": {"id": "a", "id": "b"}}\n', "path.id"),
    ],
)
def test_a_key_twice_is_refused_with_its_place(text, place):
    [told] = answers(text)
    assert (told["error"]["status"], told["error"]["place"]) == (400, place)


def test_members_are_read_in_any_order_and_spacing():
    [told] = answers(b' { "body" : null , "query":{"after":"0"} ,"call":"ev\\u0065nts", "id" : {"a": [1, {}]} }\r\n')
    assert told["id"] == {"a": [1, {}]}
    assert told["reply"]["events"] == []


def test_a_line_has_an_end():
    """256 MiB."""
    assert [answer["error"]["status"] for answer in answers(b"x" * (2**28 + 1), line(id=2, call="state"))] == [413]


def talk(folder, lines, *options):
    """The answers of the command to these lines."""
    command = [*SERVE, str(folder), *options]
    done = subprocess.run(command, input=b"".join(lines), capture_output=True, timeout=300, check=True)
    return [json.loads(answer) for answer in done.stdout.splitlines()]


def test_the_command_survives_its_end(tmp_path):
    decide, look = line(id=2, call="decide", body={"jobs": ["job-000000"]}), line(id=3, call="snapshot")
    *_, before = talk(tmp_path, [LOAD, decide, look])
    assert talk(tmp_path, [look]) == [before]


def test_the_command_waits_for_the_word_of_a_host(tmp_path):
    decide = line(id=2, call="decide", body={"jobs": ["job-000000"], "commit": False})
    for lines, ready in (([LOAD, decide], True), ([decide], False), ([LOAD, decide], True)):
        *_, told = talk(tmp_path, lines, "--host-driver")
        assert ("reply" in told) == ready
        assert ready or told["error"]["status"] == 503


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_end_the_command(sign, code):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    child = subprocess.Popen([sys.executable, "-m", "placeopt.cli", "serve", "--stdio"], **pipes)
    child.stdin.write(line(id=1, call="state"))
    child.stdin.flush()
    assert json.loads(child.stdout.readline())["id"] == 1
    child.send_signal(sign)
    assert child.wait(30) == code
    assert b"Traceback" not in child.stderr.read()
