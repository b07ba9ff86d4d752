// SPDX-License-Identifier: Apache-2.0
#pragma once

// A library of another author. Its sources use Asio with its default settings.
namespace beats {

// `voices` coroutines on two threads, each with `count` timers of a millisecond. Returns how many
// timers have expired.
int beat(int voices, int count);

}  // namespace beats
