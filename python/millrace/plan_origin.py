# SPDX-License-Identifier: Apache-2.0
"""The origin of a plan: equal origins, equal batches. Checkpoints and ranks compare it."""

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

from millrace import _core
from millrace.errors import PlanDiffers

_log = logging.getLogger("millrace")
_warned: list[bool] = []  # by this process, of a Dataset that is alone among ranks


def compare_ranks(rank: int, world: int, origin: Mapping[str, Any]) -> None:
    """Compares the origins of all ranks by ``torch.distributed``, if it is initialized for this world. Raises PlanDiffers
    on all ranks if one has another origin."""
    group = _distributed(world)
    if group is None:
        if world == 1:
            _warn_alone()
        return
    origins: list[Any] = [None] * world
    group.all_gather_object(origins, (rank, origin))
    ranks = sorted(number for number, _ in origins)
    if ranks != list(range(world)):
        raise PlanDiffers(f"the ranks of the data sets are {ranks}: each of them from 0 to {world - 1} must be there once")
    for number, other in origins:
        difference = difference_of(other, origins[0][1])
        if difference:
            raise PlanDiffers(f"rank {number} and rank {origins[0][0]} have different plans: {difference}")


def _warn_alone() -> None:
    """Warns once if this process is one of several ranks, and its Dataset is not."""
    torch, group = sys.modules.get("torch"), sys.modules.get("torch.distributed")
    if torch is None or group is None or not group.is_available() or not group.is_initialized():
        return
    if group.get_world_size() == 1 or torch.utils.data.get_worker_info() is not None or _warned:
        return
    _warned.append(True)
    _log.warning("torch.distributed has %d ranks, and the Dataset is rank 0 of 1: each rank gets all batches; give rank "
                 "and world if they train together", group.get_world_size())


def difference_of(expected: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The first key by which two origins differ, and its values; empty if they are equal."""
    return _core.difference_of(json.dumps(expected), json.dumps(other))


def step_in_world(state: Mapping[str, Any], world: int, slots: int) -> int:
    """The step of a checkpoint in this world. In a plan without slots, a step of a world of W has W batches. Raises
    PlanDiffers if no step of this world begins after the same batches."""
    step: int = state["step"]
    other: int = state.get("world", world)
    if slots or other == world or step == 0:
        return step
    if state["origin"].get("buckets"):
        raise PlanDiffers(f"the checkpoint is of world={other} instead of {world}: with `buckets` it loads only at the "
                          "beginning of an epoch")
    origin = state["origin"]
    in_order = not origin.get("shuffle", True) or origin.get("order") or origin.get("mode", "").startswith("returnn-")
    if in_order and origin.get("drop_last"):
        raise PlanDiffers(f"the checkpoint is of world={other} instead of {world}: with shuffle=False, `order`, or a mode of "
                          "RETURNN, and drop_last=True, which leaves out other batches then, it loads only at the beginning of an "
                          "epoch")
    if step * other % world:
        raise PlanDiffers(f"the checkpoint is of step {step} of world={other}: no step of world={world} begins after its "
                          f"{step * other} batches")
    return step * other // world


def _distributed(world: int) -> Any:
    """torch.distributed, if it is initialized with this number of ranks, and this is no process of a DataLoader."""
    torch = sys.modules.get("torch")
    group = sys.modules.get("torch.distributed")
    if torch is None or group is None or world == 1 or not group.is_available() or not group.is_initialized():
        return None
    if torch.utils.data.get_worker_info() is not None or group.get_world_size() != world:
        return None
    return group
