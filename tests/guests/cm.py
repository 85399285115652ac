#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
rdma_cm between a process of this host and Linux' rdma_rxe in a virtual machine: Debian's programs with the server
on either side, rejections, disconnects and multicast groups.
"""
import os
import sys

from guest import Guest
from host import Failure, Host, main, until
from image import Image
from rdma import GUEST, HOST, MTU, SECONDS, WIRES, start
from rdmacm import KERNEL_ATTEMPTS, OWN_ATTEMPTS, came_too_early, end_well, start_server

GROUP = '239.1.2.3'
SENDERS = 50  # maximum runs of mckey, with kernels that lose its last datagrams
# Server and client; {} is the server's address. rping -V checks contents.
PROGRAMS = [
    (['rping', '-s', '-C', '10', '-V'], ['rping', '-c', '-a', '{}', '-C', '10', '-V']),
    (['rping', '-s', '-C', '3', '-S', '60000', '-V'],
     ['rping', '-c', '-a', '{}', '-C', '3', '-S', '60000', '-V']),
    (['ucmatose', '-c', '4', '-C', '20'], ['ucmatose', '-s', '{}', '-c', '4', '-C', '20']),
    (['ucmatose', '-c', '2', '-m'], ['ucmatose', '-s', '{}', '-c', '2', '-m']),
    (['udaddy', '-c', '2'], ['udaddy', '-s', '{}', '-c', '2']),
    (['ib_write_bw', '-R', '-F', '-n', '100'], ['ib_write_bw', '-R', '-F', '-n', '100', '{}']),
]


# --- Listeners of the kernel

def listens(guest):
    return 'state LISTEN' in guest.run('rdma resource show cm_id')


def guest_server(guest, argv):
    """Starts a server in the guest, and waits until it listens."""
    until(60, lambda: not listens(guest), lambda: 'a server of before still listens')
    server = guest.start(' '.join(argv))
    until(60, lambda: listens(guest) or not server.running(), server.describe)
    return server


def to(words, server):
    return [word.format(server) for word in words]


# --- Both roles

def finish(server, client):
    for one, other in ((client, server), (server, client)):
        try:
            end_well(one, SECONDS)
        except Failure as failure:
            raise Failure(f'{failure}\nthe other side: {other.describe()}') from None


def serve_guest(host, guest, server_argv, client_argv, address=HOST):
    """Runs the server on the host, with this address, and the client in the guest."""
    for _ in range(OWN_ATTEMPTS):
        server = start_server(host, server_argv)
        client = guest.start(' '.join(to(client_argv, address)))
        client.wait(SECONDS)
        if not came_too_early(client_argv, client):
            break
        server.kill()
    finish(server, client)


def serve_host(host, guest, server_argv, client_argv, address=GUEST):
    """Runs the server in the guest and the client on the host."""
    for _ in range(KERNEL_ATTEMPTS):
        server = guest_server(guest, server_argv)
        client = host.start(*to(client_argv, address))
        client.wait(SECONDS)
        if not came_too_early(client_argv, client):
            break
        guest.run(f'killall -9 {server_argv[0]}')
        server.wait(SECONDS)
    finish(server, client)


def check_rejection(host, guest, addresses=(HOST, GUEST)):
    """Clients of both addresses are rejected without a listener."""
    argv = ['rping', '-c', '-p', '4999', '-C', '1', '-a']
    for client in host.start(*argv, addresses[1]), guest.start(' '.join([*argv, addresses[0]])):
        client.wait(SECONDS)
        if 'RDMA_CM_EVENT_REJECTED, error 8' not in client.output() + client.errors():
            raise Failure(f'no rejection: {client.describe()}')


def expect_disconnect(server):
    server.wait(SECONDS)
    if 'DISCONNECT' not in server.output() + server.errors():
        raise Failure(f'no disconnect: {server.describe()}')


def check_death(host, guest):
    """The peer of a killed program gets a disconnect event."""
    server = start_server(host, ['stdbuf', '-oL', 'rping', '-s', '-v'])
    client = guest.start(f'rping -c -v -a {HOST}')
    until(60, lambda: 'ping data' in server.output() or not client.running(), client.describe)
    guest.run('killall -9 rping')
    expect_disconnect(server)
    client.wait(SECONDS)

    server = guest_server(guest, ['rping', '-s', '-v'])
    client = host.start('stdbuf', '-oL', 'rping', '-c', '-v', '-a', GUEST)
    until(60, lambda: 'ping data' in client.output() or not client.running(), client.describe)
    client.kill()
    expect_disconnect(server)


def send_until_received(guest, sender, receiver):
    """
    mckey ends without waiting until its datagrams are sent. In Linux 6.12 a kernel thread sends them, and most are
    lost with the queue pair. Linux 6.1 sends them when mckey posts them, so all of one sender must arrive.
    """
    if guest.run('cat /proc/sys/kernel/osrelease').startswith('6.1.'):
        finish(receiver, guest.start(sender))
        return
    for _ in range(SENDERS):
        end_well(guest.start(sender), SECONDS)
        if not receiver.running():
            end_well(receiver, SECONDS)
            return
    raise Failure(f'{SENDERS} times {sender}, and still waiting: {receiver.describe()}')


def check_groups(host, guest):
    """Sends datagrams to a group that one side has joined, in both directions."""
    argv = ['mckey', '-m', GROUP, '-C', '10', '-S', '100', '-b']
    receiver = start_server(host, [*argv, HOST], 'ATTACH_MCAST: ok')
    send_until_received(guest, ' '.join([*argv, GUEST, '-s']), receiver)

    receiver = guest.start(' '.join([*argv, GUEST]))
    until(60, lambda: joined(guest) or not receiver.running(), receiver.describe)
    finish(receiver, host.start(*argv, HOST, '-s'))


def joined(guest):
    """Whether the NIC receives the group's MAC, as it does after rdma_rxe has joined the group."""
    return '01005e010203' in guest.run('cat /proc/net/dev_mcast')


def run():
    build, name = sys.argv[1:]
    wire, image = WIRES[name], Image(build)
    with Host(build, daemon=False) as host:
        path = os.path.join(host.run_dir, 'nic')
        start(host, wire.arguments(path))
        with wire.boot(image, path) as guest:
            for server, client in PROGRAMS:
                print(' '.join(client), flush=True)
                serve_guest(host, guest, server, client)
                serve_host(host, guest, server, client)
            check_rejection(host, guest)
            check_death(host, guest)
            check_groups(host, guest)


if __name__ == '__main__':
    main(run)
