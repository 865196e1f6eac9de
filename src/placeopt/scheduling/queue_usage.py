"""What each queue has held lately: a mean with a half-life, which the policy of a round states."""

from __future__ import annotations

from collections import Counter

from placeopt.edits import SetPolicy
from placeopt.model import Instance, Policy


class QueueUsage:
    """
    Keeps the usage of a policy's queues over time.

    What a queue holds between two calls counts by 1 - 2^(-time / half-life), what it had before by the rest.
    """

    def __init__(self, policy: Policy, half_life_ms: int) -> None:
        self._half_life_ms = half_life_ms
        self._usage = {queue.id: float(queue.usage_gpu_milli) for queue in policy.queues}
        self._held: Counter[str | None] = Counter()
        self._since_ms = 0

    def step_at(self, now: Instance) -> SetPolicy:
        """Return the step that states the usage at the time of a cluster; what runs there counts from now on."""
        kept = 2.0 ** (-(now.now_ms - self._since_ms) / self._half_life_ms)
        self._usage = {name: kept * mean + (1 - kept) * self._held[name] for name, mean in self._usage.items()}
        self._since_ms = now.now_ms
        queue_of = {job.id: job.queue for job in now.jobs}
        self._held = Counter()
        for held in now.running:
            self._held[queue_of[held.job]] += sum(sum(part.gpus.values()) for part in held.assignments)
        queues = [
            {**queue.model_dump(mode="json"), "usage_gpu_milli": round(self._usage.setdefault(queue.id, 0.0))}
            for queue in now.policy.queues
        ]
        return SetPolicy(do="set_policy", fields={"queues": queues})
