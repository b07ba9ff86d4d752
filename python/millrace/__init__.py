# SPDX-License-Identifier: Apache-2.0
"""Chunks, batches and state resets for streaming models: workers, and the chunk rules as functions."""

from millrace.batch import Batch
from millrace.chunking import chunks, values
from millrace.errors import Failure, Refused, ServiceGone, WorkerError
from millrace.rows import Flag, Opened, Row, Rows
from millrace.worker import Worker

__all__ = [
    "Batch",
    "Failure",
    "Flag",
    "Opened",
    "Refused",
    "Row",
    "Rows",
    "ServiceGone",
    "Worker",
    "WorkerError",
    "chunks",
    "values",
]
