# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The rows of `./dev bench --guest`: urxe beside Linux' rdma_rxe in the same virtual machines, and (group hca) urxe over
rdma_rxe as its HCA beside the same programs directly on rxe0.
"""
import report
from machines import Crc, IcrcShare, Perftest, Station, Used
from rows import Row

PEERS = {}
# The CRC of each stack on a CPU without carry-less multiplication.
STACKS = {'urxe': 'zlib', 'rxe': 'kernel'}
SIZE = 65536
HCA = 'hca'
GSO = 'two machines with UDP GSO'  # of GsoMachines
PLACES = {'one machine': False, 'two machines': True}
# The transports of operations that can be copied between processes.
PACKETS = ', in packets'


# Without a process in between, and without an engine.
ONE_THREAD = {
    'latency': {'engine and port in one thread, latency': Station('send_latency_s'),
                'bare frames, latency': Station('frame_latency_s', '--bare')},
    'bandwidth': {'engine and port in one thread, bandwidth': Station('write_bytes_per_s'),
                  'bare frames, bandwidth': Station('stream_bytes_per_s', '--bare')},
}
for peers in ONE_THREAD.values():
    PEERS.update(peers)


def row(group, name, unit, make):
    """A row; make(stack) returns its measure."""
    beside = f'rdma_rxe, {name}, {group}'
    PEERS[beside] = make('rxe')
    limits = [peer for kind, peers in ONE_THREAD.items() if kind in name and PLACES[group] for peer in peers]
    return Row(group, f'{name}, {group}', unit, make('urxe'), [beside, *limits])


class Runs:
    """A run of perftest for each stack, whose figures belong to several rows."""

    def __init__(self, *what, weighed=True, transport='auto'):
        self.runs = {stack: Perftest(stack, *what, weighed, transport) for stack in STACKS}

    def figure(self, stack):
        return self.runs[stack]

    def used(self, stack):
        return Used(self.runs[stack])

    def share(self, stack):
        return IcrcShare(self.runs[stack], Crc(STACKS[stack], SIZE))


def may_be_copied(operation, apart):
    return operation != 'send' and not apart


def ways(operation, apart):
    """The transports to measure, with the suffixes of their row names."""
    packets = [('packet', PACKETS)] if may_be_copied(operation, apart) else []
    return [('auto', ''), *packets]


def latency_rows():
    for group, apart in PLACES.items():
        for operation in ('write', 'send', 'read'):
            for transport, end in ways(operation, apart):
                runs = Runs(f'ib_{operation}_lat -s 2', 1000, report.latency, apart, weighed=False,
                            transport=transport)
                yield row(group, f'{operation} latency, 2 B{end}', 's', runs.figure)


def bandwidth_rows():
    for group, apart in PLACES.items():
        for operation in ('write', 'send', 'read'):
            for transport, end in ways(operation, apart):
                yield from bandwidth_rows_of(group, operation, transport, end)


def bandwidth_rows_of(group, operation, transport, end):
    apart = PLACES[group]
    packets = transport == 'packet' or not may_be_copied(operation, apart)
    # Enough messages to separate their cost from the programs' start.
    messages = 600 if apart else 2000 if packets else 20000
    runs = Runs(f'ib_{operation}_bw -s {SIZE}', messages, report.bandwidth, apart,
                transport=transport)
    yield row(group, f'{operation} bandwidth, 64 KiB{end}', 'B/s', runs.figure)
    yield row(group, f'{operation} processor time, 64 KiB{end}', 's', runs.used)
    # Copies by the kernel have no ICRC.
    if apart or transport == 'packet':
        yield row(group, f'{operation} share of the ICRC, 64 KiB{end}', 'CPU', runs.share)


def rate_rows():
    for group, apart in PLACES.items():
        runs = Runs('ib_send_bw -s 64', 8000 if apart else 20000, report.message_rate, apart)
        yield row(group, 'send rate, 64 B', '/s', runs.figure)
        yield row(group, 'send processor time, 64 B', 's', runs.used)


def hca_row(place, apart, name, unit, *what):
    """perftest on urxe0, which rxe0 executes, and on rxe0 itself."""
    own = f'rdma_rxe itself, {name}, {place}'
    PEERS[own] = Perftest('hca itself', *what, apart)
    return Row(HCA, f'{name}, over rxe0, {place}', unit, Perftest('hca', *what, apart), [own])


def hca_rows():
    for place, apart in PLACES.items():
        for operation in ('write', 'send', 'read'):
            yield hca_row(place, apart, f'{operation} latency, 2 B', 's', f'ib_{operation}_lat -s 2', 1000, report.latency)
        for operation in ('write', 'send', 'read'):
            yield hca_row(place, apart, f'{operation} bandwidth, 64 KiB', 'B/s', f'ib_{operation}_bw -s {SIZE}', 600,
                          report.bandwidth)


def gso_rows():
    for name, unit, *what in [('send latency, 2 B', 's', 'ib_send_lat -s 2', 1000, report.latency),
                              ('write bandwidth, 64 KiB', 'B/s', f'ib_write_bw -s {SIZE}', 600, report.bandwidth),
                              ('read bandwidth, 64 KiB', 'B/s', f'ib_read_bw -s {SIZE}', 600, report.bandwidth)]:
        beside = f'rdma_rxe, {name}, {GSO}'
        PEERS[beside] = Perftest('rxe', *what, True)
        yield Row(GSO, f'{name}, {GSO}', unit, Perftest('urxe', *what, True), [beside])


ROWS = [*latency_rows(), *bandwidth_rows(), *rate_rows(), *hca_rows(), *gso_rows()]
GROUPS = [*PLACES, HCA, GSO]
