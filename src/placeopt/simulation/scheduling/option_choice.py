"""The one option of a job that a policy settles on, whatever is free."""

from __future__ import annotations

from placeopt.model import Cluster, Option
from placeopt.problem.allowance import cost_of, latency_of, nodes_of, rate_of


class OptionChoice:
    """
    Picks the option of highest rate, or of highest rate over cost (CER; GENIE eq. 10 and 11).

    Ties go by the lower latency, then by the order of the file. Rates and costs that are not stated fall back as in
    ``placeopt.problem.allowance``.
    """

    def __init__(self, by: str, cluster: Cluster) -> None:
        self._by_cost = by == "cer"
        machines = {machine.id: len(machine.gpus) for machine in cluster.machines}
        sizes = [machines[node.machine] for node in cluster.nodes]
        self._gpus, self._nodes = sum(sizes), sum(size > 0 for size in sizes)
        self._largest = max(1, *sizes)

    def of(self, options: tuple[Option, ...]) -> Option:
        """Return the option."""
        return max(options, key=lambda option: (self._worth(option), -latency_of(option)))

    def _worth(self, option: Option) -> float:
        gpus = option.workers * option.demand.gpus
        rate = rate_of(option, gpus)
        if not self._by_cost:
            return rate
        nodes = nodes_of(option, option.workers, self._largest)
        return rate / cost_of(option, gpus, nodes, self._gpus, self._nodes)
