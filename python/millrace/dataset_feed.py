# SPDX-License-Identifier: Apache-2.0
"""The feed of a Dataset from the arguments of the Dataset."""

import dataclasses
from collections.abc import Mapping, Sequence, Set
from typing import Any

from millrace import _core
from millrace.dataset_keys import companion_key, named, plain
from millrace.elements import element_of
from millrace.errors import PlanDiffers
from millrace.plan_feed import Feed, LocalFeed, Opened, Request, opened_catalog, parts_of
from millrace.plan_origin import difference_of
from millrace.progress_bar import index_progress
from millrace.remote_feed import RemoteFeed, is_served
from millrace.request import whole

#: Arguments of a Dataset that are keys of the configuration, too.
_KEYS = ("chunk", "mode", "slots", "rows", "rate", "channels", "dim", "frames", "dtype", "seed", "shuffle",
         "shuffle_window", "buckets", "max_padded_frames", "max_waste", "drop_last", "width_buckets", "packed_batch_size",
         "max_pad_size", "rank", "world", "device", "prefetch", "threads", "buffers", "on_error")
#: Arguments that determine the catalog.
_OF_CATALOG = {"streams", "rate", "channels", "dim", "frames", "companions", "pipeline"}
#: Arguments that leave the plan as it is.
_OF_PROCESS = {"rank", "world", "device", "prefetch", "threads", "buffers", "on_error", "stride", "first_step", "progress"}


@dataclasses.dataclass(frozen=True)
class FeedMaker:
    """Makes the feed of a Dataset, whose arguments it has checked. Can be pickled."""

    request: Request
    shows_progress: bool

    @staticmethod
    def of(arguments: Mapping[str, Any]) -> "FeedMaker":
        """Raises ValueError or TypeError that names the argument."""
        keys = {key: arguments[key] for key in _KEYS if arguments[key] is not None}
        if "dtype" in keys:
            keys["dtype"] = element_of(keys["dtype"])
        if "chunk" in keys:
            if not isinstance(keys["chunk"], Mapping):
                raise TypeError(f'chunk must be a dict, such as {{"size": "100ms"}}, not {keys["chunk"]!r}')
            keys["chunk"] = dict(keys["chunk"])
        request = Request({key: plain(value) for key, value in keys.items()}, parts_of(arguments["streams"]),
                          named(arguments["companions"]), arguments["augment"], arguments["pipeline"],
                          whole("stride", arguments["stride"], 1), whole("first_step", arguments["first_step"], 0))
        return FeedMaker(request, arguments["progress"])

    def within(self, extents: Sequence[str]) -> "FeedMaker":
        """The same with the streams of these extents."""
        return dataclasses.replace(self, request=dataclasses.replace(self.request, extents=extents))

    def feed(self, opened: Opened | None, origin: Mapping[str, Any] | None) -> Feed:
        """Opens the streams, or takes those that are opened. Raises PlanDiffers if the plan has not this origin."""
        try:
            feed = self._feed(opened)
            difference = "" if origin is None else difference_of(origin, feed.origin)
        except ValueError as error:
            if origin is None:
                raise
            difference = str(error)
        if difference:
            raise PlanDiffers(f"the plan is not that of the Dataset that was copied or pickled: {difference}")
        return feed

    def _feed(self, opened: Opened | None) -> Feed:
        request = self.request
        paths = [part.path for part in request.parts]
        if is_served(paths):
            if request.companions or request.augment is not None or request.pipeline:
                raise ValueError("companions, augment and pipeline: the server of the batches chooses them")
            return RemoteFeed(paths, request.keys, request.stride, request.first_step)
        streams = [[part.path or None, part.frequency] for part in request.parts]
        companions = {name: companion_key(source) for name, source in request.companions.items()}
        keys = _core.DatasetKeys({"streams": streams, **request.keys, "companions": companions})
        if opened is None:
            with index_progress(self.shows_progress) as progress:
                opened = opened_catalog(request, keys, progress)
        return LocalFeed(request, keys, opened)


def opened_after(feed: Feed, changed: Set[str]) -> Opened | None:
    """The streams of a feed, if they are those of a Dataset with these arguments changed, too."""
    return feed.opened if isinstance(feed, LocalFeed) and not changed & _OF_CATALOG else None


def origin_after(feed: Feed, changed: Set[str]) -> dict[str, Any] | None:
    """The origin of a feed, if it is that of a Dataset with these arguments changed, too."""
    return None if changed - _OF_PROCESS else feed.origin
