"""
Public names of a room, each loaded where it is first asked for: importing a room costs what is used of it.

The names of such a room are what its ``__init__.py`` imports under ``if TYPE_CHECKING``, written ``X as X``, which type
checkers take as public. That is the only list of them: it is read here, once, when a name is first asked for.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from sys import modules

EVERYTHING = "__all__"


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of the package of this name (PEP 562)."""
    return lambda name: load(package, name), lambda: public_names(package)


def load(package: str, name: str) -> object:
    """Return a public name of a package; raises ``AttributeError`` if it has none such."""
    if name == EVERYTHING:
        return public_names(package)
    if name.startswith("__") or name not in homes(package):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(import_module(homes(package)[name]), name)
    setattr(modules[package], name, value)
    return value


def public_names(package: str) -> list[str]:
    """Return the public names of a package, sorted."""
    return sorted(homes(package))


@cache
def homes(package: str) -> dict[str, str]:
    """Return public name -> the module that has it."""
    import ast  # 2 ms, where it is needed

    source = modules[package].__loader__.get_source(package)  # type: ignore[union-attr]  # an imported package has a loader, in a zip too
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}
