# SPDX-License-Identifier: Apache-2.0
"""The chunk contract as functions: which rows a stream yields, for notebooks and tests.

The same code cuts the streams of a running service.
"""

from collections.abc import Iterable, Mapping, Sequence

from millrace import _core

Event = tuple[str, int] | Sequence[str | int]


def chunks(
    spec: Mapping[str, int | str], events: Iterable[Event], *, rate: float | None = None
) -> list[list[int]]:
    """The rows of a stream: ``[seq, begin, left, size, right, flags, gap]`` each.

    ``spec`` has the keys of a pipeline's ``chunk``: size, step, first, left, right, min (frames, or a
    time such as "100ms"), tail, align, pad, or preset (docs/configuration.md). ``events`` are pairs:
    ("frames", n) came, ("gap", n) were lost, ("size", n) for the bodies from now on, and ("flush", 0),
    ("reset", 0), ("end", 0), ("abort", 0), whose number says nothing. ``rate`` is in frames of audio
    per second; without it a preset counts its model's own frames, and times are at 16000.

    Raises ValueError where a key, a value or an event is wrong.
    """
    return _core.chunks(dict(spec), events, rate)


def values(
    spec: Mapping[str, int | str],
    events: Iterable[Event],
    *,
    align: str | None = None,
    pad: str | None = None,
    rate: float | None = None,
) -> list[list[int] | None]:
    """What stands in the columns of each row of ``chunks``, if frame p of the stream has the value p + 1.

    0 is padding; None stands for a row without frames. ``align`` ("body", "packed") and ``pad``
    ("zero", "repeat") may also be in ``spec``.
    """
    layout = {"align": align, "pad": pad}
    given = {key: word for key, word in layout.items() if word is not None}
    repeated = given.keys() & spec.keys()
    if repeated:
        raise ValueError(f"{', '.join(sorted(repeated))}: said twice, in spec and beside it")
    return _core.values({**spec, **given}, events, rate)
