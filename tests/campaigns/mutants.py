"""
Campaign: does some test fail for every small fault in the referee, and in the compiled problem?

    python tests/campaigns/mutants.py check problem --out FILE.md

``mutation.py`` lists the mutants of every file of a package. The tests of ``TESTS`` are collected once, with the sound
package. For each mutant a child is forked, in which the functions of the module get the code of the mutant, and the
tests that call that function run, those first that killed mutants of it before; the first that fails *kills* it. A
mutant outside all functions is written into a copy of placeopt in a temporary directory, and pytest runs on that copy.
The source tree stays as it is. Running into the time limit, or out of memory, counts as killed.

Mutants that no test can kill stand in ``mutants_equal.toml``, each with the reason why it means the same. They are
tried with ``--equal`` only, which ends with an error if a test kills one.

Every verdict goes to a line of a file beside the table at once; a command that is repeated tries only those mutants
again that were not killed. Delete that file to start anew. ``--sample`` takes so many of a package, drawn by a seed.
Ends with code 1 if a share of killed mutants is below its goal.
"""

from __future__ import annotations

import argparse
import gc
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
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from platform import machine, python_version
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutation import Mutant, mutants

ROOT = Path(__file__).resolve().parent.parent.parent
EQUAL = Path(__file__).with_name("mutants_equal.toml")
PYTEST = ["-s", "-q", "--assert=plain", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
GOAL = {"check": 95, "problem": 85}
TESTS = {
    "check": ("tests/check",),
    "problem": (
        "tests/problem",
        "tests/terms/test_rules.py",
        "tests/terms/test_fgd.py",
        "tests/heuristics/test_swaf.py",
    ),
}
"""Tests of the package itself, almost alone: what only some far test of a whole solve would notice is not guarded."""

MEMORY = 4 << 30
"""Bytes of address space that a child may take."""

Verdict = dict[str, Any]


class Judge:
    """A plugin of pytest that runs the tests it has collected on one mutant after the other."""

    def __init__(
        self, package: str, todo: list[tuple[str, Mutant]], copy: Path, note: Callable[[Verdict], None]
    ) -> None:
        self.package, self.todo, self.copy, self.note = package, todo, copy, note
        self.tests = [str(ROOT / test) for test in TESTS[package]]
        self.killers: dict[str, Counter[str]] = {}  # of a file, and of a function in it: test -> mutants killed
        self.seconds: dict[str, float] = {}
        self.limit = 600.0
        self.answer = copy / "answer.json"
        self.reach: dict[str, set[str]] = {}  # test -> functions of the package that it runs, as "file name"
        self.took: dict[str, float] | None = None  # in a child only

    def run(self) -> None:
        """Collect the tests, and judge every mutant."""
        code = pytest.main([*PYTEST, *self.tests], plugins=[self])
        if code:
            raise SystemExit(f"{self.package}: pytest ended with {code!r}")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop, which would run each test once."""
        if session.testsfailed:
            raise SystemExit(f"{self.package}: tests cannot be collected")
        gc.collect()
        gc.freeze()
        sound = self._child(session.items, [], None)
        if sound["killed"]:
            raise SystemExit(f"{self.package}: a test fails without any mutant: {sound['by']}")
        self.seconds = sound["took"]
        self.reach = {test: set(functions) for test, functions in sound["reach"].items()}
        self.limit = 20 + 5 * sound["seconds"]
        for name, mutant in self.todo:
            scopes = [name, f"{name} {mutant.function}"]
            found = self._child(session.items, scopes, (name, mutant))
            if "::" in found["by"]:
                for scope in scopes:
                    self.killers.setdefault(scope, Counter())[found["by"]] += 1
            self.note({"file": name, "key": mutant.key, "line": mutant.line} | {k: found[k] for k in ("killed", "by")})
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In a child: note the time a test takes; the first that fails ends it."""
        if self.took is None:
            return
        self.took[report.nodeid] = self.took.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self._say(killed=True, by=report.nodeid)

    def _say(self, *, killed: bool, by: str = "") -> None:
        """In a child: tell the parent, and end."""
        reach = {} if self.seconds else {test: sorted(functions) for test, functions in self.reach.items()}
        found = {"killed": killed, "by": by, "took": self.took, "reach": reach}
        self.answer.write_text(json.dumps(found), encoding="utf-8")
        os._exit(0)

    def _child(self, items: list[pytest.Item], scopes: list[str], what: tuple[str, Mutant] | None) -> Verdict:
        """Fork, let the child test a mutant (None: the sound package), and return what it found."""
        began = time.monotonic()
        self.answer.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            try:
                self._test(items, scopes, what)
            finally:
                os._exit(1)  # without an answer: killed
        status = (0, 0)
        try:
            while status[0] == 0 and time.monotonic() - began <= self.limit:
                time.sleep(0.001)
                status = os.waitpid(child, os.WNOHANG)
        finally:  # also what the tests started and left, and when the campaign itself is stopped
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            if status[0] == 0:
                os.waitpid(child, 0)
        seconds = time.monotonic() - began
        if self.answer.exists():
            return {**json.loads(self.answer.read_text(encoding="utf-8")), "seconds": seconds}
        if what is not None and not what[1].inside and status[0]:
            return {"killed": status[1] != 0, "by": "pytest on a copy" if status[1] else "", "seconds": seconds}
        return {"killed": True, "by": "crash" if status[0] else "time limit", "seconds": seconds}

    def _test(self, items: list[pytest.Item], scopes: list[str], what: tuple[str, Mutant] | None) -> None:
        """In a child: put the mutant in place and run the tests until one fails."""
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        os.chdir(ROOT)
        if what is not None:
            name, mutant = what
            if not mutant.inside:
                self._on_a_copy(name, mutant)
            transplant(
                sys.modules[f"placeopt.{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"], mutant
            )
            items = [item for item in items if scopes[-1] in self.reach[item.nodeid]]
        self.took = {}
        for item in sorted(items, key=lambda item: self._promise(item.nodeid, scopes)):
            if what is None:
                self._follow(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        sys.setprofile(None)
        self._say(killed=False)

    def _follow(self, test: str) -> None:
        """In the child with the sound package: note which of its functions are called from now on."""
        names: dict[CodeType, str] = {}
        seen = self.reach[test] = set()

        def called(frame: FrameType, event: str, arg: object) -> None:
            code = frame.f_code
            if event == "call" and code not in names:
                folder, _, name = code.co_filename.rpartition(f"/placeopt/{self.package}/")
                names[code] = f"{self.package}/{name} {code.co_qualname.partition('.<locals>')[0]}" if folder else ""
                seen.add(names[code])

        sys.setprofile(called)

    def _promise(self, test: str, scopes: list[str]) -> tuple[float, ...]:
        """Order of the tests: by mutants killed in a second, of the same function, then of the file; then by time."""
        seconds = self.seconds.get(test, 0.0) + 0.001
        return (*(-self.killers.get(scope, Counter())[test] / seconds for scope in reversed(scopes)), seconds)

    def _on_a_copy(self, name: str, mutant: Mutant) -> None:
        """In a child: become a pytest of its own on a copy that holds the mutant."""
        package = self.copy / "src" / "placeopt"
        shutil.rmtree(package, ignore_errors=True)
        shutil.copytree(ROOT / "src/placeopt", package, ignore=shutil.ignore_patterns("__pycache__"))
        (package / name).write_text(mutant.source, encoding="utf-8")
        os.environ.update(PYTHONPATH=str(package.parent), PYTHONDONTWRITEBYTECODE="1")
        os.execv(sys.executable, [sys.executable, "-m", "pytest", "-x", *PYTEST, *self.tests])  # noqa: S606


def transplant(module: ModuleType, mutant: Mutant) -> None:
    """Give the functions of a module the code and the defaults that they have in a mutant of its file."""
    fresh: dict[str, Any] = {
        "__name__": module.__name__,
        "__package__": module.__package__,
        "__file__": module.__file__,
    }
    exec(compile(mutant.source, str(module.__file__), "exec"), fresh)  # noqa: S102
    for name, old in vars(module).items():
        if getattr(old, "__module__", None) == module.__name__ and name in fresh:
            _graft(old, fresh[name])


def _graft(old: Any, new: Any) -> None:
    if isinstance(old, type):
        for name, member in vars(old).items():
            _graft(member, vars(new).get(name))
    elif isinstance(old, FunctionType):
        file = old.__code__.co_filename  # not that of a method that a dataclass was given
        if isinstance(new, FunctionType) and new.__code__.co_filename == file:
            old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
    else:  # a cache, a class method, a cached property, a property
        for wrapped in ("__wrapped__", "__func__", "func", "fget", "fset"):
            if hasattr(old, wrapped):
                _graft(getattr(old, wrapped), getattr(new, wrapped))


def main() -> int:
    """Try the mutants, write the table, and tell whether the goals are reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("packages", nargs="+", choices=sorted(TESTS))
    parser.add_argument("--only", default="", help="files whose name contains this")
    parser.add_argument("--equal", action="store_true", help="try those that are listed as equal, and no others")
    parser.add_argument("--sample", type=int, help="at most so many mutants of a package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("mutants.md"))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
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
    left = [(n, m) for n, m in todo if options.only in n and ((n, m.key) in equal) == options.equal]
    left = [(n, m) for n, m in left if not known.get((n, m.key), {}).get("killed")]
    if left:
        _judge(package, options, left, known)
    wrong = [key for key in equal if known.get(key, {}).get("killed")]
    if wrong:
        raise SystemExit(f"{EQUAL.name}: {wrong[0]} is not equal: killed by {known[wrong[0]]['by']}")
    judged = [known[key] for key in present if key in known and key not in equal]
    for name, mutant in todo:
        if (name, mutant.key) in equal:
            known.setdefault(
                (name, mutant.key), {"file": name, "key": mutant.key, "line": mutant.line, "killed": False}
            )
    return 100 * sum(verdict["killed"] for verdict in judged) / max(1, len(judged))


def _judge(
    package: str, options: argparse.Namespace, left: list[tuple[str, Mutant]], known: dict[tuple[str, str], Verdict]
) -> None:
    with tempfile.TemporaryDirectory() as folder, options.out.with_suffix(".jsonl").open("a", encoding="utf-8") as log:

        def note(verdict: Verdict) -> None:
            known[verdict["file"], verdict["key"]] = verdict
            log.write(json.dumps(verdict) + "\n")
            log.flush()
            if not verdict["killed"]:
                print(f"survived: {verdict['file']}:{verdict['line']} {verdict['key']}", flush=True)

        Judge(package, left, Path(folder).resolve(), note).run()


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
