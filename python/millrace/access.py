# SPDX-License-Identifier: Apache-2.0
"""The arguments of both clients, checked."""

import dataclasses
import os
from collections.abc import Mapping
from typing import NamedTuple

from millrace import _core
from millrace.request import text
from millrace.settings import ClientSettings


class TlsFiles(NamedTuple):
    """The arguments of both clients that are paths."""

    ca: str | os.PathLike[str] | None
    certificate: str | os.PathLike[str] | None
    key: str | os.PathLike[str] | None


def core_client(
    url: str,
    settings: ClientSettings,
    token: str | None,
    headers: Mapping[str, str] | None,
    files: TlsFiles,
) -> _core.Client:
    """Raises TypeError and ValueError; no message has the token or the value of a header."""
    text("url", url)
    if not isinstance(token, str | None):
        raise TypeError("token must be a string")
    if token == "":
        raise ValueError("token must not be empty")
    if not isinstance(headers, Mapping | None):
        raise TypeError("headers must be a dict")
    pairs = list((headers or {}).items())
    for name, value in pairs:
        if not isinstance(value, str):
            raise TypeError(f"headers: the value of {text('the name of a header', name)} must be a string")
    ca = _authorities(url) if files.ca is None else _path("ca", files.ca)
    own = _path("certificate", files.certificate), _path("key", files.key)
    return _core.Client(url, token or "", pairs, ca, *own, *dataclasses.astuple(settings))


def _path(name: str, file: str | os.PathLike[str] | None) -> str:
    return "" if file is None else text(name, os.fspath(file))


def _authorities(url: str) -> str:
    """Empty for the defaults of OpenSSL, which has the variables of the environment too. The OpenSSL in a wheel knows only
    Debian's folder: elsewhere the file that Python's ssl trusts."""
    own = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR") or os.path.isdir("/usr/lib/ssl/certs")
    if own or not url.startswith("wss:"):
        return ""
    import ssl

    return ssl.get_default_verify_paths().cafile or ""
