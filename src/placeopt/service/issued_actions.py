"""Actions that the service tells its callers: their names, and what follows from what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placeopt.actions import Action, plan_actions, start_action
from placeopt.edits import Start, Step, Stop
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Placement, Policy, Running
from placeopt.model.plan import Unplaced
from placeopt.service.journal import ActionRow
from placeopt.service.messages import OUTCOMES, IssuedAction, OutcomeKind
from placeopt.service.refused import Refused
from placeopt.service.steps import Commit

Name = tuple[int, int]
"""Revision after the commit, and place among its actions."""
Settled = tuple[Name, OutcomeKind, str | None]
"""An action, what came of it, and the words for that."""


def starts(engine: Engine, placements: Iterable[Placement]) -> tuple[IssuedAction, ...]:
    """Return the actions of a commit that started jobs only."""
    revision = engine.revision
    return _told(revision, [start_action(engine.job(p.job)[0], p, revision) for p in placements])


def ordered(engine: Engine, before: Instance, step: Commit, policy: Policy) -> tuple[IssuedAction, ...]:
    """Return the actions of a commit that changed running jobs too, in a safe order, each with where its job ran."""
    placed = tuple(Placement(job=r.job, option=r.option, assignments=r.assignments) for r in engine.snapshot.running)
    runs = {placement.job for placement in placed}
    plan = step.plan(before.revision, before.name, policy)
    plan = plan.model_copy(
        update={
            "instance": plan.instance.model_copy(update={"digest": before.digest}),
            "placements": placed,
            "unplaced": tuple(
                Unplaced(job=job.id, reason="not_reached", detail="not in this commit")
                for job in before.jobs
                if job.id not in runs
            ),
        }
    )
    ran = {running.job: running for running in before.running}
    told = _told(engine.revision, plan_actions(before, plan))
    return tuple(one.model_copy(update={"before": ran.get(one.action.job)}) for one in told)


def after_failure(engine: Engine, told: IssuedAction, *, last: bool) -> tuple[Step, ...]:
    """
    Return the steps that follow from an action that failed, if the job is still where the action left it.

    ``last``: whether the job had no later action, which a late word on this one leaves alone.

    A start that failed: the job waits again. A move, shrink or stop that failed: the job is taken to run where it ran,
    since what may run keeps what it may hold; if it does not, the caller says so by a step ``remove_jobs`` or ``stop``.

    Raises
    ------
    Refused
        422, if the job has started elsewhere since, so that where it runs has to be said by ``changes``.
    """
    action = told.action
    job, running = engine.job(action.job)
    if not last or _parts(running) != sorted((part.rank, part.node, part.gpus) for part in action.parts):
        if action.do == "start":
            return ()  # it waits, or a later action started it elsewhere
        raise Refused(422, f"action {told.id!r}: job {job.id!r} was placed again since; say where it runs by changes")
    stop = () if running is None else (Stop(do="stop", jobs=(job.id,)),)
    return stop if told.before is None else (*stop, Start(do="start", running=(told.before,)))


def dependents(failed: IssuedAction, commit: Sequence[IssuedAction]) -> list[IssuedAction]:
    """Return the open actions of a commit that need what an action of it would have freed, the last ones first."""
    number = action_name(failed.id)[1]
    lacking = {number}
    for told in commit:  # an action comes after those that it needs
        if lacking & set(told.action.after):
            lacking.add(action_name(told.id)[1])
    found = [told for told in commit if action_name(told.id)[1] in lacking - {number} and told.outcome == "open"]
    return found[::-1]


def found_by_host(open_actions: Sequence[IssuedAction], host: Instance) -> list[Settled]:
    """Return what came of open actions by the word of the host: of each job's last action the nodes of its workers."""
    places = {running.job: running for running in host.running}
    last = {told.action.job: told.id for told in open_actions}
    found: list[Settled] = []
    for told in open_actions:
        action = told.action
        if last[action.job] != told.id:
            found.append(
                (action_name(told.id), "unknown", "a later action of the job followed before the host was heard")
            )
            continue
        running = places.get(action.job)
        there = sorted(node for _, node, _ in _parts(running))
        outcome: OutcomeKind = "done" if there == sorted(part.node for part in action.parts) else "failed"
        where = f"runs on {', '.join(there[:5])}" if there else "does not run"
        found.append((action_name(told.id), outcome, f"found by the host: job {action.job!r} {where}"))
    return found


def action_name(text: str) -> Name:
    """Return revision and place of a name."""
    revision, _, place = text.partition(".")
    return int(revision), int(place)


def action_row(told: IssuedAction) -> ActionRow:
    """Return the row of an action in the journal."""
    stated = told.model_copy(update={"outcome": "open", "detail": None})
    return ActionRow(
        *action_name(told.id), told.action.job, stated.model_dump_json(exclude_defaults=True, by_alias=True)
    )


def read_row(row: ActionRow) -> IssuedAction:
    """Return the action of a row."""
    outcome = next(known for known in OUTCOMES if known == row.outcome)
    told = IssuedAction.model_validate_json(row.action)
    return told.model_copy(update={"outcome": outcome, "detail": row.detail})


def _told(revision: int, actions: Iterable[Action]) -> tuple[IssuedAction, ...]:
    return tuple(IssuedAction(id=f"{revision}.{place}", action=action) for place, action in enumerate(actions))


Worker = tuple[int, str, tuple[int, ...]]


def _parts(running: Running | None) -> list[Worker]:
    """Return rank, node and GPUs of the workers of a job; none of one that does not run."""
    if running is None:
        return []
    return sorted((w.rank, a.node, w.gpus) for a in running.assignments for w in a.workers)
