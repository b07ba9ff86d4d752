# SPDX-License-Identifier: Apache-2.0
"""JSON that a client or a worker sent."""

import json
from typing import Any


def value_of(text: str | bytes) -> Any:
    """Returns the value. Python does not convert more than 4300 digits to an int: such a number is infinity."""
    return json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= 4000 else float(digits)
