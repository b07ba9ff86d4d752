# SPDX-License-Identifier: Apache-2.0
"""The chunk rules as functions, for notebooks and tests: the rows that a stream yields.

A running service cuts its streams with the same code.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from millrace import _core

Event = tuple[str, int] | Sequence[str | int]


def chunks(
    spec: Mapping[str, Any], events: Iterable[Event], *, rate: float | None = None
) -> list[list[int]]:
    """Returns the rows of a stream, each as ``[seq, begin, left, size, right, flags, gap]``.

    ``spec`` has the keys of a pipeline's ``chunk`` (docs/configuration.md): size, step, first, left, right, min
    (in frames, or a time such as "100ms"), tail, align, pad, or preset; also sizes (a list of lengths, or a dict with
    from, to and step), rule, seed and per. A worker's ``chunk`` is such a rule.

    ``events`` are pairs of a kind and a number:

    - ("frames", n): n frames arrived
    - ("gap", n): n frames were lost
    - ("size", n): bodies have n frames from the next one on; with sizes, n is one of them or the first body for one
    - ("flush", 0), ("reset", 0), ("message", 0), ("set", 0), ("end", 0), ("abort", 0): the number is ignored

    Rows depend only on the events: no size is chosen or drawn here. Without size events, bodies have ``size``.

    ``rate`` is the number of audio frames per second. Without it a preset counts the frames of its model, and times
    are converted at 16000 frames per second.

    Raises ValueError if a key, a value or an event is wrong.
    """
    return _core.chunks(dict(spec), events, rate)


def values(
    spec: Mapping[str, Any],
    events: Iterable[Event],
    *,
    align: str | None = None,
    pad: str | None = None,
    rate: float | None = None,
) -> list[list[int] | None]:
    """Returns the values in the columns of each row of ``chunks``, where frame p of the stream has the value p + 1.

    0 is padding. For a row without frames the entry is ``None``. ``align`` ("body", "packed") and ``pad`` ("zero",
    "repeat") may also be in ``spec``, but not in both places. Other arguments and errors are as in ``chunks``.
    """
    layout = {"align": align, "pad": pad}
    given = {key: word for key, word in layout.items() if word is not None}
    repeated = given.keys() & spec.keys()
    if repeated:
        raise ValueError(f"{', '.join(sorted(repeated))}: given twice, in spec and as an argument")
    return _core.values({**spec, **given}, events, rate)
