"""Who may ask: a token, and no requests of other web pages."""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Mapping

from thresher.errors import ParameterError
from thresher.serving.refusal import Refusal

VARIABLE = "THRESHER_TOKEN"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SHORTEST = 16
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


def read_token(file: str | None) -> str | None:
    """Return the token of a file or of the environment; None if neither is given.

    Parameters
    ----------
    file : str or None
        It has the token in one line. Only its owner may be able to read it.
    """
    if file is None:
        text = os.environ.get(VARIABLE)
        return None if text is None else _checked(text.strip(), f"the variable {VARIABLE}")
    with open(file, encoding="utf-8", errors="replace") as opened:
        if os.fstat(opened.fileno()).st_mode & 0o007:
            raise ParameterError(
                "everyone can read the token in it", place=file, hint=f"chmod o-rwx {file}"
            )
        return _checked(opened.read(4097).strip(), file)


def _checked(token: str, place: str) -> str:
    if len(token) < _SHORTEST or len(token) > 4096 or not _TOKEN.fullmatch(token):
        raise ParameterError(
            f"a token must have {_SHORTEST} to 4,096 letters, digits or any of ._~+/=-",
            place=place,
            hint="head -c 32 /dev/urandom | base64 makes one",
        )
    return token


class Access:
    """Decides whether a request may be answered.

    Parameters
    ----------
    token : str or None
        The header Authorization must be "Bearer TOKEN". None: no token is needed.
    hosts : tuple of str
        Names that the header Host may have, without port; empty: any. So a web page whose name
        leads to this machine cannot ask.
    """

    def __init__(self, token: str | None = None, hosts: tuple[str, ...] = ()) -> None:
        if token is not None and not token.strip():
            raise ParameterError("the token is empty; None means that no token is needed")
        self._expected = None if token is None else b"bearer " + token.encode()
        self._hosts = tuple(host.lower() for host in hosts)

    def check(self, headers: Mapping[bytes, bytes], open_to_all: bool) -> None:
        """Raise Refusal if a request may not be answered.

        Parameters
        ----------
        headers : mapping
            Names are in lower case.
        open_to_all : bool
            Whether no token is needed.
        """
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self._hosts and _without_port(host) not in self._hosts:
            raise Refusal(421, "the header Host names another machine")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower().partition("://")[2] != host:
            raise Refusal(403, "requests of other web pages are not answered")
        if self._expected is None or open_to_all:
            return
        given = headers.get(b"authorization", b"")
        given = given[:7].lower() + given[7:].strip()
        if not hmac.compare_digest(given, self._expected):
            challenge = ((b"www-authenticate", b'Bearer realm="thresher"'),)
            raise Refusal(401, "the header Authorization must be: Bearer TOKEN", challenge)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
