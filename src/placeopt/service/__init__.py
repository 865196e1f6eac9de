"""A cluster as a service: calls with durable effects, for HTTP, for JSON lines, and for drivers of host systems."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.service.calls import CALLS
    from placeopt.service.refused import Refused
    from placeopt.service.service import Service
    from placeopt.service.stdio import serve_lines

__all__ = [
    "CALLS",
    "Refused",
    "Service",
    "serve_lines",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "calls": ("CALLS",),
        "refused": ("Refused",),
        "service": ("Service",),
        "stdio": ("serve_lines",),
    },
)
