# SPDX-License-Identifier: Apache-2.0
"""The progress of an epoch."""

import time
from collections.abc import Generator

from millrace.batch import Batch
from millrace.dataset import Dataset
from millrace.progress_bar import bar_of

_PERIOD = 0.2  # seconds between two counts


def progress(data: Dataset) -> Generator[Batch, None, None]:
    """Yields the batches of ``data`` up to the end of the epoch, and shows the progress on standard error.

    It shows the epoch, the step, hours of the streams per second, the fraction of the time waited for data, and the
    padding. In a terminal or a notebook it uses tqdm, if that is installed; elsewhere it prints a line every 10 s.
    """
    epoch, step, _ = data._next_iteration()
    bar = bar_of(len(data), step, f"epoch {epoch}", "step")
    shown = time.monotonic()
    try:
        for batch in data:
            yield batch
            bar.update(1)
            if time.monotonic() - shown >= _PERIOD:
                shown = time.monotonic()
                bar.set_postfix_str(_counts(data), refresh=False)
        bar.set_postfix_str(_counts(data), refresh=False)
    finally:
        bar.close()


def _counts(data: Dataset) -> str:
    stats = data.stats
    return f"{stats.hours_per_second:.2f} h/s, waited {stats.waited:.1%}, padding {stats.padding:.1%}"
