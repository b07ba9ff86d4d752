# SPDX-License-Identifier: Apache-2.0
"""The frames of the streams. Each value follows from the stream's name and the position, so workers and clients know it."""
import numpy as np

RATE = 16000
SIZE, LEFT, RIGHT = 1600, 400, 160  # frames of a body, and of its context on both sides
WIDTH = LEFT + SIZE + RIGHT

_PERIOD = 65521  # a prime: each value comes once in a period
_STEP = 4099  # positions between the beginnings of two streams


def name_of(key):
    return f"ramp-{key}"


def key_of(name):
    return int(name.rpartition("-")[2])


def value(key, frame):
    """The s16 values at these positions: of integers, or of arrays of NumPy or PyTorch."""
    return (frame + key * _STEP) % _PERIOD * 7919 % _PERIOD - 32760


_values = value(0, np.arange(2 * _PERIOD))
_frames = _values.astype("<i2")
_sums = np.concatenate(([0], np.cumsum(_values[:_PERIOD])))


def frames(key, begin, count):
    """The frames as bytes; at most a period."""
    first = (begin + key * _STEP) % _PERIOD
    return memoryview(_frames[first:first + count]).cast("B")


def total(key, begin, end):
    """The sum of the values of these frames."""
    def until(frame):
        periods, rest = divmod(frame + key * _STEP, _PERIOD)
        return periods * int(_sums[-1]) + int(_sums[rest])

    return until(end) - until(begin)


def expected(framed, rows, keys, slots):
    """The table [7, rows] of what the rows of a batch should have: key of the stream, begin, left, size, right, slot, flags.
    `keys`: of the stream in each slot. Rows without a record are padding."""
    table = np.zeros((7, rows), np.int64)
    table[5] = slots
    table[0, :len(framed)] = keys[framed["slot"]]
    for line, name in enumerate(("begin", "left", "size", "right", "slot", "flags"), 1):
        table[line, :len(framed)] = framed[name]
    return table


def damaged(data, columns, table):
    """The number of values that are not the expected ones, in arrays of NumPy or PyTorch. `data`: s16 values [rows, columns],
    of any type. `columns`: 0, 1, 2, ..."""
    key, begin, left, size, right = (line[:, None] for line in table[:5])
    real = (columns >= LEFT - left) & (columns < LEFT + size + right)
    return (data != value(key, begin - LEFT + columns) * real).sum()


def answers(table):
    """The answers to these rows, without the numbers of rows since the last RESET."""
    return [[total(key, begin - left, begin + size + right), None] for key, begin, left, size, right in table[:5].T.tolist()]
