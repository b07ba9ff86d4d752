# SPDX-License-Identifier: Apache-2.0
"""Batches for training: the chunks, resets and batches of the service, from streams at rest."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from millrace.augmentation import Augment
from millrace.batch import Batch
from millrace.catalogs.lhotse import cuts_of
from millrace.dataset_feed import Feed, feed_after, feed_of, opened_after, origin_after, request_of
from millrace.dataset_loop import DatasetLoop
from millrace.plan_feed import LocalFeed
from millrace.plan_origin import step_in_world
from millrace.remote_feed import RemoteFeed

_CHECKPOINT = 1  # version of state_dict()


class Dataset(DatasetLoop):
    """Batches of a plan, for training.

        data = millrace.Dataset("speech", chunk={"size": "100ms"}, dtype="f32", slots=32, seed=1)
        for epoch in range(10):
            for batch in data:       # one epoch
                train(batch)

    An iteration gives the batches of an epoch, and ends with it. The next iteration continues where the last one
    stopped: at the next epoch, or in the same epoch after a loop that was left early.

    The arrays of a batch belong to the program. Their memory is used again when no Batch, array or tensor refers to it.

    A Dataset can be pickled, forked and spawned: the process that takes the first batch opens files and starts threads.
    One thread takes batches.
    """

    def __init__(
        self,
        streams: Any,
        *,
        chunk: Mapping[str, Any] | None = None,
        mode: str | None = None,
        slots: int | None = None,
        rows: int | None = None,
        rate: float | None = None,
        channels: int | None = None,
        dim: int | None = None,
        frames: str = "auto",
        dtype: Any = None,
        convert: bool = False,
        mapped: bool = False,
        seed: int = 0,
        shuffle: bool = True,
        shuffle_window: int | None = None,
        order: str | None = None,
        buckets: int | Sequence[int] | None = None,
        max_padded_frames: int | None = None,
        max_waste: float | None = None,
        drop_last: bool = True,
        width_buckets: Sequence[int] | None = None,
        packed_batch_size: int | None = None,
        max_pad_size: int | None = None,
        rank: int = 0,
        world: int = 1,
        device: str = "host",
        prefetch: int | None = None,
        threads: int | str | None = None,
        buffers: int | None = None,
        companions: Mapping[str, Any] | None = None,
        augment: Augment | None = None,
        processes: int = 0,
        start_method: str = "fork",
        longest_call: float = 300.0,
        on_error: str = "raise",
        split: Mapping[str, float] | None = None,
        part: str | None = None,
        max_stream: int | str | None = None,
        pipeline: str = "",
        stride: int = 1,
        first_step: int = 0,
        progress: bool = True,
    ) -> None:
        """Opens the streams, and makes the plan. Makes the index of files at the first time.

        ``streams``: one of these, or a list of them. In a list, a pair (source, number) gives how often the streams of
        the source come per epoch.

        - a folder of audio files, a manifest (``.tsv``, ``.csv``, ``.jsonl``), or a directory of recordings
        - an audio file, or a list of them
        - Lhotse's cuts: a CutSet, or ``cuts.jsonl.gz``
        - a list of arrays, or an object of ``millrace.catalogs``
        - an object with ``len``, ``frames(i)``, ``name(i)`` and ``read(i, begin, n)``: ``millrace.catalogs.Streams``
        - "tcp://HOST:PORT" or "unix:PATH": ``millrace train-serve``. Its configuration has all other keys, except
          ``rank``, ``world`` and ``device``.

        Keys of a pipeline's configuration, with the same values and defaults: ``chunk``, ``rate``, ``channels``,
        ``dim``, ``frames``, ``dtype``, ``width_buckets``. ``chunk`` may be ``worker.chunk``. Without it, rows are whole streams.
        ``frames`` may be "auto": if an audio file has more than 16 bits, "f32" for all (or ``dtype``), otherwise "s16".
        ``convert``: audio files of other rates and channels are converted to ``rate`` and ``channels`` as the service does it,
        by default to those of most files. Without it they are an error.
        ``mapped``: WAV files of 16 bits and the frames in files of arrays are read in place. That takes less time, but the program
        ends (SIGBUS) if another one cuts a file, or a disk fails.

        ``mode``: "stateful" (the default), "stateless", "returnn-classic" or "returnn-torch".
        ``slots``: number of states of the model, of all ranks together. For mode "stateful".
        ``rows``: most rows of a batch, for the other modes. The other limits of a batch are ``max_padded_frames`` and
        ``max_waste`` (a fraction), and for RETURNN's modes ``packed_batch_size`` and ``max_pad_size``.
        ``seed``: determines all random choices, together with the epoch.
        ``shuffle``: False: the streams come in the order of the catalog.
        ``shuffle_window``: the order is random only within windows of this number of streams.
        ``order``: whole streams by length, not for mode "stateful": "laplace:.1000" sorts each 1000 of the shuffled streams,
        alternately ascending and descending; "laplace:8" sorts in 8 bins; "sorted", "sorted_reverse".
        ``buckets``: a number of groups of whole streams by length, or the longest windows of the groups.
        ``drop_last``: False: batches of padding give all ranks equal numbers of batches, and no row is left out.
        ``rank``, ``world``: this process and the number of processes that train together.
        ``device``: host, cuda:N, or cuda, the first device.
        ``prefetch``: number of batches that are filled ahead. ``threads``: number of threads that fill; 0: the loop
        fills; "auto" (the default): one, and more while the loop waits. ``buffers``: most batches that are kept or filled at once.
        ``companions``: arrays that belong to streams, by name: a folder with a file for each stream, a field of the
        manifest, a list of arrays, or an object with ``read(i, begin, n)``. A dict with ``path``, ``field`` or
        ``source`` also gives the ratio: ``frames_per_entry`` or ``entries_per_frame``. With ``per``, "stream" or "segment", it is
        a target of free length, such as tokens: it comes with the row that ends the stream or segment, padded, with
        ``batch.lengths``. ``encode`` makes numbers of it.
        ``augment``: called with each whole stream (``millrace.WholeStream``) and a NumPy generator; returns the stream.
        ``augment.frames(n, generator)`` gives its number of frames, if that changes.
        ``processes``: number of processes that call the Python functions: ``augment``, and ``read`` of objects. The loop and
        the C++ threads, one for each of them, stay in this process. ``start_method``: "fork", or "forkserver" or "spawn",
        whose functions must be picklable. ``longest_call``: seconds after which a call in a process is an error.
        ``on_error``: "raise": a stream that cannot be delivered is a DataError at its step. "skip": its rows are padding
        rows up to its end in the epoch, and ``failed`` lists it.
        ``split``, ``part``: {"valid": 0.05} gives "valid" 5 % of the streams, and "train" (the default part) all others. A
        hash of a stream's name decides: streams that are added later leave the others in their parts.
        ``max_stream``: a longer stream is divided into several, such as "60s": the part of NAME that begins after one minute
        is the stream NAME@60s.
        ``pipeline``: the pipeline whose recordings are read; all by default.
        ``stride``, ``first_step``: take every ``stride``-th step, in later epochs from ``first_step`` on.
        ``progress``: show a bar while the index is made.

        Raises ValueError or TypeError that names the key, and OSError if files cannot be read.
        """
        self._set_up({name: given for name, given in locals().items() if name not in ("self", "__class__")})
        self._open()
        self._opened_targets()

    def _set_up(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments
        self._request = request_of(arguments)
        self._stride, self._first_step = self._request.stride, self._request.first_step
        self._rank, self._world = self._request.keys.get("rank", 0), self._request.keys.get("world", 1)
        self._position = (0, self._first_step)
        self._resets = False  # the states of the slots do not belong to the next step
        self._origin: dict[str, Any] | None = None  # that the plan must have
        self._reset()

    def _open(self) -> Feed:
        if self._feed is None:
            self._feed = feed_of(self._request, None, self._origin)
        return self._feed

    def copy(self, **changes: Any) -> "Dataset":
        """A Dataset with the same arguments, except for those given, such as ``rank`` and ``world``. It begins at the first
        epoch. Its streams are those that this Dataset has opened, also if files were added since then. Objects of
        Python that ``processes`` read are opened again, because each data set has its own processes."""
        unknown = changes.keys() - self._arguments.keys()
        if unknown:
            raise TypeError(f"copy() got an unexpected argument {min(unknown)!r}")
        made = Dataset.__new__(Dataset)
        made._set_up({**self._arguments, **changes})
        feed = self._open()
        # Only plain values can be compared: == of arrays is no answer.
        changed = {key for key, value in changes.items() if value is not self._arguments[key]
                   and not (isinstance(value, (str, int, float)) and value == self._arguments[key])}
        made._feed = feed_of(made._request, opened_after(feed, made._request, changed), origin_after(feed, changed))
        return made

    def __copy__(self) -> "Dataset":
        made = self.copy()
        made._position, made._resets = self._at(), self._resets
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> "Dataset":
        return self.__copy__()

    def peek(self) -> Batch | None:
        """The batch with which the next iteration begins, such as for its shapes. The position, ``stats`` and a running loop
        stay as they are. Reads the streams of the batch, and calls ``augment``, once more. None if the plan has ended.

        With a server, the prefetched batches are dropped."""
        feed = self._open()
        if isinstance(feed, RemoteFeed):
            self.close()  # the rank has one connection
        with self.copy(**({} if isinstance(feed, RemoteFeed) else {"threads": 0, "processes": 0})) as other:
            other._move(*self._at(), resets=self._resets)
            other._compared = True  # other ranks do not peek
            return next(iter(other), None)

    def cuts(self, batch: Batch) -> list[Any]:
        """The bodies of a batch's rows as Lhotse cuts, in the order of ``batch.framed``. The streams must be
        ``millrace.catalogs.LhotseCuts``."""
        return cuts_of([part.source for part in self._request.parts], self._open().place, batch)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that was taken, and the origin of the plan, for a checkpoint.

        It consists of JSON values. It is the same for all ranks.
        """
        epoch, step = self._at()
        feed = self._open()
        return {"version": _CHECKPOINT, "epoch": epoch, "step": step, "world": self._world, "origin": feed.origin,
                **({"extents": feed.extents} if any(feed.extents) else {}),
                **({"resets": True} if self._resets else {})}  # after a seek() into an epoch

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues after a checkpoint. Rank, world and threads may be others than those of the checkpoint. Recordings that
        were added since then are left out.

        Raises PlanDiffers if the streams, the rule, the mode, the slots or the seed are others: it names the
        difference. Also for a mode without slots, if the world is another and no step of it begins at this place.
        """
        if state.get("version") != _CHECKPOINT:
            raise ValueError(f"the checkpoint has version {state.get('version')!r} instead of {_CHECKPOINT}")
        feed = feed_after(state, self._open())
        if feed is not self._feed:
            self.close()
            self._feed, self._loader, self._targets, self._position = feed, None, None, (0, self._first_step)
        self._move(state["epoch"], step_in_world(state, self._world, self.slots), resets=state.get("resets", False))

    def __enter__(self) -> "Dataset":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        state = {key: value for key, value in self.__dict__.items()
                 if key not in ("_feed", "_loader", "_process", "_compared", "_time", "_of_epoch", "_former", "_failed", "_closed", "_targets")}
        if self._feed is not None:
            state.update(_origin=self._feed.origin, _request=dataclasses.replace(self._request, extents=self._feed.extents))
        return {**state, "_position": self._at()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def __repr__(self) -> str:
        return f"<millrace.Dataset: {', '.join(self._known())}>"

    def _known(self) -> Iterator[str]:
        """Its parts that are known without opening streams, distributing them, or asking a server."""
        feed = self._feed
        if feed is None:
            yield "not opened in this process"
        else:
            yield f"{feed.streams} streams"
            if isinstance(feed, LocalFeed):
                yield f"{feed.catalog.all_frames / self.rate / 3600:.2f} h"
            yield f"{feed.slots} slots" if feed.slots else f"at most {feed.rows} rows"
        epoch, step = self._at()
        steps = self._known_steps()
        yield f"epoch {epoch}"
        yield f"step {step}" if steps is None else f"step {step} of {steps}"
        stats = self.stats
        if stats.batches:
            yield f"{stats.padding:.1%} padding"
