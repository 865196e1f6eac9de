"""What clients may take of the service: sizes, connections and times, most of them limits of uvicorn."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from placeopt.errors import BadArgument


@dataclass(frozen=True)
class Limits:
    """Limits of the HTTP side; ``docs/service_http.md`` lists them. Times are in seconds, sizes in bytes."""

    body_bytes: int = 256 * 2**20
    """Size of a request's body; a larger one is refused (413) as soon as that many bytes have come."""
    read_body_bytes: int = 64 * 2**10
    """The same, of calls of role `read`: their bodies are questions."""
    header_bytes: int = 16 * 2**10
    """Size of the request line with all headers (400)."""
    connections: int = 256
    """Open connections, and requests at work; a request on a further one gets 503."""
    idle_s: int = 75
    """Between two requests on a connection."""
    stop_s: int = 10
    """For requests under way when the service stops."""

    @classmethod
    def of(cls, settings: list[str]) -> Self:
        """
        Return the limits with some of them set, ``NAME=NUMBER`` each.

        Raises
        ------
        BadArgument
            If a name is not known, or a value is not a whole number of at least 1.
        """
        known = {field.name for field in fields(cls)}
        given: dict[str, int] = {}
        for setting in settings:
            name, _, value = setting.partition("=")
            if name not in known:
                raise BadArgument(f"limit: {name!r}, expected one of {', '.join(sorted(known))}")
            if not (value.isascii() and value.isdigit() and 1 <= int(value) <= 2**40):
                raise BadArgument(f"limit: {setting!r}, expected {name}=NUMBER, a whole number from 1 on")
            given[name] = int(value)
        return cls(**given)
