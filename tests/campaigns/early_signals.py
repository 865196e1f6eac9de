"""
SIGINT and SIGTERM at random moments of a command's first seconds: how it ends, and what it shows.

Run by hand: ``python tests/campaigns/early_signals.py --signals 200 --seed 0``; ``--latest 4`` reaches into reading and
solving. The signal goes to the process group, as a terminal sends it. Expected: the command ends soon, with 130 or 143,
and shows no traceback. A shell prints the same codes for a process that died of the signal itself, which is how SIGTERM
ends a command that has nothing to write, and how the interpreter ends before it has run a line of ours. Before that
line Python may also show a traceback of its own start; that is counted apart, and is no fault: no file of the package
stands in it.

"Lost" are commands that went on to their end, or did not end within 20 s after the signal. One that was done before its
signal came is tried again.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import placeopt
from placeopt import generate, write_instance
from placeopt.environment import usable_cores

PACKAGE = str(Path(placeopt.__file__).parent)
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
PATIENCE_S = 20.0
DONE_S = 0.05
"""A command that ends so soon after the signal, without a word and as asked, was ending already."""


def commands(folder: Path) -> dict[str, list[str]]:
    """Commands that work for longer than the signal takes to come, by name."""
    round_, large = folder / "round.json", folder / "large.json.gz"
    write_instance(round_, generate("varied", jobs=40, nodes=10, gpus=8, seed=1))
    write_instance(large, generate("varied", jobs=4000, nodes=800, gpus=8, seed=1))
    return {
        "solve": ["solve", str(round_), "--time-limit", "30", "--out", str(folder / "plan.json")],
        "show": ["show", str(large)],
        "whatif": ["whatif", "slots", str(large), "--sizes", "8"],
    }


def sent(command: list[str], number: signal.Signals, moment: float) -> tuple[int | None, str, float]:
    """Start a command and signal its group: the exit code (None: it did not end), what it said, seconds to its end."""
    program = [str(Path(sys.executable).with_name("placeopt"))]
    process = subprocess.Popen(
        [*program, *command],
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


def main() -> int:
    """Run the campaign and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--signals", type=int, default=200, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--latest", type=float, default=0.6, help="seconds until the last moment of a signal")
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    faults: list[str] = []
    lines = ["| signal | command | sent | clean | killed by it | interpreter's own start | faults | slowest end |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        known = commands(Path(name))
        for number in CODES:
            counts = {command: Counter[str]() for command in known}
            slowest = dict.fromkeys(known, 0.0)
            while (total := sum(count.total() for count in counts.values())) < arguments.signals:
                command = list(known)[total % len(known)]
                moment = dice.uniform(0, arguments.latest)
                ended, told, seconds = sent(known[command], number, moment)
                if ended == -1000 or (ended in (0, 4) and seconds < DONE_S and not told):
                    continue  # it was done before the signal came
                found = verdict(ended, told, number)
                counts[command][found] += 1
                slowest[command] = max(slowest[command], seconds)
                if found not in ("clean", "killed", "interpreter"):
                    faults.append(f"- {number.name} to {command} after {moment:.3f} s: {found} ({ended})\n{told}")
                    print(faults[-1], flush=True)
            for command, count in counts.items():
                good = (count["clean"], count["killed"], count["interpreter"])
                cells = (number.name, command, count.total(), *good, count.total() - sum(good))
                lines.append(f"| {' | '.join(map(str, cells))} | {slowest[command]:.2f} s |")
    print(f"{usable_cores()} cores, Python {sys.version.split()[0]}, placeopt {placeopt.__version__}.\n")
    print("\n".join(lines))
    print(f"\n{2 * arguments.signals} signals within {arguments.latest:g} s, {len(faults)} faults.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
