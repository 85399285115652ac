#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The direct uplink: programs of two hosts exchange frames by packet sockets of their own. The daemons stop, die and
restart, a capture runs, the interface goes down, moves or disappears and returns, other programs die, and programs without
trust take the switch.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
from ethernet import Ethernet, INTERFACE, IPV4, Namespace  # noqa: E402
from endless import EndlessPair  # noqa: E402
from host import SKIP, Failure, Pair, Program, main, size_of, skip, succeed, until  # noqa: E402
import report  # noqa: E402

# The peer repeats for 8 times 3 s: longer than each interruption.
ARGV = ['ib_write_bw', '-F', '-u', '18', '-s', '4096']
WAIT = 20
RING_PLACES = 10000  # more than the ring of a program's socket has


def start(net, argv=None):
    """A bandwidth test with its server on the first host, and its client on the second."""
    gids = [host.gid(IPV4.format(number)) for number, host in enumerate(net.hosts, 1)]
    return EndlessPair(*net.hosts, argv or ARGV, gids[0], IPV4.format(1), client_gid=gids[1])


def paths(host):
    """The ways of all connected QPs of a host."""
    return {qp['path'] for qp in host.show('qp')['qps'] if qp['path']}


def expect_path(host, path):
    until(WAIT, lambda: paths(host) == {path},
          lambda: f'QPs go by {paths(host)}, not by {path}')


def sent(namespace):
    """Frames that the interface has sent."""
    text = namespace.ip('-s', '-o', 'link', 'show', INTERFACE)
    return int(text.split('TX:')[1].split('\\')[1].split()[1])


def expect_traffic(net, what):
    for namespace in net.namespaces:
        before = sent(namespace)
        until(WAIT, lambda n=namespace, b=before: sent(n) > b + 100, lambda: f'no traffic {what}')


def uplink_state(host):
    return next(port['state'] for port in host.show('port')['ports'] if port['kind'] == 'uplink')


def switch_frames(host):
    return host.counter('switch', 'in_frames')


def frames_do_not_pass_the_switch(net):
    pair = start(net)
    for host in net.hosts:
        expect_path(host, 'direct-uplink')
    before = [switch_frames(host) for host in net.hosts]
    expect_traffic(net, 'by the direct uplink')
    after = [switch_frames(host) for host in net.hosts]
    # ARP only.
    if any(b - a > 20 for a, b in zip(before, after)):
        raise Failure(f'frames passed the switch: {before}, then {after}')
    pair.finish()


def one(host, key):
    """The value of a key of the only connected QP of a host."""
    qp, = (qp for qp in host.show('qp')['qps'] if qp['path'])
    return qp[key]


def show_names_no_uplink_before_the_first_packet(net):
    """The peer of a UC connection that only sends WRITEs gets no packet."""
    pair = start(net, [*ARGV, '-c', 'UC'])
    receiver, sender = net.hosts
    for host in net.hosts:
        expect_path(host, 'direct-uplink')
    uplink = f'af_packet:{INTERFACE}'
    until(WAIT, lambda: one(receiver, 'receives_by') == uplink,
          lambda: f"packets come by {one(receiver, 'receives_by')}, not {uplink}")
    if (one(sender, 'sends_by'), one(sender, 'receives_by')) != (uplink, None):
        raise Failure(f"sends by {one(sender, 'sends_by')}, receives by {one(sender, 'receives_by')}")
    pair.finish()


def spawn_machine(host, name):
    return host.spawn([host.urxe, 'vm', '--run-dir', host.run_dir, '--name', name, '--socket',
                       os.path.join(host.top, name)])


def show_names_no_uplink_by_which_no_packet_came(net):
    """With a virtual machine packets come by the switch. Then the peer stops, and the program gets its socket."""
    host = net.hosts[0]
    machine = spawn_machine(host, 'one')
    until(WAIT, lambda: os.path.exists(os.path.join(host.top, 'one')), machine.describe)
    pair = start(net)
    expect_path(host, 'uplink')
    before = switch_frames(host)
    until(WAIT, lambda: switch_frames(host) > before + 100, lambda: 'no frames by the switch')
    pair.client.kill(signal.SIGSTOP)
    machine.kill(signal.SIGTERM)
    machine.wait(10)
    expect_path(host, 'direct-uplink')
    if one(host, 'receives_by'):
        raise Failure(f"receives by {one(host, 'receives_by')}, but packets came by the switch only")
    pair.client.kill(signal.SIGCONT)
    until(WAIT, lambda: one(host, 'receives_by') == f'af_packet:{INTERFACE}', lambda: 'no packet comes by the uplink')
    pair.finish()


def show_names_the_uplink_of_the_last_packet(net):
    show_names_no_uplink_before_the_first_packet(net)
    show_names_no_uplink_by_which_no_packet_came(net)


def uplink_sent(host):
    """Frames that the host's programs have sent by direct uplinks."""
    return sum(row['value'] for row in host.show('counter')['counters'] if row['name'] == 'uplink_sent')


def packets_in_a_frame(net, pair):
    """How many packets the second host's programs send in a frame, at least: it counts frames for a longer time."""
    frames = sent(net.namespaces[1])
    packets = uplink_sent(net.hosts[1])
    pair.go_on()
    packets = uplink_sent(net.hosts[1]) - packets
    frames = sent(net.namespaces[1]) - frames
    return packets / frames


def expect_frames_of_one_packet(net, pair):
    together = packets_in_a_frame(net, pair)
    if together > 1.1:
        raise Failure(f'{together:.1f} packets left in a frame')


def need_gso():
    if tuple(map(int, os.uname().release.split('.')[:2])) < (6, 2):
        skip('packet sockets have no UDP GSO before Linux 6.2')


def packets_leave_together(net):
    """Many packets of a message pass the kernel as one (UDP GSO)."""
    need_gso()
    pair = start(net, [*ARGV[:-1], '65536'])
    expect_path(net.hosts[1], 'direct-uplink')
    expect_traffic(net, 'by the direct uplink')
    until(WAIT, lambda: packets_in_a_frame(net, pair) >= 4, lambda: 'fewer than 4 packets left in a frame')
    pair.finish()


# Receives frames of an interface until one is longer than argv[2] bytes.
LISTENER = """
import socket, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind((sys.argv[1], 0))
while len(link.recv(65600)) <= int(sys.argv[2]):
    pass
"""
MORE_THAN_HALF = 45000  # bytes: of the longest GSO packet


def long_messages_fill_packets(net):
    """A message that is longer than a GSO packet fills it."""
    need_gso()
    pair = start(net, [*ARGV[:-1], '1048576', '-m', '1024'])
    expect_path(net.hosts[1], 'direct-uplink')
    listener = Program([*net.namespaces[0].prefix(), 'python3', '-c', LISTENER, INTERFACE, str(MORE_THAN_HALF)], os.environ)
    try:
        until(WAIT, lambda: not listener.running(), lambda: f'no frame is longer than {MORE_THAN_HALF} bytes')
        succeed(listener, WAIT)
    finally:
        listener.kill()
    pair.finish()


def set_features(namespace, **features):
    for name, state in features.items():
        namespace.run(['ethtool', '-K', INTERFACE, name.replace('_', '-'), state])


def kernel_joins_packets(net):
    """The receiver's kernel joins the packets that the sender's kernel has cut, and the program cuts them again."""
    need_gso()
    if not shutil.which('ethtool'):
        skip('no ethtool')
    set_features(net.namespaces[1], tso='off', gso='off', tx_udp_segmentation='off')
    set_features(net.namespaces[0], gro='on')
    pair = start(net, [*ARGV[:-1], '65536', '-m', '1024'])
    expect_path(net.hosts[1], 'direct-uplink')
    # So the receiver's kernel has joined what is longer.
    expect_frames_of_one_packet(net, pair)
    listener = Program([*net.namespaces[0].prefix(), 'python3', '-c', LISTENER, INTERFACE, str(3 * 1200)], os.environ)
    try:
        until(WAIT, lambda: not listener.running(), lambda: 'no two packets were joined')
        succeed(listener, WAIT)
    finally:
        listener.kill()
    pair.finish()
    check_contents(net)


def retransmissions(host):
    return sum(row['value'] for row in host.show('counter')['counters'] if row['name'] == 'retransmit')


def short_messages_leave_together(net):
    """UDP GSO packets of each length arrive: those that fit a place of the receiver's ring, too."""
    for size in (2048, 3072, 4096, 5000, 8208, 20000):
        pair = start(net, ['ib_send_bw', '-F', '-m', '1024', '-s', str(size)])
        expect_path(net.hosts[1], 'direct-uplink')
        pair.go_on()
        repeated = retransmissions(net.hosts[1])
        packets = uplink_sent(net.hosts[1])
        if repeated > packets / 100:
            raise Failure(f'{repeated} of {packets} packets of messages of {size} bytes were repeated')
        pair.finish()


def check_contents(net):
    gids = [host.gid(IPV4.format(number)) for number, host in enumerate(net.hosts, 1)]
    for a, b in ((0, 1), (1, 0)):
        server, client = net.hosts[a], net.hosts[b]
        argv = [server.verbs_check, '-m', '4096']
        pair = Pair(server, client, argv, gids[a], IPV4.format(a + 1), client_gid=gids[b])
        report.check(argv, *pair.finish(60), 4096)


def packets_to_a_switch_leave_alone(net):
    """A peer whose frames pass its daemon would lose frames that are longer than its MTU."""
    host = net.hosts[0]
    host.daemon.kill(signal.SIGTERM)
    host.daemon.wait(10)
    host.start_daemon([*host.arguments, '--direct-uplink', 'none'])
    check_contents(net)
    pair = start(net, [*ARGV[:-1], '65536'])
    expect_path(host, 'uplink')
    expect_path(net.hosts[1], 'direct-uplink')
    expect_frames_of_one_packet(net, pair)
    pair.finish()


def a_capture_sees_all_frames(net):
    host = net.hosts[0]
    pair = start(net, [*ARGV[:-1], '65536'])
    expect_path(host, 'direct-uplink')
    file = os.path.join(host.top, 'capture.pcapng')
    capture = host.spawn([host.urxe, 'capture', '--run-dir', host.run_dir, '-w', file])
    expect_path(host, 'uplink')
    before = switch_frames(host)
    until(WAIT, lambda: switch_frames(host) > before + 100, lambda: 'no frame at the switch')
    until(WAIT, lambda: size_of(file) >= 100 * 65536, lambda: 'the capture has no frames')
    capture.kill(signal.SIGINT)
    if capture.wait(20):
        raise Failure(capture.describe())
    # Also if UDP GSO runs were on their way when the capture began.
    host.run(host.urxe, 'replay', file)
    expect_path(host, 'direct-uplink')
    expect_traffic(net, 'after the capture')
    pair.finish()


def traffic_goes_on_without_the_daemon(net):
    pair = start(net)
    for host in net.hosts:
        expect_path(host, 'direct-uplink')
    for host in net.hosts:
        host.daemon.kill(signal.SIGSTOP)
    expect_traffic(net, 'while the daemons are stopped')
    for host in net.hosts:
        host.daemon.kill(signal.SIGCONT)
    for host, program in zip(net.hosts, (pair.server, pair.client)):
        host.daemon.kill()
        expect_traffic(net, 'without a daemon')
        host.start_daemon()
        until(WAIT, lambda p=program: 'attached again' in p.errors(),
              lambda p=program: f'does not find the new daemon: {p.describe()}')
        expect_path(host, 'direct-uplink')
        expect_traffic(net, 'with the new daemon')
    pair.finish()


def the_interface_goes_down_and_returns(net):
    pair = start(net)
    expect_path(net.hosts[0], 'direct-uplink')
    expect_traffic(net, 'before')
    a = net.namespaces[0]
    a.ip('link', 'set', INTERFACE, 'down')
    until(WAIT, lambda: uplink_state(net.hosts[0]) == 'down',
          lambda: f'the uplink is {uplink_state(net.hosts[0])}')
    a.ip('link', 'set', INTERFACE, 'up')
    expect_traffic(net, 'after the interface was down')
    a.ip('link', 'set', INTERFACE, 'mtu', '3000')
    a.ip('link', 'set', INTERFACE, 'mtu', '9000')
    expect_traffic(net, 'after the MTU changed')
    pair.finish()


def mac(namespace):
    return namespace.ip('-o', 'link', 'show', INTERFACE).split('link/ether ')[1].split()[0]


def the_cable_is_unplugged_and_returns(net):
    pair = start(net)
    for host in net.hosts:
        expect_path(host, 'direct-uplink')
    macs = [mac(namespace) for namespace in net.namespaces]
    net.namespaces[0].ip('link', 'del', INTERFACE)
    for host in net.hosts:
        expect_path(host, 'uplink')
    net.plug([9000] * 2, macs)
    for host in net.hosts:
        expect_path(host, 'direct-uplink')
    expect_traffic(net, 'by the new cable')
    pair.finish()


def fill_with_reports(namespace):
    """The daemon's netlink socket, which holds 208 KiB by default, takes no report of the kernel any more."""
    namespace.ip('link', 'add', 'filler', 'type', 'veth', 'peer', 'name', 'filler1')
    namespace.run(['ip', '-batch', '-'], 'link set filler up\nlink set filler down\n' * 500)


def the_interface_moves_and_returns(net, unheard=False):
    """It returns from another network namespace, with the same index, before the daemon looks."""
    host, a = net.hosts[0], net.namespaces[0]
    pair = start(net)
    expect_path(host, 'direct-uplink')
    elsewhere = Namespace()
    host.daemon.kill(signal.SIGSTOP)
    if unheard:
        fill_with_reports(a)
    a.ip('link', 'set', INTERFACE, 'netns', str(elsewhere.pid))
    elsewhere.ip('link', 'set', INTERFACE, 'netns', str(a.pid))
    elsewhere.close()
    net.give_addresses(1)
    host.daemon.kill(signal.SIGCONT)
    expect_traffic(net, 'after the interface has moved')
    expect_path(host, 'direct-uplink')
    pair.finish()


def the_interface_moves_and_returns_unheard(net):
    """The same, and the daemon misses the kernel's reports."""
    the_interface_moves_and_returns(net, unheard=True)


def the_interface_is_renamed(net):
    """Another interface gets the old name. With a new MAC, which only the switch gives to frames, frames pass the switch."""
    a = net.namespaces[0]
    a.ip('link', 'set', INTERFACE, 'name', 'lan0')
    a.ip('link', 'add', INTERFACE, 'type', 'veth')
    a.ip('link', 'set', INTERFACE, 'up')
    pair = start(net)
    for host in net.hosts:
        expect_path(host, 'direct-uplink')
    before = sent(net.namespaces[1])
    until(WAIT, lambda: sent(net.namespaces[1]) > before + 100, lambda: 'no traffic')
    a.ip('link', 'set', 'lan0', 'address', '02:00:00:00:00:01')
    expect_path(net.hosts[0], 'uplink')
    pair.kill()
    check_contents(net)


def a_machine_comes_and_goes(net):
    """A virtual machine needs the switch. When the last one has left, programs have sockets again."""
    host = net.hosts[0]
    pair = start(net)
    expect_path(host, 'direct-uplink')
    for _ in range(2):
        before = host.counter('switch', 'in_frames')
        machines = [spawn_machine(host, name) for name in ('one', 'two')]
        expect_path(host, 'uplink')
        until(WAIT, lambda b=before: switch_frames(host) > b + 100, lambda: 'no frames by the switch')
        for machine in machines:
            expect_path(host, 'uplink')
            machine.kill(signal.SIGTERM)
            machine.wait(10)
        expect_path(host, 'direct-uplink')
        expect_traffic(net, 'after the machines')
        before = switch_frames(host)
        pair.go_on()
        # ARP and the like.
        if switch_frames(host) > before + 100:
            raise Failure('frames pass the switch after the machines')
    pair.finish()


def a_killed_program_harms_no_other(net):
    survivor = start(net)
    expect_path(net.hosts[0], 'direct-uplink')
    for _ in range(3):
        victim = start(net)
        victim.kill()
        until(WAIT, lambda: not (victim.server.running() or victim.client.running()), lambda: 'lives')
    stopped = start(net)
    stopped.server.kill(signal.SIGSTOP)
    expect_traffic(net, 'beside a stopped program')
    stopped.kill()
    survivor.finish()


def a_locked_socket_stops_no_other(net):
    host = net.hosts[0]
    holder = host.spawn([os.path.join(net.build, 'tests/hosts/held_socket'), host.run_dir], stdin=subprocess.PIPE)
    until(10, lambda: 'holds' in holder.output() or not holder.running(), holder.describe)
    if not holder.running():
        if holder.wait(1) == SKIP:
            skip(holder.output().strip())
        raise Failure(holder.describe())
    file = os.path.join(host.top, 'capture.pcapng')
    capture = host.spawn([host.urxe, 'capture', '--run-dir', host.run_dir, '-w', file])
    until(WAIT, lambda: os.path.exists(file), lambda: 'no capture')
    start(net).finish()
    capture.kill(signal.SIGINT)
    capture.wait(20)
    start(net).finish()
    net.namespaces[0].ip('link', 'set', INTERFACE, 'mtu', '3000')
    start(net).finish()


def a_program_that_writes_garbage_harms_no_other(net):
    """It destroys the ring of its own socket, and sends random frames; other programs compare all that they receive."""
    host = net.hosts[0]
    pair = start(net)
    for each in net.hosts:
        expect_path(each, 'direct-uplink')
    garbage = host.spawn([os.path.join(net.build, 'tests/hosts/garbage'), host.run_dir, mac(net.namespaces[1])],
                         stdin=subprocess.PIPE)
    until(10, lambda: 'writes' in garbage.output() or not garbage.running(), garbage.describe)
    for _ in range(3):
        check_contents(net)
        pair.go_on()
    expect_path(net.hosts[1], 'direct-uplink')
    garbage.process.stdin.close()
    succeed(garbage, 10)
    pair.finish()


def uplink_missed(host):
    return sum(row['value'] for row in host.show('counter')['counters'] if row['name'] == 'uplink_missed')


def a_full_ring_loses_frames_and_counts_them(net):
    """A stopped program takes no frames, and UC does not wait for it."""
    pair = start(net, [*ARGV, '-c', 'UC'])
    host = net.hosts[0]
    expect_path(host, 'direct-uplink')
    before = uplink_missed(host)
    pair.server.kill(signal.SIGSTOP)
    await_many_frames(net.namespaces[1])
    pair.server.kill(signal.SIGCONT)
    until(WAIT, lambda: uplink_missed(host) > before, lambda: 'no frame of a full ring is counted')
    pair.kill()


def await_many_frames(namespace):
    """Waits for more frames of the interface than a ring has places."""
    before = sent(namespace)
    until(WAIT, lambda: sent(namespace) > before + RING_PLACES, lambda: f'{sent(namespace) - before} frames only')


def no_other_user_sends_into_a_connection(net):
    host, peer = net.hosts
    host.daemon.kill(signal.SIGTERM)
    host.daemon.wait(10)
    host.start_daemon([*host.arguments, '--group', 'games'])
    pair = start(net)
    for each in net.hosts:
        expect_path(each, 'direct-uplink')
    remote = next(qp['qpn'] for qp in peer.show('qp')['qps'] if qp['path'])
    host.run(os.path.join(net.build, 'tests/hosts/intruder'), host.run_dir, IPV4.format(2), str(remote),
             mac(net.namespaces[1]))
    until(WAIT, lambda: host.counter('drop', 'contested') == 2,
          lambda: f"{host.counter('drop', 'contested')} packets are contested, not 2")
    pair.finish()


def only_trusted_users_have_it(net):
    for host in net.hosts:
        host.daemon.kill(signal.SIGTERM)
        host.daemon.wait(10)
        host.start_daemon([*host.arguments, '--direct-uplink', 'none'])
    pair = start(net)
    for host in net.hosts:
        expect_path(host, 'uplink')
    pair.finish()


def take_over(net, options):
    """Daemons with these options, which give no program a direct uplink, take over."""
    pair = start(net)
    for host in net.hosts:
        expect_path(host, 'direct-uplink')
    for host, program in zip(net.hosts, (pair.server, pair.client)):
        arguments = host.arguments
        host.daemon.kill()
        host.start_daemon([*arguments, *options])
        host.arguments = arguments
        until(WAIT, lambda p=program: 'attached again' in p.errors(),
              lambda p=program: f'does not find the new daemon: {p.describe()}')
        expect_path(host, 'uplink')
        expect_traffic(net, 'by the switch')
    pair.finish()
    for host in net.hosts:
        host.daemon.kill(signal.SIGTERM)
        host.daemon.wait(10)
        host.start_daemon()


def a_daemon_that_trusts_no_program_takes_over(net):
    take_over(net, ['--direct-uplink', 'none'])


def a_daemon_whose_uplink_has_no_sockets_takes_over(net):
    take_over(net, ['--fdb', '192.0.2.99=02:00:00:00:00:99'])


MTUS = {'af_packet': 9000, 'af_xdp': 3000}
CASES = {
    'frames': frames_do_not_pass_the_switch,
    'gso': packets_leave_together,
    'gso_long': long_messages_fill_packets,
    'gso_short': short_messages_leave_together,
    'gro': kernel_joins_packets,
    'gso_switch': packets_to_a_switch_leave_alone,
    'first_packet': show_names_the_uplink_of_the_last_packet,
    'capture': a_capture_sees_all_frames,
    'no_daemon': traffic_goes_on_without_the_daemon,
    'no_trust': a_daemon_that_trusts_no_program_takes_over,
    'no_sockets': a_daemon_whose_uplink_has_no_sockets_takes_over,
    'down': the_interface_goes_down_and_returns,
    'unplugged': the_cable_is_unplugged_and_returns,
    'moved': the_interface_moves_and_returns,
    'moved_unheard': the_interface_moves_and_returns_unheard,
    'renamed': the_interface_is_renamed,
    'machine': a_machine_comes_and_goes,
    'killed': a_killed_program_harms_no_other,
    'garbage': a_program_that_writes_garbage_harms_no_other,
    'missed': a_full_ring_loses_frames_and_counts_them,
    'held': a_locked_socket_stops_no_other,
    'intruder': no_other_user_sends_into_a_connection,
    'untrusted': only_trusted_users_have_it,
}


def enter_user_namespace():
    """Repeats the test as root of a user namespace, without capabilities of the initial one: as in a rootless container."""
    result = subprocess.run(['unshare', '-rn', 'true'], capture_output=True, text=True, check=False)
    if result.returncode:
        skip(f'no user namespace can be made here: {result.stderr.strip()}')
    argv = [argument for argument in sys.argv if argument != '--user-namespace']
    os.execvp('unshare', ['unshare', '-rn', sys.executable, *argv])


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--case', required=True, choices=CASES)
    parser.add_argument('--uplink', choices=MTUS, default='af_packet')
    parser.add_argument('--user-namespace', action='store_true')
    options = parser.parse_args()
    if options.user_namespace:
        enter_user_namespace()
    with Ethernet(options.build, [MTUS[options.uplink]] * 2, uplink=f'{options.uplink}:{INTERFACE}') as net:
        for host in net.hosts:
            until(20, lambda h=host: 'PORT_ACTIVE' in h.run('ibv_devinfo'), lambda: 'no link')
            host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S='60')
        CASES[options.case](net)


if __name__ == '__main__':
    main(run)
