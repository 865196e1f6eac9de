"""GENIE: options by rate and cost, waiting allowances, and rates fitted to profiled runs."""

from importlib.resources import files
from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names
from placeopt.scheduling.systems import Predictor, ScenarioMaker, System
from placeopt.systems.genie import choice as _choice  # noqa: F401 - registers its rules
from placeopt.systems.genie import orders as _orders  # noqa: F401 - registers its rules

if TYPE_CHECKING:
    from placeopt.systems.genie.profiles import lightweight as lightweight
    from placeopt.systems.genie.profiles import sia_runs as sia_runs
    from placeopt.systems.genie.rate import ProfiledRun as ProfiledRun
    from placeopt.systems.genie.rate import RateModel as RateModel
    from placeopt.systems.genie.rate import check_runs as check_runs
    from placeopt.systems.genie.rate import fit_rate as fit_rate
    from placeopt.systems.genie.scenarios import SHAPES as SHAPES
    from placeopt.systems.genie.scenarios import formula_error as formula_error
    from placeopt.systems.genie.scenarios import genie_models as genie_models
    from placeopt.systems.genie.scenarios import genie_runs as genie_runs
    from placeopt.systems.genie.scenarios import genie_structures as genie_structures
    from placeopt.systems.genie.scenarios import genie_tasks as genie_tasks
    from placeopt.systems.genie.step import StepModel as StepModel
    from placeopt.systems.genie.step import fit_step as fit_step

SYSTEM = System(
    paper="Chen et al., Deep Learning Research and Development Platform: Characterizing and Scheduling with QoS "
    "Guarantees on GPU Clusters, TPDS 2020",
    policies=files(__name__) / "policies",
    scenarios={
        "genie-6h": ScenarioMaker(
            "section 7.2.1 for six hours: ten tasks an hour, 16 GPUs",
            "placeopt.systems.genie.scenarios:genie_tasks",
            {"hours": 6},
        ),
        "genie-10": ScenarioMaker(
            "section 7.2.1: ten tasks an hour for a day, 16 GPUs",
            "placeopt.systems.genie.scenarios:genie_tasks",
        ),
    },
    predictors={
        "genie-rates": Predictor(
            "rate and latency of every shape, from profiled runs (eq. 4 to 8) or those of the most similar structure",
            ("profile", "nodes", "gpus", "batch", "rate"),
            f"{__name__}.predictors:fit_rates",
            f"{__name__}.predictors:Rates",
            f"{__name__}.predictors:rates",
        ),
    },
)

__getattr__, __dir__ = lazy_names(__name__)
