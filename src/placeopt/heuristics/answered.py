"""What is known of a request by one for less that found no room, or by one for more that found some."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from placeopt.problem import IntArray, Problem
from placeopt.problem.classes import numbered
from placeopt.terms.rules.minimal_utility import applies


class Requests:
    """What single bundles ask of one node: who asks for less, in options of one kind, finds room where more does."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @cached_property
    def amounts(self) -> IntArray:
        """Shape (O, anything)."""
        options = self._problem.options
        node = options.demand * options.bundle_workers[:, None]
        return np.column_stack((options.bundle_gpus, options.milli, options.gpu_memory_mib, node))

    @cached_property
    def kind(self) -> list[int]:
        """Of each option: what of the cluster it may use."""
        options = self._problem.options
        fits = options.bundle_workers <= options.workers_per_node
        masks = np.packbits(np.column_stack((fits, options.gpu_type_ok, options.node_class_ok)), axis=1)
        kinds: list[int] = numbered(masks).tolist()
        return kinds

    @cached_property
    def _decides(self) -> list[bool]:
        """Whether room on one node is all that decides about each option."""
        problem = self._problem
        by_room = problem.is_plain and not problem.has_shared_limits and not applies(problem)
        decides: list[bool] = ((problem.options.bundles == 1) & by_room).tolist()
        return decides

    def of(self, job: int) -> range:
        """Return the options of a job; none where more than room on one node decides about some."""
        options = self._problem.options_of(job)
        return options if all(self._decides[options.start : options.stop]) else range(0)


class Answered:
    """Options that got one answer from a state, as few of them as say the same."""

    def __init__(self, requests: Requests, *, room: bool) -> None:
        """``room``: the answer. That there is none stays true as long as the free capacity only shrinks."""
        self._requests, self._sign = requests, -1 if room else 1
        self._known: dict[int, IntArray] = {}  # kind -> (n, anything): amounts times the sign; the smaller say more

    def add(self, option: int) -> None:
        """Note that an option got the answer."""
        kind, asked = self._requests.kind[option], self._sign * self._requests.amounts[option]
        known = self._known.get(kind, np.zeros((0, len(asked)), dtype=np.int64))
        self._known[kind] = np.vstack((known[~(known >= asked).all(axis=1)], asked))

    def covers(self, option: int) -> bool:
        """Return whether an option gets the answer, as one known says."""
        known = self._known.get(self._requests.kind[option])
        return known is not None and bool((known <= self._sign * self._requests.amounts[option]).all(axis=1).any())


class Refused(Answered):
    """Jobs that found no room in any option."""

    def __init__(self, requests: Requests) -> None:
        super().__init__(requests, room=False)

    def add_job(self, job: int) -> None:
        """Note that a job found no room."""
        for option in self._requests.of(job):
            self.add(option)

    def covers_job(self, job: int) -> bool:
        """Return whether a job finds no room, as one known says."""
        options = self._requests.of(job)
        return bool(options) and all(map(self.covers, options))
