# SPDX-License-Identifier: Apache-2.0
"""What the scripted worker understands: audio of 250 ms per level."""
import array

LEVEL = 1000  # the value of the samples of level 1
OPTIONS = 29  # the word is the JSON text of the options of the stream
FAILS = 30  # the row fails
SILENT = 31  # the last row of the segment has no answer


def said(*levels, rate=24000):
    """The s16 samples of the levels, in which the worker hears w1 for level 1."""
    return b"".join(array.array("h", [level * LEVEL]).tobytes() * (rate // 4) for level in levels)
