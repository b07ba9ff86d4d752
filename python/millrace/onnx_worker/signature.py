# SPDX-License-Identifier: Apache-2.0
"""Which input and output of a model is what: the configuration, completed and checked with the ONNX file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from millrace.onnx_worker.configuration import Answer, Configuration, State

_DTYPES = {
    f"tensor({name})": np.dtype(dtype)
    for name, dtype in {
        "float": "f4", "float16": "f2", "double": "f8", "bool": "?",
        "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8",
        "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8",
    }.items()
}


class Port(Protocol):
    """An input or an output, as ONNX Runtime describes it. A length that is not fixed is a name or None."""

    name: str
    type: str
    shape: Sequence[int | str | None]


@dataclass(frozen=True)
class Held:
    """A state that the worker keeps for each slot. ``initial`` has length 1 at ``axis``, the axis of the rows."""

    input: str
    output: str
    axis: int
    initial: NDArray[Any]


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a model. ``rows``, ``columns`` and ``values`` of its chunks are None if they are not fixed."""

    chunk: str
    axes: str
    dtype: np.dtype[Any]
    rows: int | None
    columns: int | None
    values: int | None
    sizes: tuple[str, np.dtype[Any]] | None
    states: list[Held]
    inputs: dict[str, tuple[NDArray[Any], list[int | None]]]  # a value, and the shape that it fills; None: the rows
    answer: Answer
    outputs: list[str]  #: the answer, then its lengths, if there are any; then those of the states


def signature_of(wanted: Configuration, inputs: Sequence[Port], outputs: Sequence[Port]) -> Signature:
    """Raises ValueError if the configuration does not fit the model: the message names the input or output."""
    given, produced = {port.name: port for port in inputs}, {port.name: port for port in outputs}
    states = _named_states(wanted.states, given, produced)
    chunk = _chunk(wanted, given, states)
    axes = _axes(wanted.chunk.axes, chunk)
    length = dict(zip(axes, chunk.shape))
    rows, columns, values = (each if isinstance(each := length.get(axis, 1), int) else None for axis in "NTC")
    sizes = given[wanted.chunk.sizes] if wanted.chunk.sizes else None
    if sizes and (_dtype(sizes).kind != "i" or len(sizes.shape) != 1):
        raise ValueError(f"chunk.sizes: input {sizes.name} must have an integer for each row, not {_described(sizes)}")
    answer = _answer(wanted.answer, [state.output for state in states.values()], produced)
    return Signature(
        chunk.name,
        axes,
        _dtype(chunk),
        rows,
        columns,
        values,
        (sizes.name, _dtype(sizes)) if sizes else None,
        [_held(name, state, given[name], produced[state.output], length["N"]) for name, state in states.items()],
        {name: _fixed(given[name], value) for name, value in wanted.inputs.items()},
        answer,
        [str(answer.output), *filter(None, [answer.lengths]), *(state.output for state in states.values())],
    )


def _chunk(wanted: Configuration, inputs: Mapping[str, Port], states: Mapping[str, State]) -> Port:
    """Returns the input for the chunk. Each other one must be in the configuration, once."""
    named = [("chunk.input", wanted.chunk.input), ("chunk.sizes", wanted.chunk.sizes)]
    for place, name in [*named, *(("inputs", name) for name in wanted.inputs)]:
        _port(place, name, inputs, "input")
    used = [*states, *wanted.inputs, *(name for _, name in named if name)]
    for name in used:
        if used.count(name) > 1:
            raise ValueError(f"input {name} is named twice, among states, inputs and chunk")
    free = [name for name in inputs if name not in used]
    if wanted.chunk.input is None and not free:
        raise ValueError("no input is the chunk: each is a state or has a value")
    if wanted.chunk.input is None and len(free) > 1:
        raise ValueError(f"inputs {', '.join(free)} of the model: one is the chunk; name the others in states, inputs or chunk.sizes")
    if wanted.chunk.input and free:
        raise ValueError(f"inputs {', '.join(free)} of the model have no use: name them in states, inputs or chunk.sizes")
    return inputs[wanted.chunk.input or free[0]]


def _described(port: Port) -> str:
    shape = ", ".join("?" if each is None else str(each) for each in port.shape)
    return f"{port.type} [{shape}]"


def _port(place: str, name: str | None, ports: Mapping[str, Port], kind: str) -> None:
    if name is not None and name not in ports:
        raise ValueError(f"{place}: the model has no {kind} {name}; its {kind}s: {', '.join(ports)}")


def _dtype(port: Port) -> np.dtype[Any]:
    if port.type not in _DTYPES:
        raise ValueError(f"{port.name} has the type {port.type}, which is unknown; known: {', '.join(_DTYPES)}")
    return _DTYPES[port.type]


def _named_states(states: Mapping[str, State], inputs: Mapping[str, Port], outputs: Mapping[str, Port]) -> dict[str, State]:
    """Replaces patterns (``cache_*`` and ``new_cache_*``) by the names of the model."""
    named: dict[str, State] = {}
    for name, state in states.items():
        before, star, behind = name.partition("*")
        if not star:
            _port(f"states.{name}", name, inputs, "input")
            _port(f"states.{name}.output", state.output, outputs, "output")
            named[name] = state
            continue
        long = [each for each in inputs if each.startswith(before) and each.endswith(behind) and len(each) > len(before + behind)]
        pairs = {each: state.output.replace("*", each[len(before) : len(each) - len(behind)]) for each in long}
        found = {each: State(output, state.axis, state.initial) for each, output in pairs.items() if output in outputs}
        if not found or "*" not in state.output:
            raise ValueError(f"states.{name}: no input {name} of the model has an output {state.output}")
        named.update(found)
    taken = [state.output for state in named.values()]
    for output in taken:
        if taken.count(output) > 1:
            raise ValueError(f"output {output} is named twice in states")
    return named


def _axes(wanted: str | None, chunk: Port) -> str:
    axes = wanted or {2: "NT", 3: "NTC"}.get(len(chunk.shape), "")
    if "N" not in axes or len(set(axes)) != len(axes) or set(axes) - set("NTC") or len(axes) != len(chunk.shape):
        letters = f"a letter for each axis of input {chunk.name}, N rows, T columns or C values, as in NTC"
        raise ValueError(f"chunk.axes must have {letters}; the input is {_described(chunk)}")
    return axes


def _held(name: str, state: State, given: Port, produced: Port, rows: int | str | None) -> Held:
    place = f"states.{name}"
    alike = len(given.shape) == len(produced.shape) and _dtype(given) == _dtype(produced)
    pairs = zip(given.shape, produced.shape)
    if not alike or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        raise ValueError(f"{place}: input {name} is {_described(given)}, but output {produced.name} is {_described(produced)}")
    axis = state.axis
    if axis is None:
        lengths = list(enumerate(given.shape))
        likely = [i for i, length in lengths if length == rows] or [i for i, length in lengths if not isinstance(length, int)]
        if len(likely) != 1:
            raise ValueError(f"{place}.axis is missing: which axis of {_described(given)} has the rows?")
        axis = likely[0]
    if not 0 <= axis < len(given.shape):
        raise ValueError(f"{place}.axis must be 0 to {len(given.shape) - 1}, not {axis}: input {name} is {_described(given)}")
    if isinstance(given.shape[axis], int) and given.shape[axis] != rows:
        raise ValueError(f"{place}: axis {axis} of {_described(given)} has another number of rows than the chunk")
    rest = [*given.shape[:axis], *given.shape[axis + 1 :]]
    try:
        initial = _typed(np.load(state.initial) if isinstance(state.initial, Path) else state.initial, given)
        shape = initial.shape if initial.ndim == len(rest) else ()
        whole = [length if isinstance(length, int) else shape[i] if shape else None for i, length in enumerate(rest)]
        if None in whole:
            raise ValueError(f"{_described(given)} has no fixed shape: write an array, not {state.initial!r}")
        filled = np.broadcast_to(initial, [length or 0 for length in whole])
    except (OSError, EOFError, ValueError) as error:
        raise ValueError(f"{place}.initial: {error}") from error
    return Held(name, produced.name, axis, np.expand_dims(filled, axis))


def _typed(value: Any, port: Port) -> NDArray[Any]:
    """Returns the value in the type of an input. Raises ValueError if it would be another number."""
    array, dtype = np.asarray(value), _dtype(port)
    if array.dtype.kind in "biuf":
        with np.errstate(invalid="ignore", over="ignore"):
            typed = array.astype(dtype)
        if np.array_equal(np.isfinite(typed), np.isfinite(array)) if dtype.kind == "f" else np.array_equal(typed, array):
            return typed
    raise ValueError(f"it must be {port.type}, not {value!r}")


def _fixed(port: Port, value: Any) -> tuple[NDArray[Any], list[int | None]]:
    """Returns the value, and the shape of the input. A length that is not fixed is that of the value; the first may be the rows."""
    try:
        array = _typed(value, port)
        own = (None,) * (len(port.shape) - array.ndim) + array.shape
        shape = [length if isinstance(length, int) else given for length, given in zip(port.shape, own)]
        if None in shape[1:]:
            raise ValueError(f"{_described(port)} has no fixed shape: write an array, not {value!r}")
        if own[:1] == (1,) and not isinstance(port.shape[0], int):
            shape[0] = None  # one line for all rows
        np.broadcast_to(array, [1 if length is None else length for length in shape])
    except ValueError as error:
        raise ValueError(f"inputs.{port.name}: {error}") from error
    return array, shape


def _answer(wanted: Answer, states: Sequence[str], outputs: Mapping[str, Port]) -> Answer:
    _port("answer.output", wanted.output, outputs, "output")
    _port("answer.lengths", wanted.lengths, outputs, "output")
    free = [name for name in outputs if name not in (*states, wanted.lengths)]
    if wanted.output is None and len(free) != 1:
        raise ValueError(f"answer.output is missing: the answer is one of the outputs {', '.join(free) or 'of states'}")
    output = outputs[wanted.output or free[0]]
    axes = len(output.shape)
    if axes and not 0 <= wanted.axis < axes:
        raise ValueError(f"answer.axis must be 0 to {axes - 1}, not {wanted.axis}: output {output.name} is {_described(output)}")
    if wanted.lengths:
        lengths = outputs[wanted.lengths]
        if _dtype(lengths).kind not in "iu" or len(lengths.shape) != 1:
            raise ValueError(f"answer.lengths: output {lengths.name} must have an integer for each row, not {_described(lengths)}")
        if axes < 3:
            raise ValueError(f"answer.lengths: output {output.name} is {_described(output)}, which has no axis of time behind the rows")
    listed, classes = wanted.labels or wanted.tokens, output.shape[-1] if axes else None
    if wanted.tokens and axes != 3 or wanted.labels and axes not in (2, 3):
        expected = "rows, time and tokens" if wanted.tokens else "rows, with or without time, and labels"
        raise ValueError(f"answer: the axes of output {output.name}, {_described(output)}, must be {expected}")
    if listed and isinstance(classes, int):
        check_classes(wanted, classes)
    return Answer(output.name, wanted.axis, wanted.lengths, wanted.labels, wanted.tokens, wanted.blank)


def check_classes(answer: Answer, classes: int) -> None:
    """Raises ValueError if an output with this number of classes does not fit the labels or tokens."""
    kind, names = ("labels", answer.labels) if answer.labels else ("tokens", answer.tokens)
    if names is None:
        return
    allowed = {len(names), len(names) + 1} if answer.tokens else {len(names)}  # NeMo does not list its blank, the last
    if classes not in allowed:
        raise ValueError(f"answer.{kind} has {len(names)} names, but the output has {classes} classes")
    if answer.blank is not None and not 0 <= answer.blank < classes:
        raise ValueError(f"answer.blank must be 0 to {classes - 1}, not {answer.blank}")
