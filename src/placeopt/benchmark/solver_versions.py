"""Versions of what a benchmark runs: packages by their metadata, programs and libraries behind PuLP by asking them."""

from __future__ import annotations

import contextlib
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from placeopt.environment import versions
from placeopt.errors import Unsupported
from placeopt.solvers.registry import SOLVERS

SCIP = "import pyscipopt; print('Version:', pyscipopt.Model().version())"
TIMEOUT_S = 20.0
_VERSION = re.compile(r"Version:\s+(\S+)")


def run_versions(solvers: Iterable[str]) -> dict[str, str]:
    """
    Return versions by package, and by the solver's name that of the solver behind PuLP.

    What is installed but does not tell is ``unknown``; what is behind other interfaces of PuLP has its package alone.
    """
    entries = {name: SOLVERS[name] for name in solvers if name in SOLVERS}
    out = {**versions(), "python": platform.python_version()}
    for name in dict.fromkeys(("numpy", "pulp", "joblib", *(entry.package for entry in entries.values()))):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out.setdefault(name, "unknown")
    for name in entries:
        if (said := _asked(name)) is not None:
            out[name] = said
    return out


def _asked(name: str) -> str | None:
    """Return the name and version of a solver behind PuLP; None of those that are not asked."""
    from placeopt.solvers.cbc import cbc_program

    with contextlib.suppress(Unsupported, OSError, subprocess.SubprocessError):
        if name == "pulp-cbc":
            return f"CBC {_said([cbc_program(), '-quit'])}"
        if name == "pulp-scip":
            return f"SCIP {_said([sys.executable, '-P', '-c', SCIP])}"
    return None


def _said(command: list[str]) -> str:
    text = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False).stdout  # noqa: S603
    match = _VERSION.search(text)
    return "unknown" if match is None else match[1]
