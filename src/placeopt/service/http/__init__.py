"""The calls of a service over HTTP."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.service.http.limits import Limits as Limits
    from placeopt.service.http.listen_address import open_socket as open_socket
    from placeopt.service.http.listen_address import parse_address as parse_address
    from placeopt.service.http.metrics import Metrics as Metrics
    from placeopt.service.http.server import HttpServer as HttpServer
    from placeopt.service.http.tokens import ROLES as ROLES
    from placeopt.service.http.tokens import read_tokens as read_tokens

__getattr__, __dir__ = lazy_names(__name__)
