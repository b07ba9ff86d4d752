# SPDX-License-Identifier: Apache-2.0
"""Batches of ``millrace.returnn`` for RETURNN's engine for PyTorch."""

from collections.abc import Iterator
from typing import Any

import torch.utils.data


class Batches(torch.utils.data.IterDataPipe[list[dict[str, Any]]]):
    """Groups the rows of a ``millrace.returnn.Dataset`` into its batches."""

    def __init__(self, rows: Any) -> None:
        super().__init__()
        self._rows = rows

    def __iter__(self) -> Iterator[list[dict[str, Any]]]:
        batch = []
        for row in self._rows:
            batch.append(row)
            if row.pop("batch_ends"):
                yield batch
                batch = []
