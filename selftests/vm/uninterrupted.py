#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What was counted while uninterrupted.c ran (selftests/bench/switch/sections.c says how).

    uninterrupted.py FIGURES
"""
import sys

MOST = 20000

# Each of these others can reach: (kind, functions, of which the compiler may have left any).
PATHS = [
    ("lock", ["kbarman_tables_add_task"]),
    ("lock", ["kbarman_tables_exit_task"]),
    ("lock", ["kbarman_tables_free_task"]),
    ("lock", ["kbarman_tables_add_map"]),
    ("lock", ["kbarman_tables_end_maps"]),
    ("lock", ["kbarman_tables_add_series"]),
    ("lock", ["kbarman_header_miss"]),
    ("lock", ["kbarman_account_open"]),
    ("lock", ["kbarman_account_close"]),
    ("lock", ["ended_gather_some", "kbarman_ended_gather", "collector_collect", "collector_work"]),
    ("lock", ["ended_empty_some", "ended_empty", "collector_collect", "collector_work"]),
    ("entry", ["on_sched_switch_chain"]),
    ("entry", ["on_cpu_idle"]),
    ("entry", ["on_waking"]),
    ("entry", ["on_waking_new"]),
    ("entry", ["on_irq_entry"]),
    ("entry", ["on_ipi_entry"]),
    ("entry", ["on_softirq_raise"]),
    ("entry", ["kbarman_pmu_overflow_chain"]),
    ("entry", ["collector_kick"]),
    ("entry", ["maps_kick"]),
    ("entry", ["on_mmap"]),
    ("entry", ["on_move"]),
]


def figures(path):
    """(kind, function): (times, most)"""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            kind, function, times, most = line.split()
            found[kind, function] = int(times), int(most)
    return found


def main():
    found = figures(sys.argv[1])
    for (kind, function), (times, most) in sorted(found.items(), key=lambda item: -item[1][1]):
        print(f"# {most:6} instructions at most, {times:7} times: {kind} {function}")
    missing = [path for path in PATHS if not any((path[0], f) in found for f in path[1])]
    for kind, functions in missing:
        print(f"# never: {kind} {' or '.join(functions)}")
    above = [key for key, (_, most) in found.items() if most > MOST]
    results = ((not missing, "every_path_was_counted"),
               (found and not above,
                f"nothing_takes_more_than_{MOST}_instructions_without_interrupts"))
    for number, (good, name) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    print(f"1..{len(results)}")
    sys.exit(not all(good for good, _ in results))


if __name__ == "__main__":
    main()
