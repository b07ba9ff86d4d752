# SPDX-License-Identifier: Apache-2.0
"""The process: CPU, memory, descriptors, threads, log, configuration."""
from frame import made
from panels import GREEN, RED, YELLOW, heat, lines, named, number, quantiles, rates

STATE = [
    number("Uptime", "s", "Of the process that was started last. Short without a rollout: it was restarted. [Runbook](${runbooks}/MillraceRestarting.md)",
           "min(time() - process_start_time_seconds{@})", width=4),
    named("Version", "Version and revision that run. Several: a rollout is under way.", "count by (version, revision) (millrace_build_info{@})", "{{version}} {{revision}}", width=5),
    number("Ready", "none", "*no*: new clients are sent elsewhere; `/readyz` gives the reasons. [Runbook](${runbooks}/MillraceNoWorker.md)",
           "min(millrace_ready{@})", limits={}, texts={"0": ("no", RED), "1": ("yes", GREEN)}),
    number("Last reload", "none", "*refused*: the file has an error, or changes a key that needs a restart; the previous configuration stays. [Runbook](${runbooks}/MillraceConfigReloadFailed.md)",
           "min(millrace_config_last_reload_successful{@})", limits={}, texts={"0": ("refused", RED), "1": ("good", GREEN)}),
    number("Configuration age", "s", "Since the last successful start or reload.", "max(time() - millrace_config_last_reload_success_timestamp_seconds{@})", width=4),
    number("Warnings in the last hour", "short", "Log lines of level warning. Details are in the log.", 'sum(increase(millrace_log_messages_total{@,level="warning"}[1h]))', width=5, limits={1: YELLOW}),
]
RESOURCES = [
    lines("CPU", "none", "Cores in use, user and system. Near the number of io threads: raise `[listen] threads` or add an instance.", ("sum by (instance) (rate(process_cpu_seconds_total{@}[@]))", "{{instance}}")),
    lines("Memory", "bytes", "Resident memory, and the memory that the process could have. At 80 % new streams are refused. [Runbook](${runbooks}/MillraceOverloaded.md)",
          ("sum by (instance) (process_resident_memory_bytes{@})", "{{instance}}"), ("sum by (instance) (millrace_memory_limit_bytes{@})", "limit of {{instance}}")),
    lines("Measures because memory is short", "none", "1 while it is active. [Runbook](${runbooks}/MillraceOverloaded.md)", ("max by (instance, action) (millrace_overload_action_active{@})", "{{instance}} {{action}}"), most=1),
    lines("Frame buffers", "percentunit", "Bytes of frames that wait in streams, of their limit. Growing: workers are too slow, and clients are paused in the end.",
          ("sum by (instance) (millrace_chunk_buffer_bytes{@}) / sum by (instance) (millrace_chunk_buffer_limit_bytes{@})", "{{instance}}")),
    lines("File descriptors", "percentunit", "Part of the descriptors that are open. The alert fires above 80 %. [Runbook](${runbooks}/MillraceFdsNearLimit.md)",
          ("sum by (instance) (process_open_fds{@}) / sum by (instance) (process_max_fds{@})", "{{instance}}"), most=1, limits={0.8: RED}),
    lines("Threads", "short", "A constant number; it grows only with pipelines and devices.", ("sum by (instance) (process_threads{@})", "{{instance}}")),
]
LOOPS = [
    heat("Event loop lag", "s", "How late a periodic timer of the io threads is. Above some ms: too little CPU, or a thread that is busy.", "millrace_event_loop_lag_seconds_bucket"),
    quantiles("Percentiles of the lag", "millrace_event_loop_lag_seconds", "Delays stage `chunk` and every other stage. More CPU, or more `[listen] threads`.", at=(0.5, 0.99, 0.999), width=12),
]
LOG = [
    lines("Log lines", "cps", "Warnings and errors per second, those included that the log only sums up. `dropped`: standard error is too slow for them.",
          ("sum by (level) (rate(millrace_log_messages_total{@}[@]))", "{{level}}"), ("sum(rate(millrace_log_lines_dropped_total{@}[@]))", "dropped"), width=12),
    rates("Jumps of the wall clock", "millrace_clock_jumps_total", "direction", "Steps of more than 0.5 s. They only change times in the log. Repeated: repair the time synchronisation.", width=6),
    lines("Draining", "none", "1 from SIGTERM until the exit.", ("max by (instance) (millrace_draining{@})", "{{instance}}"), width=6, most=1),
]


def board():
    return made("process", "process", "CPU, memory, descriptors, event loops, log and configuration of each instance.",
                [("", STATE), ("Resources", RESOURCES), ("Event loops", LOOPS), ("Log and state", LOG)], pipeline=False)
