# SPDX-License-Identifier: Apache-2.0
"""The configuration of ``millrace-onnx-worker``: a TOML file."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NUMBER, _NAMES, _ARRAY = (int, float), (str, list), (int, float, list, str)
_NUMBERED = re.compile(r"(?:(.*?)[ \t]+)?([0-9]+)[ \t]*")  # a name, and its number behind it
_KINDS: dict[Any, str] = {
    str: "a string",
    int: "an integer",
    dict: "a table",
    _NUMBER: "a number",
    _NAMES: "a file or a list",
    _ARRAY: "a number, a list or a file",
}


@dataclass(frozen=True)
class State:
    """A state of the model. ``initial``: a number, nested lists, or the file of an array; without the axis of the rows."""

    output: str
    axis: int | None = None
    initial: Any = 0


@dataclass(frozen=True)
class Chunk:
    """``axes``: a letter per axis of the input: N rows, T columns, C values. ``sizes``: the input for the columns that count."""

    input: str | None = None
    axes: str | None = None
    sizes: str | None = None


@dataclass(frozen=True)
class Answer:
    """How an output is shown: with ``labels`` as the likeliest label, with ``tokens`` as a transcript, else as numbers."""

    output: str | None = None
    axis: int = 0
    lengths: str | None = None
    labels: list[str] | None = None
    tokens: list[str] | None = None
    blank: int | None = None


@dataclass(frozen=True)
class Configuration:
    """``inputs``: inputs that never change, and their values. ``pipeline``: what the pipeline must have, ``rate`` and ``chunk``."""

    chunk: Chunk = Chunk()
    states: dict[str, State] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    answer: Answer = Answer()
    pipeline: dict[str, Any] = field(default_factory=dict)


def read(path: Path) -> Configuration:
    """Reads a configuration, and the files that it names, which are relative to it.

    Raises OSError if a file cannot be read, and ValueError if one is wrong: the message names the key.
    """
    try:
        given = tomllib.loads(path.read_text("utf-8"))
        _check("", given, chunk=dict, states=dict, inputs=dict, answer=dict, pipeline=dict)
        chunk = given.get("chunk", {})
        _check("chunk.", chunk, input=str, axes=str, sizes=str)
        pipeline = given.get("pipeline", {})
        _check("pipeline.", pipeline, rate=_NUMBER, chunk=dict)
        states = {name: _state(name, value, path.parent) for name, value in given.get("states", {}).items()}
        answer = _answer(given.get("answer", {}), path.parent)
        return Configuration(Chunk(**chunk), states, given.get("inputs", {}), answer, pipeline)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _check(place: str, table: dict[str, Any], **kinds: Any) -> None:
    for key, value in table.items():
        if key not in kinds:
            raise ValueError(f"{place}{key} is unknown; allowed: {', '.join(kinds)}")
        if not isinstance(value, kinds[key]) or isinstance(value, bool):
            raise ValueError(f"{place}{key} must be {_KINDS[kinds[key]]}, not {value!r}")


def _state(name: str, value: Any, folder: Path) -> State:
    table = {"output": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise ValueError(f"states.{name} must be the name of an output or a table, not {value!r}")
    _check(f"states.{name}.", table, output=str, axis=int, initial=_ARRAY)
    if "output" not in table:
        raise ValueError(f"states.{name} has no output: name the output that has its new value")
    state = State(**table)
    return State(state.output, state.axis, folder / state.initial) if isinstance(state.initial, str) else state


def _answer(table: dict[str, Any], folder: Path) -> Answer:
    _check("answer.", table, output=str, axis=int, lengths=str, labels=_NAMES, tokens=_NAMES, blank=int)
    if "labels" in table and "tokens" in table:
        raise ValueError("answer has labels and tokens: an output has one of them")
    if "blank" in table and "tokens" not in table:
        raise ValueError("answer.blank is the blank token of answer.tokens, which is missing")
    lists: dict[str, Any] = {key: _names(f"answer.{key}", table[key], folder) for key in ("labels", "tokens") if key in table}
    return Answer(**(table | lists))


def _names(place: str, given: Any, folder: Path) -> list[str]:
    """Returns the names of a list, or of a file: one a line, or each with its number behind it."""
    if isinstance(given, list):
        names = given
    else:
        try:
            text = (folder / given).read_text("utf-8").removesuffix("\n")
        except (OSError, UnicodeError) as error:
            raise ValueError(f"{place}: {error}") from error
        names = text.split("\n") if text else []  # other line breaks of Unicode, such as U+2028, are tokens
        pairs = [_NUMBERED.fullmatch(line) for line in names]
        if all(pairs) and any(pair and pair[1] for pair in pairs):
            numbered = {int(pair[2]): pair[1] or " " for pair in pairs if pair}
            if sorted(numbered) != list(range(len(names))):
                raise ValueError(f"{place}: the numbers in {given} must be 0 to {len(names) - 1}, each once")
            names = [numbered[number] for number in range(len(names))]
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{place} must be a list of strings, or a file with one a line, and not empty")
    return names
