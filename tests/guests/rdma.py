#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Programs between a process of this host and Linux' rdma_rxe in a virtual machine, in both directions, over each kind
of connection between QEMU and urxed; again after the machine was killed and a new one started, after urxed was, and
after the process of a vhost: port was killed.
"""
import os
import signal
import sys

from guest import Guest, MEMORY_MB
from ethernet import prefer
from host import BUSY, Failure, Host, free_port, main, succeed, until, wait_listening
from image import Image
import report
from vhost_port import port_process, wait_restarted

HOST, GUEST = '192.0.2.1', '192.0.2.2'
MTU, PATH_MTU = 4200, 4096
SECONDS = 300  # for one program, because the guest's processors are emulated

# perftest's default timeout of 67 ms is too short for an emulated processor.
PATIENT = ['-u', '18']
VERBS_CHECK = 'tests/smoke/verbs_check'
PROGRAMS = [
    ['verbs_check'],
    ['ibv_rc_pingpong', '-c', '-n', '100'],
    ['ib_write_bw', '-F', '-n', '100', *PATIENT],
    ['ib_send_bw', '-F', '-n', '100', *PATIENT],
    ['ib_read_bw', '-F', '-n', '100', *PATIENT],
]


class Wire:
    """
    An uplink and QEMU's netdev n0, joined by the socket {path}. Not every netdev of QEMU 7.2 reconnects to a
    restarted urxed.
    """

    def __init__(self, uplink, netdev, nic, outlives=True):
        self.uplink = uplink
        self.netdev = netdev
        self.nic = nic
        self.outlives = outlives

    def arguments(self, path):
        return ['--uplink', self.uplink.format(path=path), '--address', f'{HOST}/24']

    def boot(self, image, path):
        guest = Guest(image, [word.format(path=path) for word in self.netdev], self.nic)
        try:
            guest.make_rxe(GUEST, MTU)
            guest.wait_neighbour(HOST)
        except BaseException:
            guest.close()
            raise
        return guest


# QEMU 7.2 without KVM crashes unless vectors=0.
VIRTIO = f'virtio-net-pci,host_mtu={MTU}'
VHOST_USER = VIRTIO + ',vectors=0'


def vhost(chardev):
    return ['-object', f'memory-backend-memfd,id=m0,size={MEMORY_MB}M,share=on',
            '-machine', 'memory-backend=m0', '-chardev', f'socket,id=c0,path={{path}},{chardev}',
            '-netdev', 'vhost-user,id=n0,chardev=c0']


def stream(server):
    return ['-netdev', f'stream,id=n0,addr.type=unix,addr.path={{path}},server={server}']


DGRAM = ['-netdev', 'dgram,id=n0,local.type=unix,local.path={path}.qemu,'
         'remote.type=unix,remote.path={path}']

WIRES = {
    'vhost': Wire('vhost:{path}', vhost('reconnect=1'), VHOST_USER),
    'vhost_connect': Wire('vhost:{path},connect', vhost('server=on'), VHOST_USER),
    'stream': Wire('qemu:{path}', stream('off'), 'vmxnet3', outlives=False),
    'stream_connect': Wire('qemu:{path},connect', stream('on'), VIRTIO),
    'dgram': Wire('qemu:{path},dgram', DGRAM, 'vmxnet3'),
}


def start(host, arguments=None):
    host.start_daemon(arguments)
    prefer(host.daemon)


def words(argv, device, port, gid):
    index = '-x' if argv[0].startswith('ib_') else '-g'
    return [*argv, '-d', device, '-p', str(port), index, str(gid)]


def on_host(host, argv, port, address):
    argv = words(argv, 'urxe0', port, host.gid(address))
    return [host.verbs_check, *argv[1:]] if argv[0] == 'verbs_check' else argv


def on_guest(guest, argv, port, address):
    return ' '.join(words(argv, guest.RDMA, port, guest.gid(address)))


def finish(argv, server, client, mtu):
    try:
        until(SECONDS, lambda: not (server.running() and client.running()),
              lambda: f'both sides still run after {SECONDS * BUSY} s')
        for one in (client, server):
            succeed(one, 20)
        report.check(argv, server.output(), client.output(), mtu)
    except Failure as failure:
        raise Failure(f'{" ".join(argv)}: {failure}\nthe server: {server.describe()}\n'
                      f'the client: {client.describe()}') from None


def serve_guest(host, guest, argv, addresses=(HOST, GUEST), mtu=PATH_MTU):
    """Runs the server on the host; addresses: of host and guest, for the GIDs."""
    port = free_port()
    server = host.start(*on_host(host, argv, port, addresses[0]))
    wait_listening(server, port)
    client = guest.start(f'{on_guest(guest, argv, port, addresses[1])} {guest.HERE}')
    finish(argv, server, client, mtu)


def serve_host(host, guest, argv, addresses=(HOST, GUEST), mtu=PATH_MTU):
    """Runs the server in the guest and the client on the host."""
    server = guest.start(on_guest(guest, argv, guest.port, addresses[1]))
    guest.wait_listening(guest.port)
    client = host.start(*on_host(host, argv, guest.port, addresses[0]), '127.0.0.1')
    finish(argv, server, client, mtu)


def exchange(host, guest, programs):
    for argv in programs:
        print(' '.join(argv), end=', ', flush=True)
        serve_guest(host, guest, argv)
        serve_host(host, guest, argv)
    print('done', flush=True)


def make_image(build):
    return Image(build, [os.path.join(build, VERBS_CHECK)])


def run():
    build, name = sys.argv[1:]
    wire = WIRES[name]
    image = make_image(build)
    with Host(build, daemon=False) as host:
        path = os.path.join(host.run_dir, 'nic')
        start(host, wire.arguments(path))
        with wire.boot(image, path) as guest:
            exchange(host, guest, PROGRAMS)
            if name.startswith('vhost'):
                print('the process of the port is killed:', end=' ')
                os.kill(port_process(host), signal.SIGKILL)
                wait_restarted(host, 1)
                guest.wait_neighbour(HOST)
                exchange(host, guest, PROGRAMS[:2])
            if wire.outlives:
                print('urxed is killed:', end=' ')
                host.daemon.kill()
                start(host)
                guest.wait_neighbour(HOST)
                exchange(host, guest, PROGRAMS[:2])
        print('the machine was killed:', end=' ')
        with wire.boot(image, path) as guest:
            exchange(host, guest, PROGRAMS[:2])


if __name__ == '__main__':
    main(run)
