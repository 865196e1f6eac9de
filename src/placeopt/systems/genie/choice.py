"""The option in which a task runs: of highest rate, of highest rate over cost (GENIE eq. 10, 11), or as asked for."""

from __future__ import annotations

from placeopt.heuristics.job_orders import cost_of, nodes_of, rate_of
from placeopt.model import Cluster, Option
from placeopt.scheduling.resource_estimator import OptionScore
from placeopt.scheduling.rules import OPTION_CHOICES


def _rate(option: Option) -> float:
    return rate_of(option, option.workers * option.demand.gpus)


def by_rate(cluster: Cluster) -> OptionScore:
    """Score options by their rate; one without a rate as in `placeopt.problem.allowance`."""
    del cluster
    return _rate


def by_rate_over_cost(cluster: Cluster) -> OptionScore:
    """Score options by rate over cost (CER; GENIE eq. 10 and 11)."""
    sizes = cluster.gpus_by_node.values()
    num_gpus, num_nodes, largest = sum(sizes), sum(size > 0 for size in sizes), max(1, *sizes)

    def score(option: Option) -> float:
        nodes = nodes_of(option, option.workers, largest)
        return _rate(option) / cost_of(option, option.workers * option.demand.gpus, nodes, num_gpus, num_nodes)

    return score


def by_value(cluster: Cluster) -> OptionScore:
    """Score options by their value: the one that the owner of a job asks for, to a scheduler that knows no other."""
    del cluster
    return lambda option: option.value


OPTION_CHOICES.register("rate", by_rate)
OPTION_CHOICES.register("valued", by_value)
OPTION_CHOICES.register("cer", by_rate_over_cost)
