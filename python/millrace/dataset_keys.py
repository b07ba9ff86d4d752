# SPDX-License-Identifier: Apache-2.0
"""The keys of a Dataset as values of JSON, which the extension checks."""

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from millrace.request import text


def plain(value: Any) -> Any:
    """Numbers of NumPy as those of Python, and other sequences as lists."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (str, bytes, bool, int, float, Mapping)):
        return value
    if isinstance(value, Iterable):
        return [plain(entry) for entry in value]
    try:
        return operator.index(value)
    except TypeError:
        return float(value) if hasattr(value, "__float__") else value


def named(companions: Mapping[str, Any] | None) -> dict[str, Any]:
    """The sources of companions by name, with paths as texts."""
    if companions is None:
        return {}
    if not isinstance(companions, Mapping):
        raise TypeError(f"companions must be a dict of names and sources, not {companions!r}")
    for name in companions:
        text("companions: a name", name)
    return {name: os.fspath(source) if hasattr(source, "__fspath__") else source
            for name, source in companions.items()}


def companion_key(source: Any) -> Any:
    """A companion as the extension checks it: the source of an object is left out."""
    if isinstance(source, str):
        return source
    if isinstance(source, Mapping):
        return {key: os.fspath(value) if hasattr(value, "__fspath__") else value
                for key, value in source.items() if key != "source"}
    return {}
