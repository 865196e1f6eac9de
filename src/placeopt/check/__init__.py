"""
The referee: does a plan keep every hard constraint of its instance?

This is the second statement of the hard rules, on purpose: in plain Python integers, from the instance and the plan
as written, importing nothing but the model. No fault of the compiled arrays, of a formulation, of a decoder or of a
solver can hide from it. Judged by the policy that the plan carries. Scores are judged by
``placeopt.audit``, not here: objective, costs, bounds, gap and minimal utility.

Every rule is one function, in a module of its family; `Violation.rule` holds one of these names:

==============================  ======================================================================
``reference``                   the plan names another instance, revision or policy than it was given
``account``                     a job missing, unknown or standing twice; an unplaced job without reason
``option``                      no such option, or one whose utility is below the job's minimum
``workers``                     number of workers, their ranks, nodes named twice
``unknown_node``                no such node
``gpu_indexes``                 a worker's number of GPUs, GPUs that do not exist or are held twice by the job
``gpu_milli``                   a granted share outside request and limit
``gpu_grant``                   a granted share that is not the job's part of what no job on the GPU requests
``amounts``                     CPU or memory stated differently from workers x demand
``node_selector`` ``node_affinity`` ``taints`` ``drained`` ``gpu_model``    where a job may not stand
``nodes_allowed`` ``nodes_excluded``                                        where it may not stand by name
``gpu_exclusive`` ``gpu_share`` ``gpu_jobs`` ``gpu_memory``                 what one GPU can hold
``gpu_slots``                   a share of a GPU with profiles at no start of its profile, or in a slot of another
``cpu`` ``memory`` ``memory_bandwidth`` ``pcie_bandwidth``                  what one node can hold
``resource``                    a named resource of a node, a domain or the cluster
``hold``                        what is held on a node for other jobs
``uplink``                      network load of a machine or a domain, by the hose model
``single_node`` ``workers_per_node`` ``split`` ``spread``                    how a job's workers lie
``near`` ``apart``              relations between jobs that must hold
``reached``                     the plan says that a preferred level holds a group that it does not
``queue_quota`` ``queue_share`` what one queue may hold
``flavor``                      workers on nodes of no flavor of their queue, or of several
``running``                     a running job changed without the plan saying so
``moved`` ``shrunk`` ``preempted``                                          a change that is not allowed or not true
``protected``                   a change of a job that is protected at this time
``priority``                    a change for, or a start in place of, a job of the same or a higher priority (strict)
``last_submitted_first``        an earlier job was shrunk or stopped before a later one of its queue
``standing``                    the plan says that something stands that does not
==============================  ======================================================================

A limit that only running jobs break which stay where they are, whole or shrunk, was broken before the round. It stands:
`judge` tells it from the violations of the plan. Whatever starts or moves keeps every limit that it adds to. What
running jobs hold together of one GPU never stands beyond the whole of it: such a round contradicts itself.
"""

from functools import cached_property
from typing import NamedTuple

from placeopt.check.case import CheckCase, Clean, Violation
from placeopt.check.directory import Directory
from placeopt.check.ledger import Ledger
from placeopt.check.rules import RULES, rules_since
from placeopt.model import Instance, Plan, Policy

__all__ = ["Judgement", "Ledger", "Referee", "Violation", "judge", "violations"]


class Judgement(NamedTuple):
    """What the plan breaks, and what running jobs broke before and still do."""

    violations: list[Violation]
    standing: list[Violation]


def violations(instance: Instance, plan: Plan, *, since: Plan | None = None) -> list[Violation]:
    """
    List everything in which ``plan`` breaks a hard constraint of ``instance``; empty if it can be carried out.

    What running jobs that stay broke before is none of it; see `judge`.

    Parameters
    ----------
    instance
        The round: cluster, jobs and what runs now. Its own default policy is not used.
    plan
        Any well-typed plan; its ``policy.values`` is the policy it is judged by.
    since
        A plan without violations in this very instance, of which ``plan`` is a copy with other words to it: only what
        else stands in the plan is judged then. Otherwise it makes no difference.

    Returns
    -------
    list of Violation
        In the order of the rules, then of the plan. One cause may break several rules. Never raises for a plan that
        is wrong: a reference to nothing is a violation like any other.

    Notes
    -----
    Time is linear in the size of instance and plan, some 50 microseconds a placement.
    """
    return Referee(instance).judge(plan, since=since).violations


def judge(instance: Instance, plan: Plan) -> Judgement:
    """
    List what ``plan`` breaks, as `violations` does, and apart from it what stands.

    Of a plan for some jobs (``asked``) all running jobs are judged.
    """
    return Referee(instance).judge(plan)


class Referee:
    """
    The referee of several plans of one instance, which it reads once.

    Of the last plan in which nothing was found it keeps the records, and what they take: where the next one has the
    same records, only the others are read.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._clean: tuple[Policy, Clean] | None = None

    @cached_property
    def _directory(self) -> Directory:
        return Directory(self.instance)

    def judge(self, plan: Plan, *, since: Plan | None = None) -> Judgement:
        """List what a plan breaks, as the function `violations` does, and apart from it what stands."""
        placements = plan.placements
        if plan.asked is not None:
            named = {placement.job for placement in placements}
            placements += tuple(running for running in self.instance.running if running.job not in named)
        case = CheckCase(plan, self.instance, self._directory, placements, self._directory.running)
        policy, rules = plan.policy.values, rules_since(plan, since)
        if rules is RULES:
            known, self._clean = self._clean, None
            if known is not None and known[0] is policy:
                case.clean = known[1]
        for check in rules:
            check(case)
        nothing = not case.found and not case.standing
        if rules is RULES and nothing:
            self._clean = policy, Clean(case.keys, case.amounts[0])
        if case.clean is not None and not nothing:
            return self.judge(plan, since=since)  # all of it, and so in the order of the plan
        return Judgement(case.found, case.standing)
