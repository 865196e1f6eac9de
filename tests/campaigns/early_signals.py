"""
SIGINT and SIGTERM at random moments of a command's first seconds: how it ends, and what it shows.

The signal goes to the process group, as a terminal sends it. Expected: the command ends soon, with 130 or 143, and
shows no traceback. A shell prints the same codes for a process that died of the signal itself, which is how SIGTERM
ends a command that has nothing to write, and how the interpreter ends before it has run a line of ours. Before that
line Python may also show a traceback of its own start; that is counted apart, and is no fault: no file of the package
stands in it.

"Lost" are commands that went on to their end, or did not end within 20 s after the signal. One that was done before its
signal came is tried again.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path

import placeopt
from campaigns.harness import Campaign, Case
from made_rounds import generate
from placeopt import write_document

PACKAGE = str(Path(placeopt.__file__).parent)
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
LATEST_S = (0.6, 0.6, 4.0)
"""Last moment of a signal: while the interpreter and the package start, or while the command reads and solves."""
PATIENCE_S = 20.0
DONE_S = 0.05
"""A command that ends so soon after the signal, without a word and as asked, was ending already."""


def cases(seed: int) -> Iterator[Case]:
    """Signal one command after the other."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        round_, large = Path(name) / "round.json", Path(name) / "large.json.gz"
        write_document(round_, generate("varied", jobs=40, nodes=10, gpus=8, seed=1))
        write_document(large, generate("varied", jobs=4000, nodes=800, gpus=8, seed=1))
        commands = (
            ["solve", str(round_), "--time-limit", "30", "--out", str(Path(name) / "plan.json")],
            ["show", str(large)],
            ["whatif", "fit", str(large)],
        )
        for command, number, latest in cycle(product(commands, CODES, LATEST_S)):
            moment = dice.uniform(0, latest)
            code, told, seconds = sent(command, number, moment)
            if code == -1000 or (code in (0, 4) and seconds < DONE_S and not told):
                continue  # it was done before the signal came
            found = verdict(code, told, number)
            where = f"{number.name} to {command[0]} after {moment:.3f} s"
            faults = [] if found in ("clean", "killed", "interpreter") else [f"{where}: {found} ({code})\n{told}"]
            yield Case(found, faults, {"end_s": seconds})


def sent(command: list[str], number: signal.Signals, moment: float) -> tuple[int | None, str, float]:
    """Start a command and signal its group: the exit code (None: it did not end), what it said, seconds to its end."""
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("placeopt")), *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    time.sleep(moment)
    if process.poll() is not None:
        return -1000, "", 0.0
    began = time.monotonic()
    os.killpg(process.pid, number)
    try:
        _, told = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, told = process.communicate()
        return None, told, time.monotonic() - began
    return process.returncode, told, time.monotonic() - began


def verdict(code: int | None, told: str, number: signal.Signals) -> str:
    """Name how a command ended."""
    if code is None or code in (0, 4):
        return "lost"
    ours = PACKAGE in told or "placeopt.cli" in told.replace("from placeopt.cli.__main__ import main", "")
    if "Traceback" in told or "Exception ignored" in told:
        return "traceback" if ours else "interpreter"
    if code == -number:
        return "killed"
    return "clean" if code == CODES[number] else f"code {code}"


CAMPAIGN = Campaign("does a command end soon and in silence when it is interrupted?", cases, 400)
