"""Who may ask: the token of a request, and pages of other sites that a browser lets ask."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from placeopt.service.calls import Role
from placeopt.service.http.listen_address import Address, TcpAddress
from placeopt.service.http.tokens import ROLES, Tokens, token_of
from placeopt.service.refused import Refused

BEARER = Security(HTTPBearer(scheme_name="token", auto_error=False))


class Access:
    """The checks of a request, as dependencies of FastAPI; ``tokens``: None where whoever can connect may call."""

    def __init__(self, tokens: Tokens | None, address: Address) -> None:
        self._tokens = tokens
        self._reached_by_browsers = tokens is None and isinstance(address, TcpAddress)

    def of_role(self, role: Role) -> Callable[..., Awaitable[str]]:
        """
        Return the check that a request may make calls of a role; it returns the name of the token.

        It raises `Refused`: 401 without a token, or with an unknown one; 403 with one of another role; and as
        `same_site` does.
        """

        async def check(request: Request, token: HTTPAuthorizationCredentials | None = BEARER) -> str:
            await self.same_site(request)
            if self._tokens is None:
                return ""
            if token is None:
                raise Refused(401, "authorization: expected Bearer TOKEN")
            found = token_of(self._tokens, token.credentials.strip())
            if found is None:
                raise Refused(401, "authorization: the token is not known")
            if role not in ROLES[found.role]:
                raise Refused(403, f"the token {found.name!r} has role {found.role}; this call needs {role}")
            return found.name

        return check

    async def same_site(self, request: Request) -> None:
        """
        Refuse what a page of another site asks through a browser of this machine, on a port without tokens: with 403.

        The name in ``Host`` has to be one of loopback, so that a foreign name that resolves to it is of no avail.
        """
        if not self._reached_by_browsers:
            return
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not _is_loopback(host):
            raise Refused(403, f"host: {host[:100]!r} is not a loopback name of this machine")
        if origin is not None and origin != f"http://{host}":
            raise Refused(403, f"origin: pages of {origin[:100]!r} may not call")


def _is_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
