#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxed over Linux' own bond or team: `--uplink af_packet:bond0` in a virtual machine, whose two NICs are cables to a second
machine. A connection goes on while each slave of the bond in turn is set down. With active-backup and a team the second
machine is a bridge, as a switch would be, with LACP another bond. Messages with contents, by the direct uplink and by
the switch.
"""
import contextlib
import json
import os
import re
import sys
import tempfile

from guest import Machine
from host import Failure, main, until
from image import Image, find_program

FLOW = 'tests/migrate/verbs_flow'
RUN_DIR = '/tmp/urxe'
MTU = 4200
ADDRESSES = ['192.0.2.1', '192.0.2.2']
PORT = 18515
SECONDS = 120
FRAMES = 200  # that show that messages move
# The kernel's modes, and what the second machine joins its NICs to.
MODES = {'active-backup': 'bridge', '802.3ad': 'bond', 'team': 'bridge'}
TEAM_PROGRAMS, TEAM_MODULES = ['teamd', 'teamdctl'], ['team', 'team_mode_activebackup']
TEAM = '{"runner": {"name": "activebackup"}, "link_watch": {"name": "ethtool"}}'
# Active, short timeout, aggregatable, in sync, collecting and distributing (IEEE 802.1AX, 6.4.2.3).
LACP_READY = 0x3f
SLAVES = ['52:54:00:00:01:0', '52:54:00:00:02:0']  # MACs, without the number of the machine


class End:
    """A machine with two NICs, joined by a bond or a bridge, on which urxed runs."""

    def __init__(self, guest, number):
        self.guest = guest
        self.address = ADDRESSES[number]
        self.nics = [guest.interface(f'{slave}{number}') for slave in SLAVES]
        # rdma_rxe has RoCE's UDP port, also without a device.
        guest.run('rmmod rdma_rxe')

    def join(self, kind, mode):
        self.name = {'bond': self.make_bond, 'bridge': self.make_bridge, 'team': self.make_team}[kind](mode)
        self.guest.run(f'ip link set {self.name} mtu {MTU} up && ip addr add {self.address}/24 dev {self.name}')

    def make_bond(self, mode):
        # The module has made bond0.
        options = ['echo 50 >miimon']
        if mode == '802.3ad':
            options += ['echo fast >lacp_rate', 'echo layer3+4 >xmit_hash_policy']
        slaves = [f'ip link set {nic} down && echo +{nic} >slaves' for nic in self.nics]
        self.guest.run(' && '.join(['cd /sys/class/net/bond0/bonding', f'echo {mode} >mode', *options, *slaves]))
        return 'bond0'

    def make_bridge(self, _mode):
        ports = [f'ip link set {nic} mtu {MTU} master br0 up' for nic in self.nics]
        self.guest.run(' && '.join(['ip link add br0 type bridge', *ports]))
        return 'br0'

    def make_team(self, _mode):
        ports = [f'ip link set {nic} down && ip link set {nic} mtu {MTU} && teamdctl team0 port add {nic}'
                 for nic in self.nics]
        self.guest.run(f"mkdir -p /var/run/teamd && teamd -d -t team0 -c '{TEAM}' && {' && '.join(ports)}")
        return 'team0'

    def start_daemon(self, options):
        self.guest.run(f'mkdir -p {RUN_DIR} && chmod 700 {RUN_DIR} && '
                       f'/urxe/tools/urxed --run-dir {RUN_DIR} --uplink af_packet:{self.name} {options}')
        self.gid = self.guest.gid(self.address, f'{RUN_DIR}/sys/class/infiniband/urxe0')

    def flow(self, *words):
        return self.guest.start(f'/urxe/tools/urxe run --run-dir {RUN_DIR} -- verbs_flow -p {PORT} -t 19 -d urxe0 '
                                f'-g {self.gid} {" ".join(words)}')

    def set_slave(self, number, state):
        self.guest.run(f'ip link set {self.nics[number]} {state}')

    def wait_slave(self, number, mode):
        """Waits until the bond may send by the slave; with LACP both ends collect and distribute."""
        if mode == 'team':
            self.guest.run(f'until [ "$(teamdctl team0 state item get ports.{self.nics[number]}.link.up)" = true ]; do '
                           'usleep 20000; done')
            return
        facts = ['mii_status up']
        if mode == '802.3ad':
            facts += [f'ad_{end}_oper_port_state {LACP_READY}' for end in ('actor', 'partner')]
        for fact in facts:
            name, value = fact.split()
            self.guest.run(f'cd /sys/class/net/{self.nics[number]}/bonding_slave; '
                           f'until [ "$(cat {name})" = {value} ]; do usleep 20000; done')

    def paths(self):
        """The paths of the connected queue pairs."""
        shown = self.guest.run(f'/urxe/tools/urxe show --run-dir {RUN_DIR} --json qp')
        return [qp['path'] for qp in json.loads(shown)['qps'] if qp['state'] == 'RTS']

    def sent(self, number):
        """Frames that left by a slave so far."""
        return int(self.guest.run(f'cat /sys/class/net/{self.nics[number]}/statistics/tx_packets'))

    def describe(self):
        return self.guest.run(f'cat /proc/net/bonding/bond0; teamdctl team0 state; '
                              f'/urxe/tools/urxe show --run-dir {RUN_DIR} qp port')


def nic(folder, number, machine):
    """QEMU's arguments for a NIC of a machine, at its end of a cable."""
    server = 'off' if machine else 'on'
    # LACP needs the speed of each NIC.
    return ['-netdev', f'stream,id=cable{number},addr.type=unix,addr.path={folder}/cable{number},server={server}',
            '-device', f'virtio-net-pci,netdev=cable{number},mac={SLAVES[number]}{machine},host_mtu={MTU},'
                       'speed=1000,duplex=full']


@contextlib.contextmanager
def machines(image):
    """Two machines joined by two cables."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        ends = []
        for number in range(2):
            arguments = ['-no-reboot', *nic(folder, 0, number), *nic(folder, 1, number)]
            machine = Machine(image, arguments, f'{SLAVES[0]}{number}', f'machine {number}')
            ends.append(End(stack.enter_context(machine), number))
        yield ends


def wait_frames(end, number, client):
    """Waits until messages move by that slave."""
    before = end.sent(number)
    until(SECONDS, lambda: not client.running() or end.sent(number) > before + FRAMES,
          lambda: f'{end.nics[number]} sends nothing: {end.describe()}')
    if not client.running():
        raise Failure(f'{client.describe()}{end.describe()}')


def count_messages(program):
    if program.wait(SECONDS) or not (found := re.search(r'^(\d+) messages each way, all bytes right', program.output(),
                                                        re.MULTILINE)):
        raise Failure(program.describe())
    return int(found[1])


def check_flow(one, two, mode, way):
    server = two.flow()
    two.guest.wait_listening(PORT)
    client = one.flow(two.address)
    until(SECONDS, lambda: one.paths() or not client.running(), client.describe)
    if [path == 'direct-uplink' for path in one.paths()] != [way == 'direct']:
        raise Failure(f'not by the {way} path: {client.describe()}{one.describe()}')
    for down, up in ((0, 1), (1, 0)):
        for number in (down, up):
            one.wait_slave(number, mode)
        one.set_slave(down, 'down')
        wait_frames(one, up, client)
        one.set_slave(down, 'up')
    one.guest.run('killall -TERM verbs_flow')
    counts = [count_messages(program) for program in (client, server)]
    if counts[0] != counts[1]:
        raise Failure(f'not the same messages: {counts}')
    print(f'{counts[0]} messages')


def run():
    build, mode, way = sys.argv[1:]
    team = mode == 'team'
    image = Image(build, [os.path.join(build, FLOW), *map(find_program, TEAM_PROGRAMS if team else [])], urxe=True,
                  more_modules=['bonding', 'bridge', *(TEAM_MODULES if team else [])])
    with machines(image) as (one, two):
        one.join('team' if team else 'bond', mode)
        two.join(MODES[mode], mode)
        for end in (one, two):
            end.start_daemon('--direct-uplink none' if way == 'switch' else '')
        check_flow(one, two, mode, way)


if __name__ == '__main__':
    main(run)
