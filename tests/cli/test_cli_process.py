"""What only a process of its own shows: signals, closed pipes, missing packages, what is imported."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from helpers.command_line import INSTANCES, MINSKY, Cli
from helpers.processes import children, eventually
from placeopt import read_instance, read_plan
from placeopt.check import violations
from placeopt.cli.run import run

PLACEOPT = [sys.executable, "-m", "placeopt.cli"]
HARD = INSTANCES / "openb" / "openb-first-100.json.gz"
"""No optimum is proven within a minute."""


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [*PLACEOPT, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)


def wait_for(log: Path, stage: str) -> None:
    """Wait until the log has news of a stage."""
    news = f'"stage": "{stage}"'
    assert eventually(lambda: log.exists() and news in log.read_text(), 30), f"no news of stage {stage}"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_returns_the_best_plan(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """A signal in the middle of a long solve: soon over, the plan is written whole, valid, and says why it ended."""
    out, log = tmp_path / "plan.json", tmp_path / "log.jsonl"
    process = start("solve", HARD, "--time-limit", 120, "--out", out, "--log", log)
    wait_for(log, "bound")
    process.send_signal(number)
    printed, told = process.communicate(timeout=30)
    assert process.returncode == code
    assert "stopping with the best plan so far" in told
    assert "stopped by the user" in " ".join(printed.split())
    plan = read_plan(out)
    assert plan.limit == "user"
    assert violations(read_instance(HARD), plan) == []
    assert subprocess.run([*PLACEOPT, "check", HARD, out], capture_output=True, timeout=60).returncode == 0
    assert json.loads(log.read_text().splitlines()[-1])["exit_code"] == code


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_a_second_signal_quits_at_once(tmp_path: Path) -> None:
    """Also while the solver process does not answer the first."""
    log = tmp_path / "log.jsonl"
    process = start("solve", HARD, "--time-limit", 120, "--threads", 1, "--log", log)
    wait_for(log, "bound")
    (solver,) = children(process.pid)
    os.kill(solver, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "once more to quit at once" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == -signal.SIGINT
    with suppress(ProcessLookupError):  # it may have ended with its parent
        os.kill(solver, signal.SIGKILL)


def test_interrupted_while_reading(tmp_path: Path) -> None:
    """There is no plan yet: 130, and a word. The log is opened just before."""
    log = tmp_path / "log.jsonl"
    process = start("solve", "-", "--log", log)
    assert eventually(log.exists, 30)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert told.endswith("error: interrupted before there was anything to write\n")


MAIN = """
import os, signal, sys, time, weakref
sys.path.insert(0, {folder!r})
from placeopt.cli import __main__ as program
class Thing: pass
def pressed(_): {press}
def command():
    {command}
    return 0
program._run = command
program.main()
"""
PRESS = "import os, signal; os.kill(os.getpid(), signal.SIGINT); sum(range(10**6))"
LOAD = "import pressed; print('went on')"
CALLBACK = "thing = Thing(); kept = weakref.ref(thing, pressed); del thing; time.sleep(30)"


@pytest.mark.parametrize(
    ("module", "command", "printed"),
    [
        (PRESS, LOAD, ""),  # a traceback of the import system
        (f"try:\n    {PRESS}\nexcept BaseException:\n    pass\n", LOAD, ""),  # the module swallows what is raised in it
        ("", f"try: {PRESS}\n    finally: print('tidied', flush=True)", "tidied\n"),  # outside imports it unwinds
        ("", CALLBACK, ""),  # Python prints what a callback raises as ignored, and goes on
    ],
    ids=["while a module loads", "in a module that swallows it", "elsewhere", "in a callback"],
)
def test_ctrl_c(tmp_path: Path, module: str, command: str, printed: str) -> None:
    """130 and a word, and no traceback, whatever the moment."""
    (tmp_path / "pressed.py").write_text(module)
    done = python(MAIN.format(folder=str(tmp_path), press=PRESS, command=command))
    assert (done.returncode, done.stdout) == (130, printed)
    assert done.stderr == "error: interrupted before there was anything to write\n"


HELP = "from placeopt.cli.run import run; run({!r}); loaded = ['highspy', 'networkx', 'numpy', 'ortools', 'pulp']"


@pytest.mark.parametrize(
    ("program", "loaded"),
    [
        (
            "import placeopt.cli.__main__; loaded = {*sys.modules} - before",
            "placeopt, placeopt.cli, placeopt.cli.__main__",
        ),
        ("import placeopt.solvers.pool; loaded = ['numpy', 'pydantic']", ""),
        *((HELP.format(words), "") for words in (["--help"], ["--version"], ["solve", "--help"])),
    ],
    ids=["before the handler", "before a solver process starts", "--help", "--version", "solve --help"],
)
def test_what_is_loaded(program: str, loaded: str) -> None:
    """Three small files before Ctrl-C is handled; no NumPy before a solver process starts, nor for a help."""
    program = f"import sys; before = {{*sys.modules, '__future__'}}; {program}; "
    program += "sys.stderr.write(', '.join(sorted(name for name in loaded if name in sys.modules)))"
    assert python(program).stderr == loaded


def test_progress_in_plain_lines(tmp_path: Path) -> None:
    """Without a terminal: a line every two seconds or so, with stage, value, bound and gap; none with --quiet."""
    log = tmp_path / "log.jsonl"
    loud, quiet = start("solve", HARD, "--time-limit", 120), start("solve", HARD, "--quiet", "--log", log)
    assert loud.stderr is not None
    for line in loud.stderr:
        assert re.match(r" *\d+\.\d s  ", line)
        if all(word in line for word in ("value", "bound", "gap")):
            break
    wait_for(log, "bound")
    for process in (loud, quiet):
        process.send_signal(signal.SIGINT)
    assert loud.communicate(timeout=60)[0] != ""
    printed, told = quiet.communicate(timeout=60)
    assert (printed, "gap" in told) == ("", False)


def test_progress_on_a_terminal() -> None:
    """One line, drawn again and again, its gap within 40 columns; in the end it is taken away, the cursor with it."""
    ours, theirs = os.openpty()
    command = [*PLACEOPT, "solve", str(HARD), "--time-limit", "120"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "40"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    seen, asked = b"", False
    try:
        while piece := os.read(ours, 4096):
            seen += piece
            if not asked and seen.count(b"gap ") > 2:
                asked = True
                process.send_signal(signal.SIGTERM)
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(timeout=60) == 143
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"gap ")


def test_closed_streams() -> None:
    """Started without standard streams, as some supervisors do."""
    for command, code in (("show FILE >&-", 3), ("solve - <&-", 3), ("show FILE 2>&-", 0), ("--version >&-", 3)):
        line = f"{sys.executable} -m placeopt.cli {command.replace('FILE', str(MINSKY))}"
        done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=60)
        assert done.returncode == code
        assert "Traceback" not in done.stderr
        assert "internal fault" not in done.stderr


def test_the_time_limit_counts_from_the_start_of_the_process(tmp_path: Path) -> None:
    """What Python and the modules take to load is a part of what the user waits for."""
    log = tmp_path / "log"
    arguments = ["solve", str(MINSKY), "--time-limit", "50", "--log", str(log), "--quiet"]
    ended = []
    for started in (time.monotonic() - 100, None):
        run(arguments, started=started)
        ended.append(json.loads(log.read_text().splitlines()[-1]))
    assert [end["limit"] for end in ended] == ["time", "none"]
    assert ended[0]["seconds"]["total"] > 100 > ended[1]["seconds"]["total"]


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    """``placeopt ... &`` in a script has SIGINT ignored by its shell."""
    program = "import signal; from placeopt.cli import __main__ as m; m._handle_sigint(m._interrupted); "
    program += "print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    line = f"trap '' INT; exec {sys.executable} -c \"{program}\""
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize(
    "words", ["show HARD", "show HARD --json", "solve MINSKY --json", "--help", "solve --help", ""]
)
def test_closed_pipe_is_quiet(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``placeopt show ... | head -1``; help ended with 1, and a shell's completions with an error."""
    files = {"HARD": str(HARD), "MINSKY": str(MINSKY)}
    if not words:
        monkeypatch.setenv("_PLACEOPT_COMPLETE", "source_bash")
    process = start(*(files.get(word, word) for word in words.split()))
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, told = process.communicate(timeout=60)
    assert process.returncode == 0
    assert all(re.match(r" *\d+\.\d s  ", line) for line in told.splitlines())  # progress: a slow machine


def test_full_standard_output() -> None:
    """A full disk behind the standard output is an error that is told."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PLACEOPT, "show", MINSKY], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 3
    assert done.stderr == "error: standard output: cannot be written: No space left on device\n"


def test_ascii_standard_output() -> None:
    """Blocks become signs where the terminal has no Unicode."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*PLACEOPT, "show", MINSKY], capture_output=True, timeout=60, env=environment)
    assert done.returncode == 0
    assert b"A..." in done.stdout


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_missing_extra(package: str) -> None:
    done = python(f"import sys; sys.modules[{package!r}] = None; from placeopt.cli.__main__ import main; main()")
    assert done.returncode == 2
    assert "pip install 'placeopt[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_traceback_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("placeopt.solving.api.compile_problem", lambda *_: 1 / 0)
    monkeypatch.setenv("PLACEOPT_DEBUG", "1")
    assert run(["solve", str(MINSKY)]) == 5
    assert "Traceback" in capsys.readouterr().err


COMMANDS = ["", "solve", "check", "show", "generate", "import", "simulate", "doctor"]
COMMANDS += [f"import {form}" for form in ("openb", "topo", "jobs")]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(cli: Cli, command: str) -> None:
    done = cli(*command.split(), "--help")
    assert done.code == 0
    assert "Example: placeopt" in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    assert cli(*command.split(), "-h") == done


def test_the_root(cli: Cli) -> None:
    assert cli("--version").out.startswith("placeopt 0.")
    bare = cli()
    assert bare.code == 2
    assert "Usage: placeopt" in bare.out
    assert cli("import").code == 2
