# SPDX-License-Identifier: Apache-2.0
"""Streams for ``millrace.Dataset`` that are not audio files: arrays, and the files of other toolkits.

    millrace.Dataset(millrace.catalogs.NpyFiles("features"), chunk={"size": 20}, slots=32)

Each is an object with the functions of ``Streams``. Write your own class in the same way for any other source.
"""

from millrace.catalogs.arrays import Arrays, NpyFiles
from millrace.catalogs.hdf5 import Hdf5
from millrace.catalogs.kaldi import Kaldi
from millrace.catalogs.lhotse import LhotseCuts
from millrace.stream_sources import Streams

__all__ = ["Arrays", "Hdf5", "Kaldi", "LhotseCuts", "NpyFiles", "Streams"]
