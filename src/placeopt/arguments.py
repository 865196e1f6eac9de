"""Arguments of public calls: a value of the wrong kind is refused in words, before anything is done."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ParamSpec, TypeVar, Union, get_args, get_origin

from placeopt.errors import BadInput

P = ParamSpec("P")
R = TypeVar("R")

MAX_TIME_LIMIT_S = 7 * 86_400
"""A week: a longer limit is a mistake in units."""
MAX_SEED = 2**31 - 1
"""Largest seed that all solvers take; a larger one would cost the round its bound."""
INSTANCE = "an Instance, as read_instance gives it"


def expect(name: str, value: object, kind: type, words: str) -> None:
    """Refuse a value of another kind; truth values are no numbers."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadInput(f"{name}: {type(value).__name__}, expected {words}")


def listed(name: str, value: object, words: str) -> None:
    """Refuse what cannot be gone through one by one; ``words``: what is expected."""
    if not isinstance(value, Iterable):
        raise BadInput(f"{name}: {type(value).__name__}, expected a list of {words}")


def mapped(name: str, value: object) -> None:
    """Refuse what is not a mapping by id."""
    if not isinstance(value, Mapping):
        raise BadInput(f"{name}: {type(value).__name__}, expected a mapping by id")
    odd = next((key for key in value if not isinstance(key, str)), None)
    if odd is not None:
        raise BadInput(f"{name}: {type(odd).__name__} as a key, expected ids")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """
    Decorate a public function: arguments of other types than it declares are refused before it begins.

    Records, numbers, text, truth values, and lists and tuples of them are checked; callables and literals are not.

    Raises
    ------
    BadInput
        From the decorated function: names the argument, the type that it got, and what was expected.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        signature, kinds, positional = _declared(function)
        if not kwargs and len(args) == len(positional):
            given: Mapping[str, Any] = dict(zip(positional, args, strict=True))
        else:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise BadInput(f"{function.__name__}: {error}") from None
        for name, kind in kinds.items():
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            for value in given.get(name, ()) if several else [given[name]] if name in given else []:
                if not _is_a(value, kind):
                    raise BadInput(f"{name}: {_held(value)}, expected {_words(kind)}")
        return function(*args, **kwargs)

    return call


@cache
def _declared(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any], tuple[str, ...]]:
    """
    Return a function's signature and the types of its arguments, as far as they are available at run time.

    Third: the names of its arguments where all are positional, so that a call that gives each needs no binding.
    """
    names = vars(inspect.getmodule(function))
    kinds = {}
    for name, kind in function.__annotations__.items():
        try:
            kinds[name] = eval(kind, dict(names)) if isinstance(kind, str) else kind  # noqa: S307 - our own source
        except NameError:  # imported for type checkers only
            continue
    kinds.pop("return", None)
    signature = inspect.signature(function)
    by_place = all(one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for one in signature.parameters.values())
    return signature, kinds, tuple(signature.parameters) if by_place else ()


def _is_a(value: object, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Annotated:
        return _is_a(value, get_args(kind)[0])
    if origin in (Union, UnionType):
        return any(_is_a(value, alternative) for alternative in get_args(kind))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, origin)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        inner = get_args(kind)[0]
        return isinstance(value, origin) and not isinstance(value, str) and all(_is_a(item, inner) for item in value)
    if isinstance(origin, type):
        return isinstance(value, origin)
    if kind is None or kind is NoneType:
        return value is None
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return not isinstance(kind, type) or isinstance(value, kind)


def _held(value: object) -> str:
    """Name the type of a value, and for a list the first types in it."""
    inner = ", ".join(dict.fromkeys(type(item).__name__ for item in value)) if isinstance(value, list | tuple) else ""
    return f"{type(value).__name__} of {inner[:80]}" if inner else type(value).__name__


def _words(kind: Any) -> str:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return ", or ".join(_words(alternative) for alternative in get_args(kind))
    if origin is not None:
        return f"a {origin.__name__} of {', '.join(getattr(arg, '__name__', str(arg)) for arg in get_args(kind)[:1])}"
    known = {int: "a whole number", float: "a number", str: "text", bool: "True or False", NoneType: "None"}
    if kind in known:
        return known[kind]
    name = kind.__name__
    return INSTANCE if name == "Instance" else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
