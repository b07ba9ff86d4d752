// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/gpu/probe/peer.h"

// What two processes find out about the events and the memory of a device that they share. Each
// probe asks something of CUDA that the service or the worker library relies on. A probe has two
// halves: one prints what it found, the other is a Peer in the role that is named after it.
namespace millrace::probe {

struct Settings {
  bool quick = false;  // a few seconds in all
};

// Prints a line, indented. printf's arguments.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

// A: an event that a worker records again and again is never seen as it was before the last record.
// F: the same while other threads of the worker capture graphs, load modules and allocate.
// False: it was seen stale, or never passed.
bool probe_events(const Settings& settings, bool disturbed);
void peer_of_events(Channel& channel, bool disturbed);

// B: a copy is on the device once its event has passed for another process. False: it was not.
bool probe_copies(const Settings& settings);
void peer_of_copies(Channel& channel);

// C: what a service sees of a worker that is killed in a kernel. D: what a worker sees of a service
// that is killed in a copy. False: the device cannot be used any more by the process that lives on.
bool probe_killed_worker(const Settings& settings);
void peer_killed_worker(Channel& channel);
bool probe_killed_service(const Settings& settings);
void peer_killed_service(Channel& channel);

// E: how long CUDA's slow calls take, and how long others take meanwhile. Only prints.
bool probe_times(const Settings& settings);
void peer_of_times(Channel& channel);

}  // namespace millrace::probe
