"""What one client may take of the service: sizes and times, each with its default."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from placeopt.errors import BadArgument


@dataclass(frozen=True)
class Limits:
    """Limits of the HTTP side; ``docs/service.md`` lists them. Times are in seconds, sizes in bytes."""

    body_bytes: int = 256 * 2**20
    """Size of a request's body; a larger one is refused (413) as soon as that many bytes have come."""
    read_body_bytes: int = 64 * 2**10
    """The same, of calls of role ``read``: their bodies are questions."""
    header_bytes: int = 16 * 2**10
    """Size of the request line with all headers (431)."""
    header_s: int = 10
    """From the connection, or from the first byte of a later request, to the end of its headers (408)."""
    body_s: int = 30
    """From the headers to the end of the body (408)."""
    request_s: int = 60
    """From the body to the reply (503); a question ends then, a change that is under way is not undone."""
    write_s: int = 30
    """Without a byte taken by the client, while a reply waits; then the connection is cut."""
    idle_s: int = 75
    """Between two requests on a connection."""
    connections: int = 256
    """Open connections; a further one gets 503."""
    requests: int = 128
    """Requests at work; a further one gets 503. Waiting for events does not count."""
    event_wait_s: int = 25
    """Longest wait of a request for events, and between two signs of life of a stream."""
    streams: int = 64
    """Clients that wait for events; a further one gets 503."""
    stop_s: int = 10
    """For requests under way when the service stops."""

    @classmethod
    def of(cls, settings: list[str]) -> Self:
        """
        Return the limits with some of them set.

        Parameters
        ----------
        settings
            ``NAME=NUMBER`` each.

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
