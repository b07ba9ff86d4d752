# SPDX-License-Identifier: Apache-2.0
"""Chunks, batches and state resets for streaming models.

``Worker`` runs a model, ``Client`` and ``connect`` stream to a service, ``recordings`` reads recorded streams, and
``chunks`` and ``values`` are the chunk rules as functions.
"""

from importlib.metadata import version

from millrace import recordings
from millrace.aio import AsyncClient, AsyncStream, connect
from millrace.batch import Batch
from millrace.chunking import chunks, values
from millrace.client import Client, Stream
from millrace.device_array import DeviceArray
from millrace.errors import (
    ClientError,
    ConnectionLost,
    DeviceError,
    Failure,
    Refused,
    ServiceGone,
    StreamFailed,
    StreamRefused,
    WorkerError,
)
from millrace.events import Closed, Event, Flushed, Goaway, Rejected, Result, Warned
from millrace.rows import Flag, Opened, Row, Rows
from millrace.settings import ClientSettings
from millrace.worker import Worker

__version__ = version("millrace")

__all__ = [
    "AsyncClient",
    "AsyncStream",
    "Batch",
    "Client",
    "ClientError",
    "ClientSettings",
    "Closed",
    "ConnectionLost",
    "DeviceArray",
    "DeviceError",
    "Event",
    "Failure",
    "Flag",
    "Flushed",
    "Goaway",
    "Opened",
    "Refused",
    "Rejected",
    "Result",
    "Row",
    "Rows",
    "ServiceGone",
    "Stream",
    "StreamFailed",
    "StreamRefused",
    "Warned",
    "Worker",
    "WorkerError",
    "chunks",
    "connect",
    "recordings",
    "values",
]
