"""The rounds whose proven best plans are the answers: what is worth something in each, and what may change."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from placeopt.check import violations
from placeopt.deadline import Deadline
from placeopt.edits import edit_instance
from placeopt.judge.ranking import Ranking, Score
from placeopt.judge.records import Rules
from placeopt.model import Changes, Instance, Job, Plan, Policy, Running
from placeopt.model.plan import PolicyRef
from placeopt.model.policy import Postpone
from placeopt.solving import SolveOptions, Solver
from placeopt.whatif.round_solving import LEAST_S, NO_COSTS


@dataclass(frozen=True)
class Best:
    """The best plan found of a round, its score, and the best score of which it is not proven that no plan has it."""

    plan: Plan
    score: Score
    bound: Score

    @property
    def proven(self) -> bool:
        """Whether no plan is better."""
        return self.score == self.bound


def may_be_changed(held: Running) -> bool:
    """Return whether a job allows some change of it."""
    return held.movable or held.shrinkable or held.preemptible


def judged_policy(policy: Policy, changes: Changes) -> Policy:
    """
    Return a policy under which only placing counts.

    Look-ahead lets jobs wait that could start, so it does not hold. Strict priorities are a matter of values: a round
    of the judge has them in its values, or its referee judges by the policy that the cluster has.
    """
    postpone = Postpone() if policy.postpone.rule == "lookahead" else policy.postpone
    anyone = changes.model_copy(update={"wait_min_ms": 0})
    new = {"weights": NO_COSTS, "changes": anyone, "postpone": postpone, "priorities": "price"}
    return policy.model_copy(update=new)


def round_of(instance: Instance, jobs: Iterable[Job], running: Iterable[Running], policy: Policy) -> Instance:
    """Return the round of some jobs, of which it counts as known all that was read."""
    known = tuple(job.model_copy(update={"conditions_unread": False}) for job in jobs)
    return edit_instance(instance, jobs=known, running=tuple(running), policy=policy, reading=())


def ranked_round(instance: Instance, ranking: Ranking, rules: Rules) -> Instance:
    """Return the round whose best plan is best by the ranking, under the rules."""
    changes = Changes()
    if rules == "changes":
        free = {"move_price": 0, "preemption_price": 0, "shrink_price_per_worker": 0}
        changes = instance.policy.changes.model_copy(update=free)
    policy = judged_policy(instance.policy, changes)
    return round_of(instance, map(ranking.valued, instance.jobs), instance.running, policy)


def solved(solver: Solver, round_: Instance, deadline: Deadline, previous: Plan | None = None) -> Plan:
    """Return the plan of a round, by the deadline; raises ``OutOfTime`` where that is over already."""
    deadline.check("a round was to be solved")
    limits: SolveOptions = {"time_limit_s": max(LEAST_S, deadline.left_s)}
    return solver.solve(round_, previous=previous, cancel=deadline, **limits)


def best_plan(
    solver: Solver, instance: Instance, ranking: Ranking, rules: Rules, deadline: Deadline, known: Plan | None = None
) -> Best:
    """
    Return the best plan by the ranking, under the rules of the instance's policy; ``known``: a plan to begin with.

    Where priorities are strict, changes are for jobs of higher priority alone, which values do not say. A plan that
    breaks that is not taken, but one that is made by these rules is; the bound is true of it, too. Raises ``OutOfTime``
    where the time is over before it begins.
    """
    round_ = ranked_round(instance, ranking, rules)
    plan = solved(solver, round_, deadline, known)
    bound = ranking.most(plan.levels[0].bound)
    if instance.policy.priorities == "strict" and rules == "changes":
        strict = by_strict_priorities(round_, instance.policy)
        if violations(strict, as_of(strict, plan)):
            plan = solved(solver, strict, deadline, known)
    return Best(plan, ranking.score(plan.placements), bound)


def by_strict_priorities(round_: Instance, policy: Policy) -> Instance:
    """Return a round of the judge under the strict priorities of the cluster's own policy."""
    changes = round_.policy.changes.model_copy(update={"wait_min_ms": policy.changes.wait_min_ms})
    new = round_.policy.model_copy(update={"priorities": "strict", "changes": changes})
    return edit_instance(round_, policy=new)


def as_of(round_: Instance, plan: Plan) -> Plan:
    """Return a plan as one of a round of the same jobs and cluster, under its policy."""
    of = plan.instance.model_copy(update={"digest": round_.digest})
    policy = PolicyRef(name=round_.policy.name, digest=round_.policy.digest, values=round_.policy)
    return plan.model_copy(update={"instance": of, "policy": policy})


def counted(instance: Instance, rules: Rules) -> Set[str]:
    """Return the jobs of which plans decide: those that wait and, where changes are allowed, those that may change."""
    stay = {held.job for held in instance.running if rules == "fixed" or not may_be_changed(held)}
    return {job.id for job in instance.jobs} - stay
