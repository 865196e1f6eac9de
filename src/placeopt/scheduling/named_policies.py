"""Policies by name: those that come with placeopt, and those of installed systems."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from placeopt.documents.documents import loads
from placeopt.errors import BadArgument
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.systems import load_systems


def _files() -> dict[str, Traversable]:
    """Return the file of each policy, by its name."""
    folders = [files("placeopt.scheduling") / "policies"]
    folders += [system.policies for system in load_systems().values()]
    return {
        entry.name.removesuffix(".json"): entry
        for folder in folders
        for entry in folder.iterdir()
        if entry.name.endswith(".json")
    }


def policy_names() -> list[str]:
    """Return the names, sorted."""
    return sorted(_files())


def named_policy(name: str) -> Scheduling:
    """
    Return a policy by name.

    Parameters
    ----------
    name
        One of `policy_names`.

    Returns
    -------
    Scheduling
        The record of the policy.

    Raises
    ------
    BadInput
        If there is none; lists those that there are.
    """
    known = _files()
    if not isinstance(name, str) or name not in known:
        raise BadArgument(f"policy: no policy {name!r}; known: {', '.join(sorted(known))}")
    return loads(Scheduling, known[name].read_text(encoding="utf-8"), source=f"policy {name}")
