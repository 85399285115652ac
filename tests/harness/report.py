# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Parses and checks the output of perftest and of the pingpong examples."""
import math
import os
import re

from host import Failure

# Lines of figures: size, iterations, then bandwidth and rate, or latencies.
ROW = re.compile(r'^ *(\d+) +(\d+)((?:[ \t]+(?:[\d.]+|inf|-?nan)){2,})[ \t]*$', re.MULTILINE)
PINGPONG = re.compile(r'^(\d+) iters in [\d.]+ seconds = ([\d.]+) usec/iter', re.MULTILINE)


def rows(text):
    """perftest's table: (size, iterations, [figures])."""
    return [(int(size), int(iterations), [float(figure) for figure in figures.split()])
            for size, iterations, figures in ROW.findall(text)]


def last_figures(text):
    if not rows(text):
        raise Failure(f'no row of figures:\n{text}')
    return rows(text)[-1][2]


def bandwidth(text):
    """Average bandwidth of the last row, bytes per second (perftest prints MiB/s)."""
    return last_figures(text)[1] * 2**20


def message_rate(text):
    """Messages per second of the last row (perftest prints millions)."""
    return last_figures(text)[2] * 1e6


def latency(text):
    """Typical (median) one-way latency of the last row, seconds."""
    return last_figures(text)[2] * 1e-6


def measured(run, figure, tries=5):
    """
    A figure from the output of run(). Repeats the run if perftest prints 0 or inf: on a busy machine it fails to
    calibrate its clock.
    """
    for _ in range(tries):
        text = run()
        value = figure(text)
        if value > 0 and math.isfinite(value):
            return value
    raise Failure(f'perftest gave no figures in {tries} runs:\n{text}')


def check_perftest(text, sizes):
    """Every size must have a row. The figures may be 0, because perftest's clock may be wrong."""
    found = rows(text)
    if not found or (sizes and [row[0] for row in found] != sizes):
        raise Failure(f'rows for sizes {[row[0] for row in found]}, not {sizes}:\n{text}')


def check_pingpong(text):
    # With -c wrong contents show in the text only; the exit status is 0.
    if not PINGPONG.search(text) or re.search('invalid data', text):
        raise Failure(f'unexpected output:\n{text}')


def all_sizes(argv, mtu=4096):
    """The sizes that perftest -a runs: powers of two from 2, for UD up to the MTU."""
    if '-a' not in argv:
        return None
    return [1 << bit for bit in range(1, mtu.bit_length() if 'UD' in argv else 24)]


def check(argv, server, client, mtu=4096):
    """Checks the output of server and client of a known program."""
    program = os.path.basename(argv[0])
    if program.startswith('ibv_'):
        check_pingpong(server)
        check_pingpong(client)
    elif program.startswith('ib_'):
        check_perftest(client, all_sizes(argv, mtu))
