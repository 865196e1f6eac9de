"""The scheduling policies that come with placeopt, one file each under ``policies/``."""

from __future__ import annotations

from importlib.resources import files

from placeopt.errors import BadArgument
from placeopt.formats.documents import loads
from placeopt.model.scheduling import Scheduling

FOLDER = files("placeopt.simulation.scheduling") / "policies"


def policy_names() -> list[str]:
    """Return the names, sorted."""
    return sorted(entry.name.removesuffix(".json") for entry in FOLDER.iterdir() if entry.name.endswith(".json"))


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
    names = policy_names()
    if name not in names:
        raise BadArgument(f"policy: no policy {name!r}; known: {', '.join(names)}")
    return loads(Scheduling, (FOLDER / f"{name}.json").read_text(encoding="utf-8"), source=f"policy {name}")
