"""A cluster as a service: calls with durable effects, for HTTP, for JSON lines, and for drivers of host systems."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.service.calls import CALLS as CALLS
    from placeopt.service.refused import Refused as Refused
    from placeopt.service.service import Service as Service
    from placeopt.service.stdio import serve_lines as serve_lines

__getattr__, __dir__ = lazy_names(__name__)
