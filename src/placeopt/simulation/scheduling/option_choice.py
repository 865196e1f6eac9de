"""Rules that keep one option of each job, whatever is free: the field ``choice`` of a policy."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.heuristics.job_orders import cost_of, latency_of, nodes_of, rate_of
from placeopt.model import Cluster, Option
from placeopt.model.scheduling import CHOICE_NAMES
from placeopt.simulation.scheduling.rule_registry import RuleRegistry

OptionScore = Callable[[Option], float]


def _rate(option: Option) -> float:
    return rate_of(option, option.workers * option.demand.gpus)


def by_rate(cluster: Cluster) -> OptionScore:
    """Score options by their rate; one without a rate as in `placeopt.heuristics.job_orders`."""
    del cluster
    return _rate


def by_rate_over_cost(cluster: Cluster) -> OptionScore:
    """Score options by rate over cost (CER; GENIE eq. 10 and 11)."""
    machines = {machine.id: len(machine.gpus) for machine in cluster.machines}
    sizes = [machines[node.machine] for node in cluster.nodes]
    num_gpus, num_nodes, largest = sum(sizes), sum(size > 0 for size in sizes), max(1, *sizes)

    def score(option: Option) -> float:
        nodes = nodes_of(option, option.workers, largest)
        return _rate(option) / cost_of(option, option.workers * option.demand.gpus, nodes, num_gpus, num_nodes)

    return score


OPTION_CHOICES: RuleRegistry[Callable[[Cluster], OptionScore] | None] = RuleRegistry(
    CHOICE_NAMES, {"any": None, "rate": by_rate, "cer": by_rate_over_cost}
)
"""Name -> score of options on a cluster, the highest is kept; None: all options are kept."""


def best_option(options: tuple[Option, ...], score: OptionScore) -> Option:
    """Return the option of the highest score; ties by the lower latency, then by the order of the file."""
    return max(options, key=lambda option: (score(option), -latency_of(option)))
