#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe in a machine whose kernel has an RDMA device: programs under `urxe run` see both rxe0 and urxe0, and notice
when devices of the kernel appear and disappear.
"""
import re
import sys

from guest import Guest
from host import Failure, main, until
from image import Image
from rdmacm import end_well, ended_well

MTU = 4200
# The NIC's other end is not connected.
WIRE = ['-netdev', 'hubport,id=n0,hubid=0']
KERNEL = '192.0.2.2'  # an address of rxe0
OWN = '127.0.0.1'  # an address of urxe0 on every host
MEMORY_MB = 2048
LOG = '/tmp/server.log'
# Servers at the wildcard address, and their clients; {} is the server's address.
PROGRAMS = [
    ('ucmatose -c 4 -C 20', 'ucmatose -s {} -c 4 -C 20'),
    ('ucmatose -c 2 -m', 'ucmatose -s {} -c 2 -m'),
    ('udaddy -c 2', 'udaddy -s {} -c 2'),
    ('rstream -S 4096 -C 20 -I 10', 'rstream -s {} -S 4096 -C 20 -I 10'),
    ('ib_write_bw -R -F -n 100', 'ib_write_bw -R -F -n 100 {}'),
]
RUN = '/urxe/tools/urxe run --run-dir /tmp/urxe --'


def devices(guest):
    """Names of the devices that ibv_devices lists under urxe run."""
    listing = guest.run(f'{RUN} ibv_devices')
    return set(re.findall(r'^\s+(\S+)\s+[0-9a-f]{16}$', listing, re.MULTILINE))


def expect_devices(guest, *expected):
    until(60, lambda: devices(guest) == set(expected),
          lambda: f'{devices(guest)} are listed, and not {expected}')


def pingpong(guest, device, gid, port):
    argv = f'{RUN} ibv_rc_pingpong -d {device} -g {gid} -p {port} -n 100 -c'
    server = guest.start(argv)
    guest.wait_listening(port)
    guest.run(f'{argv} {OWN}')
    if server.wait(60):
        raise Failure(server.describe())


def check_verbs(guest):
    expect_devices(guest, 'rxe0', 'urxe0')
    pingpong(guest, 'rxe0', guest.gid(KERNEL), 20001)
    pingpong(guest, 'urxe0', 1, 20002)


# --- rdma_cm

def serve(guest, argv):
    """Starts a server under urxe run, and waits until it listens."""
    guest.run(f'rm -f {LOG}')
    job = guest.start(f'URXE_LOG=debug URXE_RECONNECT_S=1 {RUN} {argv} 2>{LOG}')
    until(120, lambda: listening(guest) or not job.running(), job.describe)
    return job


def listening(guest):
    return guest.start(f'grep -q "rdma_cm LISTEN: ok" {LOG}').wait(60) == 0


def finish(guest, job):
    try:
        end_well(job, 120)
    except Failure as failure:
        raise Failure(f'{failure}\n{guest.run(f"cat {LOG}")}') from None


def ask(guest, command):
    finish(guest, guest.start(command))


def rejected(guest, command):
    """A client of an address without a listener is rejected."""
    job = guest.start(command)
    job.wait(120)
    if 'RDMA_CM_EVENT_REJECTED' not in job.output() + job.errors():
        raise Failure(f'not rejected: {job.describe()}')


def check_addresses(guest):
    """An ID uses the device whose address it is bound to, or whose route it resolves."""
    for address in (KERNEL, OWN):
        server = serve(guest, f'rping -s -a {address} -C 5 -V')
        # A program with the kernel's rdma_cm only confirms that the listener is on that device only.
        if address == OWN:
            rejected(guest, f'rping -c -a {KERNEL} -C 5 -V')
            client = f'{RUN} rping'
        else:
            rejected(guest, f'{RUN} rping -c -a {OWN} -C 5 -V')
            client = 'rping'
        ask(guest, f'{client} -c -a {address} -C 5 -V')
        finish(guest, server)
    server = guest.start(f'rping -s -a {KERNEL} -C 5 -V')
    until(120, lambda: ended_well(guest.start(f'{RUN} rping -c -a {KERNEL} -C 5 -V'), 120),
          server.describe)
    finish(guest, server)


def check_wildcard(guest):
    """
    A listener on the wildcard address accepts connections on both devices, on one port. `rping -s -P` is not
    used: in rdma-core 44 it loses one of two simultaneous clients (rdma-core's pull request 1568).
    """
    for bound in '', ' -b ::0':
        for _ in range(3):
            server = serve(guest, f'ucmatose -c 5 -C 20{bound}')
            clients = [guest.start(f'{RUN} ucmatose -s {address} -c 1 -C 20')
                       for address in (KERNEL, OWN, KERNEL, OWN)]
            clients.append(guest.start(f'ucmatose -s {KERNEL} -c 1 -C 20'))
            for job in (*clients, server):
                finish(guest, job)


def check_programs(guest):
    for server, client in PROGRAMS:
        for address in (OWN, KERNEL):
            job = serve(guest, server)
            ask(guest, f'{RUN} {client.format(address)}')
            finish(guest, job)


def check_groups(guest):
    """Programs join, send to and leave groups on both devices; rxe0 does not loop multicast back to its host."""
    for address in (OWN, KERNEL):
        guest.run(f'{RUN} mckey -m 239.1.2.3 -b {address} -s -C 5')


def check_changes(guest):
    guest.run('rdma link delete rxe0')
    expect_devices(guest, 'urxe0')
    guest.run(f'rdma link add rxe0 type rxe netdev {guest.interface(guest.mac)}')
    expect_devices(guest, 'rxe0', 'urxe0')
    guest.run(f'{RUN} ibv_devinfo -v -d rxe0')


def check_daemon_gone(guest):
    """Connections and events of the kernel's rdma_cm continue without urxed."""
    server = serve(guest, f'rping -s -P -a {KERNEL} -V')
    guest.run('killall -9 urxed')
    until(120, lambda: guest.start(f'grep -q "rdma_cm: urxed ended" {LOG}').wait(60) == 0,
          lambda: guest.run(f'cat {LOG}'))
    for _ in range(2):
        ask(guest, f'rping -c -a {KERNEL} -C 5 -V')
    guest.run('killall rping')
    server.wait(60)


def run():
    build, = sys.argv[1:]
    image = Image(build, urxe=True)
    with Guest(image, WIRE, memory_mb=MEMORY_MB) as guest:
        guest.run('mkdir /tmp/urxe && chmod 700 /tmp/urxe')
        guest.make_rxe(KERNEL, MTU)
        guest.start('/urxe/tools/urxed --foreground --run-dir /tmp/urxe')
        guest.run('until test -S /tmp/urxe/urxed.sock; do usleep 20000; done')
        check_verbs(guest)
        check_addresses(guest)
        check_wildcard(guest)
        check_programs(guest)
        check_groups(guest)
        check_changes(guest)
        check_daemon_gone(guest)


main(run)
