#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Packet buffers are in huge pages if the machine has enough of them, and in ordinary pages otherwise. In both
cases two hosts reach each other, and no huge page stays in use afterwards.
"""
import contextlib
import glob
import os
import sys

from cell import run_program
from ethernet import Bridged, Ethernet, INTERFACE, IPV4
from host import Failure, main, skip, until
from hugetlb import POOL, read, resize, restored, size
import network
from uplinks import VHOST, run_without_privilege, without_privilege

PAGE = 2 << 20
ENOUGH = 512  # huge pages, with reserve for other programs of the machine
FOR_ONE = 4
TOO_FEW = 2
BOTH, AT_MOST_ONE, NONE = {2}, {0, 1}, {0}  # number of the two daemons with huge pages
MTU = 4200  # the buffers of an af_packet port then need three huge pages
PROGRAMS = [['verbs_check'], ['ib_write_bw', '-F', '-n', '500']]


@contextlib.contextmanager
def huge_pages(pages):
    """Sets the machine's number of huge pages for a block."""
    with restored():
        resize(pages)
        if size() != pages:
            skip(f'the kernel gives {size()} huge pages, not {pages}')
        yield


def held_by(pid):
    """Bytes in huge pages that a process has mapped."""
    with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as file:
        fields = dict(line.split(':', 1) for line in file if 'Hugetlb' in line)
    return sum(int(value.split()[0]) << 10 for value in fields.values())


def held_by_all():
    total = 0
    for path in glob.glob('/proc/[0-9]*'):
        with contextlib.suppress(OSError):
            total += held_by(os.path.basename(path))
    return total


def check_nothing_left():
    """A process maps every huge page in use, so a killed daemon has left none."""
    until(20, lambda: (read('nr_hugepages') - read('free_hugepages')) * PAGE <= held_by_all(),
          lambda: f'{read("free_hugepages")} huge pages of {read("nr_hugepages")} are free')


def page_size(host):
    """The page size of the uplink's buffers, according to `urxe show port` and to the daemon's log."""
    size, = [port['page_size'] for port in host.show('port')['ports'] if port['page_size']]
    lines = [line for line in host.daemon.errors().splitlines() if 'packet buffers' in line]
    if len(lines) != 1 or ('huge pages of 2048 KiB' in lines[0]) != (size == PAGE):
        raise Failure(f'pages of {size} bytes, and the log says {lines}')
    return size


def count_on_huge(hosts):
    """The number of daemons whose buffers are in huge pages."""
    count = 0
    for host in hosts:
        size, held = page_size(host), held_by(host.daemon.process.pid)
        if (size == PAGE) != (held >= 4 << 20):
            raise Failure(f'pages of {size} bytes, and {held} bytes of huge ones are mapped')
        print(f'{host.arguments[1]}: {held >> 20} MB in huge pages,',
              f'{read("free_hugepages")} of {read("nr_hugepages")} free', flush=True)
        count += size == PAGE
    return count


def check_count(hosts, wanted):
    count = count_on_huge(hosts)
    if count not in wanted:
        raise Failure(f'{count} daemons of {len(hosts)} have huge pages')


def run_over(net, wanted):
    """Runs programs between the two hosts of a network."""
    with net:
        check_count(net.hosts, wanted)
        for argv in PROGRAMS:
            run_program(net.ends(IPV4), argv, 1024, False)


def check_af_packet(build):
    run_over(Ethernet(build, [MTU] * 2), BOTH)


def check_xdp(build):
    if not os.path.exists(os.path.join(build, 'netdev/xdp/roce.bpf.o')):
        skip('this build had no compiler for BPF')
    network.require_af_xdp()
    run_over(Ethernet(build, [1500] * 2, uplink=f'af_xdp:{INTERFACE}'), BOTH)


def check_tap(build):
    run_over(Bridged(build, [1500] * 2), BOTH)


def check_vhost(build):
    """Daemons of an ordinary user: the buffers of the machine are in huge pages, those of the vhost: port never."""
    with without_privilege(build, 'vm', VHOST) as hosts:
        check_count(hosts[1:], {1})
        run_without_privilege(hosts, PROGRAMS)


def check_for_one(build):
    """Huge pages for one daemon only: the second daemon uses ordinary pages."""
    run_over(Ethernet(build, [MTU] * 2), AT_MOST_ONE)


def check_too_few(build):
    """Fewer huge pages than any port needs."""
    run_over(Ethernet(build, [MTU] * 2), NONE)
    with without_privilege(build, 'vm', VHOST) as hosts:
        check_count(hosts[1:], NONE)
        run_without_privilege(hosts, PROGRAMS)


def run():
    build, kind = sys.argv[1:]
    if os.getuid():
        skip('only root may make huge pages')
    if not os.path.exists(POOL):
        skip('this kernel has no huge pages of 2 MiB')
    check, pages = CHECKS[kind]
    with huge_pages(pages):
        check(build)
        check_nothing_left()


CHECKS = {'af_packet': (check_af_packet, ENOUGH), 'af_xdp': (check_xdp, ENOUGH),
          'tap': (check_tap, ENOUGH), 'vhost': (check_vhost, ENOUGH),
          'for_one': (check_for_one, FOR_ONE), 'too_few': (check_too_few, TOO_FEW)}

main(run)
