"""Topology-aware GPU scheduling (SC'17): policies by utility, times by placement, and the paper's settings."""

from importlib.resources import files
from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names
from placeopt.scheduling.systems import Predictor, ScenarioMaker, System

if TYPE_CHECKING:
    from placeopt.systems.sc17.scenarios import mixed_jobs as mixed_jobs
    from placeopt.systems.sc17.scenarios import pair as pair
    from placeopt.systems.sc17.scenarios import small_jobs as small_jobs
    from placeopt.systems.sc17.scenarios import table_1 as table_1
    from placeopt.systems.sc17.times import Times as Times
    from placeopt.systems.sc17.times import sc17_times as sc17_times

SYSTEM = System(
    paper="Amaral et al., Topology-Aware GPU Scheduling for Learning Workloads in Cloud Environments, SC'17",
    policies=files(__name__) / "policies",
    scenarios={
        "sc17-table-1": ScenarioMaker(
            "table 1: six jobs on one machine of four GPUs",
            "placeopt.systems.sc17.scenarios:table_1",
            drawn=False,
        ),
        "sc17-small": ScenarioMaker(
            "section 5.3: a hundred jobs on five machines",
            "placeopt.systems.sc17.scenarios:small_jobs",
        ),
    },
    predictors={
        "sc17-pairs": Predictor(
            "how jobs slow each other, from measured pairs (4.2), also jobs that were never measured",
            ("profile", "beside", "ratio"),
            f"{__name__}.predictors:fit_pairs",
            f"{__name__}.predictors:PairModel",
            slowdowns=f"{__name__}.predictors:slowdowns",
        ),
    },
)

__getattr__, __dir__ = lazy_names(__name__)
