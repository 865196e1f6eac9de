"""What importing placeopt loads, and what its public names are. Which room may import which: ``.importlinter``."""

import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import placeopt


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
def test_functions_of_a_package_are_functions(package: str) -> None:
    """No module has the name of a function."""
    functions = functions_of(package)
    folder = Path(*importlib.import_module(package).__path__)
    assert not {path.stem for path in folder.glob("*.py")} & set(functions)
