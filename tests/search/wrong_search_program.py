"""Puts what its input lists into the source of the local search, one at a time, and prints when it was noticed."""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

import placeopt

ROOM = Path(placeopt.__file__).parent / "search"
ANNOTATIONS = ast.parse("from __future__ import annotations").body
TURNS = 100_000
"""Of loops in a step; what is right takes fewer."""


class Counted(SourceFileLoader):
    """Loads sources, in each of whose loops without a count ``turn()`` is called, so that none runs on forever."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of a module, from its source."""
        return counted(ast.parse(self.get_data(self.get_filename(fullname))), self.path)


def counted(module: ast.Module, path: str) -> CodeType:
    """Compile a module."""
    for node in ast.walk(module):
        if isinstance(node, ast.While):
            node.body.insert(0, ast.Expr(ast.Call(ast.Name("turn", ast.Load()), [], [])))
    return compile(ast.fix_missing_locations(module), path, "exec")


class Turns:
    """Turns of loops that may still be taken."""

    left = 0

    def take(self) -> None:
        """Take one."""
        self.left -= 1
        if self.left < 0:
            raise RecursionError("a loop without an end")


TURN = Turns()
vars(builtins)["turn"] = TURN.take
sys.path_importer_cache[str(ROOM)] = FileFinder(str(ROOM), (Counted, [".py"]))

from helpers.search_checks import Checks, with_estimates  # noqa: E402 - after the choice of the form
from helpers.wrong_code import wrongs_of  # noqa: E402
from placeopt.problem import compile_problem  # noqa: E402
from placeopt.search import LocalSearch, is_compiled, what_is_judged, what_is_missing  # noqa: E402
from strategies.choice import seeded  # noqa: E402
from strategies.search_rounds import make_changing_round, make_gangs_round, make_search_round  # noqa: E402

FIGURES = {
    "accounts": None,
    "home": None,
    "costs": None,
    "limits": None,
    "placing": None,
    "memory": None,
    "state": ("count", "wait", "begin", "end", "enter", "leave"),
    "choice": ("cost_of_choice",),
    "gangs": ("grow", "_look_at", "_look_again", "_add_paths"),
}
"""What of the room makes figures: all of a module, or some of its functions; the rest chooses among moves."""


def wrong_ones() -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Yield everything that may be put wrong: what, the module, and the function, which is wrong until the next one."""
    for module, names in FIGURES.items():
        for function in ast.parse((ROOM / f"{module}.py").read_text()).body:
            if isinstance(function, ast.FunctionDef) and (names is None or function.name in names):
                for what, wrong in wrongs_of(function):
                    yield f"{module}.{what}", module, wrong


def put(module: str, function: ast.FunctionDef) -> Callable[[], None]:
    """Let a function of a module be another one, whoever holds it; returns what takes that back."""
    there = importlib.import_module(f"placeopt.search.{module}")
    compiled = counted(ast.Module([*ANNOTATIONS, deepcopy(function)], []), f"{module}.py")
    held = getattr(there, function.name)
    before = held.__code__
    held.__code__ = next(one for one in compiled.co_consts if isinstance(one, CodeType))
    return lambda: setattr(held, "__code__", before)


def rounds() -> Iterator[tuple[Checks, int]]:
    """Yield rounds that the search handles alone, and how many steps are taken in each."""
    makers = (make_search_round, make_gangs_round, make_changing_round)
    for seed in range(14):
        for make in makers if seed < 10 else (make_search_round,):
            problem = compile_problem(make(seeded(f"wrong {seed}")))
            checks = Checks(problem, seed)
            assert not what_is_missing(problem, checks.weighted)
            assert not what_is_judged(problem, checks.weighted)
            yield checks, 20 if make is make_search_round else 40


def noticed() -> str:
    """Take steps in all rounds, with all checks after each; return what was noticed first."""
    number = 0
    for checks, steps in ROUNDS:
        TURN.left = TURNS
        try:
            search = LocalSearch(checks.problem, checks.before, checks.weighted, seed=1)
            if checks.problem.num_nodes > 3:
                search.state.few = 2  # so that moves look at some nodes only
            checks.begin()
            for _ in range(steps):
                TURN.left, number = TURNS, number + 1
                search.advance(1)
                found = next(checks.faults(search), None)
                if found:
                    return f"{number} {found}"
            found = next(checks.lawless(search), None)
            if found:
                return f"{number} {found}"
        except Exception as error:  # noqa: BLE001 - it was noticed, whatever it is
            return f"{number} {type(error).__name__}"
    return "not noticed"


assert not is_compiled()
insertion = importlib.import_module("placeopt.search.insertion")
insertion.insert = with_estimates(insertion.insert)
ROUNDS = list(rounds())
wanted = set(sys.stdin.read().splitlines())
print(f"right | {noticed()}")
for what, module, function in wrong_ones():
    if what in wanted:
        wanted.remove(what)  # of several that read the same the first
        back = put(module, function)
        print(f"{what} | {noticed()}", flush=True)
        back()
