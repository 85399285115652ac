#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Running programs see changes of an uplink's interface: addresses, link, MTU, MAC, routes, VLANs."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import network  # noqa: E402
import rdmacm  # noqa: E402
import report  # noqa: E402
from endless import EndlessPair  # noqa: E402
from host import Failure, Host, Pair, skip, until  # noqa: E402
from nested import DEVICE  # noqa: E402
from network import inside, ip, must  # noqa: E402

NAMES = [f'urxe{os.getpid()}{side}' for side in 'abr']
UPLINK = ['--uplink', 'af_packet:eth0']


def host(build, number, arguments=()):
    return Host(build, prefix=inside(NAMES[number]),
                arguments=[*UPLINK, *arguments])


class Events:
    """The events of port_events.c, in order."""

    def __init__(self, machine, build):
        self.program = machine.start(os.path.join(build, 'tests/smoke/port_events'))
        self.seen = 0
        self.expect('START', 'ACTIVE', 1024, {0: '192.0.2.1'})

    def next(self):
        until(10, lambda: len(self.program.output().splitlines()) > self.seen,
              lambda: f'no event comes: {self.program.describe()}')
        self.seen += 1
        return self.program.output().splitlines()[self.seen - 1]

    def expect(self, event, state, mtu, addresses):
        """Checks the next event and the port's state after it. addresses: GID index and IPv4 address."""
        gids = [f'{base + index}:::ffff:{address}' for base in (0, 16)
                for index, address in sorted(addresses.items())]
        right = f'{event} state={state} mtu={mtu} gids={",".join(gids)}'
        found = self.next()
        if found != right:
            raise Failure(f'"{found}" instead of "{right}"')


def address(action, text):
    must('-n', NAMES[0], 'addr', action, text, 'dev', 'eth0')


def move_first_address(events):
    """
    Moves the first address to the end of the kernel's list; its GID must keep its index. The test waits for
    each change, because a slow daemon would see only the result of several changes.
    """
    address('add', '198.51.100.1/24')
    events.expect('GID_CHANGE', 'ACTIVE', 1024, {0: '192.0.2.1', 1: '198.51.100.1'})
    address('del', '192.0.2.1/24')
    events.expect('GID_CHANGE', 'ACTIVE', 1024, {1: '198.51.100.1'})
    address('add', '192.0.2.1/24')
    events.expect('GID_CHANGE', 'ACTIVE', 1024, {0: '192.0.2.1', 1: '198.51.100.1'})


def check_events(build):
    """Addresses and the link change. When an event arrives, the port's state is already the new one."""
    with host(build, 0) as machine:
        events = Events(machine, build)
        move_first_address(events)
        both = {0: '192.0.2.1', 1: '198.51.100.1'}
        must('-n', NAMES[0], 'link', 'set', 'eth0', 'down')
        events.expect('PORT_ERR', 'DOWN', 1024, both)
        must('-n', NAMES[0], 'link', 'set', 'eth0', 'up')
        events.expect('PORT_ACTIVE', 'ACTIVE', 1024, both)
        # The link is also down if the peer's end is. A new MTU raises no event and shows with the next one.
        must('-n', NAMES[0], 'link', 'set', 'eth0', 'mtu', '640')
        must('-n', NAMES[1], 'link', 'set', 'eth0', 'down')
        events.expect('PORT_ERR', 'DOWN', 512, both)
        must('-n', NAMES[1], 'link', 'set', 'eth0', 'up')
        events.expect('PORT_ACTIVE', 'ACTIVE', 512, both)
        must('-n', NAMES[0], 'link', 'set', 'eth0', 'mtu', '1500')
        check_many_changes(machine, events)


def check_many_changes(machine, events):
    """A stopped program misses more changes than its socket holds, and then has the last state."""
    script = ''.join(f'addr {action} 198.51.100.2/24 dev eth0\n'
                     for _ in range(2000) for action in ('add', 'del'))
    events.program.kill(signal.SIGSTOP)
    subprocess.run(['ip', '-n', NAMES[0], '-batch', '-'], input=script, text=True, check=True)
    address('add', '198.51.100.3/24')
    events.program.kill(signal.SIGCONT)
    until(10, lambda: '198.51.100.3' in events.program.output(),
          lambda: f'the last change is lost: {events.program.describe()}')
    if not machine.daemon.running():
        raise Failure(machine.daemon.describe())


def check_restart(build):
    """After a restart of the daemon each address keeps its GID index, whatever the kernel's order is."""
    with host(build, 0) as machine:
        machine.environment['URXE_RECONNECT_S'] = '60'
        events = Events(machine, build)
        move_first_address(events)
        machine.daemon.kill()
        machine.start_daemon(UPLINK)
        address('add', '203.0.113.1/24')
        events.expect('GID_CHANGE', 'ACTIVE', 1024,
                      {0: '192.0.2.1', 1: '198.51.100.1', 2: '203.0.113.1'})


def check_connection(build):
    """Changes of other addresses do not disturb a connection."""
    with host(build, 0) as server, host(build, 1) as client:
        pair = Pair(server, client, [server.verbs_check], 0, address='192.0.2.1')
        for number in range(5):
            address('add', f'198.51.100.{number + 10}/24')
            time.sleep(0.1)
            address('del', f'198.51.100.{number + 10}/24')
        pair.finish(60)
        check_address_back(server, client)


def check_address_back(server, client):
    """A connection continues after its source address was removed and added again."""
    for number, name in enumerate(NAMES[:2], 1):
        must('-n', name, 'addr', 'add', f'198.51.100.{number}/24', 'dev', 'eth0')
    # The client retries for longer than two commands take: its timeout of 0.3 s, eight times.
    pair = EndlessPair(server, client, ['ib_write_bw', '-F', '-u', '16'], server.gid('198.51.100.1'), address='192.0.2.1',
                       client_gid=client.gid('198.51.100.2'))
    for _ in range(3):
        pair.go_on()
        for action in ('del', 'add') * 3:
            address(action, '198.51.100.1/24')
    pair.finish()


HOLD_PORT = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 4791))
print('held', flush=True)
time.sleep(600)
"""


def set_both_up():
    for number, name in enumerate(NAMES[:2], 1):
        must('-n', name, 'addr', 'add', f'192.0.2.{number}/24', 'dev', 'eth0')
        must('-n', name, 'link', 'set', 'eth0', 'up')


def until_active(events):
    until(30, lambda: 'state=ACTIVE mtu=4096 gids=0:::ffff:192.0.2.1,' in events.program.output(),
          lambda: f'the port is not up again: {events.program.describe()}')


def check_back(machine, build, events):
    """A new interface of the same name is the same uplink, also with a larger MTU."""
    must('link', 'add', 'eth0', 'netns', NAMES[0], 'mtu', '9000', 'type', 'veth',
         'peer', 'name', 'eth0', 'netns', NAMES[1], 'mtu', '9000')
    set_both_up()
    until_active(events)
    check_silence('AF_INET', '192.0.2.1')
    connect_both(machine, build)


def check_mtu_grows(build):
    """After the MTU grows, frames may be longer than the buffers at the daemon's start."""
    with host(build, 0) as machine:
        events = Events(machine, build)
        for name in NAMES[:2]:
            must('-n', name, 'link', 'set', 'eth0', 'mtu', '9000')
        address('add', '198.51.100.1/24')
        events.expect('GID_CHANGE', 'ACTIVE', 4096, {0: '192.0.2.1', 1: '198.51.100.1'})
        connect_both(machine, build)


def check_mac(build):
    """After a change of the interface's MAC the uplink sends from it and receives for it."""
    with host(build, 0) as machine:
        must('-n', NAMES[0], 'link', 'set', 'eth0', 'address', '02:00:00:00:00:77')
        connect_both(machine, build)


def connect_both(machine, build):
    """Runs programs with the largest path MTU between a running host and a new host."""
    with host(build, 1) as client:
        Pair(machine, client, [machine.verbs_check], machine.gid('192.0.2.1'),
             address='192.0.2.1', client_gid=client.gid('192.0.2.2')).finish(60)
        outputs = Pair(machine, client, ['ib_write_bw', '-F', '-n', '200'],
                       machine.gid('192.0.2.1'), address='192.0.2.1',
                       client_gid=client.gid('192.0.2.2')).finish(60)
        report.check_perftest(outputs[1], None)


def processor_seconds(machine):
    with open(f'/proc/{machine.daemon_pid()}/stat', encoding='ascii') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def check_idle(machine):
    """A dead descriptor that wakes the daemon again and again would use a whole CPU."""
    before = processor_seconds(machine)
    time.sleep(1)
    if processor_seconds(machine) - before > 0.5:
        raise Failure('an idle urxed uses CPU time')


def check_removed(build):
    """A removed interface leaves a port that is down, and the daemon uses no CPU time."""
    with host(build, 0) as machine:
        events = Events(machine, build)
        must('-n', NAMES[0], 'link', 'del', 'eth0')
        until(10, lambda: 'state=DOWN mtu=1024 gids=\n' in events.program.output(),
              lambda: f'the port is not down: {events.program.describe()}')
        until(5, lambda: 'interface eth0 has gone' in machine.daemon.errors(),
              lambda: machine.daemon.describe())
        check_idle(machine)
        check_back(machine, build, events)


def check_removed_tap(build):
    """The interface of a tap: goes with its network namespace: the port is down, and the daemon uses no CPU time."""
    with Host(build, prefix=inside(NAMES[0]), arguments=['--uplink', 'tap:rdma0', '--address', '192.0.2.1/24']) as machine:
        events = machine.start(os.path.join(build, 'tests/smoke/port_events'))
        until(10, lambda: 'START state=ACTIVE' in events.output(), events.describe)
        must('netns', 'add', NAMES[2])
        must('-n', NAMES[0], 'link', 'set', 'rdma0', 'netns', NAMES[2])
        must('netns', 'del', NAMES[2])
        until(10, lambda: 'PORT_ERR state=DOWN' in events.output(), events.describe)
        until(5, lambda: 'interface rdma0 has gone' in machine.daemon.errors(), machine.daemon.describe)
        check_idle(machine)


def check_retry(build):
    """An interface that returns while another program has the port of RoCE is the uplink when that program ends."""
    with host(build, 0) as machine:
        events = Events(machine, build)
        must('-n', NAMES[0], 'link', 'del', 'eth0')
        until(10, lambda: 'interface eth0 has gone' in machine.daemon.errors(), machine.daemon.describe)
        holder = machine.spawn([sys.executable, '-c', HOLD_PORT])
        until(20, holder.output, holder.describe)
        must('link', 'add', 'eth0', 'netns', NAMES[0], 'mtu', '9000', 'type', 'veth',
             'peer', 'name', 'eth0', 'netns', NAMES[1], 'mtu', '9000')
        set_both_up()
        until(10, lambda: 'af_packet:eth0 is not available' in machine.daemon.errors(), machine.daemon.describe)
        # Reports of the kernel about the new interface would also start an attempt.
        time.sleep(3)
        holder.kill()
        until_active(events)
        connect_both(machine, build)


def check_hca_renamed(build):
    """The HCA of the uplink's interface stays in use after a rename. It is the device of another urxe on the interface."""
    with host(build, 0, DEVICE) as outer, Host(build, prefix=inside(NAMES[0]), daemon=False) as machine:
        machine.environment['URXE_OUTER_DIR'] = outer.run_dir
        machine.start_daemon(UPLINK)

        def hca():
            return machine.show('device')['hca'][0]

        if not hca()['used']:
            raise Failure(f'not used: {hca()}')
        must('-n', NAMES[0], 'link', 'set', 'eth0', 'name', 'lan0')
        until(10, lambda: hca()['interface'] == 'lan0' and hca()['used'], lambda: f'not used after the rename: {hca()}')
        if hca()['uplink'] != 'lan0':
            raise Failure(f'of another uplink: {hca()}')
        if 'is not used' in machine.daemon.errors():
            raise Failure(f'not used for a time: {machine.daemon.errors()}')


def mac_of(name, interface='eth0'):
    return ip('-n', name, '-br', 'link', 'show', 'dev', interface).stdout.split()[2]


def next_hop(machine, build, gid, to):
    program = machine.spawn([os.path.join(build, 'tests/smoke/next_hop'), machine.run_dir,
                             str(gid), to])
    program.wait(10)
    return program.output().strip() or program.errors()


def expect_hop(machine, build, hops):
    """hops: (GID index, destination, expected output)."""
    for gid, to, right in hops:
        found = next_hop(machine, build, gid, to)
        if found != right:
            raise Failure(f'{to} from GID {gid}: {found} instead of {right}')


def make_router():
    """Makes the third namespace a router: host a 192.0.2.1 - .254 router 198.51.100.254 - .2 host b."""
    a, b, r = NAMES
    must('netns', 'add', r)
    must('-n', b, 'link', 'del', 'eth0')
    for name, interface in ((a, 'eth0'), (b, 'eth1')):
        must('link', 'add', 'eth0', 'netns', name, 'type', 'veth', 'peer', 'name', interface,
             'netns', r)
        must('-n', name, 'link', 'set', 'eth0', 'up')
        must('-n', r, 'link', 'set', interface, 'up')
    must('netns', 'exec', r, 'sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward && '
         'echo 1 >/proc/sys/net/ipv6/conf/all/forwarding')
    for name, number, v4, v6, interface in ((a, 1, '192.0.2', '2001:db8:1:', 'eth0'),
                                            (b, 2, '198.51.100', '2001:db8:2:', 'eth1')):
        must('-n', name, 'addr', 'add', f'{v4}.{number}/24', 'dev', 'eth0')
        must('-n', r, 'addr', 'add', f'{v4}.254/24', 'dev', interface)
        must('-n', name, 'addr', 'add', f'{v6}:{number}/64', 'dev', 'eth0', 'nodad')
        must('-n', r, 'addr', 'add', f'{v6}:254/64', 'dev', interface, 'nodad')
        must('-n', name, 'route', 'add', 'default', 'via', f'{v4}.254')
        must('-n', name, '-6', 'route', 'add', 'default', 'via', f'{v6}:254')


def check_next_hops(build):
    """Next hops: on the link, behind a router, static, without a route, and without an answer."""
    a = NAMES[0]
    make_router()
    with host(build, 0) as machine:
        gid, gid6 = machine.gid('192.0.2.1'), machine.gid('2001:db8:1::1')
        router = mac_of(NAMES[2])
        must('-n', a, 'neigh', 'add', '192.0.2.9', 'lladdr', '02:00:00:00:00:09', 'nud',
             'permanent', 'dev', 'eth0')
        must('-n', a, 'neigh', 'add', '192.0.2.10', 'lladdr', '02:00:00:00:00:10', 'nud', 'noarp', 'dev', 'eth0')
        must('-n', a, 'route', 'add', 'unreachable', '203.0.113.0/24')
        must('-n', a, 'route', 'add', '198.18.0.0/24', 'via', '192.0.2.9', 'hoplimit', '17')
        must('-n', a, '-6', 'route', 'add', 'unreachable', '2001:db8:9::/64')
        expect_hop(machine, build, [
            (gid, '::ffff:192.0.2.254', f'{router} 64'),
            (gid, '::ffff:192.0.2.254', f'{router} 64'),
            (gid + 16, '::ffff:192.0.2.254', f'{router} 64'),
            (gid, '::ffff:198.51.100.2', f'{router} 64'),
            (gid6, '2001:db8:2::2', f'{router} 64'),
            (gid6, '2001:db8:1::254', f'{router} 64'),
            # Routers cannot forward RoCEv1, which has no IP header.
            (gid + 16, '::ffff:198.51.100.2', 'ENETUNREACH'),
            (gid, '::ffff:192.0.2.9', '02:00:00:00:00:09 64'),
            (gid, '::ffff:192.0.2.10', '02:00:00:00:00:10 64'),
            (gid, '::ffff:198.18.0.7', '02:00:00:00:00:09 17'),
            (gid, '::ffff:203.0.113.1', 'ENETUNREACH'),
            (gid6, '2001:db8:9::1', 'ENETUNREACH'),
            (gid, '::ffff:192.0.2.77', 'EHOSTUNREACH'),
            (gid6, '2001:db8:1::77', 'EHOSTUNREACH'),
            (gid, '::ffff:192.0.2.1', f'{mac_of(a)} 0'),
            (31, '::ffff:192.0.2.254', 'EINVAL'),
        ])
        # An administrator replaces the router, which still answers.
        must('-n', a, 'neigh', 'replace', '192.0.2.254', 'lladdr', '02:00:00:00:00:11', 'nud', 'permanent', 'dev', 'eth0')
        expect_hop(machine, build, [(gid, '::ffff:192.0.2.254', '02:00:00:00:00:11 64'),
                                    (gid, '::ffff:198.51.100.2', '02:00:00:00:00:11 64')])
        must('-n', a, 'route', 'del', 'default')
        expect_hop(machine, build, [(gid, '::ffff:198.51.100.2', 'ENETUNREACH')])
        # Look-ups do not change a static entry.
        if 'PERMANENT' not in ip('-n', a, 'neigh', 'show', '192.0.2.9').stdout:
            raise Failure('a look-up changed a static neighbour')


def check_deprecated(build):
    """An unbound ID gets the kernel's source address in the subnet, not a deprecated one with a lower GID index."""
    a, b, _ = NAMES
    for name, text in (a, 'fe80::1'), (b, 'fe80::2'), (a, '2001:db8::1'), (b, '2001:db8::2'), (a, '2001:db8::3'):
        must('-n', name, 'addr', 'add', f'{text}/64', 'dev', 'eth0', 'nodad')
    must('-n', a, 'addr', 'change', '2001:db8::3/64', 'dev', 'eth0', 'preferred_lft', '0')
    with host(build, 0) as client, host(build, 1) as server:
        if client.gid('2001:db8::3') > client.gid('2001:db8::1'):
            raise Failure(f'another order of GIDs: {client.show("host")}')
        rdmacm.start_server(server, ['rping', '-s', '-a', '::'])
        program = client.start('rping', '-c', '-a', '2001:db8::2')

        def connected():
            return [row['src'] for row in client.show('id')['ids'] if row['cm'] == 'ESTABLISHED']

        until(20, connected, program.describe)
        if not connected()[0].startswith('[2001:db8::1]'):
            raise Failure(f'not the source of the kernel: {connected()}')


def check_second_network(build):
    """The router of one network is no next hop from an address of another one, where a station has the same link-local address."""
    a, b, _ = NAMES
    must('link', 'add', 'eth1', 'netns', a, 'type', 'veth', 'peer', 'name', 'eth1', 'netns', b)
    for number in 0, 1:
        interface = f'eth{number}'
        for name in a, b:
            must('-n', name, 'link', 'set', interface, 'up')
        for name, text in (a, f'2001:db8:{number}::1/64'), (a, 'fe80::2/64'), (b, 'fe80::1/64'):
            must('-n', name, 'addr', 'add', text, 'dev', interface, 'nodad')
    must('-n', a, '-6', 'route', 'add', 'default', 'via', 'fe80::1', 'dev', 'eth0')
    with host(build, 0, ['--uplink', 'af_packet:eth1']) as machine:
        gids = [machine.gid(f'2001:db8:{number}::1') for number in (0, 1)]
        expect_hop(machine, build, [(gids[0], '2001:db8:9::9', f'{mac_of(b)} 64'), (gids[1], '2001:db8:9::9', 'ENETUNREACH')])
        must('-n', a, '-6', 'route', 'add', '2001:db8:9::/48', 'nexthop', 'via', 'fe80::1', 'dev', 'eth0',
             'nexthop', 'via', 'fe80::1', 'dev', 'eth1')
        expect_hop(machine, build, [(gids[number], f'2001:db8:9::{to}', f'{mac_of(b, f"eth{number}")} 64')
                                    for number in (0, 1) for to in range(8)])


def check_routed(build):
    """Programs in two subnets, with a router between them."""
    make_router()
    with host(build, 0) as server, host(build, 1) as client:
        for ours, theirs in (('192.0.2.1', '198.51.100.2'), ('2001:db8:1::1', '2001:db8:2::2')):
            gids = server.gid(ours), client.gid(theirs)
            for argv in (['ibv_rc_pingpong', '-c', '-n', '200'], ['ibv_ud_pingpong', '-n', '200'],
                         [server.verbs_check]):
                Pair(server, client, argv, gids[0], address='192.0.2.1',
                     client_gid=gids[1]).finish(60)


def check_best_route(build):
    """An unbound ID leaves by the kernel's best route, although the first uplink has a route, too."""
    a, b, router = NAMES
    make_router()
    must('link', 'add', 'eth1', 'netns', a, 'type', 'veth', 'peer', 'name', 'eth2', 'netns', router)
    must('-n', a, 'addr', 'add', '203.0.113.1/24', 'dev', 'eth1')
    must('-n', router, 'addr', 'add', '203.0.113.254/24', 'dev', 'eth2')
    for name, interface in ((a, 'eth1'), (router, 'eth2')):
        must('-n', name, 'link', 'set', interface, 'up')
    must('-n', a, 'route', 'add', '198.51.100.0/24', 'via', '203.0.113.254')
    # The default route's router knows no way.
    must('-n', router, 'rule', 'add', 'iif', 'eth0', 'to', '198.51.100.0/24', 'blackhole')
    with host(build, 0, ['--uplink', 'af_packet:eth1']) as client, host(build, 1) as server:
        rdmacm.check_pair(server, client, *rdmacm.PROGRAMS[0], '198.51.100.2')


UDP = '''
import socket, sys
family, to, port, seconds = sys.argv[1:]
with socket.socket(getattr(socket, family), socket.SOCK_DGRAM) as s:
    s.connect((to, int(port)))
    s.settimeout(int(seconds))
    s.send(b'x' * 64)
    try:
        s.recv(1)
    except ConnectionRefusedError:
        print('refused')
    except TimeoutError:
        print('silence')
'''


def check_silence(family, to):
    """The kernel answers datagrams to other ports with ICMP, and those to RoCE's port with nothing."""
    for port, right, seconds in ((4792, 'refused', 20), (4791, 'silence', 1)):
        found = subprocess.run([*inside(NAMES[1]), sys.executable, '-c', UDP, family,
                                to, str(port), str(seconds)], capture_output=True, text=True, check=True).stdout
        if found.strip() != right:
            raise Failure(f'UDP port {port} of {to}: {found.strip()} instead of {right}')


def check_icmp(build):
    """The kernel sends no ICMP for RoCEv2, also for addresses that were added later and in VLANs."""
    a, b, _ = NAMES
    with host(build, 0):
        check_silence('AF_INET', '192.0.2.1')
        must('-n', a, 'addr', 'add', '2001:db8::1/64', 'dev', 'eth0', 'nodad')
        must('-n', b, 'addr', 'add', '2001:db8::2/64', 'dev', 'eth0', 'nodad')
        check_silence('AF_INET6', '2001:db8::1')
        address('add', '192.0.2.3/24')
        check_silence('AF_INET', '192.0.2.3')


HELD = f':{4791:04X} '  # the local port as /proc/net/udp has it


def check_vlan(build):
    """Addresses of a VLAN interface are GIDs in that VLAN, and the kernel sends no ICMP for them."""
    a = NAMES[0]
    with host(build, 0) as server, host(build, 1) as client:
        for number, name in enumerate(NAMES[:2], 1):
            result = ip('-n', name, 'link', 'add', 'link', 'eth0', 'name', 'v100', 'type', 'vlan',
                        'id', '100')
            if result.returncode:
                skip(f'no VLAN interfaces: {result.stderr.strip()}')
            must('-n', name, 'link', 'set', 'v100', 'up')
            must('-n', name, 'addr', 'add', f'198.51.100.{number}/24', 'dev', 'v100')
        # The daemon notices the new interface after a moment, and then has a socket for eth0 and one for v100.
        until(20, lambda: ip('netns', 'exec', a, 'cat', '/proc/net/udp').stdout.count(HELD) == 2,
              lambda: 'nobody holds the port of the VLAN interface')
        check_silence('AF_INET', '198.51.100.1')
        gids = server.gid('198.51.100.1'), client.gid('198.51.100.2')
        Pair(server, client, ['ibv_rc_pingpong', '-c', '-n', '200'], gids[0], address='192.0.2.1',
             client_gid=gids[1]).finish(60)


# A TAP device of a speed; each line of the input is another speed, in Mb/s (struct ethtool_cmd, ETHTOOL_SSET).
TAP = """
import ctypes, fcntl, socket, struct, sys
tap = open('/dev/net/tun', 'r+b', buffering=0)
fcntl.ioctl(tap, 0x400454ca, struct.pack('16sH22x', b'tap0', 0x1002))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for line in sys.stdin:
        speed = int(line)
        command = bytearray(struct.pack('=IIIH14xH14x', 2, 0, 0, speed & 0xffff, speed >> 16))
        address = (ctypes.c_char * len(command)).from_buffer(command)
        fcntl.ioctl(s, 0x8946, struct.pack('16sP16x', b'tap0', ctypes.addressof(address)))
        print(speed, flush=True)
"""


def check_rate(build):
    """The port has the rate of its interface, as Linux' rdma_rxe: that of a veth, and the speeds that a TAP is set to."""
    with host(build, 0) as machine:
        machine.expect_rate('10 Gb/sec (1X FDR10)')
    with Host(build, prefix=inside(NAMES[0]), daemon=False) as machine:
        tap = machine.spawn([sys.executable, '-c', TAP], stdin=subprocess.PIPE)

        def set_speed(speed):
            tap.process.stdin.write(f'{speed}\n'.encode())
            tap.process.stdin.flush()
            until(10, lambda: str(speed) in tap.output().split(), tap.describe)

        set_speed(100)
        must('-n', NAMES[0], 'link', 'set', 'tap0', 'up')
        machine.start_daemon(['--uplink', 'af_packet:tap0'])
        machine.expect_rate('2.5 Gb/sec (1X SDR)')
        for speed, rate in (25000, '25 Gb/sec (1X EDR)'), (200000, '200 Gb/sec (4X HDR)'):
            set_speed(speed)
            # A NIC has another speed after its link was down.
            for state in 'down', 'up':
                must('-n', NAMES[0], 'link', 'set', 'tap0', state)
            machine.expect_rate(rate)


READ_ATTRIBUTES = """
import os, sys
for name in sys.argv[1:]:
    try:
        fd = os.open(f'/sys/class/infiniband/{name}', os.O_RDONLY)
    except OSError as error:
        print(name, os.strerror(error.errno))
        continue
    try:
        print(name, os.read(fd, 64).decode().strip())
    except OSError as error:
        print(name, os.strerror(error.errno))
"""


def check_gid_files(build):
    """As in the kernel, the attributes of an empty GID table entry can be opened, but not read; nor those of an interface
    that the network namespace lacks, because libibverbs fails for the whole table if it does not find the interface. Other
    files cannot be opened."""
    table = 'urxe0/ports/1/gid_attrs/'
    absent = ['urxe0/ports/2/gid_attrs/types/0', 'nosuch/ports/1/gid_attrs/types/0', f'{table}anything/0', f'{table}types/99']
    with host(build, 0) as machine:
        for prefix, interface in ([], 'eth0'), (['unshare', '--net'], 'Invalid argument'):
            texts = {'types/0': 'RoCE v2', 'ndevs/0': interface, 'types/9': 'Invalid argument', 'ndevs/9': 'Invalid argument'}
            right = [f'{table}{name} {text}' for name, text in texts.items()]
            right += [f'{name} No such file or directory' for name in absent]
            names = [f'{table}{name}' for name in texts] + absent
            found = machine.run(*prefix, sys.executable, '-c', READ_ATTRIBUTES, *names).splitlines()
            if found != right:
                raise Failure(f'{found} instead of {right}')


CHECKS = {
    'events': check_events, 'restart': check_restart, 'connection': check_connection,
    'removed': check_removed, 'removed_tap': check_removed_tap, 'retry': check_retry, 'mtu_grows': check_mtu_grows, 'mac': check_mac,
    'next_hops': check_next_hops, 'routed': check_routed, 'best_route': check_best_route, 'second_network': check_second_network, 'deprecated': check_deprecated,
    'icmp': check_icmp, 'vlan': check_vlan, 'rate': check_rate, 'gid_files': check_gid_files,
    'hca_renamed': check_hca_renamed,
}

network.run(lambda: CHECKS[sys.argv[2]](sys.argv[1]), NAMES, link_local=False)
