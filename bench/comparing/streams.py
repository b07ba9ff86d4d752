# SPDX-License-Identifier: Apache-2.0
"""Figures of the traffic of `millrace bench`: to the service and its worker, and to a server that only
receives it."""
import contextlib

from comparing.figure import ANY, Figure, at_most
from comparing.programs import BareServer, Failed, Service, pipeline


class Traffic:
    """A load of `streams` streams for `seconds`. The service keeps running between rounds."""

    def __init__(self, programs, streams, seconds, packet="100ms", phase="uniform", answers=False, max_wait="0ms"):
        self.programs, self.streams, self.seconds, self.answers = programs, streams, seconds, answers
        self.warm_up = min(1.0, seconds / 2)
        self.pipeline = pipeline(slots=streams, chunk=packet, rows=256, max_wait=max_wait)
        self.plan = ["--streams", str(streams), "--packet", packet, "--phase", phase, "--duration",
                     f"{round(1000 * seconds)}ms", "--warm-up", f"{round(1000 * self.warm_up)}ms"]

    @contextlib.contextmanager
    def service(self):
        with Service(self.programs, self.pipeline) as service:
            yield service

    def ours(self, service):
        worker = ["--worker", "answer" if self.answers else "silent", "--workers", service.workers]
        return self.programs.load(service.port, service.pid, [*self.plan, *worker], self.seconds)

    def control(self):
        """The reports of `millrace bench` and of the server."""
        kind = "epoll --answer" if self.answers else "beast"
        with BareServer(self.programs, kind, self.warm_up, self.seconds) as bare:
            report = self.programs.load(bare.port, bare.pid, self.plan, self.seconds)
        if bare.report["messages"] != report["packets"] or bare.report["damaged"]:
            raise Failed(f"bare_server lost messages: {bare.report}, sent {report['packets']}")
        return report, bare.report


def cpu(report):
    return report["server"]["cpu_us_per_packet"]


def all_answered(report):
    if report["results"] != report["packets"]:
        raise Failed(f"{report['results']} results of {report['packets']} packets")


def measured(report, times, part="p99"):
    if not report[times]:
        raise Failed(f"{times} was never measured: {report}")
    return report[times][part]


def generator(ours, control):
    """The lateness of `millrace bench` and its CPU per packet: they show whether it limits a run."""
    return {"lateness_us": measured(ours, "lateness_us"), "control_lateness_us": measured(control, "lateness_us"),
            "clients_cpu_us": ours["cpu_us_per_packet"], "control_clients_cpu_us": control["cpu_us_per_packet"],
            "worker_cpu_us": ours["worker"]["cpu_us_per_packet"]}


def in_only(programs, streams, seconds, rounds, late, cost=ANY, packet="100ms", max_wait="0ms"):
    """Latency until the worker, which does not answer, and the server's CPU."""
    name = f"in_{streams}" + ("" if packet == "100ms" else f"_{packet}")
    latency, costs = Figure(f"{name}_p99", "us", late), Figure(f"{name}_cpu", "us/packet", cost)
    traffic = Traffic(programs, streams, seconds, packet, max_wait=max_wait)
    with traffic.service() as service:
        for _ in range(rounds):
            (control, bare), ours = traffic.control(), traffic.ours(service)
            latency.add(measured(ours, "row_us"), bare["p99_us"], **generator(ours, control))
            costs.add(cpu(ours), cpu(control), **generator(ours, control))
    return [latency, costs] if late else [costs]


def answered(programs, streams, seconds, rounds):
    """Latency until the client has the result, one for each packet, and the server's CPU."""
    latency = Figure(f"answers_{streams}_p99", "us", at_most(2000))
    costs = Figure(f"answers_{streams}_cpu", "us/packet", at_most(times=1.5))
    traffic = Traffic(programs, streams, seconds, answers=True, max_wait="1ms")
    with traffic.service() as service:
        for _ in range(rounds):
            (control, _), ours = traffic.control(), traffic.ours(service)
            all_answered(control)
            all_answered(ours)
            latency.add(measured(ours, "result_us"), measured(control, "result_us"), **generator(ours, control))
            costs.add(cpu(ours), cpu(control), **generator(ours, control))
    return [latency, costs]


def burst(programs, streams, seconds, rounds):
    """All streams send at once: time until the worker has the last row."""
    last = Figure(f"burst_{streams}_last", "us", at_most(5000))
    traffic = Traffic(programs, streams, seconds, phase="step")
    with traffic.service() as service:
        for _ in range(rounds):
            (control, bare), ours = traffic.control(), traffic.ours(service)
            last.add(measured(ours, "burst_us", "p50"), bare["burst_p50_us"], **generator(ours, control))
    return [last]
