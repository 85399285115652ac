# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The rows of the table: measures of urxe, and the limits and peers beside them."""
import functools

from applications import Alltoall, DiskReads, Solved, Solver
from crowded import ConnectMany, Incast, Incasts
from failover import Balanced, Failover
from hca import IdleDaemon, LatencyOverUrxe, LatencyWithoutHca, PortChange, StartOfDaemon, StartOfProgram
from migration import Migration, Migrations
import report
from measure import (Alone, BytesForInstruction, Given, Hook, Hooks, Idle, Instructions, Iperf, Joined,
                     JoinedAnew, Limit, Never, Peer, Perftest, PerSecond, PolledTcp, Qperf, SEGMENTATION, Ucx)
from station import BareFrames, IdleByCable, Memif, Station, Taps, Veth, Vhost

SIZES = {'64 B': 64, '4 KiB': 4096, '64 KiB': 65536, '1 MiB': 1 << 20, '8 MiB': 8 << 20}
SHARED = 'posix,sysv,cma'
# Interface MTUs for a RoCE path MTU of 4096 and 2048; a TCP segment then has 4,148 and 2,148 bytes.
# The maximum MTU of af_xdp on veth is 3000.
VETH_MTU = {'af_packet': 4200, 'af_xdp': 2200}
OFFLOADS = 'offloads'  # a veth cable with the kernel's segmentation offloads; uplink and MTU follow
THROUGH_URXED = 'through urxed'  # without the direct uplink of af_packet
NETWORKS = ['af_packet', f'af_packet {THROUGH_URXED}', 'af_xdp']
TAP_MTU = 1500  # urxe uses two taps and a bridge here, and TCP a veth cable
CONNECTIONS = 500
SCALE = [64, 1024, 16384]  # queue pairs of a process
PERFTEST_QPS = 1024
PAIRS = 32  # of processes
RING = 'ring of shared memory with copies and CRC-32, two cores'
POLLED = 'TCP loopback, polled'
RELAY = 'two programs that spin and two daemons woken by eventfds, on two processors'
RELAY_APART = 'the same, each daemon on its program\'s processor'

# Limits and peers: name -> measure.
PEERS = {
    'cache line, one way': Limit('bounce'),
    'cache line, there and back': Limit('bounce', ways=2),
    'DPDK ring, one way': Limit('ring'),
    'DPDK ring, there and back': Limit('ring', ways=2),
    'stream of cache lines, two cores': Limit('stream'),
    'process_vm_writev, 2 B': Limit('vm_write:2'),
    'TCP loopback, polled, one way': Peer('tcp:2'),
    'TCP loopback, polled, there and back': Peer('tcp:2', ways=2),
    'eventfd wake-up, answered at once': Limit('wakeup'),
    'eventfd wake-up, after 1 ms of silence': Limit('wakeup_silent'),
    RELAY: Limit('relay'),
    RELAY_APART: Limit('relay_apart'),
    'one switch': Given(1),
    '4 KiB': Given(4096),
    '0.1 %': Given(0.001),
    'UCX tcp, put': Ucx('tcp', '-t ucp_put_lat -s 2 -n 20000', '50.0_percentile_lat'),
    'UCX tcp, tag': Ucx('tcp', '-t tag_lat -s 2 -n 20000', '50.0_percentile_lat'),
    # sock_io, src/tools/perf/perftest.c of UCX 1.13
    'UCX tcp, get': Never('the target of this test of ucx_perftest looks after UCX once in a millisecond of '
                          'poll(2), which is all that it measures'),
    'UCX tcp, fetch-and-add': Ucx('tcp', '-t ucp_fadd -s 8 -n 20000', '50.0_percentile_lat'),
    'UCX shared memory, put': Ucx(SHARED, '-t ucp_put_lat -s 2 -n 100000', '50.0_percentile_lat'),
    'UCX shared memory, tag': Ucx(SHARED, '-t tag_lat -s 2 -n 100000', '50.0_percentile_lat'),
    'UCX shared memory, get': Ucx(SHARED, '-t ucp_get -s 2 -n 100000', '50.0_percentile_lat'),
    'UCX shared memory, fetch-and-add': Ucx(SHARED, '-t ucp_fadd -s 8 -n 100000',
                                            '50.0_percentile_lat'),
    # Each message is a sendto() call.
    'UCX tcp, put, 8 B': Ucx('tcp', '-t ucp_put_bw -s 8 -n 100000', 'overall_mr'),
    'UCX tcp, tag, 8 B': Ucx('tcp', '-t tag_bw -s 8 -n 100000', 'overall_mr'),
    'UCX shared memory, put, 8 B': Ucx(SHARED, '-t ucp_put_bw -s 8 -n 10000000', 'overall_mr'),
    'UCX shared memory, tag, 8 B': Ucx(SHARED, '-t tag_bw -s 8 -n 10000000', 'overall_mr'),
}


def messages(size, most=1000000):
    """The number of messages of a measurement of about half a second."""
    return max(200, min(most, (4 << 30) // size))


def tcp_loopback(name):
    """The name of TCP's figure for messages of this size, if iperf3 supports it."""
    return f'TCP loopback, {name}' if SIZES[name] <= Iperf.MOST else 'TCP loopback, 1 MiB writes'


def add_bandwidth_peers():
    for name, size in SIZES.items():
        PEERS[f'memcpy, {name}'] = Limit(f'memcpy:{size}')
        PEERS[f'process_vm_readv, {name}'] = Limit(f'vm_read:{size}')
        PEERS[f'copy + CRC-32, {name}'] = Limit(f'copy_crc:{size}')
        PEERS[f'{RING}, {name}'] = Peer(f'pass_crc:{size}')
        PEERS[tcp_loopback(name)] = Iperf(min(size, Iperf.MOST))
        PEERS[f'UCX tcp, {name}'] = Ucx('tcp', f'-t tag_bw -s {size} -n {messages(size, 100000)}',
                                        'overall_bw')
        for test, what in ('tag_bw', ''), ('ucp_put_bw', ', put'), ('ucp_get', ', get'):
            PEERS[f'UCX shared memory{what}, {name}'] = Ucx(
                SHARED, f'-t {test} -s {size} -n {messages(size)}', 'overall_bw')


add_bandwidth_peers()


class Row:
    """A figure of urxe; unit: s, B/s, /s, B, B/instruction, instructions, CPU or /message."""

    def __init__(self, group, name, unit, measure, beside=()):
        self.group = group
        self.name = name
        self.unit = unit
        self.measure = measure
        self.beside = list(beside)


def in_packets(group, name, unit, argv, figure, beside):
    """A row whose messages all go in packets (`urxe run --transport packet`)."""
    return Row(group, f'{name}, in packets', unit, Perftest(argv, figure, transport='packet'), beside)


def beside_write():
    """urxe's WRITE as a limit of operations that should take at most two WRITEs."""
    name = 'urxe, write latency, 2 B'
    PEERS[name] = Perftest('ib_write_lat -s 2 -n 100000', report.latency)
    return name


def latency_rows():
    """Latency of READs and atomics with request and response, of the other operations one way."""
    write = beside_write()
    one_way = ['cache line, one way', f'{POLLED}, one way']
    both_ways = [f'{what}, there and back' for what in ('cache line', 'DPDK ring', POLLED)]
    for name, argv, beside in [
            ('write latency, 2 B', 'ib_write_lat -s 2 -n 100000',
             ['process_vm_writev, 2 B', *one_way, 'DPDK ring, one way', 'UCX tcp, put',
              'UCX shared memory, put']),
            ('send latency, 2 B', 'ib_send_lat -s 2 -n 100000',
             [*one_way, 'DPDK ring, one way', 'UCX tcp, tag', 'UCX shared memory, tag']),
            ('read latency, 2 B', 'ib_read_lat -s 2 -n 100000',
             [write, 'process_vm_writev, 2 B', *one_way, *both_ways, 'UCX tcp, get',
              'UCX shared memory, get']),
            ('fetch-and-add latency', 'ib_atomic_lat -A FETCH_AND_ADD -n 100000',
             [write, *one_way, *both_ways, 'UCX tcp, fetch-and-add',
              'UCX shared memory, fetch-and-add']),
            ('send latency by events, 2 B', 'ib_send_lat -e -s 2 -n 20000',
             ['eventfd wake-up, answered at once'])]:
        yield Row('latency', name, 's', Perftest(argv, report.latency), beside)
    # The receiver of a WRITE spins on memory, so urxe's engine thread wakes up for it. So a cache line is no limit of
    # such a WRITE, and such a WRITE is no limit of operations whose sender polls.
    for operation, size, beside in [
            ('write', '-s 2', [f'{POLLED}, one way', 'UCX tcp, put']),
            ('read', '-s 2', [*one_way, *both_ways]),
            ('atomic', '-A FETCH_AND_ADD', [*one_way, *both_ways, 'UCX tcp, fetch-and-add'])]:
        name = 'fetch-and-add latency' if operation == 'atomic' else f'{operation} latency, 2 B'
        yield in_packets('latency', name, 's', f'ib_{operation}_lat {size} -n 2000',
                   report.latency, beside)


def bandwidth_rows():
    """Rows of one size are consecutive, to share measures that take seconds."""
    for name, size in SIZES.items():
        ucx, direct, packets = [[f'{peer}, {name}' for peer in peers] for peers in (
            ('UCX tcp', 'UCX shared memory'), ('memcpy', 'process_vm_readv'),
            ('copy + CRC-32', 'memcpy', RING))]
        both = [tcp_loopback(name), *ucx]
        # UCX's WRITEs and READs use shared memory that UCX itself has allocated.
        for operation, peer in ('write', ', put'), ('send', ''), ('read', ', get'):
            what = f'{operation} bandwidth, {name}'
            argv = f'ib_{operation}_bw -s {size} -n {messages(size)}'
            peers = dict.fromkeys([*direct, *both, f'UCX shared memory{peer}, {name}'])
            yield Row('bandwidth', what, 'B/s', Perftest(argv, report.bandwidth), peers)
            yield in_packets('bandwidth', what, 'B/s', argv, report.bandwidth, packets + both)


def rate_rows():
    for operation, peer in ('write', 'put'), ('send', 'tag'):
        argv = f'ib_{operation}_bw -s 8 -n 1000000 -t 128 -N'
        beside = ['stream of cache lines, two cores',
                  *[f'UCX {transport}, {peer}, 8 B' for transport in ('tcp', 'shared memory')]]
        yield Row('rate', f'{operation} rate, 8 B', '/s', Perftest(argv, report.message_rate), beside)
        if operation == 'write':
            yield in_packets('rate', 'write rate, 8 B', '/s', argv, report.message_rate, beside)


def thread_rows():
    """Programs with a second, sleeping thread, and a program whose second thread registers memory."""
    near = ['cache line, one way']
    called = ['process_vm_writev, 2 B']
    copied = ['process_vm_readv, 64 KiB', 'UCX shared memory, 64 KiB', tcp_loopback('64 KiB')]
    rows = [(f'{operation} latency, 2 B', 's', f'ib_{operation}_lat -s 2 -n 100000', report.latency, beside)
            for operation, beside in (('write', called), ('read', called), ('send', near))]
    rows += [('send rate, 8 B', '/s', 'ib_send_bw -s 8 -n 1000000 -t 128 -N', report.message_rate,
              ['stream of cache lines, two cores'])]
    rows += [(f'{operation} bandwidth, 64 KiB', 'B/s', f'ib_{operation}_bw -s 65536 -n {messages(65536)}',
              report.bandwidth, copied) for operation in ('write', 'send', 'read')]
    for name, unit, argv, figure, beside in rows:
        yield Row('threads', f'{name}, two threads', unit, Perftest(argv, figure, thread=True), beside)
    PEERS['mlock, 1 MiB'] = Limit(f'mlock:{1 << 20}')
    yield Row('threads', 'registration of 1 MiB while a thread polls', 's', Joined(f'register {1 << 20}'),
              ['mlock, 1 MiB'])


def shared_core_rows():
    """Programs that poll and compute, and share one CPU with another program."""
    work = '20,000 pieces of work beside a busy process'
    tcp = 'TCP loopback, polled after each piece of work, two programs on one processor'
    PEERS[work], PEERS[tcp] = Joined('shared_core work'), Alone('shared_core tcp')
    yield Row('threads', '20,000 pieces of work and an empty poll after each, beside a busy process', 's',
              Joined('shared_core polls'), [work])
    yield Row('threads', 'message and answer, polled after each piece of work, two programs on one processor', 's',
              Joined('shared_core verbs'), [tcp])


def tcp_latency(place, name):
    """TCP's figures beside a latency over the same cable."""
    latency = f'TCP latency, {name}'
    polled = f'{latency}, polled'
    PEERS[latency], PEERS[polled] = Qperf(2, place), PolledTcp(2, place)
    return [latency, polled]


def tcp_stream(place, name, offloads=()):
    """TCP's figures beside bandwidth and bytes per CPU second."""
    bandwidth, cost = f'TCP bandwidth, {name}', f'TCP bytes for a CPU second, {name}'
    PEERS[bandwidth] = Iperf(65536, place, offloads=offloads)
    PEERS[cost] = Iperf(65536, place, per_second=True, offloads=offloads)
    return [bandwidth], [cost]


def tcp_streams(place, name):
    """
    TCP without segmentation offloads; with GSO, which TCP always has; and with all offloads of veth, by which the runs of
    frames that a direct uplink sends cross the cable whole in each case.
    """
    streams = [tcp_stream(place, name), tcp_stream(place, f'{name}, GSO', ('gso',)),
               tcp_stream(place, f'{name}, all offloads', SEGMENTATION)]
    return [sum(figures, []) for figures in zip(*streams)]


def one_thread(kind):
    """Figures of engine and port in one thread, and of frames without an engine, over a cable of that MTU."""
    cable = Veth(kind, f'cable {VETH_MTU[kind]}')
    engine, bare = f'engine and port in one thread, {kind}', f'bare frames, {kind}'
    for name, figure, frame in [('latency', 'send_latency_s', 'frame_latency_s'),
                                ('bandwidth', 'write_bytes_per_s', 'stream_bytes_per_s')]:
        PEERS[f'{engine}, {name}'] = Station(cable, lambda found, figure=figure: found[figure])
        PEERS[f'{bare}, {name}'] = BareFrames(cable, frame)
        yield [f'{engine}, {name}', f'{bare}, {name}']


def network_rows():
    for uplink in NETWORKS:
        name = f'veth, {uplink}'
        bandwidth, cost = tcp_streams(uplink, name)
        thread_latency, thread_bandwidth = one_thread(uplink.split()[0])
        bandwidth = bandwidth + thread_bandwidth
        yield Row('network', f'send latency, 2 B, {name}', 's',
                  Perftest('ib_send_lat -s 2 -n 5000', report.latency, uplink),
                  tcp_latency(uplink, name) + thread_latency + ([RELAY, RELAY_APART] if uplink.endswith(THROUGH_URXED) else []))
        yield Row('network', f'write bandwidth, 64 KiB, {name}', 'B/s',
                  Perftest('ib_write_bw -s 65536 -n 3000', report.bandwidth, uplink), bandwidth)
        yield Row('network', f'read bandwidth, 64 KiB, {name}', 'B/s',
                  Perftest('ib_read_bw -s 65536 -n 3000', report.bandwidth, uplink), bandwidth)
        yield Row('network', f'write bytes for a CPU second, 64 KiB, {name}', 'B/s',
                  PerSecond(65536, 10000, lambda n, uplink=uplink: Perftest(
                      f'ib_write_bw -s 65536 -n {n}', lambda _: 1.0, uplink), uplink), cost)


def bond_rows():
    PEERS['200 ms'] = Given(0.2)
    for failure in 'no carrier', 'silent':
        yield Row('network', f'longest pause of 8 connections at a failover, {failure}', 's', Failover(failure),
                  ['200 ms'])
    for way, name in ('direct', 'direct uplink'), ('switch', THROUGH_URXED):
        PEERS[f'one cable of 50 Mbit/s, {name}'] = Balanced(1, way)
        yield Row('network', f'write bandwidth, 64 KiB, 8 connections, two cables of 50 Mbit/s, balance, {name}', 'B/s',
                  Balanced(2, way), [f'one cable of 50 Mbit/s, {name}'])


def connection_rows():
    """Connections by address between two hosts; each carries a message and its answer."""
    PEERS['4 s'] = Given(4)
    for uplink in NETWORKS[:2]:
        for processes in 1, 16:
            end = f'4,096 connections of {processes} process{"es" if processes > 1 else ""}, veth, {uplink}'
            tcp = f'TCP, {end}'
            PEERS[tcp] = ConnectMany('tcp', uplink, processes, 4096)
            yield Row('network', f'set-up by rdma_cm, {end}', 's', ConnectMany('rdma', uplink, processes, 4096),
                      ['4 s', tcp])


def incast_rows():
    """32 senders on four hosts WRITE to one host over a link of 500 Mbit/s: with DCQCN, beside none."""
    for way, arguments in ('af_packet', ()), (f'af_packet {THROUGH_URXED}', ('--direct-uplink', 'none')):
        incasts = Incasts(arguments)
        for name, unit, key in [('goodput', 'B/s', 'goodput'), ('fairness', 'share', 'fairness'),
                                ('mean queue', 'B', 'queue'), ('frames dropped', 'frames', 'drops'),
                                ('packets sent again', 'frames', 'retransmit')]:
            without = f'{name} of an incast without congestion control, {way}'
            PEERS[without] = Incast(incasts, 'none', key)
            yield Row('incast', f'{name} of an incast, {way}', unit, Incast(incasts, 'dcqcn', key), [without])


def scale_rows_of(name, unit, what, transport='auto', burst=1):
    """Rows for growing numbers of connections between two processes, beside one connection, and beside their memory."""
    one = f'{name}, 1 QP'
    PEERS[one] = Joined(f'scale {what} 1 {burst}', transport)
    for count in SCALE:
        lines = f'lines of {count} QPs, fetched in time'
        PEERS[lines] = Limit(f'lines:{count}')
        yield Row('scale', f'{name}, {count} QPs', unit,
                  Joined(f'scale {what} {count} {burst}', transport),
                  [one, lines] if unit == '/s' and burst == 1 else [one])


def perftest_scale_row():
    """
    perftest's pattern: 16 messages on each queue pair, then on the next one with room. perftest signals each 16th
    message, and hangs if the number of messages is no multiple of 16.
    """
    def measure(count, messages):
        return Perftest(f'ib_send_bw -s 8 -q {count} -n {messages} -t 16 -N', report.message_rate)

    one, many = [f'send rate, 8 B, ib_send_bw, {count}' for count in ('1 QP', f'{PERFTEST_QPS} QPs')]
    PEERS[one] = measure(1, 1600000)
    return Row('scale', many, '/s', measure(PERFTEST_QPS, 1600), [one])


def crowd_rows():
    """All pairs of processes together, beside one pair."""
    for name, unit, what in [('send rate, 8 B, {} of processes', '/s', 'send'),
                             ('memory of a process, {}', 'B', 'memory')]:
        one = name.format('1 pair')
        PEERS[one] = Joined(f'crowd {what} 1')
        yield Row('scale', name.format(f'{PAIRS} pairs'), unit, Joined(f'crowd {what} {PAIRS}'), [one])


def scale_rows():
    yield from scale_rows_of('send rate, 8 B', '/s', 'send')
    yield from scale_rows_of('send rate, 8 B, bursts of 16', '/s', 'send', burst=16)
    yield from scale_rows_of('write rate, 8 B', '/s', 'write')
    yield from scale_rows_of('write rate, 8 B, bursts of 16', '/s', 'write', burst=16)
    yield from scale_rows_of('write rate, 8 B, in packets', '/s', 'write', 'packet')
    yield from scale_rows_of('send latency, 8 B', 's', 'latency')
    yield perftest_scale_row()
    yield from crowd_rows()
    PEERS['TCP connections, loopback'] = Alone(f'connect tcp {CONNECTIONS}')
    yield Row('scale', 'connections set up by rdma_cm', '/s', Joined(f'connect rdma {CONNECTIONS}'),
              ['TCP connections, loopback'])
    yield from memory_rows()


def memory_rows():
    """
    Memory of a queue pair: the process's own memory, shared memory with the inbox of the process, and memory of
    urxed.
    """
    for name, measure, what in [
            ('memory of an idle QP beside its rings', Joined, 'idle'),
            ('memory of an active QP beside its rings', Joined, 'active'),
            ('shared memory of an idle QP beside its rings', Joined, 'shared'),
            ('memory of urxed for an idle QP', JoinedAnew, 'urxed')]:
        yield Row('scale', name, 'B', measure(f'scale {what} {SCALE[-1]}'), ['4 KiB'])


def station_latency(where, cable, beside):
    bare = f'bare frames, {where}'
    PEERS[bare] = BareFrames(cable)
    return Row('cable', f'send latency, 2 B, {where}', 's',
               Station(cable, lambda found: found['send_latency_s']), [bare, *beside])


def station_stream(where, cable, bandwidth, cost):
    """Rows of bandwidth and cost, with their peers."""
    for name, figure, beside in [
            ('write bandwidth, 64 KiB', lambda found: found['write_bytes_per_s'], bandwidth),
            ('write bytes for a CPU second, 64 KiB', lambda found:
             found['write_bytes_per_s'] / (2 * found['processor_share']), cost)]:
        yield Row('cable', f'{name}, {where}', 'B/s', Station(cable, figure), beside)


def whole_cable_rows(kind, mtu, cable):
    place, name = f'cable {mtu}', f'cable, MTU {mtu}'
    yield station_latency(f'cable, {kind}', cable, tcp_latency(place, name))
    yield from station_stream(f'cable, {kind}', cable, *tcp_streams(place, name))


def bare_cable_rows(kind, mtu):
    """Rows without offloads; without a latency, which would be the same."""
    place, end = f'bare cable {mtu}', ', no checksums or scatter-gather'
    yield from station_stream(f'cable, {kind}{end}', Veth(kind, place),
                              *tcp_stream(place, f'cable, MTU {mtu}{end}'))


def cable_rows():
    """Engine and port in one thread at each end, without a daemon. Both ends poll, each on its CPU."""
    for kind, mtu in VETH_MTU.items():
        yield from whole_cable_rows(kind, mtu, Veth(kind, f'cable {mtu}'))
        yield from bare_cable_rows(kind, mtu)
    yield from whole_cable_rows('tap', TAP_MTU, Taps())
    cost = 'TCP loopback bytes for a CPU second, 64 KiB'
    PEERS[cost] = Iperf(65536, per_second=True)
    yield station_latency('memif', Memif(), ['cache line, one way', 'DPDK ring, one way',
                                             'TCP loopback, polled, one way'])
    yield from station_stream(
        'memif', Memif(),
        ['copy + CRC-32, 64 KiB', f'{RING}, 64 KiB', 'TCP loopback, 64 KiB'],
        [cost])


def cost_rows():
    size, messages = 65536, 100000
    tcp, ucx, shared = [f'{peer} bytes for a CPU second, 64 KiB' for peer in
                        ('TCP loopback', 'UCX tcp', 'UCX shared memory')]
    PEERS[tcp] = Iperf(size, per_second=True)
    for name, transports in (ucx, 'tcp'), (shared, SHARED):
        PEERS[name] = PerSecond(size, messages, lambda n, transports=transports: Ucx(
            transports, f'-t tag_bw -s {size} -w 0 -n {n}', 'overall_bw'))
    for operation in 'write', 'send', 'read':
        for transport, end in ('auto', ''), ('packet', ', in packets'):
            yield Row('cost', f'{operation} bytes for a CPU second, 64 KiB{end}', 'B/s',
                      PerSecond(size, messages, lambda n, operation=operation, transport=transport:
                                Perftest(f'ib_{operation}_bw -s {size} -n {n}', lambda _: 1.0,
                                         transport=transport)), [tcp, ucx, shared])
    for name, unit, kind, length in [
            ('bytes for an instruction, 64 KiB', 'B/instruction', BytesForInstruction, size),
            ('instructions for a message of 8 B', 'instructions', Instructions, 8)]:
        least = f'copy + CRC-32 of both ends, {name}'
        PEERS[least] = kind('copy', length)
        for operation in 'write', 'send', 'read':
            yield Row('cost', f'{operation} {name}, in packets', unit, kind(operation, length), [least])


def wake_rows():
    """
    Programs that sleep until a message arrives, or poll for some time before they sleep. With immediate answers
    urxe's engine thread may still be awake; after a silence it sleeps.
    """
    for what, when in ('answered', 'answered at once'), ('silent', 'after 1 ms of silence'):
        for way in 'read', 'poll', 'epoll':
            yield Row('idle', f'wake-up by an event, {way}, {when}', 's', Joined(f'wake {what} {way}'),
                      [f'eventfd wake-up, {when}'])
    for spin in 20, 100:
        yield Row('idle', f'wake-up by an event, read, answered at once, after {spin} us of polling', 's',
                  Joined(f'wake answered read {spin}'), ['eventfd wake-up, answered at once'])
    for what, whose in ('thread', 'of the thread that waits'), ('process', 'of its whole process'):
        yield Row('idle', f'voluntary switches {whose} for a message after silence', '/message',
                  Joined(f'wake {what}-switches read'), ['one switch'])


def pace_rows():
    """CPU shares of both processes together, which sleep between two messages."""
    for period, name in (100, '100 us'), (1000, '1 ms'):
        limit = f'eventfd, a message every {name}'
        PEERS[limit] = Limit(f'paced:{period}')
        yield Row('idle', f'a message every {name} by events, read', 'CPU', Joined(f'wake paced read {period}'),
                  [limit])


def idle_rows():
    for name, measure in [
            ('eight pairs asleep that have sent to each other, and urxed', Idle(8)),
            ('eight pairs asleep in epoll that have sent to each other, and urxed', Idle(8, way='epoll')),
            ('urxed alone, with an uplink af_packet', Idle(0, 'af_packet')),
            ('urxed alone, with an uplink vhost', IdleByCable(Vhost())),
            ('urxed alone, with an uplink dpdk:net_memif, which it looks at', IdleByCable(Memif()))]:
        yield Row('idle', name, 'CPU', measure, ['0.1 %'])


def hca_rows():
    """The search for an HCA on a host without one; latency over an HCA, which is another urxe; and changes of its port."""
    latency = functools.partial(LatencyWithoutHca, 'ib_send_lat -s 2 -n 50000')
    for what, unit, kind in [('ibv_devinfo', 's', StartOfProgram), ('start of urxed', 's', StartOfDaemon),
                             ('idle urxed', 'CPU', IdleDaemon), ('send latency, 2 B, in packets', 's', latency)]:
        without = f'{what}, --hca off'
        PEERS[without] = kind('off')
        yield Row('hca', f'{what}, --hca auto without an HCA', unit, kind('auto'), [without])
    for name, argv in [('send latency, 2 B', 'ib_send_lat -s 2 -n 50000'), ('write latency, 2 B', 'ib_write_lat -s 2 -n 50000'),
                       ('read latency, 2 B', 'ib_read_lat -s 2 -n 50000')]:
        own = f'the HCA itself, {name}'
        PEERS[own] = LatencyOverUrxe(argv, nested=False)
        yield Row('hca', f'{name}, over an HCA', 's', LatencyOverUrxe(argv, nested=True), [own])
    PEERS['1 s'] = Given(1)
    yield Row('hca', 'HCA port down, to messages by the engine', 's', PortChange(up=False), ['1 s'])
    yield Row('hca', 'HCA port up, to messages by the HCA', 's', PortChange(up=True), ['1 s'])


def hook_rows():
    """Rows of libc calls; the two figures without urxe show the measurement's noise."""
    for call in ('close', 'dup', 'dup2', 'stat', 'fstat', 'open', 'read', 'write', 'poll',
                 'epoll_wait', 'mmap', 'munmap', 'ioctl', 'fcntl', 'sigaction',
                 'fork, exec, exit'):
        hooks = Hooks(call)
        plain, again = f'{call}, without', f'{call}, without, again'
        PEERS[plain], PEERS[again] = Hook(hooks, 'plain'), Hook(hooks, 'again')
        yield Row('hooks', f'{call}, under urxe run', 's', Hook(hooks, 'hooked'), [plain, again])


def migration_rows():
    """QEMU's migration of a paused guest with 1 GiB, by RDMA beside TCP. QEMU registers all memory in advance, or not."""
    by_tcp = {}
    for cable, uplink, way in [('one host', None, ''), ('veth, MTU 1500', 'af_packet 1500', ', af_packet'),
                               # TCP beside it uses the cable without an XDP program.
                               ('veth, MTU 1500', 'af_xdp 1500', ', af_xdp'),
                               ('veth, MTU 9000', 'af_packet 9000', ', af_packet')]:
        migrations = Migrations(uplink and f'{OFFLOADS} {uplink}')
        tcp = by_tcp.setdefault(cable, migrations)
        for pins, pin_all in ('rdma-pin-all', True), ('no rdma-pin-all', False):
            for name, unit, key in ('pages', '/s', 'pages'), ('CPU seconds for 1 GiB', 's', 'seconds'):
                beside = f'migrate tcp:, {name}, {cable}'
                PEERS[beside] = Migration(tcp, 'tcp', False, key)
                yield Row('migration', f'migrate rdma:, {name}, {cable}{way}, {pins}', unit,
                          Migration(migrations, 'rdma', pin_all, key), [beside])


def application_rows():
    """
    icoFoam on two ranks by urxe, beside TCP and, on one host, shared memory; and without options of mpirun. An alltoall of
    more ranks than processors. Reads from a disk by iSCSI.
    """
    for where, solver in [('one host', Solver()), ('one host, --bind-to none', Solver(bind='none')),
                          ('one host, loaded', Solver(loaded=True)), ('veth, MTU 1500', Solver(f'{OFFLOADS} af_packet 1500'))]:
        others = {'tcp': 'btl tcp'}
        # Ranks of vader that spin beside a busy process take minutes.
        if 'one host' in where and not solver.loaded:
            others['vader'] = 'btl vader'
        for key in 'wall clock', 'CPU seconds':
            beside = {f'icoFoam, {other}, {key}, {where}': kind for kind, other in others.items()}
            PEERS.update({name: Solved(solver, kind, key) for name, kind in beside.items()})
            yield Row('applications', f'icoFoam, {key}, {where}', 's', Solved(solver, 'urxe', key), list(beside))
    plain = Solver()
    for key in 'wall clock', 'CPU seconds':
        without = f'icoFoam, mpirun without options, {key}'
        PEERS[without] = Solved(plain, 'no options', key)
        yield Row('applications', f'{without}, under urxe run', 's', Solved(plain, 'no options, urxe run', key), [without])
    for ranks in 8, 16:
        name = f'alltoall, 64 KiB, {ranks} ranks, one host, loaded'
        PEERS[f'{name}, btl tcp'] = Alltoall(ranks, 'tcp')
        yield Row('applications', name, 's', Alltoall(ranks, 'urxe'), [f'{name}, btl tcp'])
    PEERS['iSCSI over TCP, reads of 4 KiB'] = DiskReads(iser=False)
    yield Row('applications', 'iSER, reads of 4 KiB, one host', '/s', DiskReads(iser=True), ['iSCSI over TCP, reads of 4 KiB'])


ROWS = [*latency_rows(), *bandwidth_rows(), *rate_rows(), *thread_rows(), *shared_core_rows(), *network_rows(),
        *bond_rows(), *connection_rows(), *incast_rows(), *cable_rows(), *scale_rows(), *cost_rows(), *idle_rows(), *wake_rows(), *pace_rows(), *hca_rows(), *hook_rows(), *migration_rows(), *application_rows()]
GROUPS = list(dict.fromkeys(row.group for row in ROWS))
