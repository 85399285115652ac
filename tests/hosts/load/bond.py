#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Two hosts, each with two uplinks as a bond. While processes exchange messages and check all contents (member.c), one cable
of the first host fails and returns. No program may notice. With active-backup the frames pass the switch, or the
programs' own sockets on the active member; with balance on all members.
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
from cell import run_program  # noqa: E402
from crowd import Crowd  # noqa: E402
from ethernet import Ethernet, INTERFACE, IPV4, IPV6, Namespace, run, way_arguments  # noqa: E402
from host import Failure, main, until  # noqa: E402
from endless import EndlessPair  # noqa: E402
import network  # noqa: E402

MTU = 1500
MEMBERS = 4
SECOND = 'eth1'
DIRECT = 'direct-uplink'  # the path of programs that have sockets of their own on the members
CONTROL = 'eth2'  # a cable for the TCP connections of programs, which never fails
FAR_ENDS = [['a0', 'a1'], ['b0', 'b1']]  # of the cables of both hosts, in the switch's namespace
BRIDGES = ['br0', 'br1']


class Bonded(Ethernet):
    """
    Each host has two cables to a switch, a third namespace with a bridge. With `separate`, the first and the second
    cables lead to different bridges, which nothing joins.
    """

    kernel_ipv4 = '203.0.113.{}'

    def __init__(self, build, mode, separate=False, kernel=False, arguments=(), port='af_packet', before=()):
        self.separate = separate
        self.kernel = kernel  # the kernel has the addresses too, at the first interface
        self.port = port  # kind of the members
        self.switch = Namespace()
        first, *others = [*before, f'{port}:{INTERFACE}', f'{port}:{SECOND}']  # the uplinks
        options = [option for uplink in others for option in ('--uplink', uplink)]
        super().__init__(build, [MTU] * 2, [*options, '--bond', mode, *arguments], first)

    def given_addresses(self, number):
        return [] if self.kernel else ['--address', f'{IPV4.format(number)}/24']

    def plug(self, mtus):
        for bridge in BRIDGES:
            self.switch.ip('link', 'add', bridge, 'type', 'bridge', 'mcast_snooping', '0')
            self.switch.ip('link', 'set', bridge, 'up')
        for namespace, far_ends in zip(self.namespaces, FAR_ENDS):
            namespace.ip('link', 'set', 'lo', 'up')
            for number, (near, far) in enumerate(zip((INTERFACE, SECOND), far_ends)):
                self.switch.ip('link', 'add', far, 'type', 'veth', 'peer', 'name', near, 'netns', str(namespace.pid))
                self.switch.ip('link', 'set', far, 'up')
                self.join(far, number)
                namespace.ip('link', 'set', near, 'up')
                until(10, lambda n=namespace, i=near: 'state UP' in n.ip('link', 'show', i),
                      lambda i=near: f'{i} does not come up')
        self.plug_control()
        if self.kernel:
            self.add_addresses()

    def plug_control(self):
        a, b = self.namespaces
        a.ip('link', 'add', CONTROL, 'type', 'veth', 'peer', 'name', CONTROL, 'netns', str(b.pid))
        for number, namespace in enumerate(self.namespaces, 1):
            namespace.ip('addr', 'add', self.kernel_ipv4.format(number) + '/24', 'dev', CONTROL)
            namespace.ip('link', 'set', CONTROL, 'up')

    def add_addresses(self):
        for number, namespace in enumerate(self.namespaces, 1):
            set_sysctl(namespace, f'ipv6/conf/{INTERFACE}/keep_addr_on_down')
            for interface in INTERFACE, SECOND, CONTROL:
                set_sysctl(namespace, f'ipv4/conf/{interface}/arp_ignore')
            namespace.ip('addr', 'add', IPV4.format(number) + '/24', 'dev', INTERFACE)
            namespace.ip('addr', 'add', IPV6.format(number) + '/64', 'dev', INTERFACE)
        for namespace in self.namespaces:
            until(10, lambda n=namespace: not is_tentative(n), lambda: f'{INTERFACE} has tentative addresses')

    def join(self, far, number):
        self.switch.ip('link', 'set', far, 'master', BRIDGES[number if self.separate else 0])

    def __exit__(self, *error):
        super().__exit__(*error)
        self.switch.close()

    def failures(self):
        """Name: how the first cable of the first host fails, and how it is repaired."""
        far, namespace = FAR_ENDS[0][0], self.namespaces[0]
        return {
            'interface down': (lambda: namespace.ip('link', 'set', INTERFACE, 'down'),
                               lambda: namespace.ip('link', 'set', INTERFACE, 'up')),
            'no carrier': (lambda: self.switch.ip('link', 'set', far, 'down'),
                           lambda: self.switch.ip('link', 'set', far, 'up')),
            # The interface keeps its link, as behind a second switch.
            'silent': (lambda: self.switch.ip('link', 'set', far, 'nomaster'), lambda: self.join(far, 0)),
        }


def set_sysctl(namespace, name):
    run([*namespace.prefix(), 'sh', '-c', f'echo 1 >/proc/sys/net/{name}'])


def is_tentative(namespace):
    """The kernel looks for duplicates of the first interface's addresses."""
    return 'tentative' in namespace.ip('-6', 'addr', 'show', 'dev', INTERFACE)


def states(host):
    """The states of the bond's members."""
    return [port['state'] for port in host.show('port')['ports'] if port['kind'] == 'uplink']


def gids(host):
    return {(gid['index'], gid['gid']) for gid in host.show('host')['host']['gids']}


def failovers(host):
    return [port['failovers'] for port in host.show('port')['ports'] if port['kind'] == 'uplink']


def frames(host, direction):
    """Frames by each of the uplinks."""
    return [port['counters'][f'{direction}_frames'] for port in host.show('port')['ports']
            if port['kind'] == 'uplink']


def frames_of_programs(host):
    """Frames that programs have received by sockets of their own."""
    return sum(row['value'] for row in host.show('counter')['counters'] if row['name'] == 'uplink_received')


def received(host):
    return sum(frames(host, 'in')) + frames_of_programs(host)


class Load:
    """Members that exchange messages until finish()."""

    def __init__(self, build, net):
        self.net = net
        self.crowd = Crowd(build, net.hosts, MEMBERS, 0)
        self.crowd.await_connected()

    def wait_for_progress(self):
        """Waits until both hosts have received many more frames."""
        before = [received(host) for host in self.net.hosts]
        until(20, lambda: all(received(host) > count + 2000
                              for host, count in zip(self.net.hosts, before)),
              lambda: f'no more frames: {[host.daemon.errors() for host in self.net.hosts]}')

    def finish(self):
        return self.crowd.finish()


def check_states(host, wanted):
    until(20, lambda: states(host) == wanted,
          lambda: f'the members are {states(host)}, not {wanted}: {host.daemon.errors()}')


def expect_way(net, way):
    """All frames of programs to other hosts go that way."""
    for host in net.hosts:
        ways = lambda h=host: {qp['path'] for qp in h.show('qp')['qps'] if qp['path']}  # noqa: E731
        until(20, lambda w=ways: w() == {way}, lambda w=ways: f'queue pairs go by {w()}, not by {way}')


def members_by(host, key):
    """The uplinks by which the connections of a host send or receive."""
    return {qp[key] for qp in host.show('qp')['qps'] if qp['path'] and qp['state'] == 'RTS'}


def expect_members(net, host, wanted):
    """The connections with a direct uplink use these uplinks, and no others."""
    names = {f'{net.port}:{name}' for name in wanted}
    for key in 'sends_by', 'receives_by':
        until(20, lambda k=key: members_by(host, k) == names,
              lambda k=key: f'{k} names {members_by(host, k)}, not {names}')


def check_failover(load, host, name, fail, repair, way):
    before = failovers(host)
    load.wait_for_progress()
    fail()
    check_states(host, ['silent' if name == 'silent' else 'down', 'active'])
    load.wait_for_progress()
    expect_way(load.net, way)
    if way == DIRECT:
        expect_members(load.net, host, {SECOND})
    repair()
    check_states(host, ['active', 'backup'])
    load.wait_for_progress()
    expect_way(load.net, way)
    if way == DIRECT:
        expect_members(load.net, host, {INTERFACE})
    if failovers(host) != [before[0] + 1, before[1]]:
        raise Failure(f'failovers {failovers(host)}, before {before}: {host.daemon.errors()}')


def check_active_backup(build, separate=False, direct=False, port='af_packet'):
    arguments = [] if direct else ['--direct-uplink', 'none']
    with Bonded(build, 'active-backup', separate, arguments=arguments, port=port) as net:
        load = Load(build, net)
        way = DIRECT if direct else 'uplink'
        expect_way(net, way)
        for name, (fail, repair) in net.failures().items():
            check_failover(load, net.hosts[0], name, fail, repair, way)
        load.finish()


def check_af_xdp_members(build):
    network.require_af_xdp()
    check_active_backup(build, direct=True, port='af_xdp')


def check_new_connections(net):
    for address in IPV4, IPV6:
        run_program(net.ends(address), ['verbs_check'], 1024, False)


def change_ipv4(net, change):
    """Adds the first host's IPv4 address, or deletes it."""
    a = net.hosts[0]
    net.namespaces[0].ip('addr', change, IPV4.format(1) + '/24', 'dev', INTERFACE)
    until(10, lambda: any(IPV4.format(1) in gid for _, gid in gids(a)) == (change == 'add'),
          lambda: f'the host has the GIDs {gids(a)}')


def check_detection(net):
    """
    When an interface is up again, the kernel looks for duplicates of its IPv6 addresses. The host keeps them meanwhile.
    The kernel's frames tell bridges that the host is there. It has no other address, whose announcement would tell them
    better, and sends only answers, one at a time.
    """
    a, b = net.hosts
    set_sysctl(net.namespaces[0], f'ipv6/conf/{SECOND}/disable_ipv6')
    change_ipv4(net, 'del')
    before = gids(a)
    fail, repair = net.failures()['interface down']
    pair = EndlessPair(a, b, ['ib_write_bw', '-F', '-t', '1', '-u', '12'], a.gid(IPV6.format(1)),
                       net.kernel_ipv4.format(1), client_gid=b.gid(IPV6.format(2)))

    def detected():
        if gids(a) != before:
            raise Failure(f'the host has the GIDs {gids(a)}, before {before}')
        return not is_tentative(net.namespaces[0])

    for short in False, True:
        pair.go_on()
        fail()
        # The host announces its addresses by the second member also after a short failure.
        if not short:
            pair.go_on()
        repair()
        until(10, detected, lambda: f'{INTERFACE} has tentative addresses')
        check_states(a, ['active', 'backup'])
    pair.finish()
    change_ipv4(net, 'add')


def check_kernel_addresses(build, way='direct'):
    """Programs find each other through each member, although the kernel has the addresses at one interface."""
    with Bonded(build, 'active-backup', kernel=True, arguments=way_arguments(way)) as net:
        check_detection(net)
        check_new_connections(net)
        for name, (fail, repair) in net.failures().items():
            fail()
            check_states(net.hosts[0], ['silent' if name == 'silent' else 'down', 'active'])
            check_new_connections(net)
            repair()
            check_states(net.hosts[0], ['active', 'backup'])
            check_new_connections(net)


def sent_by_interfaces(namespace):
    """Frames that the kernel has sent by each of the members' interfaces, those of programs too."""
    links = [json.loads(namespace.ip('-s', '-j', 'link', 'show', name))[0] for name in (INTERFACE, SECOND)]
    return [link['stats64']['tx']['packets'] for link in links]


def check_share(namespace, before):
    """The host has sent about as many frames by one uplink as by the other."""
    sent = [after - earlier for after, earlier in zip(sent_by_interfaces(namespace), before)]
    if min(sent) < sum(sent) / 4:
        raise Failure(f'the uplinks have sent {sent} frames')


def check_balance(build, direct=False):
    arguments = [] if direct else ['--direct-uplink', 'none']
    way = DIRECT if direct else 'uplink'
    with Bonded(build, 'balance', separate=True, arguments=arguments) as net:
        load = Load(build, net)
        expect_way(net, way)
        for host in net.hosts:
            check_states(host, ['active', 'active'])
        before = [sent_by_interfaces(namespace) for namespace in net.namespaces]
        load.wait_for_progress()
        for namespace, count in zip(net.namespaces, before):
            check_share(namespace, count)
        for name, (fail, repair) in net.failures().items():
            load.wait_for_progress()
            fail()
            check_states(net.hosts[0], ['silent' if name == 'silent' else 'down', 'active'])
            load.wait_for_progress()
            expect_way(net, way)
            if direct:
                expect_members(net, net.hosts[0], {SECOND})
            repair()
            check_states(net.hosts[0], ['active', 'active'])
        before = sent_by_interfaces(net.namespaces[0])
        load.wait_for_progress()
        check_share(net.namespaces[0], before)
        if direct:
            expect_members(net, net.hosts[0], {INTERFACE, SECOND})
        load.finish()


def slow_down(net, rate):
    """Limits the rate of all cables, each with a long queue."""
    for far in sum(FAR_ENDS, []):
        run([*net.switch.prefix(), 'tc', 'qdisc', 'add', 'dev', far, 'root', 'tbf', 'rate', rate, 'burst', '32kb',
             'limit', '1mb'])


def check_congestion(build, way='direct'):
    """A queue of 160 ms delays and loses the answers to probes. That is no failure."""
    with Bonded(build, 'active-backup', arguments=way_arguments(way)) as net:
        slow_down(net, '50mbit')
        run_program(net.ends(IPV4), ['ib_write_bw', '-F', '-q', '8', '-s', '65536', '-n', '64'], 1024, False)
        for host in net.hosts:
            if failovers(host) != [0, 0]:
                raise Failure(f'failovers {failovers(host)}: {host.daemon.errors()}')


def check_machine(build):
    """Programs have sockets on the members again when the last virtual machine has left."""
    with Bonded(build, 'active-backup') as net:
        load = Load(build, net)
        expect_way(net, DIRECT)
        host = net.hosts[0]
        machine = host.spawn([host.urxe, 'vm', '--run-dir', host.run_dir, '--name', 'one', '--socket',
                              os.path.join(host.top, 'one')])
        until(20, lambda: 'uplink' in {qp['path'] for qp in host.show('qp')['qps']}, machine.describe)
        machine.kill(signal.SIGTERM)
        machine.wait(10)
        expect_way(net, DIRECT)
        load.wait_for_progress()
        load.finish()


def check_address_behind_machine(build):
    """The addresses of --address belong to the bond, also if a machine's port is the first uplink."""
    with Bonded(build, 'balance', before=['qemu:/nonexistent,connect']) as net:
        run_program(net.ends(IPV4), ['verbs_check'], 1024, False)


CHECKS = {
    'active_backup': check_active_backup,
    'active_backup_direct': lambda build: check_active_backup(build, direct=True),
    'active_backup_af_xdp': check_af_xdp_members,
    'two_networks': lambda build: check_active_backup(build, separate=True),
    'two_networks_direct': lambda build: check_active_backup(build, separate=True, direct=True),
    'kernel_addresses': check_kernel_addresses,
    'kernel_addresses_switch': lambda build: check_kernel_addresses(build, 'switch'),
    'balance': check_balance,
    'balance_direct': lambda build: check_balance(build, direct=True),
    'congestion': check_congestion,
    'machine': check_machine,
    'address_behind_machine': check_address_behind_machine,
    'congestion_switch': lambda build: check_congestion(build, 'switch'),
}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
