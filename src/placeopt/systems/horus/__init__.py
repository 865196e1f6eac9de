"""Horus: fair queuing over clusters of alike jobs, placement by predicted utilisation, and its predictors."""

from importlib.resources import files
from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names
from placeopt.scheduling.systems import Predictor, ScenarioMaker, System
from placeopt.systems.horus import interference_monitor as _interference_monitor  # noqa: F401 - registers its rules
from placeopt.systems.horus import weighted_fair_queue as _weighted_fair_queue  # noqa: F401 - registers its rules
from placeopt.terms import costs as _costs  # noqa: F401 - registers its cost

if TYPE_CHECKING:
    from placeopt.systems.horus.errors import rmsle as rmsle
    from placeopt.systems.horus.interference_monitor import Watch as Watch
    from placeopt.systems.horus.memory import gpu_memory_mib as gpu_memory_mib
    from placeopt.systems.horus.onnx_file import onnx_features as onnx_features
    from placeopt.systems.horus.regressor import REGRESSORS as REGRESSORS
    from placeopt.systems.horus.regressor import Regressor as Regressor
    from placeopt.systems.horus.regressor import cross_validated as cross_validated
    from placeopt.systems.horus.regressor import fit_regressor as fit_regressor
    from placeopt.systems.horus.scenarios import LINEAR as LINEAR
    from placeopt.systems.horus.scenarios import horus_testbed as horus_testbed
    from placeopt.systems.horus.scenarios import horus_trace as horus_trace
    from placeopt.systems.horus.weighted_fair_queue import Clusters as Clusters

SYSTEM = System(
    paper="Yeung et al., Horus: Interference-Aware and Prediction-Based Scheduling in Deep Learning Systems, TPDS 2022",
    policies=files(__name__) / "policies",
    scenarios={
        "horus-w-small": ScenarioMaker(
            "section 5: a hundred jobs of one GPU on 12 GPUs",
            "placeopt.systems.horus.scenarios:horus_testbed",
            {"workload": "small"},
        ),
        "horus-w-large": ScenarioMaker(
            "section 5: the larger workload on 12 GPUs",
            "placeopt.systems.horus.scenarios:horus_testbed",
            {"workload": "large"},
        ),
    },
    predictors={
        "horus-utilisation": Predictor(
            "GPU utilisation from features of a model, by gradient boosting (4.1.1)",
            ("gpu_utilisation_percent",),
            f"{__name__}.predictors:fit_utilisation",
            f"{__name__}.regressor:Regressor",
            f"{__name__}.predictors:utilisation",
        ),
        "horus-memory": Predictor(
            "GPU memory from batch, activations, parameters and gradients (eq. 2)",
            estimates=f"{__name__}.predictors:memory",
        ),
    },
)

__getattr__, __dir__ = lazy_names(__name__)
