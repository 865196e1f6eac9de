"""Changes that start jobs: a decision on some jobs, and the commit of a plan."""

from __future__ import annotations

from placeopt.edits import AddJobs, SetPolicy, Step
from placeopt.live_cluster.engine import Engine
from placeopt.model import Plan
from placeopt.service.durable_cluster import Change, DurableCluster
from placeopt.service.issued_actions import ordered, starts
from placeopt.service.messages import CommitResult, Decide, Decided, StartFlags
from placeopt.service.steps import Commit, commit_of


def decided(engine: Engine, asked: Decide) -> tuple[Decided, Plan]:
    """Return where jobs start, as a reply without actions and as a plan; nothing is committed."""
    jobs = (*asked.jobs, *(job.id for job in asked.add_jobs))
    plan = engine.place(jobs, method=asked.method, explain=asked.explain)
    return Decided(revision=engine.revision, placements=plan.placements, unplaced=plan.unplaced), plan


def with_decision(cluster: DurableCluster, asked: Decide) -> Change:
    """Add the jobs that come with a request, decide on all that it names, and start those that have room."""
    engine = cluster.deciding
    steps: list[Step | Commit] = []
    if asked.add_jobs:
        steps.append(AddJobs(do="add_jobs", jobs=asked.add_jobs))
        cluster.carry_out(steps[0])
    reply, plan = decided(engine, asked)
    step = commit_of(engine, plan, asked.commit_to(engine, plan), asked.flags())
    if step.starts:
        steps.append(step)
    actions = starts(engine, step.starts)
    reply = reply.model_copy(update={"revision": engine.revision, "actions": actions})
    return Change(steps, " and ".join(one.words for one in steps), reply, actions)


def under_policy_of(cluster: DurableCluster, plan: Plan) -> tuple[Step, ...]:
    """Put the cluster under the policy of a plan; return the step, if there is one."""
    policy = plan.policy.values
    if policy.digest == cluster.policy.digest:
        return ()
    step = SetPolicy(do="set_policy", fields=policy.model_dump(mode="json", by_alias=True))
    cluster.carry_out(step)
    return (step,)


def with_plan(cluster: DurableCluster, plan: Plan, asked: StartFlags, *, rebase: bool) -> tuple[Change, CommitResult]:
    """
    Commit a plan: what it starts, moves and stops; return the change, and its reply.

    ``rebase``: a plan of an earlier revision is committed as far as it still holds.
    """
    engine = cluster.deciding
    before = engine.snapshot if plan.moved or plan.shrunk or plan.preempted else None
    done = asked.commit_to(engine, plan, rebase=rebase)
    step = commit_of(engine, plan, done, asked.flags())
    actions = starts(engine, step.starts) if before is None else ordered(engine, before, step, cluster.policy)
    reply = CommitResult(revision=engine.revision, committed=done.committed, refused=done.refused, actions=actions)
    return Change((step,) if done.committed else (), step.words, reply, actions), reply
