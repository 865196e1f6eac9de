"""Who may ask: the token of a request, and pages of other sites that a browser lets ask."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from placeopt.service.calls import Role
from placeopt.service.http.listen_address import Address, TcpAddress
from placeopt.service.http.problem import refuse
from placeopt.service.http.tokens import ROLES, Tokens

LONGEST_TOKEN = 4096


def authorise(headers: Mapping[str, str], role: Role, tokens: Tokens | None) -> str:
    """
    Return the name of a request's token, which allows calls of a role; without a token file every client may call.

    Raises
    ------
    Refused
        401 without a token, or with an unknown one; 403 with one of another role.
    """
    if tokens is None:
        return ""
    kind, _, secret = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise refuse(401, "authorization: expected Bearer TOKEN")
    found = tokens.find(secret.strip()) if len(secret) <= LONGEST_TOKEN else None
    if found is None:
        raise refuse(401, "authorization: the token is not known")
    if role not in ROLES[found.role]:
        raise refuse(403, f"the token {found.name!r} has role {found.role}; this call needs {role}")
    return found.name


def refuse_foreign_pages(headers: Mapping[str, str], address: Address, *, has_tokens: bool) -> None:
    """
    Refuse what a page of another site asks through a browser of this machine; on a port without tokens only.

    The name in ``Host`` has to be one of loopback, so that a foreign name that resolves to it is of no avail.

    Raises
    ------
    Refused
        403, if it is such a request.
    """
    if has_tokens or not isinstance(address, TcpAddress):
        return
    host = headers.get("host", "")
    if not _is_loopback(urlsplit(f"//{host}")):
        raise refuse(403, f"host: {host[:100]!r} is not a loopback name of this machine")
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        raise refuse(403, f"origin: pages of {origin[:100]!r} may not call")


def _is_loopback(host: object) -> bool:
    try:
        name = getattr(host, "hostname", None) or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
