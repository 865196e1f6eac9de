"""Where the service listens: a unix socket of its user's own, or a port, without tokens on loopback only."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from placeopt.errors import BadArgument, BadInput

UNIX = "unix:"
MAX_UNIX_BYTES = 107
"""Longest path of a unix socket on Linux."""
CONNECT_S = 1.0
BACKLOG = 512


@dataclass(frozen=True)
class UnixAddress:
    """A socket in the file system, mode 0600: only the user who runs the service may connect."""

    path: Path

    def __str__(self) -> str:
        return f"{UNIX}{self.path}"


@dataclass(frozen=True)
class TcpAddress:
    """A port; ``host`` is a numeric address, port 0 one that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return ipaddress.ip_address(self.host).is_loopback


Address = UnixAddress | TcpAddress


def parse_address(text: str, *, has_tokens: bool) -> Address:
    """
    Return the address that ``--listen`` states.

    Parameters
    ----------
    text
        ``unix:PATH`` or ``HOST:PORT``; an IPv6 address stands in brackets.
    has_tokens
        Whether clients have to name a token; without, a port is refused that other machines can reach.

    Raises
    ------
    BadArgument
        If it is neither, the host is not known, or it needs tokens.
    """
    if text.startswith(UNIX):
        path = text.removeprefix(UNIX)
        if not path or "\0" in path or len(os.fsencode(path)) > MAX_UNIX_BYTES:
            raise BadArgument(f"listen: {text!r}, expected unix:PATH with a path of 1 to {MAX_UNIX_BYTES} bytes")
        return UnixAddress(Path(path))
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or (":" in host and bare == host) or not (port.isascii() and port.isdigit()):
        raise BadArgument(f"listen: {text!r}, expected unix:PATH or HOST:PORT")
    if int(port) > 65535:
        raise BadArgument(f"listen: port {port}, expected 0 to 65535")
    try:
        found = socket.getaddrinfo(bare, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise BadArgument(f"listen: host {bare!r} is not known") from None
    address = TcpAddress(str(found[0][4][0]), int(port))
    if not address.is_loopback and not has_tokens:
        raise BadArgument(
            f"listen: {text} can be reached from other machines: name a --token-file, or listen on 127.0.0.1"
        )
    return address


def open_socket(address: Address) -> tuple[socket.socket, Address]:
    """
    Return a bound socket, not listening yet, and its address with the port that was chosen.

    A socket left behind by a service that was killed is replaced.

    Raises
    ------
    BadInput
        If another service listens there, something else has the name, or the system refuses.
    """
    try:
        if isinstance(address, UnixAddress):
            return _open_unix(address), address
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # by it asyncio sends without delay
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address.host, address.port))
        except BaseException:
            sock.close()
            raise
        return sock, TcpAddress(address.host, sock.getsockname()[1])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BadInput(f"{address}: another service listens there") from None
        raise BadInput(f"{address}: cannot listen: {error.strerror or error}") from None


def _open_unix(address: UnixAddress) -> socket.socket:
    _remove_stale(address.path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(address.path))
        os.chmod(address.path, 0o600)  # no client can connect before `listen`
    except BaseException:
        sock.close()
        raise
    return sock


def _remove_stale(path: Path) -> None:
    """Remove a socket on which no service listens."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise BadInput(f"{path}: exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except TimeoutError:
            pass
    raise BadInput(f"{path}: another service listens there")


def identity(address: Address) -> tuple[int, int] | None:
    """Return device and inode of a unix socket, None of others: what `remove` compares."""
    if not isinstance(address, UnixAddress):
        return None
    try:
        found = address.path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def remove(address: Address, known: tuple[int, int] | None) -> None:
    """Remove the file of a unix socket, if it is still the one that was opened."""
    if isinstance(address, UnixAddress) and known is not None and identity(address) == known:
        address.path.unlink(missing_ok=True)
