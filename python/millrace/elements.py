# SPDX-License-Identifier: Apache-2.0
"""The types of values, by their names in the configuration, as those of NumPy."""

from typing import Any

import numpy as np

DTYPES = {"s16": "int16", "f16": "float16", "f32": "float32"}
COMPANION_DTYPES = {"s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "f16": "float16", "f32": "float32"}


def element_of(dtype: Any) -> str:
    """The name of a type in the configuration, from that or a type of NumPy or PyTorch."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    name = str(dtype).removeprefix("torch.") if not isinstance(dtype, (str, type, np.dtype)) else dtype
    try:
        name = np.dtype(name).name
    except (TypeError, ValueError):
        return str(dtype)
    return next((element for element, known in DTYPES.items() if known == name), str(name))
