"""Addresses: "host:port", "1.2.3.4:5", "[::1]:5"."""
from __future__ import annotations

import os
import socket

from pccl.errors import InvalidArgument, MasterConnectionFailed, Result

DEFAULT_PORT = 48148


def split(text: str) -> tuple[str, int]:
    """Host and port of an address; the port may be missing."""
    host, colon, port = text.rpartition(":")
    if text.startswith("[") and "]" in text:
        host, _, rest = text[1:].partition("]")
        colon, port = rest[:1], rest[1:]
    elif text.count(":") != 1:
        host, colon, port = text, "", ""
    if not colon:
        return host, DEFAULT_PORT
    if not port.isdecimal() or int(port) > 65535:
        raise InvalidArgument(Result.INVALID_ARGUMENT, "address",
                              f"'{text}' has no port from 0 to 65535")
    return host, int(port)


def resolve(text: str) -> tuple[bytes, int]:
    """The bytes and the port of an address."""
    host, port = split(text)
    try:
        found = socket.getaddrinfo(host or "127.0.0.1", port,
                                   type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise MasterConnectionFailed(
            Result.MASTER_CONNECTION_FAILED, "address",
            f"'{host}' is no address and no name: {error}") from error
    # IPv4 first: a coordinator listens there unless it was told otherwise.
    family, _, _, _, where = min(found, key=lambda f: f[0] != socket.AF_INET)
    return socket.inet_pton(family, str(where[0])), port


def of_launcher() -> str:
    """The master that pccl-master has told its ranks."""
    text = os.environ.get("PCCL_MASTER")
    if not text:
        raise InvalidArgument(
            Result.INVALID_ARGUMENT, "connect",
            "no address was given and PCCL_MASTER is not set: start the "
            "program with pccl-master, or pass address='HOST:PORT'")
    return text
