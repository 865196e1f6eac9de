"""The specs by name: one file each."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from spec import BenchSpec

NAMES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py")))
BASELINE = ("library", "middle", "large", "openb", "live", "readings")
SETS = {"baseline": BASELINE, "all": NAMES}
"""Several specs by one name; ``baseline`` is what every version is compared by."""


def read_spec(name: str) -> BenchSpec:
    """Return the spec of a name."""
    spec: BenchSpec = import_module(f"specs.{name}").SPEC
    return spec
