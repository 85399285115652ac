#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Two hosts. One of them has an HCA and no uplink; the HCA is the device of another urxe on that host. The host's urxed knows no
next hop to the other host, but the HCA does. So urxe refuses queue pairs that its engine would have to execute, and its engine
takes over no queue pair of the HCA.
"""
import contextlib
import os
import re
import sys

from ethernet import IPV4, IPV6, Ethernet
from host import Failure, Pair, main, until  # by the path that ethernet has set
from checkpoint_pair import CheckpointPair
from nested import DEVICE, Nested, without_hca
import report

SECONDS = 120
PROGRAMS = [['ibv_rc_pingpong', '-c'], ['ibv_uc_pingpong', '-c', '-n', '20'], ['ibv_ud_pingpong', '-s', '1024', '-n', '20'],
            ['ibv_srq_pingpong', '-c'], ['ib_write_bw', '-F', '-n', '200'], ['ib_read_lat', '-F', '-n', '200'],
            ['verbs_check', '-W'], ['verbs_check', '-W', '-S']]


class OneHca(Ethernet):
    """Host `number` has the device hca0. `nested` is the urxe of the same namespace that uses hca0 as its HCA."""

    def __init__(self, build, number):
        self.number = number
        self.nested = contextlib.nullcontext()
        super().__init__(build, [1500] * 2)
        try:
            self.nested = Nested(build, self.hosts[number - 1], self.namespaces[number - 1].prefix(), addresses=())
            self.nested.way = 'hca'
            until(20, lambda: any(hca['used'] for hca in self.nested.show('device')['hca']), lambda: 'hca0 backs nothing')
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, *error):
        self.nested.__exit__(*error)
        super().__exit__(*error)

    def given_addresses(self, number):
        return [*super().given_addresses(number), *DEVICE * (number == self.number)]

    def other(self):
        """The host without an HCA."""
        return self.hosts[2 - self.number]


def exchange(net, argv, address, hca_is_server):
    """Runs a program between the host with the HCA and the other host."""
    argv = [net.nested.verbs_check if word == 'verbs_check' else word for word in argv]
    ends = [(net.other(), 3 - net.number), (net.nested, net.number)]
    (server, server_number), (client, client_number) = reversed(ends) if hca_is_server else ends
    pair = Pair(server, client, argv, server.gid(address.format(server_number)), IPV4.format(server_number),
                client_gid=client.gid(address.format(client_number)))
    report.check(argv, *pair.finish(SECONDS))
    print(f'{" ".join(argv)}, {address}: the {"HCA" if hca_is_server else "engine"} is the server', flush=True)


def refuse_way_engine(net):
    """With --way engine the nested urxe connects no queue pair to the other host."""
    net.nested.way = 'engine'
    try:
        pair = Pair(net.other(), net.nested, ['ibv_rc_pingpong'], address=IPV4.format(3 - net.number))
        pair.client.wait(SECONDS)
        said = pair.client.errors()
        if pair.client.process.returncode != 1 or 'destination address: Network is unreachable' not in said:
            raise Failure(f'the engine is not refused: {pair.client.describe()}')
        pair.kill()
    finally:
        net.nested.way = 'hca'


def refuse_engine_objects(net):
    """
    Refused: a queue pair that the engine would have to execute, because the HCA lacks a region of its protection domain; and an
    address handle for such a queue pair.
    """
    program = os.path.join(net.build, 'tests/hosts/no_next_hop')
    gid = str(net.nested.gid(IPV4.format(net.number)))
    for what, expected in (('plain', 'Success'), ('region', 'Network is unreachable'),
                           ('handle', r'address handle \d+: urxed knows no next hop to its address')):
        said = net.nested.run(program, gid, IPV4.format(3 - net.number), what).strip()
        if not re.fullmatch(expected, said):
            raise Failure(f'{what}: {said}')


def end_with_hca(net):
    """The HCA goes: connected queue pairs fail at once, datagrams fail when the program posts them."""
    net.nested.gone = 'engine'
    cases = (([], 'the engine cannot take over from the HCA: urxed knows no next hop to its peer'),
             (['-c', 'UD', '-s', '1024'], "the engine goes on with the HCA's queue pairs"))
    for options, expected in cases:
        pair = Pair(net.other(), net.nested, ['stdbuf', '-oL', 'ib_send_bw', '-F', '--run_infinitely', '-D', '1', *options],
                    net.other().gid(IPV4.format(3 - net.number)), IPV4.format(3 - net.number),
                    client_gid=net.nested.gid(IPV4.format(net.number)))
        until(30, lambda: report.rows(pair.client.output()), lambda: f'does not begin: {pair.client.describe()}')
        with without_hca(net.hosts[net.number - 1], net.nested):
            until(30, lambda: not pair.client.running(), lambda: f'goes on: {pair.client.describe()}')
        if expected not in pair.client.errors():
            raise Failure(f'{options}: ended otherwise: {pair.client.describe()}')
        if options and 'Failed status 2' not in pair.client.output() + pair.client.errors():
            raise Failure(f'a datagram without a next hop did not fail: {pair.client.describe()}')
        pair.kill()
    net.nested.gone = 'error'


def refuse_checkpoint(net):
    """A checkpoint is refused, because the process would be restored without the HCA. The process goes on."""
    net.nested.log = 'warning'
    gids = [str(host.gid(IPV4.format(number))) for host, number in ((net.nested, net.number), (net.other(), 3 - net.number))]
    pair = CheckpointPair(net.build, [net.nested, net.other()], gids=gids, work='plain')
    pair.progress()
    answer = pair.traveller.ask('save ' + ' '.join(pair.files))
    if not re.fullmatch(r'error EOPNOTSUPP: queue pair 0x[0-9a-f]+: .* urxed knows no next hop to its peer, .*', answer):
        raise Failure(answer)
    pair.progress()
    for program in pair.both():
        program.kill()
    net.nested.log = 'info'


def run():
    with OneHca(sys.argv[1], 2) as net:
        for address, hca_is_server in ((IPV4, False), (IPV6, True)):
            for argv in PROGRAMS:
                exchange(net, argv, address, hca_is_server)
        refuse_way_engine(net)
        refuse_engine_objects(net)
        refuse_checkpoint(net)
        end_with_hca(net)
        # The refusals and the end of the port left the HCA usable.
        exchange(net, PROGRAMS[0], IPV4, False)


if __name__ == '__main__':
    main(run)
