"""SODA: arrays that lend each other what is idle, cores by search, CPU jobs held back, services on cores."""

from importlib.resources import files
from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names
from placeopt.scheduling.systems import ScenarioMaker, System
from placeopt.systems.soda import arrays as _arrays  # noqa: F401 - registers its rules
from placeopt.systems.soda import core_search as _core_search  # noqa: F401 - registers its rules
from placeopt.systems.soda import preemption as _preemption  # noqa: F401 - registers its rules

if TYPE_CHECKING:
    from placeopt.systems.soda.arrays import ArrayDivision as ArrayDivision
    from placeopt.systems.soda.arrays import Arrays as Arrays
    from placeopt.systems.soda.core_search import best_fit_cores as best_fit_cores
    from placeopt.systems.soda.core_search import first_cores as first_cores
    from placeopt.systems.soda.month import KINDS as KINDS
    from placeopt.systems.soda.month import NETWORK_PERCENT as NETWORK_PERCENT
    from placeopt.systems.soda.month import best_cores as best_cores
    from placeopt.systems.soda.month import core_curve as core_curve
    from placeopt.systems.soda.month import network_loss_percent as network_loss_percent
    from placeopt.systems.soda.month import offline_profile as offline_profile
    from placeopt.systems.soda.month import search_steps as search_steps
    from placeopt.systems.soda.month import soda_month as soda_month
    from placeopt.systems.soda.trials import with_trials as with_trials

SYSTEM = System(
    paper="Zhao et al., Improving Cluster Utilization Through Adaptive Resource Management, IEEE TC 2023",
    policies=files(__name__) / "policies",
    scenarios={
        "soda-day": ScenarioMaker(
            "section VI: a day of CPU jobs, training and services on 8 nodes of 5 GPUs",
            "placeopt.systems.soda.month:soda_month",
            {"nodes": 8, "days": 1},
        ),
    },
)

__getattr__, __dir__ = lazy_names(__name__)
