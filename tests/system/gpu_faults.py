# SPDX-License-Identifier: Apache-2.0
"""A service with simulated devices (tests/support/simulated_cuda). Its environment determines their faults. Workers on a
device are RawWorkers, which do not read device memory."""
import contextlib
import os
import re

from harness import Service
from raw_worker import Honest, RawWorker
from worker_faults import WorkerFaultTest

MILLRACE_SIMULATED = os.environ["MILLRACE_SIMULATED"]
# Values of cudaError_t.
OUT_OF_MEMORY, NO_DEVICE, ECC, NOT_SUPPORTED = 2, 100, 214, 801


class SimulatedService(Service):
    program = MILLRACE_SIMULATED

    def __init__(self, simulation, pipelines, extra):
        self.simulation = simulation
        super().__init__(pipelines, extra)

    def environment(self):
        return {"MILLRACE_SIMULATED_CUDA": self.simulation.format(folder=self.folder.name)}

    def logged(self, event, **fields):
        """The fields of all lines of the log with this event and these fields."""
        lines = []
        for line in list(self.errors):
            found = {key: value.strip('"') for key, value in re.findall(r'(\w+)=("[^"]*"|\S+)', line)}
            if found.get("event") == event and all(found.get(key) == value for key, value in fields.items()):
                lines.append(found)
        return lines

    def touch(self, name):
        with open(os.path.join(self.folder.name, name), "w"):
            pass

    def remove(self, name):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.folder.name, name))

    def calls(self):
        """The number of calls of each CUDA function. Requires that the service has ended, and that the simulation has `calls`."""
        with open(os.path.join(self.folder.name, "calls")) as file:
            return {name: int(count) for name, count in map(str.split, file)}


class GpuFaultTest(WorkerFaultTest):
    def simulated(self, simulation="devices=2", gpu="", pipeline="", limits=""):
        """With `check-leaks`, the service ends with an exit code other than 0 if a resource of a device is not freed."""
        pipelines = f"[[pipeline]]\nchunk = {{ size = 1600 }}\n{pipeline}"
        extra = f"[limits]\n{limits}\n[gpu]\n{gpu}\n"
        service = SimulatedService(simulation, pipelines, extra)
        self.addCleanup(service.close)
        return service

    def on(self, service, device, **of_hello):
        """A worker on a device, which sends heartbeats."""
        worker = RawWorker(service.workers, device=device, **of_hello).attached().beat()
        self.addCleanup(worker.close)
        return worker

    def honest_on(self, service, device, **of_hello):
        honest = Honest(RawWorker(service.workers, device=device, **of_hello).attached().beat())
        self.addCleanup(honest.close)
        return honest

    def refused(self, service, device):
        """The code and the message with which a worker on this device is refused."""
        worker = RawWorker(service.workers, device=device)
        self.addCleanup(worker.close)
        return worker.receive()[1]
