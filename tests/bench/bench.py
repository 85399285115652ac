#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Measures perftest and other programs over urxe0, beside limits of this machine's memory and kernel, and beside other
transports; with --guest, beside Linux' rdma_rxe, both in virtual machines; with --vm, the PVRDMA device of virtual
machines beside rdma_rxe and TCP on their vmxnet3. Each round measures a row right next to
its limits and peers. Programs are pinned to one CPU for each side. A ratio is urxe's figure divided by the other
figure, as the median of the rounds' ratios. A file (--keep) joins the rounds of several calls.
"""
import argparse
import contextlib
import json
import os
import subprocess
import sys

from measure import Limit, SECONDS, SEGMENTATION, Unavailable, processor_seconds, worked
from host import Failure, Host, SKIP, until
import conditions
import machine_rows
import markdown
import rows as host_rows
from machines import GsoMachines, Machines
from vms import Paths, Vms
import text
import turns
import vm_rows

from ethernet import Ethernet, INTERFACE, IPV4, Namespace, run  # noqa: E402  by the path that measure has set

# Names of ethtool: further features that a NIC may lack.
CHECKSUMS_AND_SCATTER_GATHER = 'tx', 'sg'
GSO_MAX_SEGS = 65535  # the kernel's default


class Veth(Ethernet):
    """Two hosts with an uplink, joined by a veth cable without segmentation offloads."""

    LACKS = SEGMENTATION

    def __init__(self, build, uplink, mtu, arguments=()):
        super().__init__(build, [mtu] * 2, arguments, uplink=f'{uplink}:{INTERFACE}')

    def plug(self, mtus):
        super().plug(mtus)
        for namespace in self.namespaces:
            self.set_features(namespace, self.LACKS, 'off')
            # The system's default may be BBR, which waits for a timer after each single segment.
            run([*namespace.prefix(), 'sh', '-c', 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'])
        self.send_segments(1)

    @staticmethod
    def set_features(namespace, features, state):
        for feature in features:
            run([*namespace.prefix(), 'ethtool', '-K', INTERFACE, feature, state])

    def send_segments(self, most):
        """Limits the segments of a GSO packet. Since Linux 4.17 TCP's GSO ignores ethtool, but not this limit."""
        for namespace in self.namespaces:
            namespace.ip('link', 'set', INTERFACE, 'gso_max_segs', str(most))

    def set_offloads(self, features, state, segments):
        for namespace in self.namespaces:
            self.set_features(namespace, features, state)
        self.send_segments(segments)

    @contextlib.contextmanager
    def offloads(self, features):
        """
        Enables segmentation offloads for a block. With GSO alone TCP sends many segments at once, which the kernel splits
        before the driver; with all of them veth passes these segments to the other end whole.
        """
        self.set_offloads(features, 'on', GSO_MAX_SEGS)
        try:
            yield
        finally:
            self.set_offloads(features, 'off', 1)


class Offloads(Veth):
    """The same with the offloads that the kernel's veth has, and with the kernel's limits of GSO packets."""

    LACKS = ()

    def send_segments(self, most):
        """Leaves the limit as it is."""


class Cable(Veth):
    """A veth cable without urxed."""

    def __init__(self, mtu):  # pylint: disable=super-init-not-called
        self.hosts = []
        self.namespaces = [Namespace() for _ in range(2)]
        try:
            self.plug([mtu] * 2)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise


class BareCable(Cable):
    """A cable without checksum offload and scatter-gather, too."""

    LACKS = SEGMENTATION + CHECKSUMS_AND_SCATTER_GATHER


CABLES = {'cable': Cable, 'bare cable': BareCable}


class Bridge:
    """A namespace with a bridge, for interfaces that programs create."""

    NAME = 'br0'

    def __init__(self):
        self.namespace = Namespace()
        self.namespace.ip('link', 'add', self.NAME, 'up', 'type', 'bridge')

    def plug(self, interface):
        until(SECONDS, lambda: self.joins(interface), lambda: f'no interface {interface}')

    def joins(self, interface):
        """Whether the bridge has the interface. urxe first creates and removes one as a test, then creates its own."""
        if f' {interface}: ' in self.namespace.ip('link', 'show', 'master', self.NAME):
            return True
        subprocess.run([*self.namespace.prefix(), 'ip', 'link', 'set', interface, 'master', self.NAME, 'up'],
                       capture_output=True, check=False)
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.namespace.close()


class Bench:
    """The objects of a measurement: the CPUs, one host, and a pair of hosts for each uplink."""

    PEERS_LAST = False

    def __init__(self, build, stack):
        self.build = build
        self.stack = stack
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        self.hosts = {}

    def worked(self):
        """CPU seconds of ended programs and of the daemons of two hosts."""
        daemons = [host.daemon_pid() for place in self.hosts.values() if isinstance(place, Veth)
                   for host in place.hosts]
        return worked() + sum(map(processor_seconds, daemons))

    def local(self):
        return self.ends(None)[0][0]

    def open(self, uplink):
        if uplink is None:
            return self.stack.enter_context(Host(self.build, daemon=False))
        if os.getuid():
            raise Unavailable('only root has network namespaces')
        if uplink == 'bridge':
            return self.stack.enter_context(Bridge())
        kind, _, mtu = uplink.rpartition(' ')
        if kind in CABLES:
            return self.stack.enter_context(CABLES[kind](int(mtu)))
        if kind.startswith(f'{host_rows.OFFLOADS} '):
            return self.stack.enter_context(Offloads(self.build, kind.partition(' ')[2], int(mtu)))
        kind, _, way = uplink.partition(' ')
        arguments = ['--direct-uplink', 'none'] if way == host_rows.THROUGH_URXED else []
        return self.stack.enter_context(Veth(self.build, kind, host_rows.VETH_MTU[kind], arguments))

    def place(self, uplink):
        if uplink not in self.hosts:
            try:
                self.hosts[uplink] = self.open(uplink)
            except SystemExit as skipped:  # without namespaces
                raise Unavailable(f'no network for {uplink}') from skipped
        return self.hosts[uplink]

    def ends(self, uplink):
        """Two hosts, or one host twice; the GID index and the address of the first."""
        place = self.place(uplink)
        if uplink is None:
            return [place, place], 1, '127.0.0.1'
        return place.hosts, place.hosts[0].gid(IPV4.format(1)), IPV4.format(1)

    def prefixes(self, uplink):
        """Command line prefixes of both ends for programs that use TCP, and the first end's address."""
        if uplink is None:
            return [[], []], '127.0.0.1'
        return ([namespace.prefix() for namespace in self.place(uplink).namespaces],
                IPV4.format(1))


def tell(text):
    """Prints the current measurement."""
    if sys.stderr.isatty():
        print(f'\r\033[K{text}', end='', file=sys.stderr, flush=True)


def parsed():
    parser = argparse.ArgumentParser(prog='./dev bench', description=__doc__)
    parser.add_argument('build', help=argparse.SUPPRESS)
    form = parser.add_mutually_exclusive_group()
    form.add_argument('--json', action='store_true')
    form.add_argument('--markdown', action='store_true', help='print Markdown, with a table for each group')
    parser.add_argument('--rounds', type=int, default=5, help='0: print the kept samples without measuring')
    parser.add_argument('--keep', metavar='FILE',
                        help='add the samples to those of former calls, of the same build, in FILE, and '
                        'tell of all')
    place = parser.add_mutually_exclusive_group()
    place.add_argument('--guest', action='store_true', help='measure urxe inside of virtual machines')
    place.add_argument('--vm', action='store_true', help='measure the devices of virtual machines')
    parser.add_argument('--group', action='append', help='default: all',
                        choices=list(dict.fromkeys(host_rows.GROUPS + machine_rows.GROUPS + vm_rows.GROUPS)))
    parser.add_argument('--row', metavar='TEXT', help='only rows whose name contains TEXT')
    options = parser.parse_args()
    if options.rounds < 0 or not (options.rounds or options.keep):
        parser.error('there is no median of less than one round')
    return parser, options


def kept(options):
    """The samples of the file, to which this call adds its own."""
    under = conditions.conditions(options.build, options.guest, options.vm) if options.rounds else None
    return turns.Samples(options.keep, under)


def check_keep(options):
    """The file must have samples, and its folder must be writable; their build is compared after ./dev has built."""
    if not options.rounds or os.path.exists(options.keep):
        turns.Samples(options.keep)
    folder = os.path.dirname(options.keep) or '.'
    if options.rounds and not os.access(folder, os.W_OK):
        raise OSError(f'{folder} is no directory in which you can write')


def places_of(options, rows):
    """The classes of the objects of a measurement, each with its rows."""
    if options.vm:
        return {Paths if all(row.group == vm_rows.DEVICE for row in rows) else Vms: rows}
    if not options.guest:
        return {Bench: rows}
    gso = [row for row in rows if row.group == machine_rows.GSO]
    return {Machines: [row for row in rows if row not in gso], GsoMachines: gso}


def measure(options, table, rows, samples):
    """Measures all rows; returns the reasons of missing figures by name."""
    missing = {}
    for place, of_place in places_of(options, rows).items():
        if of_place:
            missing |= measure_in(place, options, table, of_place, samples)
    return missing


def measure_in(place, options, table, rows, samples):
    with contextlib.ExitStack() as stack:
        bench = place(options.build, stack)
        if len(bench.cpus) < 2:
            print('bench needs two CPUs')
            sys.exit(SKIP)
        rounds = turns.Rounds(bench, table.PEERS | {turns.LINE: Limit('bounce')}, samples, tell)
        try:
            for _ in range(options.rounds):
                rounds.take_round(rows)
        except Failure as failure:
            sys.exit(f'bench: {failure}')
    tell('')
    return rounds.missing


def main():
    parser, options = parsed()
    table = vm_rows if options.vm else machine_rows if options.guest else host_rows
    rows = [row for row in table.ROWS if row.group in (options.group or table.GROUPS)
            and (options.row or '') in row.name]
    if not rows:
        parser.error('the table has no such row')
    try:
        if options.keep:
            check_keep(options)
        if 'URXE_BENCH_CHECK' in os.environ:  # ./dev, before it builds
            return
        samples = kept(options)
    except (OSError, ValueError) as error:
        parser.error(f'{options.keep}: {getattr(error, "strerror", None) or error}')
    missing = turns.never_measured(rows, table.PEERS)
    if options.rounds:
        missing |= measure(options, table, rows, samples)
    found, state, machine = (turns.results(rows, samples), turns.whole_state(rows, samples),
                             samples.conditions['machine'])
    if options.json:
        print(json.dumps({'machine': machine, 'rounds': turns.number(found), 'state': state,
                          'results': found, 'missing': missing}, indent=1))
    elif options.markdown:
        print(markdown.page(found, table.PEERS, missing, machine), end='')
    else:
        print(conditions.described(machine))
        text.print_table(found, missing, options.rounds, state)


main()
