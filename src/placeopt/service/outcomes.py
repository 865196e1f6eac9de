"""What came of actions on the host, and what the cluster is then."""

from __future__ import annotations

from placeopt.edits import Step, Stop
from placeopt.service.durable_cluster import Change, DurableCluster
from placeopt.service.issued_actions import (
    Settled,
    action_name,
    action_row,
    after_failure,
    dependents,
    read_row,
)
from placeopt.service.messages import Changed, Outcomes
from placeopt.service.refused import Refused
from placeopt.service.steps import words_of


def with_outcomes(cluster: DurableCluster, asked: Outcomes) -> Change:
    """
    Carry out what follows from outcomes that callers state; an outcome that was stated before changes nothing.

    Raises
    ------
    Refused
        404 for an action that was not told, 422 for one with another outcome already.
    """
    engine, journal = cluster.engine, cluster.journal
    steps: list[Step] = []
    known: dict[tuple[int, int], Settled] = {}
    for said in asked.outcomes:
        name = action_name(said.action)
        row = journal.action(name)
        if row is None:
            raise Refused(404, f"action {said.action!r}: no action of this name was returned, or it was dropped since")
        before = known[name][1] if name in known else row.outcome
        if before == said.result:
            continue
        if before not in ("open", "unknown"):
            raise Refused(422, f"action {said.action!r}: is {before} already")
        known[name] = name, said.result, said.detail
        if said.result != "failed":
            continue
        told = read_row(row)
        lacking = dependents(told, [read_row(other) for other in journal.actions_of(name[0])])
        for other in lacking:
            known.setdefault(action_name(other.id), (action_name(other.id), "failed", f"needs {told.id}"))
        for one in (*lacking, told):
            for step in after_failure(engine, one, last=journal.is_last(action_row(one))):
                cluster.carry_out(step)
                steps.append(step)
    words = words_of(steps) or f"outcomes of {len(known)} actions"
    undone = dict.fromkeys(job for step in steps if isinstance(step, Stop) for job in step.jobs)
    waiting = tuple(job for job in undone if engine.job(job)[1] is None)
    return Change(steps, words, Changed(revision=engine.revision, waiting=waiting), outcomes=tuple(known.values()))
