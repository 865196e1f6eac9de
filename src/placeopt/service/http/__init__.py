"""The calls of a service over HTTP."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.service.http.limits import Limits
    from placeopt.service.http.listen_address import open_socket, parse_address
    from placeopt.service.http.metrics import Metrics
    from placeopt.service.http.server import HttpServer
    from placeopt.service.http.tokens import ROLES, read_tokens

__all__ = [
    "ROLES",
    "HttpServer",
    "Limits",
    "Metrics",
    "open_socket",
    "parse_address",
    "read_tokens",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "limits": ("Limits",),
        "listen_address": (
            "open_socket",
            "parse_address",
        ),
        "metrics": ("Metrics",),
        "server": ("HttpServer",),
        "tokens": (
            "ROLES",
            "read_tokens",
        ),
    },
)
