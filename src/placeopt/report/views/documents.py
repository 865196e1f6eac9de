"""Documents of any kind as views: each plan beside its round, logs beside their scenario."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from placeopt.documents.kinds import kind_of
from placeopt.errors import BadInput
from placeopt.model import Cluster, Instance, Machine, Plan, Policy, Record
from placeopt.report.views.contents import cluster_view, instance_view
from placeopt.report.views.hardware import machine_view
from placeopt.report.views.plan import plan_view
from placeopt.report.views.scenario import scenario_view
from placeopt.scheduling import Scheduling
from placeopt.simulation import Scenario
from placeopt.view import Column, Table, View

RECORDS = (Instance, Plan, Scenario, Machine, Cluster, Scheduling, Policy, View)
"""What can be shown."""


class Source(NamedTuple):
    """A document, and the file that messages name."""

    file: str
    document: Record


def views_of(sources: Sequence[Source]) -> list[View]:
    """
    Return documents as views, in their order.

    Parameters
    ----------
    sources
        Records of ``RECORDS``. A round of which there is a plan is shown in the plan's view alone.

    Returns
    -------
    list of View
        One for each document that is shown.

    Raises
    ------
    BadInput
        If rounds are there, but not that of a plan; or a plan names what its round does not have.
    """
    rounds = [document for _, document in sources if isinstance(document, Instance)]
    of_plan = {
        number: _round_of(source.document, source.file, rounds)
        for number, source in enumerate(sources)
        if isinstance(source.document, Plan)
    }
    planned = [id(round_) for round_ in of_plan.values()]
    return [
        _view(document, of_plan.get(number))
        for number, (_, document) in enumerate(sources)
        if id(document) not in planned
    ]


def _view(document: Record, round_: Instance | None) -> View:
    match document:
        case View():
            return document
        case Plan():
            return plan_view(document, round_)
        case Instance():
            return instance_view(document)
        case Scenario():
            return scenario_view(document)
        case Machine():
            return machine_view(document)
        case Cluster():
            return cluster_view(document)
    return _settings_view(document)


def _round_of(plan: Plan, source: str, rounds: Sequence[Instance]) -> Instance | None:
    """Return the round that a plan belongs to; None without rounds."""
    stated = plan.instance
    for one in rounds:
        digest = one.digest if plan.asked is None else None  # a plan for some jobs names no content
        if (stated.digest, stated.name, stated.revision) == (digest, one.name, one.revision):
            return one
    if not rounds:
        return None
    there = ", ".join(f"{one.name!r} revision {one.revision} ({one.digest[:12]})" for one in rounds)
    raise BadInput(
        f"{source}: instance.digest: the plan belongs to {stated.name!r} revision {stated.revision} "
        f"({(stated.digest or 'no digest')[:12]}), and the rounds given are {there}; name its round"
    )


def _settings_view(document: Record) -> View:
    """Return the settings of a policy, those at their defaults too."""
    settings = document.model_dump(mode="json", exclude={"document", "format_version"})
    rows = tuple((name, value if isinstance(value, str) else json.dumps(value)) for name, value in settings.items())
    columns = (Column(name="setting"), Column(name="value"))
    table = Table(name="Settings", columns=columns, rows=rows, shown=max(1, len(rows)))
    return View(title=f"{kind_of(type(document))} {settings['name']}", tables=(table,))
