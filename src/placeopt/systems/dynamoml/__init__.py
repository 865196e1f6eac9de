"""DynamoML: inference first, elastic training, and GPUs shared by fractions."""

from importlib.resources import files
from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names
from placeopt.scheduling.systems import ScenarioMaker, System
from placeopt.systems.dynamoml import orders as _orders  # noqa: F401 - registers its rules

if TYPE_CHECKING:
    from placeopt.systems.dynamoml.scenarios import LAGGING as LAGGING
    from placeopt.systems.dynamoml.scenarios import MINUTE_MS as MINUTE_MS
    from placeopt.systems.dynamoml.scenarios import POD_START_MS as POD_START_MS
    from placeopt.systems.dynamoml.scenarios import SPREAD_THOUSANDTHS as SPREAD_THOUSANDTHS
    from placeopt.systems.dynamoml.scenarios import dynamoml_scenario as dynamoml_scenario

SYSTEM = System(
    paper="Chiang and Chou, DynamoML: Dynamic Resource Management Operators for Machine Learning Workloads, "
    "CLOSER 2021",
    policies=files(__name__) / "policies",
    scenarios={
        "dynamoml-12": ScenarioMaker(
            "section 4: 12 training jobs, an inference service and four notebooks on 16 GPUs",
            "placeopt.systems.dynamoml.scenarios:dynamoml_scenario",
        ),
    },
)

__getattr__, __dir__ = lazy_names(__name__)
