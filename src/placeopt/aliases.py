"""
Former names of public modules and of what they held. Each still works; a ``DeprecationWarning`` gives the new name.

Public are ``placeopt.__all__`` and every import that README and docs have shown. `placeopt` asks `former_module` about
modules of its own that Python does not find; a module that lost a name sets ``__getattr__ = former_names(__name__)``.
A package whose functions bore the names of its modules calls `former_submodules`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import ParamSpec, TypeVar

from placeopt.environment import PAPERS, find_papers

P = ParamSpec("P")
R = TypeVar("R")

MODULES = {
    "placeopt.engine": "placeopt.live_cluster.engine",
    "placeopt.generators.dynamoml": "placeopt_papers.scenarios.dynamoml",
    "placeopt.generators.soda_month": "placeopt_papers.scenarios.soda_month",
    "placeopt.methods": "placeopt.solving.methods",
    "placeopt.papers.one_at_a_time.arrivals": "placeopt_papers.one_at_a_time.arrivals",
    "placeopt.papers.one_at_a_time.hindsight": "placeopt_papers.one_at_a_time.hindsight",
    "placeopt.papers.one_at_a_time.horizon": "placeopt_papers.one_at_a_time.horizon",
    "placeopt.replay": "placeopt.simulation.replay",
    "placeopt.simulate": "placeopt.simulation",
    "placeopt.whatif.taken": "placeopt.whatif.from_running",
}
SUBMODULES = {
    "placeopt.simulation.replay": {"add": "questions", "sweep": "questions"},
    "placeopt.whatif": {
        "add": "add_nodes",
        "after_plan": "from_running",
        "cheapest": "cheapest_nodes",
        "defrag": "defragmentation",
        "fail": "failures",
        "fit": "fit_copies",
        "price": "marginal_prices",
        "review": "plan_review",
        "slots": "fit_copies",
        "swap": "round_sweep",
        "sweep": "round_sweep",
    },
}
"""Package -> former submodule -> submodule of today; the package holds a function of the former name."""
NAMES = {
    "placeopt.heuristics": {"OneByOne": "OnlinePlacer"},
    "placeopt.live_cluster.engine": {
        "Interrupted": "placeopt.solving.api.Interrupted",
        "solve": "placeopt.solving.api.solve",
    },
    "placeopt.predict": {"Run": "ProfiledRun"},
    "placeopt.whatif.from_running": {"taken_as_plan": "running_as_plan"},
}


class _Loader:
    """Loads the module of today under the former name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module that ``spec`` is now called."""
        if MODULES[spec.name].startswith(f"{PAPERS}."):
            find_papers()
        module = import_module(MODULES[spec.name])
        self.spec = module.__spec__
        _warn(spec.name, module.__name__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back; it was executed under its own name."""
        module.__spec__ = self.spec


def former_module(name: str) -> ModuleSpec | None:
    """Return how to load a module by its former name, None if it is none."""
    if name in MODULES:
        return ModuleSpec(name, _Loader())  # type: ignore[arg-type]
    if any(former.startswith(f"{name}.") for former in MODULES):  # a package that holds nothing but former modules
        return ModuleSpec(name, None, is_package=True)
    return None


def former_names(module: str) -> Callable[[str], object]:
    """Return a ``__getattr__`` for ``module`` that finds the former names of what it holds, or held."""
    known = NAMES[module]

    def getattr_(name: str) -> object:
        if name not in known:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = known[name].rpartition(".")
        home = home or module
        _warn(f"{module}.{name}", f"{home}.{new}")
        return getattr(import_module(home), new)

    return getattr_


def former_submodules(package: str) -> None:
    """
    Register the former submodules of ``package``, whose names its functions bear.

    Python sets an imported submodule as an attribute of its package, which would replace the function, but not one that
    stands in ``sys.modules`` already.
    """
    for old, new in SUBMODULES[package].items():
        module = ModuleType(f"{package}.{old}", f"Former name of {package}.{new}.")
        module.__dict__["__getattr__"] = _former_names_of_submodule(module.__name__, f"{package}.{new}")
        sys.modules[module.__name__] = module


def former_argument(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: the function takes the keyword ``old`` for ``new``, with a warning."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if old in kwargs:
                _warn(f"{function.__qualname__}({old}=)", f"{new}=")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


def _former_names_of_submodule(old: str, new: str) -> Callable[[str], object]:
    def getattr_(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        attribute = getattr(import_module(new), name)
        _warn(old, new)
        return attribute

    return getattr_


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=2)
