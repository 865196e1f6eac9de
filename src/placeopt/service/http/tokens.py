"""
Who may call what: tokens in a file, as hashes, each with a role.

A line of the file is ``ROLE NAME SHA256``; what follows ``#`` is a comment. The file holds nothing that could be used
as a token: tokens are long and random, so one round of SHA-256 is enough, and a leaked file gives no access.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from typing import NamedTuple

from placeopt.errors import BadInput
from placeopt.service.calls import Role

ROLES: dict[Role, frozenset[Role]] = {
    "read": frozenset({"read"}),
    "decide": frozenset({"read", "decide"}),
    "admin": frozenset({"read", "decide", "admin"}),
}
"""What the holder of a role may call: calls of these roles."""

MAX_FILE_BYTES = 2**20
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")


class Token(NamedTuple):
    """Who has a token, and what for."""

    role: Role
    name: str


Tokens = Mapping[bytes, Token]
"""SHA-256 of a token -> who has it: how long a look-up takes depends on the hash alone, of which none can be chosen."""


def token_of(tokens: Tokens, secret: str) -> Token | None:
    """Return who has a token; None: it is not known."""
    return tokens.get(hashlib.sha256(secret.encode()).digest())


def read_tokens(path: str) -> Tokens:
    """
    Read a token file.

    Raises
    ------
    BadInput
        If it cannot be read, others than its owner may write to it, it holds no token, or a line has another form.
    """
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
    if not stat.S_ISREG(mode) or len(data) > MAX_FILE_BYTES:
        raise BadInput(f"{path}: expected a file of at most {MAX_FILE_BYTES} bytes")
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BadInput(f"{path}: others than its owner may write to it; chmod go-w")
    tokens: dict[bytes, Token] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{path}: line {number}"  # never the line itself: a secret may have been written there
        if len(words) != 3 or words[0] not in ROLES or not _NAME.fullmatch(words[1]) or not _HASH.fullmatch(words[2]):
            raise BadInput(f"{where}: expected ROLE NAME SHA256: {', '.join(ROLES)}; a name; 64 digits of 0-9a-f")
        if any(words[1] == token.name for token in tokens.values()):
            raise BadInput(f"{where}: the name {words[1]!r} appears twice")
        role = next(role for role in ROLES if role == words[0])
        tokens[bytes.fromhex(words[2])] = Token(role, words[1])
    if not tokens:
        raise BadInput(f"{path}: holds no token")
    return tokens
