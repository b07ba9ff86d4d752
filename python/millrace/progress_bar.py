# SPDX-License-Identifier: Apache-2.0
"""Progress in the terminal: of an epoch, and while an index is made."""

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from millrace.batch import Batch
    from millrace.dataset import Dataset

_PERIOD = 0.2  # seconds between two lines
_QUIET = 0.5  # seconds before a bar is shown: an index that is made faster shows none


def progress(data: "Dataset") -> Generator["Batch", None, None]:
    """Yields the batches of ``data`` up to the end of the epoch, and shows the progress on standard error.

    It shows the epoch, the step, hours of the streams per second, the fraction of the time waited for data, and the
    padding. It uses tqdm, if that is installed.
    """
    epoch, step, _ = data._next_iteration()
    bar = _bar(len(data), step, f"epoch {epoch}")
    shown = time.monotonic()
    try:
        for batch in data:
            yield batch
            bar.add()
            now = time.monotonic()
            if now - shown >= _PERIOD:
                shown = now
                bar.describe(_counts(data))
        bar.describe(_counts(data))
    finally:
        bar.close()


@contextlib.contextmanager
def index_progress(wanted: bool) -> Iterator[Callable[[int, int], None]]:
    """Gives a function that shows the progress of an index: (done, total)."""
    began, bar = time.monotonic(), None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            if not wanted or time.monotonic() - began < _QUIET or done >= total:
                return
            bar = _bar(total, 0, "index")
        bar.set(done)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()


def _counts(data: "Dataset") -> str:
    stats = data.stats
    return f"{stats.hours_per_second:.2f} h/s, waited {stats.waited:.1%}, padding {stats.padding:.1%}"


def _bar(total: int, done: int, name: str) -> "_Tqdm | _Line":
    try:
        import tqdm
    except ImportError:
        return _Line(total, done, name, sys.stderr)
    return _Tqdm(tqdm.tqdm(total=total, initial=done, desc=name, unit="step" if name != "index" else "file"))


class _Tqdm:
    """A bar of tqdm."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def add(self) -> None:
        self._bar.update(1)

    def set(self, done: int) -> None:
        self._bar.update(done - self._bar.n)

    def describe(self, text: str) -> None:
        self._bar.set_postfix_str(text, refresh=False)

    def close(self) -> None:
        self._bar.close()


class _Line:
    """A line that is written again. In a file, a line every 10 s."""

    def __init__(self, total: int, done: int, name: str, out: TextIO) -> None:
        self._total, self._done, self._name, self._out = total, done, name, out
        self._text = ""
        self._terminal = out.isatty()
        self._period = _PERIOD if self._terminal else 10.0
        self._written = time.monotonic()

    def add(self) -> None:
        self.set(self._done + 1)

    def set(self, done: int) -> None:
        self._done = done
        now = time.monotonic()
        if now - self._written >= self._period:
            self._written = now
            self._write("")

    def describe(self, text: str) -> None:
        self._text = text

    def close(self) -> None:
        self._write("\n")

    def _write(self, end: str) -> None:
        text = f"{self._name}: {self._done}/{self._total} {self._text}".rstrip()
        if self._terminal:
            self._out.write(f"\r\x1b[K{text}{end}")
        else:
            self._out.write(f"{text}\n")
        self._out.flush()
