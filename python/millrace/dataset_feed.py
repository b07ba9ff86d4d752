# SPDX-License-Identifier: Apache-2.0
"""The feed of a Dataset from the arguments of the Dataset."""

import dataclasses
from collections.abc import Mapping, Set
from typing import Any, TypeAlias

from millrace import _core
from millrace.companion_sources import is_file
from millrace.dataset_keys import companion_key, named, plain
from millrace.elements import element_of
from millrace.errors import PlanDiffers
from millrace.plan_feed import LocalFeed, Opened, Request, opened_catalog, parts_of
from millrace.plan_origin import difference_of
from millrace.processes import processes_of
from millrace.progress_bar import index_progress
from millrace.remote_feed import RemoteFeed, RemoteLoader, is_served
from millrace.request import seconds_of, text, whole
from millrace.targets import divided

_OF_POOL = {"processes", "start_method", "longest_call"}
#: Arguments of a Dataset that are not keys of the configuration, or not as they are.
_NO_KEYS = {"streams", "companions", "augment", "pipeline", "stride", "first_step", "progress", *_OF_POOL}
#: Arguments that determine the catalog.
_OF_CATALOG = {"streams", "rate", "channels", "dim", "frames", "dtype", "convert", "mapped", "companions", "pipeline", "split", "part",
               "max_stream"}
#: Arguments that leave the plan as it is.
_OF_PROCESS = {"rank", "world", "device", "prefetch", "threads", "buffers", "on_error", "stride", "first_step", "progress",
               *_OF_POOL}


#: Batches in the order of a plan. A Dataset makes one in the process that needs it.
Feed: TypeAlias = LocalFeed | RemoteFeed
#: Gives these batches.
Loader: TypeAlias = _core.Loader | RemoteLoader


def request_of(arguments: Mapping[str, Any]) -> Request:
    """The arguments of a Dataset, checked. Raises ValueError or TypeError that names the argument."""
    keys = {key: given for key, given in arguments.items() if key not in _NO_KEYS and given is not None}
    if "dtype" in keys:
        keys["dtype"] = element_of(keys["dtype"])
    if keys.get("device") == "cuda":  # as of a Worker
        keys["device"] = "cuda:0"
    if "chunk" in keys:
        if not isinstance(keys["chunk"], Mapping):
            raise TypeError(f'chunk must be a dict, such as {{"size": "100ms"}}, not {keys["chunk"]!r}')
        keys["chunk"] = dict(keys["chunk"])
    if arguments["augment"] is not None and not callable(arguments["augment"]):
        raise TypeError(f"augment must be a function, not {arguments['augment']!r}")
    processes = whole("processes", arguments["processes"], 0)
    parts = parts_of(arguments["streams"])
    companions, targets = divided(named(arguments["companions"]))
    if keys.get("threads", "auto") == "auto":
        if processes:
            keys["threads"] = processes  # each thread waits for a process
        elif not all(part.path for part in parts) or not all(map(is_file, companions.values())):
            keys["threads"] = 1  # read() of an object need not be thread-safe
    return Request({key: plain(value) for key, value in keys.items()}, parts, companions, targets, arguments["augment"],
                   text("pipeline", arguments["pipeline"]),
                   whole("stride", arguments["stride"], 1), whole("first_step", arguments["first_step"], 0),
                   arguments["progress"], processes, arguments["start_method"], seconds_of("longest_call", arguments["longest_call"]))


def feed_of(request: Request, opened: Opened | None, origin: Mapping[str, Any] | None) -> Feed:
    """Opens the streams, or takes those that are opened. Raises PlanDiffers if the plan has not this origin."""
    try:
        feed = _feed_of(request, opened)
        difference = "" if origin is None else difference_of(origin, feed.origin)
    except ValueError as error:
        if origin is None:
            raise
        difference = str(error)
    if difference:
        raise PlanDiffers(f"the plan is not that of the Dataset that was copied or pickled: {difference}")
    return feed


def _feed_of(request: Request, opened: Opened | None) -> Feed:
    paths = [part.path for part in request.parts]
    if is_served(paths):
        if request.companions or request.augment is not None or request.pipeline or request.processes:
            raise ValueError("companions, augment, pipeline and processes: the server of the batches chooses them")
        return RemoteFeed(paths, request.keys, request.stride, request.first_step)
    streams = [[part.path or None, part.frequency] for part in request.parts]
    companions = {name: companion_key(source) for name, source in request.companions.items()}
    keys = _core.DatasetKeys({"streams": streams, **request.keys, "companions": companions})
    if opened is None:
        with index_progress(request.progress) as progress:
            opened = opened_catalog(request, keys, progress)
    return LocalFeed(request, keys, opened)


def feed_after(state: Mapping[str, Any], feed: Feed) -> Feed:
    """The feed that a checkpoint continues: the given one, or one with fewer of its recordings. Raises PlanDiffers if
    neither has the plan of the checkpoint."""
    difference = difference_of(state["origin"], feed.origin)
    if difference and any(state.get("extents", ())):
        try:
            former = feed.within(state["extents"])
        except ValueError as error:
            raise PlanDiffers(f"the checkpoint is of another plan: {difference} ({error})") from None
        difference = difference_of(state["origin"], former.origin)
        if not difference:
            return former
        feed = former
    if difference.startswith("streams is "):
        former_streams = state["origin"].get("streams")
        counted = isinstance(former_streams, int) and any(state.get("extents", ()))
        removed = former_streams - feed.streams if counted else 0
        difference = (f"{removed} streams of the checkpoint were removed" if removed > 0 else
                      f"{feed.streams} streams, the checkpoint has {former_streams}")
    if difference:
        raise PlanDiffers(f"the checkpoint is of another plan: {difference}")
    return feed


def opened_after(feed: Feed, request: Request, changed: Set[str]) -> Opened | None:
    """The streams of a feed, if they are those of a Dataset with this request, too. ``changed``: its other arguments."""
    if not isinstance(feed, LocalFeed) or changed & _OF_CATALOG:
        return None
    if all(part.paths for part in request.parts) and all(map(is_file, request.companions.values())):
        processes = processes_of(request.processes, request.start_method, request.longest_call)  # each data set has its own
        return dataclasses.replace(feed.opened, processes=processes)
    return None if feed.opened.processes or changed & _OF_POOL else feed.opened


def origin_after(feed: Feed, changed: Set[str]) -> dict[str, Any] | None:
    """The origin of a feed, if it is that of a Dataset with these arguments changed, too."""
    return None if changed - _OF_PROCESS else feed.origin
