#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Unprivileged daemons joined by the sockets of QEMU's -netdev stream and dgram, as two hosts on one machine, and
a test peer that plays a correct or a broken QEMU.
"""
import contextlib
import os
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import report  # noqa: E402
from host import Failure, Host, Pair, main, until  # noqa: E402

PROGRAMS = [
    ['verbs_check'],
    ['ibv_rc_pingpong', '-c', '-n', '500'],
    ['ib_write_bw', '-F', '-n', '500'],
    ['ib_read_bw', '-F', '-n', '500'],
    ['ib_send_bw', '-F', '-n', '500'],
]
ADDRESSES = ['192.0.2.1', '192.0.2.2']
PEER_MAC = bytes.fromhex('525400000001')
BROADCAST = b'\xff' * 6


@contextlib.contextmanager
def hosts(build, count):
    """Hosts of an unprivileged user, without daemons."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Host(build, user='nobody' if os.getuid() == 0 else None,
                                        daemon=False)) for _ in range(count)]


def start(host, address, spec):
    host.start_daemon(['--uplink', spec, '--address', f'{address}/24'])


def exchange(server, client, programs=tuple(PROGRAMS)):
    gids = server.gid(ADDRESSES[0]), client.gid(ADDRESSES[1])
    for argv in programs:
        argv = [server.verbs_check if argv[0] == 'verbs_check' else argv[0], *argv[1:]]
        outputs = Pair(server, client, argv, gids[0], client_gid=gids[1]).finish(60)
        if argv[0].startswith('ib_'):
            report.check_perftest(outputs[1], None)


def check_stream(build):
    """One daemon listens, and the other one connects, also after a restart of the first."""
    with hosts(build, 2) as (server, client):
        path = os.path.join(server.run_dir, 'cable')
        start(client, ADDRESSES[1], f'qemu:{path},connect')
        start(server, ADDRESSES[0], f'qemu:{path}')
        exchange(server, client)
        server.daemon.kill()
        start(server, ADDRESSES[0], f'qemu:{path}')
        exchange(server, client, PROGRAMS[:1])
        server.daemon.kill(signal.SIGTERM)
        until(10, lambda: not os.path.exists(path), lambda: f'urxed left {path}')


def check_dgram(build):
    with hosts(build, 2) as (server, client):
        paths = [os.path.join(host.run_dir, 'cable') for host in (server, client)]
        start(server, ADDRESSES[0], f'qemu:{paths[0]},dgram,remote={paths[1]}')
        start(client, ADDRESSES[1], f'qemu:{paths[1]},dgram,remote={paths[0]}')
        exchange(server, client)


def arp_request():
    """An ARP request for the daemon's address."""
    ip = [socket.inet_aton(address) for address in ADDRESSES]
    return (BROADCAST + PEER_MAC + b'\x08\x06' + bytes.fromhex('0001080006040001') + PEER_MAC
            + ip[1] + bytes(6) + ip[0]).ljust(60, b'\0')


def check_arp_reply(frame):
    if frame[:6] != PEER_MAC or frame[12:14] != b'\x08\x06' or frame[20:22] != b'\0\2':
        raise Failure(f'no ARP reply: {frame.hex()}')
    if frame[28:32] != socket.inet_aton(ADDRESSES[0]) or frame[6:12] != frame[22:28]:
        raise Failure(f'a wrong ARP reply: {frame.hex()}')


def on_stream(frame):
    return struct.pack('>I', len(frame)) + frame


def call(path, kind=socket.SOCK_STREAM):
    peer = socket.socket(socket.AF_UNIX, kind)
    peer.settimeout(10)
    peer.connect(path)
    return peer


def read_frame(peer):
    length, = struct.unpack('>I', peer.recv(4, socket.MSG_WAITALL))
    return peer.recv(length, socket.MSG_WAITALL)


def check_hung_up(peer):
    try:
        rest = peer.recv(1)
    except ConnectionResetError:
        rest = b''
    if rest:
        raise Failure('urxed keeps the connection of a peer that sends invalid frames')


def check_peer(build):
    """The daemon answers ARP on each kind of socket, and survives a broken peer."""
    with hosts(build, 1) as (host,):
        path = os.path.join(host.run_dir, 'vm')
        start(host, ADDRESSES[0], f'qemu:{path}')
        if os.stat(path).st_mode & 0o777 != 0o600:
            raise Failure(f'others may connect to {path}')
        for broken in (b'\xff\xff\xff\xff', on_stream(b''), on_stream(bytes(65000)), b'\0\0'):
            with call(path) as peer:
                peer.sendall(on_stream(arp_request()))
                check_arp_reply(read_frame(peer))
                with call(path) as second:
                    check_hung_up(second)
                peer.sendall(broken)
                if broken[0]:
                    check_hung_up(peer)
                elif len(broken) > 2:
                    peer.sendall(on_stream(arp_request()))
                    check_arp_reply(read_frame(peer))
        host.daemon.kill()
        start(host, ADDRESSES[0], f'qemu:{path},dgram')
        with call(path, socket.SOCK_DGRAM) as peer:
            peer.bind(path + '.peer')
            os.chmod(path + '.peer', 0o777)
            peer.sendall(b'')
            peer.sendall(bytes(20000))
            peer.sendall(arp_request())
            check_arp_reply(peer.recv(10000))


def idle_ticks(host):
    with open(f'/proc/{host.daemon_pid()}/stat', encoding='ascii') as file:
        return sum(map(int, file.read().rsplit(')', 1)[1].split()[11:13]))


def check_idle(build):
    """The daemon sleeps while the peer sends nothing."""
    with hosts(build, 1) as (host,):
        path = os.path.join(host.run_dir, 'vm')
        start(host, ADDRESSES[0], f'qemu:{path}')
        with call(path) as peer:
            peer.sendall(on_stream(arp_request())[:20])
            time.sleep(0.2)
            before = idle_ticks(host)
            time.sleep(2)
            if idle_ticks(host) - before > 20:
                raise Failure(f'{idle_ticks(host) - before} ticks of 10 ms in 2 s of silence')


CHECKS = {'stream': check_stream, 'dgram': check_dgram, 'peer': check_peer, 'idle': check_idle}

main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
