# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The rows of `./dev bench --vm`: PVRDMA beside Linux' rdma_rxe and TCP on the vmxnet3 of the same virtual machines, and
the device process beside the engine alone.
"""
import report
from machines import Perftest
from measure import Given
from rows import Row
from vms import Alone, IdleDevice, Path, TcpBandwidth, TcpLatency, WithHost

GIB = 1 << 30
SIZE = 65536
MANY = 1024  # queue pairs
# Messages of each queue pair. Those that it posts before its first acknowledgement, up to 16, go in packets; then copies
# begin. With few messages the row would measure that beginning.
EACH = 128
APART = 1  # the client's machine
PLACES = {'one vm': 0, 'two vms': APART, 'vm and host': 'host'}
STACKS = {'pvrdma': '', 'mapped': ', mapped doorbells'}
DEVICE = 'device process'
TCP_LATENCY, TCP_BANDWIDTH = 'TCP latency, two vms', 'TCP bandwidth, two vms'
PATIENCE = '-u 18'  # the default timeout is too short for emulated processors

PEERS = {TCP_LATENCY: TcpLatency(), TCP_BANDWIDTH: TcpBandwidth(), '0.1 %': Given(0.001), '50 ms': Given(0.05)}


def rows_of(group, name, unit, make, beside=()):
    """A row for trapped doorbells, and one for mapped ones; make(stack) returns their measure."""
    peer = f'rdma_rxe, {name}, {group}'
    PEERS[peer] = make('rxe')
    for stack, title in STACKS.items():
        yield Row(group, f'{name}{title}, {group}', unit, make(stack), [peer, *beside])


def transfer(place, argv, messages, figure):
    argv = f'{argv} {PATIENCE}'
    if place == 'host':
        return lambda stack: WithHost(stack, argv, messages, figure)
    return lambda stack: Perftest(stack, argv, messages, figure, place)


def message_rows():
    for group, place in PLACES.items():
        latency, bandwidth = ([TCP_LATENCY], [TCP_BANDWIDTH]) if place == APART else ([], [])
        for operation in ('write', 'send'):
            yield from rows_of(group, f'{operation} latency, 2 B', 's',
                               transfer(place, f'ib_{operation}_lat -s 2', 1000, report.latency), latency)
        for operation in ('write', 'send', 'read'):
            yield from rows_of(group, f'{operation} bandwidth, 64 KiB', 'B/s',
                               transfer(place, f'ib_{operation}_bw -s {SIZE}', 1000, report.bandwidth), bandwidth)


def one_thread_rows():
    """Latency without a second program that wants a processor."""
    for operation in ('write', 'send'):
        yield from rows_of('one vm', f'{operation} latency, 2 B, one thread', 's',
                           lambda stack, argv=f'one_thread {operation} {{gid}}': Alone(stack, argv))


def many_row():
    """As many messages with one queue pair as with many."""
    one, many = (f'write rate, 4 KiB, {count}, two vms' for count in ('1 QP', f'{MANY} QPs'))

    def measure(count, depth, messages):
        argv = f'ib_write_bw -s 4096 -q {count} -t {depth} {PATIENCE}'
        return Perftest('pvrdma', argv, messages, report.message_rate, APART)

    PEERS[one] = measure(1, 128, EACH * MANY)
    return Row('two vms', many, '/s', measure(MANY, 16, EACH), [one])


def machine_rows():
    registration = 'rdma_rxe, registration, 1 GiB'
    PEERS[registration] = Alone('rxe', f'register_large {GIB}')
    yield Row('one vm', 'registration, 1 GiB', 's', Alone('pvrdma', f'register_large {GIB}'), [registration, '50 ms'])
    yield from rows_of('one vm', 'poll of an empty CQ', 's', lambda stack: Alone(stack, 'empty_poll'))
    for stack, title in STACKS.items():
        yield Row('one vm', f'device process of an idle machine{title}', 'CPU', IdleDevice(stack), ['0.1 %'])


def device_rows():
    """The device process's own time, and the engine's part of it."""
    for name, size in ('2 B', 2), ('4 KiB', 4096):
        for step, what, engine in [('doorbell to frame', 'doorbell', 'engine-post'),
                                   ('frame to completion', 'completion', 'engine-complete')]:
            peer = f'engine alone, {step}, {name}'
            PEERS[peer] = Path(engine, size)
            yield Row(DEVICE, f'{step}, {name}', 's', Path(what, size), [peer])
    yield Row(DEVICE, 'command that registers 1 GiB', 's', Path('register', GIB), ['50 ms'])
    for count in 64, MANY:
        yield Row(DEVICE, f'look at the rings of {count} QPs', 's', Path('poll', count))


ROWS = [*message_rows(), many_row(), *one_thread_rows(), *machine_rows(), *device_rows()]
GROUPS = list(dict.fromkeys(row.group for row in ROWS))
