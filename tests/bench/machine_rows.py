# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The rows of `./dev bench --guest`: urxe, with Linux' rdma_rxe beside it, in the same virtual machines."""
import report
from machines import Crc, IcrcShare, Perftest, Used
from rows import Row

PEERS = {}
STACKS = {'urxe': 'isal', 'rxe': 'kernel'}  # and whose CRC it is
SIZE = 65536
PLACES = {'one machine': False, 'two machines': True}


def row(group, name, unit, make):
    """make(stack) gives what is measured."""
    beside = f'rdma_rxe, {name}, {group}'
    PEERS[beside] = make('rxe')
    return Row(group, f'{name}, {group}', unit, make('urxe'), [beside])


class Runs:
    """A run of perftest for each stack, of which several rows have something to say."""

    def __init__(self, *what, weighed=True):
        self.runs = {stack: Perftest(stack, *what, weighed) for stack in STACKS}

    def figure(self, stack):
        return self.runs[stack]

    def used(self, stack):
        return Used(self.runs[stack])

    def share(self, stack):
        return IcrcShare(self.runs[stack], Crc(STACKS[stack], SIZE))


def latency_rows():
    for group, apart in PLACES.items():
        for operation in ('write', 'send', 'read'):
            runs = Runs(f'ib_{operation}_lat -s 2', 1000, report.latency, apart, weighed=False)
            yield row(group, f'{operation} latency, 2 B', 's', runs.figure)


def bandwidth_rows():
    for group, apart in PLACES.items():
        for operation in ('write', 'send', 'read'):
            runs = Runs(f'ib_{operation}_bw -s {SIZE}', 600 if apart else 2000, report.bandwidth, apart)
            yield row(group, f'{operation} bandwidth, 64 KiB', 'B/s', runs.figure)
            yield row(group, f'{operation} processor time, 64 KiB', 's', runs.used)
            yield row(group, f'{operation} share of the ICRC, 64 KiB', 'CPU', runs.share)


def rate_rows():
    for group, apart in PLACES.items():
        runs = Runs('ib_send_bw -s 64', 8000 if apart else 20000, report.message_rate, apart)
        yield row(group, 'send rate, 64 B', '/s', runs.figure)
        yield row(group, 'send processor time, 64 B', 's', runs.used)


ROWS = [*latency_rows(), *bandwidth_rows(), *rate_rows()]
GROUPS = list(PLACES)
