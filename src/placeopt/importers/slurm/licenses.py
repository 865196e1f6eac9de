"""Slurm's licences: how many the cluster has left for the jobs of a list, and how many of them each takes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.slurm.fields import MOST_NAMED
from placeopt.importers.slurm.job_requests import JobLeftOut
from placeopt.importers.slurm.lists import read_list
from placeopt.model.base import Amounts

LICENSE = "license/"
"""Before a licence's name, in trackable resources and in named resources of a round."""
_ITEM = re.compile(r"([^\s:=|,]+)(?:[:=]([0-9]{1,9}))?\Z")


class Licenses:
    """
    The licences of a cluster, as ``scontrol show licenses --json`` lists them (None: none), and what jobs take of them.

    Workers share a job's licences evenly. A running job whose licences cannot be divided has none of its own: they are
    missing in `left`, as those are that hidden jobs hold.
    """

    def __init__(self, source: str | Path | dict[str, Any] | None) -> None:
        self.listed = source is not None
        self._total: dict[str, int] = {}
        self._used: dict[str, int] = {}
        self._held: Counter[str] = Counter()
        for entry in () if source is None else read_list(source, "licenses", "'scontrol show licenses --json'")[1]:
            name = LICENSE + entry.text("LicenseName")
            total, used, reserved = (entry.integer(key, 0, 2**32, 0) for key in ("Total", "Used", "Reserved"))
            self._total[name], self._used[name] = min(total, MOST_NAMED) - reserved, used

    def asked(self, entry: JsonEntry, workers: int) -> dict[str, int]:
        """Return what each worker takes that waits; raises `JobLeftOut` if one is not listed, or they are not even."""
        asked = entry.parsed("licenses", parse_licenses)
        if unknown := asked.keys() - self._total.keys():
            raise JobLeftOut(f"asks for {min(unknown)[:60]}, which is not listed")
        if any(count % workers for count in asked.values()):
            raise JobLeftOut("asks for licenses that its workers cannot share evenly")
        return {name: count // workers for name, count in asked.items()}

    def held(self, entry: JsonEntry, workers: int) -> dict[str, int]:
        """Return what each worker takes that runs: nothing where it cannot be divided."""
        try:
            shares = self.asked(entry, workers)
        except (BadInput, JobLeftOut):  # one of several, say
            return {}
        self._held.update({name: workers * count for name, count in shares.items()})
        return shares

    def left(self) -> Amounts:
        """Return the licences that the jobs which were read may hold together."""
        hidden = {name: max(0, used - self._held[name]) for name, used in self._used.items()}
        return Amounts((name, max(0, total - hidden[name])) for name, total in sorted(self._total.items()))


def parse_licenses(text: str) -> dict[str, int]:
    """Return how many of each licence a job asks for: ``a:2,b``; raises ``ValueError`` for alternatives (``a|b``)."""
    asked: Counter[str] = Counter()
    for item in filter(None, text.split(",")) if text != "(null)" else ():
        match = _ITEM.match(item)
        if match is None:
            raise ValueError(f"{item[:60]!r}, expected a licence such as matlab:2")
        asked[LICENSE + match[1]] += int(match[2] or 1)
    return dict(asked)
