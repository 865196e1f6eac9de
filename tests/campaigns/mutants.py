"""
Campaign: does some test fail for every small fault in the referee, and in the compiled problem?

    python tests/campaigns/mutants.py check problem --out bench/mutants.md

Every mutant (``mutation.py``) of a package is written into a copy of placeopt in a temporary directory, one at a time;
the source tree stays as it is. A child process then runs the tests of ``TESTS`` on that copy, the quickest files first,
and stops at the first that fails: the mutant is *killed*. Running into the time limit, or out of memory, counts as
killed. Libraries, and those modules of placeopt that do not import the package, are imported once: children are forked
from a process that has them.

Mutants that no test can kill stand in ``mutants_equal.toml``, each with the reason why it means the same. One that is
killed all the same is an error there.

Every verdict goes to a line of a file beside the table at once; a command that is repeated tries only those mutants
again that were not killed. Delete that file to start anew. ``--sample`` takes so many of a package, drawn by a seed.
Ends with code 1 if a share of killed mutants is below its goal.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from platform import machine, python_version
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutation import Mutant, mutants

ROOT = Path(__file__).resolve().parent.parent.parent
EQUAL = Path(__file__).with_name("mutants_equal.toml")
PYTEST = [
    "-x",
    "-q",
    "--assert=plain",
    "-p",
    "no:cacheprovider",
    "--rootdir",
    str(ROOT),
    "-c",
    str(ROOT / "pyproject.toml"),
]
GOAL = {"check": 95, "problem": 85}
TESTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "check": (
        ("tests/check", "tests/test_check.py"),
        ("tests/test_broken_plans.py",),
        ("tests/terms/test_utility.py", "tests/terms/test_rules.py", "tests/resident/test_random_changes.py"),
    ),
    "problem": (
        ("tests/problem",),
        ("tests/terms/test_rules.py", "tests/terms/test_utility.py", "tests/terms/test_fgd.py", "tests/queueing"),
        (
            "tests/terms",
            "tests/test_changes.py",
            "tests/heuristics/test_swaf.py",
            "tests/resident/test_random_changes.py",
        ),
    ),
}
"""Per package: groups of tests, one after the other; in a group, what killed before and what is quick goes first."""

MEMORY = 4 << 30
"""Bytes of address space that a child may take."""

Verdict = dict[str, Any]


@dataclass
class Watch:
    """A plugin of pytest: the order of the tests, which one failed, how long each took."""

    killers: Counter[str]
    seconds: dict[str, float]
    failed: str = ""
    took: dict[str, float] = field(default_factory=dict)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """What killed mutants before goes first, then what is quick."""
        items.sort(key=lambda item: (-self.killers[item.nodeid], self.seconds.get(item.nodeid, 0.0)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the time, and the first failure."""
        self.took[report.nodeid] = self.took.get(report.nodeid, 0.0) + report.duration
        if report.failed and not self.failed:
            self.failed = report.nodeid


class Judge:
    """Runs the tests of a package on one mutant after the other."""

    def __init__(self, package: str, copy: Path) -> None:
        self.groups, self.copy = TESTS[package], copy
        self.killers: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}
        self.limit = 600.0
        sound = self.run()
        if sound["killed"]:
            raise SystemExit(f"{package}: its tests fail without any mutant, at {sound['by']}")
        self.seconds = sound["took"]
        self.limit = 20 + 5 * sound["seconds"]
        self._preload(sound["modules"], f"placeopt.{package}")

    def run(self) -> Verdict:
        """Fork, run the tests on the copy as it is now, and return what the child found."""
        began = time.monotonic()
        answer = self.copy / "answer.json"
        answer.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            self._test(answer)
        try:
            while os.waitpid(child, os.WNOHANG) == (0, 0) and time.monotonic() - began <= self.limit:
                time.sleep(0.002)
        finally:  # also what the tests started and left, and when the campaign itself is stopped
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)
        seconds = time.monotonic() - began
        if not answer.exists():
            return {"killed": True, "by": "time limit" if seconds > self.limit else "crash", "seconds": seconds}
        found: Verdict = {**json.loads(answer.read_text(encoding="utf-8")), "seconds": seconds}
        self.killers[found["by"]] += found["killed"]
        return found

    def _test(self, answer: Path) -> None:
        """In the child: run the groups until a test fails; never returns."""
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        sys.dont_write_bytecode = True  # a file changed twice within a second would be taken from the cache
        os.chdir(ROOT)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        watch, code = Watch(self.killers, self.seconds), 0
        try:
            for group in self.groups:
                code = int(pytest.main([*PYTEST, *(str(ROOT / test) for test in group)], plugins=[watch]))
                if code:
                    break
            home = Path(sys.modules["placeopt"].__file__ or "")
            if not home.is_relative_to(self.copy):
                code, watch.failed = 1, f"not the copy: {home}"
            found = {
                "killed": bool(code),
                "by": watch.failed or "import",
                "took": watch.took,
                "modules": [*sys.modules],
            }
            answer.write_text(json.dumps(found), encoding="utf-8")
        finally:
            os._exit(0)

    def _preload(self, names: list[str], package: str) -> None:
        """Import what the tests import, but for tests and for what imports the package."""
        names = [name for name in names if not name.rpartition(".")[2].startswith(("test_", "conftest"))]
        for name in sorted(names, key=lambda name: name.startswith("placeopt")):
            before = set(sys.modules)
            with suppress(Exception):
                importlib.import_module(name)
            if any(module == package or module.startswith(f"{package}.") for module in sys.modules):
                for module in set(sys.modules) - before:
                    if module.startswith("placeopt") or _is_ours(module):
                        del sys.modules[module]
        gc.collect()
        gc.freeze()


def _is_ours(module: str) -> bool:
    return str(getattr(sys.modules[module], "__file__", "")).startswith(str(ROOT / "tests"))


def main() -> int:
    """Try the mutants, write the table, and tell whether the goals are reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("packages", nargs="+", choices=sorted(TESTS))
    parser.add_argument("--only", default="", help="files whose name contains this")
    parser.add_argument("--sample", type=int, help="at most so many mutants of a package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("mutants.md"))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    known = {(r["file"], r["key"]): r for r in _read(options.out.with_suffix(".jsonl"))}
    shares = {package: _try(package, options, known) for package in options.packages}
    options.out.write_text(_table(options, known), encoding="utf-8")
    print(options.out)
    return 0 if all(share >= GOAL[package] for package, share in shares.items()) else 1


def _try(package: str, options: argparse.Namespace, known: dict[tuple[str, str], Verdict]) -> float:
    """Judge the mutants of a package that were not killed yet; return the percentage killed of those not equal."""
    files = sorted((ROOT / "src/placeopt" / package).rglob("*.py"))
    todo = [
        (f"{package}/{path.name}", mutant) for path in files for mutant in mutants(path.read_text(encoding="utf-8"))
    ]
    if options.sample is not None and options.sample < len(todo):
        todo = sorted(random.Random(options.seed).sample(todo, options.sample), key=lambda one: (one[0], one[1].line))
    equal = equal_mutants()
    stale = [key for key in equal if key[0].startswith(package) and key not in {(name, m.key) for name, m in todo}]
    if stale and options.sample is None:
        raise SystemExit(f"{EQUAL.name} names what is no mutant (any more): {stale[0]}")
    present = {(name, mutant.key) for name, mutant in todo}
    for gone in [key for key in known if key[0].startswith(f"{package}/") and key not in present]:
        del known[gone]
    left = [(n, m) for n, m in todo if options.only in n and not known.get((n, m.key), {}).get("killed")]
    if left:
        _judge(package, options, left, known)
    judged = [known[key] for key in present if key in known and (key not in equal or known[key]["killed"])]
    return 100 * sum(verdict["killed"] for verdict in judged) / max(1, len(judged))


def _judge(
    package: str, options: argparse.Namespace, left: list[tuple[str, Mutant]], known: dict[tuple[str, str], Verdict]
) -> None:
    with tempfile.TemporaryDirectory() as folder, options.out.with_suffix(".jsonl").open("a", encoding="utf-8") as log:
        copy = Path(folder).resolve()
        shutil.copytree(ROOT / "src/placeopt", copy / "placeopt", ignore=shutil.ignore_patterns("__pycache__"))
        sys.path[:0] = [str(copy), str(ROOT / "tests")]
        judge = Judge(package, copy)
        for i, (name, mutant) in enumerate(left):
            path = copy / "placeopt" / name
            sound = path.read_bytes()
            path.write_text(mutant.source, encoding="utf-8")
            found = judge.run()
            path.write_bytes(sound)
            verdict = {
                "file": name,
                "key": mutant.key,
                "line": mutant.line,
                "killed": found["killed"],
                "by": found.get("by", ""),
                "seconds": round(found["seconds"], 2),
            }
            known[name, mutant.key] = verdict
            log.write(json.dumps(verdict) + "\n")
            log.flush()
            if not found["killed"]:
                print(f"{i + 1}/{len(left)} survived {name}:{mutant.line} {mutant.key}", flush=True)
        sys.path[:2] = []


def equal_mutants() -> dict[tuple[str, str], str]:
    """Return the reason of every (file, key) that no test can kill."""
    with EQUAL.open("rb") as file:
        return {(one["file"], one["mutant"]): one["reason"] for one in tomllib.load(file)["equal"]}


def _read(path: Path) -> list[Verdict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _table(options: argparse.Namespace, known: dict[tuple[str, str], Verdict]) -> str:
    """Write the figures of every file, then every survivor with the reason."""
    equal = equal_mutants()
    command = f"python tests/campaigns/mutants.py {' '.join(options.packages)}"
    command += "" if options.sample is None else f" --sample {options.sample} --seed {options.seed}"
    lines = [
        "# Mutants: small faults put into the code, and whether a test fails",
        "",
        f"`{command}`, one process, Python {python_version()} on {machine()}, pytest {version('pytest')}, "
        f"placeopt {version('placeopt') if _installed() else 'of this tree'}. Operators, constants, conditions, calls, "
        "statements and returned values are changed, one at a time (`tests/campaigns/mutation.py`). *Equal*: no test "
        "can kill it, for the reason below. The share is that of killed mutants among those that are not equal.",
        "",
        "| file | mutants | killed | equal | survived | share |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    rows = sorted({(verdict["file"].split("/")[0], verdict["file"]) for verdict in known.values()})
    for package in dict.fromkeys(package for package, _ in rows):
        for name in [*(file for of, file in rows if of == package), package]:
            of_file = [v for v in known.values() if v["file"] == name or v["file"].startswith(f"{name}/")]
            killed = sum(v["killed"] for v in of_file)
            same = sum(not v["killed"] and (v["file"], v["key"]) in equal for v in of_file)
            share = 100 * killed / max(1, len(of_file) - same)
            label = f"**{name}/**" if name == package else name
            lines.append(
                f"| {label} | {len(of_file)} | {killed} | {same} | {len(of_file) - killed - same} | {share:.1f} % |"
            )
    lines += ["", "| not killed | why |", "|---|---|"]
    for verdict in sorted((v for v in known.values() if not v["killed"]), key=lambda v: (v["file"], v["line"])):
        reason = equal.get((verdict["file"], verdict["key"]), "survived")
        text = verdict["key"].replace("|", "\\|")
        lines.append(f"| {verdict['file']} `{text}` | {reason} |")
    return "\n".join(lines) + "\n"


def _installed() -> bool:
    with suppress(Exception):
        return bool(version("placeopt"))
    return False


if __name__ == "__main__":
    sys.exit(main())
