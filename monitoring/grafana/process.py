# SPDX-License-Identifier: Apache-2.0
"""The process: CPU, memory, descriptors, threads, log, configuration."""
from frame import made
from panels import GREEN, RED, YELLOW, heat, lines, named, number, quantiles, rates


def own(expr):
    """Other programs export families `process_*` too: the part of `expr` whose targets are Millrace."""
    return expr + " and on (job, instance) millrace_build_info{@}"


STATE = [
    number("Uptime", "s", "Age of the process that was started last. If it is short without a rollout, the process was restarted. [Runbook](${runbooks}/MillraceRestarting.md)",
           f"min({own('time() - process_start_time_seconds{@}')})", width=4),
    named("Version", "Versions and revisions that run now. More than one: a rollout is under way.", "count by (version, revision) (millrace_build_info{@})", "{{version}} {{revision}}", width=4),
    number("Ready", "none", "*no*: load balancers send new clients elsewhere; `/readyz` gives the reasons. [Runbook](${runbooks}/MillraceNoWorker.md)",
           "min(millrace_ready{@})", limits={}, texts={"0": ("no", RED), "1": ("yes", GREEN)}),
    number("Last reload", "none", "*refused*: the file has an error, or changes a key that needs a restart. The previous configuration stays in effect. [Runbook](${runbooks}/MillraceConfigReloadFailed.md)",
           "min(millrace_config_last_reload_successful{@})", limits={}, texts={"0": ("refused", RED), "1": ("good", GREEN)}),
    number("Configuration age", "s", "Time since the last successful start or reload.", "max(time() - millrace_config_last_reload_success_timestamp_seconds{@})"),
    number("Certificate expires in", "s", "Time until the TLS certificate expires. Only with `[tls]`. The alert fires at 14 days. [Runbook](${runbooks}/MillraceCertificateExpiresSoon.md)",
           "min(millrace_tls_certificate_expiry_seconds{@} - time())"),
    number("Warnings in the last hour", "short", "Log lines of level warning. `/log` has the last 100.", 'sum(increase(millrace_log_messages_total{@,level="warning"}[1h]))', width=4, limits={1: YELLOW}),
]
RESOURCES = [
    lines("CPU", "none", "Cores in use, user and system. If it is near the number of io threads, raise `[listen] threads` or add an instance.", (f"sum by (instance) ({own('rate(process_cpu_seconds_total{@}[@])')})", "{{instance}}")),
    lines("Memory", "bytes", "Resident memory, and the memory available to the process. At 80 % new streams are refused. [Runbook](${runbooks}/MillraceOverloaded.md)",
          (f"sum by (instance) ({own('process_resident_memory_bytes{@}')})", "{{instance}}"), ("sum by (instance) (millrace_memory_limit_bytes{@})", "limit of {{instance}}")),
    lines("Actions against memory pressure", "none", "1 while the action is active because memory is short. [Runbook](${runbooks}/MillraceOverloaded.md)", ("max by (instance, action) (millrace_overload_action_active{@})", "{{instance}} {{action}}"), most=1),
    lines("Frame buffers", "percentunit", "Bytes of frames that wait in streams, as a share of their limit. If it grows, workers are too slow, and clients are paused in the end.",
          ("sum by (instance) (millrace_chunk_buffer_bytes{@}) / sum by (instance) (millrace_chunk_buffer_limit_bytes{@})", "{{instance}}")),
    lines("File descriptors", "percentunit", "Share of the file descriptors that are open. The alert fires above 80 %. [Runbook](${runbooks}/MillraceFdsNearLimit.md)",
          (f"sum by (instance) ({own('process_open_fds{@} / process_max_fds{@}')})", "{{instance}}"), most=1, limits={0.8: RED}),
    lines("Threads", "short", "Changes only with the workers on GPUs and their devices.", (f"sum by (instance) ({own('process_threads{@}')})", "{{instance}}")),
]
LOOPS = [
    heat("Event loop lag", "s", "Delay of a periodic timer of the io threads. Above a few ms, there is too little CPU, or a thread is busy.", "millrace_event_loop_lag_seconds_bucket"),
    quantiles("Percentiles of the lag", "millrace_event_loop_lag_seconds", "The lag delays stage `chunk` and every other stage. Use more CPU, or raise `[listen] threads`.", at=(0.5, 0.99, 0.999), width=12),
]
LOG = [
    lines("Log lines", "cps", "Warnings and errors per second, including those that the log only sums up. `dropped`: lines that standard error could not take.",
          ("sum by (level) (rate(millrace_log_messages_total{@}[@]))", "{{level}}"), ("sum(rate(millrace_log_lines_dropped_total{@}[@]))", "dropped"), width=12),
    rates("Jumps of the wall clock", "millrace_clock_jumps_total", "direction", "Steps of more than 0.5 s. They change only times in the log. If they repeat, correct the time synchronisation.", width=6),
    lines("Draining", "none", "1 from SIGTERM until the process exits.", ("max by (instance) (millrace_draining{@})", "{{instance}}"), width=6, most=1),
]


def board():
    return made("process", "process", "CPU, memory, descriptors, event loops, log and configuration of each instance.",
                [("", STATE), ("Resources", RESOURCES), ("Event loops", LOOPS), ("Log and state", LOG)], pipeline=False)
