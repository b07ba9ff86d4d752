# SPDX-License-Identifier: Apache-2.0
"""Chunks, batches and state resets for streaming models."""

from millrace.chunking import chunks, values

__all__ = ["chunks", "values"]
