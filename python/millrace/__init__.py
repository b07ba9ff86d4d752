# SPDX-License-Identifier: Apache-2.0
"""Chunks, batches and state resets for streaming models.

``Worker`` runs a model, ``Client`` and ``connect`` stream to a service, and ``recordings`` reads recorded streams.
``Dataset`` gives the batches of a service for training, from audio files, ``catalogs`` and recordings. ``chunks`` and
``values`` are the chunk rules as functions.
"""

from millrace import _core, catalogs, recordings
from millrace.aio import AsyncClient, AsyncStream, connect
from millrace.augmentation import WholeStream
from millrace.batch import Batch
from millrace.chunking import chunks, values
from millrace.client import Client, Stream
from millrace.dataset import Dataset
from millrace.dataset_properties import Companion
from millrace.dataset_stats import Stats
from millrace.description import Description, describe
from millrace.device_array import DeviceArray
from millrace.epoch_progress import progress
from millrace.errors import (
    ClientError,
    ConnectionLost,
    DataError,
    DeviceError,
    Failure,
    PlanDiffers,
    Refused,
    ServiceGone,
    StreamFailed,
    StreamGone,
    StreamRefused,
    WorkerError,
)
from millrace.events import Closed, Event, Flushed, Goaway, Message, Rejected, Result, Resumed, Warned
from millrace.rows import ClientMessage, Flag, Opened, Row, Rows
from millrace.settings import ClientSettings
from millrace.worker import Worker

#: The answer to a row that ``Worker.answer`` gives later.
pending = _core.pending

__version__ = _core.version  # not pip's: the folder also works without pip

__all__ = [
    "AsyncClient",
    "AsyncStream",
    "Batch",
    "Client",
    "ClientError",
    "ClientMessage",
    "ClientSettings",
    "Closed",
    "Companion",
    "ConnectionLost",
    "DataError",
    "Dataset",
    "Description",
    "DeviceArray",
    "DeviceError",
    "Event",
    "Failure",
    "Flag",
    "Flushed",
    "Goaway",
    "Message",
    "Opened",
    "PlanDiffers",
    "Refused",
    "Rejected",
    "Result",
    "Resumed",
    "Row",
    "Rows",
    "ServiceGone",
    "Stats",
    "Stream",
    "StreamFailed",
    "StreamGone",
    "StreamRefused",
    "Warned",
    "WholeStream",
    "Worker",
    "WorkerError",
    "catalogs",
    "chunks",
    "connect",
    "describe",
    "pending",
    "progress",
    "recordings",
    "values",
]
