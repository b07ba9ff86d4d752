// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/time.h"
#include "tools/gpu_probe/peer.h"

// Probes of events and device memory that two processes share. Each probe tests a property of CUDA
// that the service or the workers' library relies on. It has two halves: probe_…() prints the
// findings and what they mean, and peer_…() runs in a Peer.
namespace millrace::probe {

struct Settings {
  bool quick = false;            // a few seconds for all probes
  std::chrono::seconds limit{};  // a probe that takes longer is killed

  // A part of the limit, so that a probe on a slow device does less instead of being killed.
  Duration part(double of_limit) const {
    return std::chrono::duration_cast<Duration>(limit * of_limit);
  }
};

// A: the queries of an event that a worker records again and again are never stale: they see the
// last record. F: the same while other threads of the worker capture graphs, load modules and
// allocate. Returns false if a query was stale or an event never passed.
bool probe_events(const Settings& settings, bool disturbed);
void peer_of_events(Channel& channel, bool disturbed);

// B: a copy is on the device when another process sees that its event has passed. Returns false if
// one was not.
bool probe_copies(const Settings& settings);
void peer_of_copies(Channel& channel);

// C: prints what a service sees when a worker is killed in a kernel. Returns false if the service
// cannot use the device any longer.
bool probe_killed_worker(const Settings& settings);
void peer_killed_worker(Channel& channel);

// C2: an event that a worker has recorded, and destroyed before it ends, has passed for the
// service. Returns false if a query says otherwise.
bool probe_ended_worker(const Settings& settings);
void peer_ended_worker(Channel& channel);

// D: prints what a worker sees when the service is killed in a copy, while and after the worker
// reads the service's memory. Returns false if the worker cannot use the device any longer, or if
// it shares memory with a third process.
bool probe_killed_service(const Settings& settings);
void peer_killed_service(Channel& channel);

// E: prints how long CUDA's slow calls take, and how long calls in other threads take meanwhile.
// Always returns true.
bool probe_times(const Settings& settings);
void peer_of_times(Channel& channel);

// G: prints how long copies take while another process runs kernels. Returns false if a copy does
// not end.
bool probe_busy_device(const Settings& settings);
void peer_of_busy_device(Channel& channel);

// N: prints what two processes in different namespaces can share, and whether the limit of locked
// memory matters. Always returns true.
bool probe_namespaces(const Settings& settings);
void peer_of_namespaces(Channel& channel);

// X: prints how long a context takes, and how much memory of the device. Always returns true.
bool probe_contexts(const Settings& settings);
void peer_of_contexts(Channel& channel);

}  // namespace millrace::probe
