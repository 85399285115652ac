#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A virtual machine by hand (migrating_vm.c) migrates between the device processes of two hosts while it exchanges
messages with ibv_rc_pingpong on one of them: the peer is on another host and on the same host in turn. The second
and third arguments are the options --doorbells of both processes.
"""
import contextlib
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import START_SECONDS, Failure, Host, succeed, until  # noqa: E402
from network import inside, must, run  # noqa: E402

NAMES = [f'migrate{os.getpid()}{side}' for side in 'ab']
ADDRESSES = ['10.0.0.1', '10.0.0.2']
MAC = '02:00:00:00:01:09'
PORT = 18515
MOVES, SIZE, ITERATIONS = 10, 50000, 200
PINGPONG = ['-s', str(SIZE), '-n', str(ITERATIONS), '-c']


def prepare(name, address):
    must('-n', name, 'addr', 'add', f'{address}/24', 'dev', 'eth0')


def mac_of(name):
    result = subprocess.run(['ip', '-n', name, '-j', 'link', 'show', 'eth0'], capture_output=True, check=True)
    return json.loads(result.stdout)[0]['address']


def start_device(host, *arguments):
    path = os.path.join(host.top, 'vm')
    device = host.spawn([host.urxe, 'vm', '--run-dir', host.run_dir, '--socket', path, '--mac', MAC, *arguments])
    until(START_SECONDS, lambda: os.path.exists(f'{path}.1') or not device.running(), device.describe)
    if not device.running():
        raise Failure(device.describe())
    return device, path


@contextlib.contextmanager
def two_hosts(names, addresses):
    """Hosts with these addresses in the namespaces."""
    for name, address in zip(names, addresses):
        prepare(name, address)
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Host(BUILD, prefix=inside(name), arguments=['--uplink', 'af_packet:eth0']))
               for name in names]


def start_devices(hosts):
    """The device process of the first host, which has the machine, and that of the second one, which waits for it."""
    return [start_device(host, '--doorbells', doorbells, *more)
            for host, doorbells, more in zip(hosts, DOORBELLS, ([], ['--incoming']))]


def machine_command(devices, mac, port):
    """The machine's command in the network namespace in which ibv_rc_pingpong listens. mac: of the peer's host."""
    return [os.path.join(BUILD, 'tests/hosts/migrating_vm'), devices[0][1], devices[1][1], str(MOVES), mac, str(port),
            str(SIZE), str(ITERATIONS), *DOORBELLS]


def finish(devices, machine, peer):
    """The machine has moved, and both ends have all messages."""
    try:
        succeed(machine, 120)
        succeed(peer, 30)
    except Failure:
        for device, _ in devices:
            print(device.describe())
        print(peer.describe())
        raise
    for device, _ in devices:
        if not device.running():
            raise Failure(f'ended: {device.describe()}')
    print(machine.output())


def check():
    with two_hosts(NAMES, ADDRESSES) as hosts:
        devices = start_devices(hosts)
        gid = hosts[1].gid(ADDRESSES[1])
        peer = hosts[1].start('ibv_rc_pingpong', '-g', str(gid), *PINGPONG, '-p', str(PORT))
        machine = hosts[1].spawn(machine_command(devices, mac_of(NAMES[1]), PORT))
        finish(devices, machine, peer)


BUILD = sys.argv[1]
DOORBELLS = sys.argv[2:4] or ['trapped', 'trapped']
if __name__ == '__main__':
    run(check, NAMES)
