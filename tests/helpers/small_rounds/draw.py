"""Random rounds, so small that every allocation can be tried, with every rule and cost switched on and off."""

from __future__ import annotations

from numpy.random import Generator

from helpers.small_rounds.cluster import random_domains, random_machine, random_node
from helpers.small_rounds.dice import Dice
from helpers.small_rounds.jobs import PROFILES, JobStyle, random_jobs
from helpers.small_rounds.named import with_fewer, with_named_resources
from helpers.small_rounds.policy import random_policy
from helpers.small_rounds.running import with_barriers, with_changes, with_minima, with_running
from placeopt.model import Cluster, Instance, Slowdown


def random_round(
    rng: Generator, *, changes: bool = False, minima: bool = True, named: bool = False, standing: bool = True
) -> Instance:
    """
    Make a round of at most 6 jobs, 3 nodes and 4 GPUs a node, whose running jobs stand lawfully.

    Jobs that would make more than ``MOST_COMBINATIONS`` combinations of placements are left out. With ``changes`` many
    jobs run, most are elastic, and the policy always lets some of what runs be changed. Without ``minima`` no job waits
    for the sake of its utility; all else is the same. With ``named`` machines and jobs have named resources; with
    ``standing`` what runs may hold more of them than there is.
    """
    dice = Dice(rng)
    machines = [random_machine(dice, f"m{i}") for i in range(dice.pick((1, 1, 2)))]
    domains = random_domains(dice)
    levels = ["node", *dict.fromkeys(domain.level for domain in domains)]
    nodes = [random_node(dice, f"n{i}", machines, domains) for i in range(dice.pick((1, 2, 3)))]
    policy = random_policy(dice)
    style = JobStyle(dice, policy, levels)
    style.elastic = 0.8 if changes else 0.4
    style.gangs |= changes
    cluster = Cluster(machines=tuple(machines), domains=domains, nodes=tuple(nodes))
    jobs = random_jobs(dice, style, Instance(cluster=cluster, policy=policy), dice.number(2, 6))
    slowdowns = tuple(
        Slowdown(
            profile=profile,
            beside=other,
            gpu_thousandths=dice.number(0, 900, 100),
            switch_thousandths=dice.number(0, 600, 100),
            socket_thousandths=dice.number(0, 400, 100),
            node_thousandths=dice.number(0, 200, 50),
        )
        for profile in PROFILES
        for other in PROFILES
        if dice.chance(0.6)
    )
    instance = Instance(
        name="round",
        now_ms=1_000_000,
        cluster=cluster,
        jobs=jobs,
        slowdowns=slowdowns if dice.chance(0.7) else (),
        policy=policy,
    )
    if named:
        instance = with_named_resources(dice, instance)
    if changes or dice.chance(0.45):
        instance = with_running(dice, instance, 0.7 if changes else 0.35)
    instance = with_barriers(dice, instance)
    if named and standing and instance.running and dice.chance(0.5):
        instance = with_fewer(dice, instance)
    instance = with_changes(dice, instance) if changes or dice.chance(0.67) else instance
    return with_minima(dice, instance) if minima and dice.chance(0.25) else instance
