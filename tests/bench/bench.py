#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Latency, bandwidth and message rate of unmodified perftest beside what the memory
of this machine can do, measured in turns so that both see the same machine.

bench.py BUILD [--json] [--rounds N]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../smoke'))
import report  # noqa: E402
from host import Failure, Host, Pair, SKIP  # noqa: E402

# name, program, what its output means, the limit it stands beside
MEASURES = [
    ('2 B write latency', ['ib_write_lat', '-s', '2', '-n', '20000'], report.latency, 'bounce'),
    ('2 B send latency', ['ib_send_lat', '-s', '2', '-n', '20000'], report.latency, 'bounce'),
    ('2 B read latency', ['ib_read_lat', '-s', '2', '-n', '20000'], report.latency, 'bounce'),
    ('64 KiB write bandwidth', ['ib_write_bw', '-s', '65536', '-n', '10000'], report.bandwidth,
     'copy_crc'),
    ('8 B write rate', ['ib_write_bw', '-s', '8', '-n', '100000', '-N'], report.message_rate,
     'bounce_rate'),
]

LIMITS = {
    'bounce': 'cache line, one way',
    'bounce_rate': 'cache lines, one way, a second',
    'copy_crc': 'copy + CRC-32, 4 KiB packets',
    'memcpy': 'memcpy, 4 KiB packets',
}


def unit(name):
    if 'latency' in name or name == 'bounce':
        return lambda value: f'{value * 1e9:8.0f} ns'
    if 'rate' in name:
        return lambda value: f'{value / 1e6:8.2f} M/s'
    return lambda value: f'{value / 1e9:8.2f} GB/s'


class Pinned:
    """The host with its programs held to one CPU."""

    def __init__(self, host, cpu):
        self.host = host
        self.cpu = cpu

    def start(self, *argv, **options):
        return self.host.start('taskset', '-c', str(self.cpu), *argv, **options)


def measure_limits(build, cpus):
    result = json.loads(subprocess.run(
        [os.path.join(build, 'tests/bench/limits'), *map(str, cpus)],
        check=True, capture_output=True, text=True).stdout)
    bounce = result['bounce_ns'] * 1e-9
    return {'bounce': bounce, 'bounce_rate': 1 / bounce, 'memcpy': result['memcpy'],
            'copy_crc': result['copy_crc']}


def measure(host, cpus, argv, value):
    ends = [Pinned(host, cpu) for cpu in cpus]
    return report.measured(
        lambda: Pair(*ends, [argv[0], '-F', *argv[1:]]).finish(120)[1], value)


def run(build, rounds):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        print('bench needs two CPUs')
        sys.exit(SKIP)
    values = {name: [] for name in [*LIMITS, *(row[0] for row in MEASURES)]}
    with Host(build, daemon=False) as host:
        for _ in range(rounds):
            for name, value in measure_limits(build, cpus).items():
                values[name].append(value)
            for name, argv, value, _ in MEASURES:
                values[name].append(measure(host, cpus, argv, value))
    return values


def summary(values):
    """Median and spread of everything, and the ratio of each figure to its limit."""
    limit_of = {row[0]: row[3] for row in MEASURES}
    result = {}
    for name, samples in values.items():
        median = statistics.median(samples)
        result[name] = {'median': median, 'least': min(samples), 'most': max(samples)}
        if name in limit_of:
            limit = statistics.median(values[limit_of[name]])
            result[name]['limit'] = limit_of[name]
            # How many times the limit's time this takes.
            result[name]['ratio'] = (median / limit if 'latency' in name else limit / median)
    return result


def print_table(result, rounds):
    print(f'{"":32}{"median":>13}{"least":>13}{"most":>13}   times the limit\'s time')
    for name, row in result.items():
        show = unit(name)
        ratio = ''
        if 'ratio' in row:
            ratio = f'{row["ratio"]:10.1f}   {LIMITS[row["limit"]]}'
        print(f'{LIMITS.get(name, name):32}{show(row["median"]):>13}{show(row["least"]):>13}'
              f'{show(row["most"]):>13}{ratio}')
    print(f'medians of {rounds} rounds; each round measures every line once')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--json', action='store_true')
    parser.add_argument('--rounds', type=int, default=5)
    options = parser.parse_args()
    try:
        result = summary(run(options.build, options.rounds))
    except Failure as failure:
        sys.exit(f'bench: {failure}')
    if options.json:
        print(json.dumps({'rounds': options.rounds, 'results': result}, indent=1))
    else:
        print_table(result, options.rounds)


main()
