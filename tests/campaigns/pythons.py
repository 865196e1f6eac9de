"""
Campaign: wheel and sdist checked, then the tests against the installed wheel, one environment a Python.

    python tests/campaigns/pythons.py --pythons python3.12,python3.13 --folder out/pythons --write bench/pythons.md

The files that git tracks are copied, wheel and sdist built from the copy, and checked by ``twine check --strict`` and
``check-wheel-contents``. Each Python gets an environment with the wheel and its extras; the tests of the copy run
there, with no path to ``src``. ``--folder`` keeps environments and results: a Python whose tests have ended is not
run again. Ends with code 1 if a check or a test failed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
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


def run(*command: object, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program without this process's paths."""
    line = [str(word) for word in command]
    done = subprocess.run(line, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)
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


def tested(python: str, folder: Path, checkout: Path, wheel: Path, workers: int) -> dict[str, object]:
    """Run all tests in an environment of one Python; return the counts, what failed and why some were skipped."""
    name = Path(python).resolve().parent.parent.name + "-" + Path(python).name
    result = folder / f"{name}.json"
    if result.exists():
        return json.loads(result.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    own = environment(python, folder / f"venv-{name}", f"{wheel}[{EXTRAS}]")
    version, *packages = json.loads(run(own, "-c", TELL, cwd=folder).stdout)
    junit = folder / f"{name}.xml"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(own, "-m", "pytest", "-n", workers, f"--junitxml={junit}", cwd=checkout, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cases = list(ET.parse(junit).getroot().iter("testcase"))  # noqa: S314 - pytest's own file
    skipped = [one for case in cases for one in case.iter("skipped")]
    told = {
        "python": version,
        "packages": packages,
        "tests": len(cases),
        "skipped": len(skipped),
        "failed": [
            f"{case.get('classname')}::{case.get('name')}"
            for case in cases
            if case.find("failure") is not None or case.find("error") is not None
        ],
        "reasons": Counter(one.get("message", "?") for one in skipped).most_common(),
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }
    result.write_text(json.dumps(told), encoding="utf-8")
    return told


def table(checks: list[tuple[str, str]], rows: list[dict[str, object]], workers: int) -> str:
    """Return the results as Markdown."""
    lines = [
        "# The package in several Pythons",
        "",
        "By `python tests/campaigns/pythons.py`: wheel and sdist from the tracked files, the wheel with the extras",
        f"`{EXTRAS}` in a fresh environment of each Python, all tests there, `-n {workers}`.",
        "",
        "| check | result |",
        "|---|---|",
        *(f"| {name} | {said} |" for name, said in checks),
        "",
        "| Python | passed | skipped | failed | CPU seconds | with |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        failed, tests, skipped = (row[key] for key in ("failed", "tests", "skipped"))
        passed = tests - skipped - len(failed)  # type: ignore[operator, arg-type]
        lines.append(
            f"| {row['python']} | {passed} | {skipped} | {len(failed)} "  # type: ignore[arg-type]
            f"| {row['cpu_s']:.0f} | {', '.join(row['packages'])} |"  # type: ignore[arg-type]
        )
    for row in rows:
        lines += ["", f"Python {row['python']}:", ""]
        lines += [f"- failed: `{name}`" for name in row["failed"]]  # type: ignore[attr-defined]
        lines += [f"- {count} skipped: {reason}" for reason, count in row["reasons"]]  # type: ignore[attr-defined]
    return "\n".join([*lines, ""])


def main() -> int:
    """Check, test, and print or write the table."""
    parser = argparse.ArgumentParser(description="Wheel and sdist checked, and the tests in several Pythons.")
    parser.add_argument("--pythons", default=sys.executable, help="interpreters, by commas")
    parser.add_argument("--folder", type=Path, default=Path("out/pythons"), help="environments and results")
    parser.add_argument("--workers", type=int, default=2, help="processes of pytest")
    parser.add_argument("--write", type=Path, help="file to write as well")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    checkout = copied(folder)
    wheel, checks = checked(folder, checkout)
    rows = []
    for python in arguments.pythons.split(","):
        rows.append(tested(python, folder, checkout, wheel, arguments.workers))
        text = table(checks, rows, arguments.workers)
        if arguments.write:
            arguments.write.write_text(text, encoding="utf-8")
    print(text)
    return int("FAILED" in text or any(row["failed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
