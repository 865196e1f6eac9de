"""Every public name loads, and no module hides one; rooms whose names load where they are first asked for."""

import importlib
import pkgutil

import pytest

import placeopt

LAZY = [
    found.name
    for found in pkgutil.walk_packages(placeopt.__path__, "placeopt.")
    if found.ispkg and "lazy_names" in vars(importlib.import_module(found.name))
]
EAGER = ["generators", "predict", "simulation.replay", "whatif"]


@pytest.mark.parametrize("room", ["placeopt", *LAZY, *(f"placeopt.{name}" for name in EAGER)])
def test_the_names_of_a_room_are_its_table(room: str) -> None:
    """What type checkers see is what loads; a module's name would hide a function's."""
    names = importlib.import_module(room)
    assert [name for name in names.__all__ if getattr(names, name, None) is None] == []
    assert not {found.name for found in pkgutil.iter_modules(names.__path__)} & set(names.__all__)
    if room in ("placeopt", *LAZY):
        assert dir(names) == sorted(names.__all__)


def test_other_names_are_refused_as_by_any_module() -> None:
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from placeopt.documents import nothing  # noqa: F401
