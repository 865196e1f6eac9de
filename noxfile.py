"""
What needs environments of its own: several Pythons, each extra alone, and mutants of a room.

    nox -s tests-3.12 -- tests/check       the wheel with its extras in another Python, and tests of it
    nox -s extras                          each extra alone, and one thing that it is for
    nox -s mutants -- check --sample 100   small faults in a room: which ones does no test of the room find?

All work on a copy of the files that git tracks, so the source tree stays as it is.
"""

import argparse
import json
import random
import shutil
import subprocess
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
EXTRAS = "cli,dev,docs,kubernetes,parquet,plot,predict,serve"
"""All but dask and ray, whose tests are skipped then."""
ALONE = sorted(path.stem for path in (ROOT / "tests/data/extras").glob("*.py"))
"""``none``, and each extra but ``dev``, which `make test` installs."""
nox.options.sessions = ["tests", "extras"]
nox.options.error_on_missing_interpreters = False


def copied(session: nox.Session) -> Path:
    """Copy the tracked files."""
    target = Path(session.create_tmp()).resolve() / "checkout"
    shutil.rmtree(target, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S607
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def built(session: nox.Session, checkout: Path) -> Path:
    """Build wheel and sdist, let their checkers read them, and return the wheel."""
    session.install("hatchling", "twine", "check-wheel-contents")
    session.chdir(checkout)
    session.run("python", "-m", "hatchling", "build", "-d", "dist")
    (wheel,) = (checkout / "dist").glob("*.whl")
    session.run("twine", "check", "--strict", *map(str, (checkout / "dist").iterdir()))
    session.run("check-wheel-contents", str(wheel))
    return wheel


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """Run tests against the installed wheel, with a path to the copy's tests and none to its sources."""
    checkout = copied(session)
    wheel = built(session, checkout)
    shutil.rmtree(checkout / "src")
    session.install(f"{wheel}[{EXTRAS}]")
    session.run("python", "-m", "pytest", "-n2", *session.posargs)


@nox.session
@nox.parametrize("extra", ALONE)
def extras(session: nox.Session, extra: str) -> None:
    """Install an extra alone, and try what it is for; without ``cli`` the command says what to install."""
    checkout = copied(session)
    session.run("python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(checkout / "dist"), str(checkout))
    (wheel,) = (checkout / "dist").glob("*.whl")
    session.install(str(wheel) if extra == "none" else f"{wheel}[{extra}]")
    session.chdir(session.create_tmp())
    session.run("python", str(ROOT / "tests/data/extras" / f"{extra}.py"))
    session.run("placeopt", "--version", success_codes=[0 if extra == "cli" else 2])


@nox.session(venv_backend="none")
def mutants(session: nox.Session) -> None:
    """
    Put small faults into a room, one at a time, and run the room's tests: prints those that no test finds.

    Needs the environment of `make test`. A survivor is no fault by itself: some mean the same as the code.
    """
    parser = argparse.ArgumentParser(prog="nox -s mutants --")
    parser.add_argument("room", help="a package or module of src/placeopt, such as check")
    parser.add_argument("--tests", nargs="+", help="default: tests/ROOM")
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(session.posargs)
    checkout = copied(session)
    chosen = options.tests or [f"tests/{options.room}"]
    settings = checkout / "pyproject.toml"
    added = (
        f'only_mutate = ["src/placeopt/{options.room}*"]\npytest_add_cli_args_test_selection = {json.dumps(chosen)}\n'
    )
    settings.write_text(settings.read_text().replace("[tool.mutmut]", "[tool.mutmut]\n" + added, 1))
    session.chdir(checkout)
    mutmut = str(ROOT / ".venv/bin/mutmut")
    session.run(mutmut, "run", "none-of-them", success_codes=[1], silent=True)  # writes all mutants, then finds none
    names = [
        name
        for path in sorted((checkout / "mutants").rglob("*.meta"))
        for name in json.loads(path.read_text())["exit_code_by_key"]
    ]
    sample = random.Random(options.seed).sample(names, min(options.sample, len(names)))
    session.run(mutmut, "run", *sample, silent=True)
    found = subprocess.run([mutmut, "results"], cwd=checkout, check=True, capture_output=True, text=True).stdout
    survivors = [line.split(":")[0].strip() for line in found.splitlines() if line.split(":")[0].strip() in sample]
    for name in survivors:
        print(subprocess.run([mutmut, "show", name], cwd=checkout, capture_output=True, text=True, check=False).stdout)
    print(f"{len(sample)} of {len(names)} mutants of {options.room}, {len(survivors)} found by no test of {chosen}")
