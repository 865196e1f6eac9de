"""
Campaign: wheel and sdist checked, then the tests against the installed wheel, one environment a Python.

    python tests/campaigns/pythons.py --pythons python3.12,python3.13 --folder out/pythons --write FILE.md

The files that git tracks are copied, wheel and sdist built from the copy, and checked by ``twine check --strict`` and
``check-wheel-contents``. Each Python gets an environment with the wheel and its extras; the tests of the copy run
there, with a path to ``bench`` and none to ``src``, one folder of ``tests/`` after the other. ``--folder`` keeps
environments and results: a command that is repeated goes on with the folders that have none. Ends with code 1 if a
check or a test failed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = "cli,dev,docs,kubernetes,onnx,parquet,plot,predict,serve"
"""All but dask and ray, whose tests are skipped then."""
SHOWN = ("highspy", "numpy", "ortools", "pulp", "pydantic", "scipy")
TELL = f"""
import json, platform, placeopt
from importlib.metadata import version
assert "site-packages" in placeopt.__file__, placeopt.__file__
print(json.dumps([platform.python_version(), *[f"{{name}} {{version(name)}}" for name in {SHOWN!r}]]))
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


@dataclass
class Result:
    """Tests of one folder in one Python."""

    passed: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    cpu_s: float = 0.0


def run(*command: object, cwd: Path, check: bool = True, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program with ``path`` in place of this process's paths."""
    line = [str(word) for word in command]
    done = subprocess.run(line, cwd=cwd, env={**ENVIRONMENT, "PYTHONPATH": path}, capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"{' '.join(line[:6])}: code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def copied(folder: Path) -> Path:
    """Copy the tracked files."""
    target = folder / "checkout"
    if not target.exists():
        for name in run("git", "ls-files", "-z", cwd=ROOT).stdout.split("\0"):
            if name and (ROOT / name).is_file():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_bytes((ROOT / name).read_bytes())
                (target / name).chmod((ROOT / name).stat().st_mode)
    return target


def environment(python: str, folder: Path, *packages: object) -> Path:
    """Return the interpreter of an environment with the packages; one that is there is kept."""
    own = folder / "bin" / "python"
    if not (folder / "complete").exists():
        run(python, "-m", "venv", folder, cwd=folder.parent)
        run(own, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages, cwd=folder.parent)
        (folder / "complete").touch()
    return own


def checked(folder: Path, checkout: Path) -> tuple[Path, list[tuple[str, str]]]:
    """Build wheel and sdist; return the wheel, and what each check said."""
    tools = environment(sys.executable, folder / "tools", "hatchling", "twine", "check-wheel-contents")
    dist = folder / "dist"
    if not dist.exists():
        run(tools, "-m", "hatchling", "build", "-d", dist, cwd=checkout)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    twine = run(tools, "-m", "twine", "--no-color", "check", "--strict", wheel, sdist, cwd=dist, check=False)
    contents = run(tools.parent / "check-wheel-contents", wheel, cwd=dist, check=False)
    said = [f"{wheel.stat().st_size / 1e6:.1f} MB", f"{sdist.stat().st_size / 1e6:.1f} MB"]
    results = [("wheel", said[0]), ("sdist", said[1])]
    for name, done in (("twine check --strict", twine), ("check-wheel-contents", contents)):
        lines = " ".join((done.stdout + done.stderr).replace(f"{dist}/", "").split())
        results.append((name, "passed" if done.returncode == 0 else f"FAILED: {lines}"))
    return wheel, results


def groups(checkout: Path) -> dict[str, list[str]]:
    """Return what pytest is called with: a folder of tests, or the files that stand in none."""
    tests = checkout / "tests"
    holds = sorted(folder.name for folder in tests.iterdir() if any(folder.rglob("test_*.py")))
    loose = sorted(f"tests/{file.name}" for file in tests.glob("test_*.py"))
    return {"(top level)": loose, **{name: [f"tests/{name}"] for name in holds}}


def tested(python: Path, paths: list[str], result: Path, checkout: Path, workers: int) -> Result:
    """Return how many tests of these paths passed and were skipped, which failed, and why some were skipped."""
    if result.exists():
        return Result(**json.loads(result.read_text(encoding="utf-8")))
    junit = result.with_suffix(".xml")
    bench = str(checkout / "bench")  # the papers, which no wheel has
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(
        python, "-m", "pytest", "-n", workers, f"--junitxml={junit}", *paths, cwd=checkout, check=False, path=bench
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"pytest {' '.join(paths)}: code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    cases = list(ET.parse(junit).getroot().iter("testcase"))  # noqa: S314 - pytest's own file
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = [one for case in cases for one in case.iter("skipped")]
    told = Result(
        passed=len(cases) - len(failed) - len(skipped),
        skipped=len(skipped),
        failed=[f"{case.get('classname')}::{case.get('name')}" for case in failed],
        reasons=dict(Counter(one.get("message", "?") for one in skipped)),
        cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )
    result.write_text(json.dumps(asdict(told)), encoding="utf-8")
    return told


def table(checks: list[tuple[str, str]], found: dict[str, dict[str, Result]], folders: Iterable[str]) -> str:
    """Return the results as Markdown: a column a Python, a row a folder."""
    lines = [
        "# The package in several Pythons",
        "",
        "By `python tests/campaigns/pythons.py`: wheel and sdist from the tracked files, the wheel with the extras",
        f"`{EXTRAS}` in a fresh environment of each Python, all tests there.",
        "",
        "| check | result |",
        "|---|---|",
        *(f"| {name} | {said} |" for name, said in checks),
        "",
        f"| tests passed, skipped | {' | '.join(found)} |",
        f"|---|{'---|' * len(found)}",
    ]
    for name in folders:
        cells = [_counts(results.get(name)) for results in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    totals = [_total(results.values()) for results in found.values()]
    lines += [f"| all of these | {' | '.join(map(_counts, totals))} |"]
    lines += [f"| CPU seconds | {' | '.join(f'{total.cpu_s:.0f}' for total in totals)} |"]
    for python, total in zip(found, totals, strict=True):
        if total.failed or total.reasons:
            lines += ["", f"{python}:", ""]
            lines += [f"- failed: `{name}`" for name in total.failed]
            lines += [f"- {count} skipped: {reason}" for reason, count in sorted(total.reasons.items())]
    return "\n".join([*lines, ""])


def _counts(result: Result | None) -> str:
    if result is None:
        return "not reached"
    failed = f", **{len(result.failed)} failed**" if result.failed else ""
    return f"{result.passed:,}, {result.skipped}{failed}"


def _total(results: Iterable[Result]) -> Result:
    total = Result()
    for one in results:
        total.passed, total.skipped = total.passed + one.passed, total.skipped + one.skipped
        total.failed, total.cpu_s = total.failed + one.failed, total.cpu_s + one.cpu_s
        total.reasons = dict(Counter(total.reasons) + Counter(one.reasons))
    return total


def main() -> int:
    """Check, test, and print or write the table."""
    parser = argparse.ArgumentParser(description="Wheel and sdist checked, and the tests in several Pythons.")
    parser.add_argument("--pythons", default=sys.executable, help="interpreters, by commas")
    parser.add_argument("--folder", type=Path, default=Path("out/pythons"), help="environments and results")
    parser.add_argument("--workers", type=int, default=2, help="processes of pytest")
    parser.add_argument("--only", help="folders of tests, by commas, in this order; all by default")
    parser.add_argument("--write", type=Path, help="file to write as well")
    arguments = parser.parse_args()
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # in the background a shell has it ignored, and tests send it
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    checkout = copied(folder)
    wheel, checks = checked(folder, checkout)
    paths = groups(checkout)
    found: dict[str, dict[str, Result]] = {}
    for python in arguments.pythons.split(","):
        name = Path(python).name
        own = environment(python, folder / f"venv-{name}", f"{wheel}[{EXTRAS}]", "hatchling")
        title, *packages = json.loads(run(own, "-c", TELL, cwd=folder).stdout)
        results = found[f"{title}: {', '.join(packages)}"] = {}
        wanted = arguments.only.split(",") if arguments.only else list(paths)
        for group in dict.fromkeys([*wanted, *paths]):
            result = folder / f"{name}-{group.strip('()').replace(' ', '-')}.json"
            if group in wanted or result.exists():
                results[group] = tested(own, paths[group], result, checkout, arguments.workers)
            text = table(checks, found, paths)
            if arguments.write:
                arguments.write.write_text(text, encoding="utf-8")
    print(text)
    return int("FAILED" in text or " failed" in text)


if __name__ == "__main__":
    sys.exit(main())
