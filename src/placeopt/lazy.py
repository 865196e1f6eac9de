"""Public names of a room, each loaded where it is first asked for: importing a room costs what is used of it."""

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules


def lazy_names(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """
    Return ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Parameters
    ----------
    package
        Full name of the package.
    homes
        Module below the package -> the public names that it has. Type checkers do not see them: the package repeats
        the imports under ``if TYPE_CHECKING`` and lists the names in ``__all__``.
    """
    home = {name: f"{package}.{module}" for module, names in homes.items() for name in names}

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(modules[package], name, value)
        return value

    return load, lambda: sorted(home)
