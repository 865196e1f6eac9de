"""Arguments of public calls: what is of the wrong kind or out of range is refused in words, before anything is done."""

from __future__ import annotations

from numbers import Integral, Real

from placeopt.errors import BadInput

MAX_TIME_LIMIT_S = 7 * 86_400
"""A week: longer is a mistake in units, and clocks of solvers are not asked for more."""
MAX_SEED = 2**31 - 1
"""Largest seed that all solvers take; a larger one would cost the round its bound."""
INSTANCE = "an Instance, as read_instance gives it"


def expect(name: str, value: object, kind: type, words: str) -> None:
    """
    Refuse a value of another kind; truth values are no numbers.

    Raises
    ------
    BadInput
        Names the argument, what it got, and ``words``: what was expected.
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadInput(f"{name}: {type(value).__name__}, expected {words}")


def check_round(
    *,
    time_limit_s: float,
    seed: int,
    gap: float = 0.0,
    threads: int | None = None,
    previous: object = None,
    cancel: object = None,
    on_progress: object = None,
) -> None:
    """Refuse what no round can be solved with; see ``placeopt.solve``. Raises ``BadInput``."""
    expect("time_limit_s", time_limit_s, Real, "a number of seconds")
    expect("gap", gap, Real, "a number")
    expect("threads", 1 if threads is None else threads, Integral, "a whole number, or None")
    expect("seed", seed, Integral, "a whole number")
    if not 0 < time_limit_s <= MAX_TIME_LIMIT_S:
        raise BadInput(f"time_limit_s: {time_limit_s}, expected seconds above 0 and up to {MAX_TIME_LIMIT_S}")
    if not 0 <= gap < 1:
        raise BadInput(f"gap: {gap}, expected a fraction from 0 up to 1, such as 0.01 for one percent")
    if threads is not None and threads < 1:
        raise BadInput(f"threads: {threads}, expected 1 or more")
    if not 0 <= seed <= MAX_SEED:
        raise BadInput(f"seed: {seed}, expected 0 to {MAX_SEED}")
    if previous is not None:
        from placeopt.model import Plan  # only here: the command line reads the limits before it needs any record

        expect("previous", previous, Plan, "a Plan of an earlier round, or None")
    if cancel is not None and not hasattr(cancel, "is_set"):
        raise BadInput(f"cancel: {type(cancel).__name__}, expected a threading.Event, or None")
    if on_progress is not None and not callable(on_progress):
        raise BadInput(f"on_progress: {type(on_progress).__name__}, expected a function of one argument, or None")
