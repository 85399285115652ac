#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two hosts over the kinds of uplinks that cell.py does not test."""
import contextlib
import os
import sys

from cell import run_program
from ethernet import Ethernet, IPV4, IPV6
from host import Failure, Host, Program, main, skip, until

PROGRAMS = [
    ['verbs_check'],
    ['ibv_rc_pingpong', '-c', '-n', '500'],
    ['ib_write_bw', '-F', '-n', '500'],
    ['ib_send_bw', '-F', '-c', 'UD', '-n', '500'],
]

# A program for a TCP session with small requests and answers, as of a shell session.
ASK_AND_ANSWER = '''
import socket, sys, time
asks, address = sys.argv[1] == 'ask', sys.argv[2]
if asks:
    peer = socket.create_connection((address, 22222))
else:
    with socket.create_server((address, 22222)) as server:
        print('listening', flush=True)
        peer, _ = server.accept()
peer.settimeout(20)
for number in range(1 << 30):
    if asks:
        peer.sendall(number.to_bytes(8, 'big'))
    heard = peer.recv(8, socket.MSG_WAITALL)
    if int.from_bytes(heard, 'big') != number or not heard:
        sys.exit('a wrong answer')
    if asks:
        print(number, flush=True)
        time.sleep(0.01)
    else:
        peer.sendall(heard)
'''


class Session:
    """A TCP session of the kernel between two namespaces, until it is closed."""

    def __init__(self, namespaces, address):
        self.ends = []
        for namespace, role in zip(namespaces, ('answer', 'ask')):
            self.ends.append(Program(namespace.prefix() + [sys.executable, '-c', ASK_AND_ANSWER,
                                                           role, address], os.environ))
            until(10, lambda: self.ends[-1].output(), self.describe)

    def describe(self):
        return '\n'.join(end.describe() for end in self.ends)

    def check(self):
        """Waits until the session makes progress."""
        before = len(self.ends[1].output())
        until(10, lambda: len(self.ends[1].output()) > before, self.describe)

    def close(self):
        for end in self.ends:
            end.kill()


def counters(namespace, file, protocol):
    """Counters of the kernel's IP stack."""
    with open(f'/proc/{namespace.pid}/net/{file}', encoding='ascii') as table:
        lines = [line.split() for line in table if line.startswith(protocol)]
    if file == 'snmp':
        return dict(zip(lines[0][1:], map(int, lines[1][1:])))
    return {name: int(value) for name, value in lines}


def check_kernel_saw_nothing(namespace):
    """The kernel has received no RoCE datagram, and has sent no ICMP error for one."""
    udp = counters(namespace, 'snmp', 'Udp:')
    icmp = counters(namespace, 'snmp', 'Icmp:')
    six = counters(namespace, 'snmp6', 'Udp6') | counters(namespace, 'snmp6', 'Icmp6')
    seen = [udp['InDatagrams'], udp['NoPorts'], udp['InErrors'], icmp['OutDestUnreachs'],
            six['Udp6InDatagrams'], six['Udp6NoPorts'], six['Udp6InErrors'],
            six['Icmp6OutDestUnreachs']]
    if any(seen):
        raise Failure(f'the kernel has seen RoCE: {seen}')


def check_af_xdp(build):
    """
    RoCE frames of the switch bypass the kernel, which handles all other frames: a TCP session, ARP and ND. A killed daemon
    leaves its XDP program on the interface, and a new daemon still starts.
    """
    if not os.path.exists(os.path.join(build, 'netdev/xdp/roce.bpf.o')):
        skip('this build had no compiler for BPF')
    with Ethernet(build, [1500] * 2, ['--direct-uplink', 'none'], uplink='af_xdp:eth0') as net:
        session = Session(net.namespaces, IPV4.format(1))
        try:
            for address in ((IPV4, 'RoCE v2'), (IPV6, 'RoCE v2'), (IPV4, 'RoCE v1')):
                for argv in PROGRAMS:
                    run_program(net.ends(*address), argv, 1024, False)
                session.check()
            net.hosts[0].daemon.kill()
            net.hosts[0].start_daemon()
            run_program(net.ends(IPV4), PROGRAMS[0], 1024, False)
            session.check()
        finally:
            session.close()
        for namespace in net.namespaces:
            check_kernel_saw_nothing(namespace)


@contextlib.contextmanager
def without_privilege(build, name, specs):
    """Two daemons of an ordinary user, joined by a DPDK driver over a socket."""
    with contextlib.ExitStack() as stack:
        hosts = [stack.enter_context(Host(build, user='nobody' if os.getuid() == 0 else None,
                                          daemon=False)) for _ in specs]
        path = os.path.join(hosts[0].run_dir, name)
        for number, (host, spec) in enumerate(zip(hosts, specs), 1):
            host.start_daemon(['--uplink', spec.format(path=path), '--address',
                               f'{IPV4.format(number)}/24'])
        yield hosts


def run_without_privilege(hosts, programs):
    ends = [(host, host.gid(IPV4.format(number)), '127.0.0.1')
            for number, host in enumerate(hosts, 1)]
    for argv in programs:
        run_program(ends, argv, 4096, False)


# DPDK's virtio-user plays the virtio NIC of a virtual machine for a vhost: port.
VHOST = ['vhost:{path}', 'dpdk:net_virtio_user0,path={path},mac=02:00:00:00:00:02']


def check_vhost(build):
    with without_privilege(build, 'vm', VHOST) as hosts:
        run_without_privilege(hosts, PROGRAMS)


def check_memif(build):
    memif = 'dpdk:net_memif0,role={},socket={{path}},socket-abstract=no,bsize=8192,mac=02:00:00:00:00:0{}'
    with without_privilege(build, 'memif', [memif.format('server', 1),
                                            memif.format('client', 2)]) as hosts:
        run_without_privilege(hosts, PROGRAMS)


CHECKS = {'af_xdp': check_af_xdp, 'vhost': check_vhost, 'memif': check_memif}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
