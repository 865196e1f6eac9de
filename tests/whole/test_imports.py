"""What importing placeopt loads, and what its public names are. Which room may import which: ``.importlinter``."""

import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import placeopt
import placeopt.whatif
from placeopt.aliases import SUBMODULES


def test_importing_the_package_loads_the_standard_library_only() -> None:
    """Command lines and services start with it; what is asked for is loaded then."""
    program = (
        "import json, sys; before = set(sys.modules); import placeopt; dir(placeopt); "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout
    loaded = json.loads(out)
    assert "placeopt" in loaded
    strangers = [name for name in loaded if name.split(".")[0] not in {*sys.stdlib_module_names, "placeopt"}]
    assert not strangers
    assert [name for name in loaded if name.startswith("placeopt.")] == []


def test_every_public_name_loads() -> None:
    """The lazy table names modules as texts, which no type checker follows."""
    for name in placeopt.__all__:
        assert getattr(placeopt, name) is not None


def test_public_functions_are_not_hidden_by_modules() -> None:
    """A module of the same name would take a function's place in the package once it is imported (regression)."""
    code = (
        "import placeopt, placeopt.live_cluster.engine, placeopt.cli.app; "
        "print(callable(placeopt.audit), callable(placeopt.generate))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def functions_of(package: str) -> list[str]:
    """Return the public names of a package that are functions."""
    names = importlib.import_module(package)
    return [name for name in names.__all__ if inspect.isfunction(getattr(names, name))]


@pytest.mark.parametrize(
    "package",
    [
        "placeopt.generators",
        "placeopt.metrics",
        "placeopt.predict",
        "placeopt.simulation",
        "placeopt.simulation.replay",
        "placeopt.whatif",
    ],
)
def test_functions_of_a_package_are_functions_in_every_import_order(package: str) -> None:
    """No module has the name of a function, and importing a former name of a module leaves the function in place."""
    functions = functions_of(package)
    folder = Path(*importlib.import_module(package).__path__)
    assert not {path.stem for path in folder.glob("*.py")} & set(functions)
    former = SUBMODULES.get(package, {})
    modules = [f"{package}.{name}" for name in [*former, *former.values()]]
    for order in (modules, modules[::-1]):
        lines = [*(f"import {module}" for module in order), f"import {package} as p"]
        lines.append(f"print(all(map(callable, [getattr(p, name) for name in {functions!r}])))")
        done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["True"]


def test_names_in_former_submodules_warn() -> None:
    """`from placeopt.whatif.review import review` stood in the docs (issue 17)."""
    with pytest.warns(DeprecationWarning, match=r"placeopt\.whatif\.review is now placeopt\.whatif\.plan_review"):
        from placeopt.whatif.review import review  # type: ignore[import-not-found]
    assert review is placeopt.whatif.review


FORMER = """
import sys, warnings
import placeopt
assert "placeopt.aliases" not in sys.modules
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    from placeopt.engine import Engine, Interrupted, solve
    from placeopt.heuristics import OneByOne
    from placeopt.generators.soda_month import soda_month
    from placeopt.methods import METHODS
    from placeopt.papers.one_at_a_time.arrivals import arrivals_of
    from placeopt.papers.one_at_a_time.hindsight import hindsight
    from placeopt.papers.one_at_a_time.horizon import quota_until
    from placeopt.replay import Goal, add, parse_goal
    from placeopt.simulate import named_policy, simulate, summarise
    from placeopt.whatif.taken import taken_as_plan
import placeopt.simulation as today
import placeopt_papers.one_at_a_time.horizon as moved
assert quota_until is moved.quota_until
assert (Engine, Interrupted, solve) == (placeopt.Engine, placeopt.Interrupted, placeopt.solve)
assert simulate is today.simulate and today.__spec__.name == "placeopt.simulation"
print(len({str(one.message) for one in seen if one.category is DeprecationWarning}))
"""


def test_former_public_names_work_and_warn() -> None:
    """Callers of an earlier version keep working, and are told the new name (issue 17)."""
    done = subprocess.run([sys.executable, "-c", FORMER], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["13"]


@pytest.mark.parametrize("command", ["bench papers --only list", "generate --scenario genie-5 --out scenario.json"])
def test_outside_a_checkout_the_papers_package_is_named_as_missing(command: str, tmp_path: Path) -> None:
    """An installed placeopt has no ``bench/`` beside it; the message says how to get the package (issue 17)."""
    (tmp_path / "placeopt").symlink_to(Path(placeopt.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-m", "placeopt.cli", *command.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "placeopt_papers is missing" in done.stderr
    assert "clone the repository" in done.stderr
