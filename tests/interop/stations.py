# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The stations of an Ethernet: this host with urxe0, a virtual machine with the kernel's rxe0, and a virtual machine
with urxe0. Each starts programs on its device, and knows how its clients reach TCP ports of other stations.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../harness'), os.path.join(HERE, '../hosts/paths'),
                os.path.join(HERE, '../guests')]
from guest import Guest  # noqa: E402
from host import Failure, free_port, until, wait_listening  # noqa: E402
from rdma import finish  # noqa: E402
import rdmacm  # noqa: E402

SECONDS = 120  # for one program, because a machine's processors are emulated


class OnHost:
    """Processes of this host."""

    device = 'urxe0'
    here = '127.0.0.1'

    def __init__(self, host, addresses):
        self.name = 'the host'
        self.host = host
        self.addresses = addresses
        self.gids = {version: host.gid(address) for version, address in addresses.items()}

    def port(self):
        return free_port()

    def start(self, argv):
        if argv[0] == 'verbs_check':
            argv = [self.host.verbs_check, *argv[1:]]
        return self.host.start(*argv)

    def wait_listening(self, program, port):
        wait_listening(program, port)

    def start_listener(self, argv):
        return rdmacm.start_server(self.host, argv)

    def stop(self, server, argv):
        server.kill()


class InMachine:
    """Processes of a virtual machine, on its kernel's device."""

    device = 'rxe0'
    here = Guest.HERE
    prefix = ''

    def __init__(self, guest, addresses):
        self.name = f'{guest.name} ({self.device})'
        self.guest = guest
        self.addresses = addresses
        self.gids = {version: guest.gid(address, self.folder(guest))
                     for version, address in addresses.items()}

    @staticmethod
    def folder(_guest):
        return '/sys/class/infiniband/rxe0'

    def port(self):
        return self.guest.port

    def start(self, argv):
        return self.guest.start(self.prefix + ' '.join(argv))

    def wait_listening(self, program, port):
        self.guest.wait_listening(port)

    def stop(self, server, argv):
        self.guest.run(f'killall -9 {argv[0]}')
        server.wait(SECONDS)

    def listens(self):
        return 'state LISTEN' in self.guest.run('rdma resource show cm_id')

    def start_listener(self, argv):
        """Starts a server, and waits until it listens with rdma_cm."""
        until(60, lambda: not self.listens(), lambda: 'a server of before still listens')
        server = self.start(argv)
        until(60, lambda: self.listens() or not server.running(), server.describe)
        return server


class Inside(InMachine):
    """Processes of a virtual machine in which urxed runs, on urxe0."""

    device = 'urxe0'
    prefix = '/urxe/tools/urxe run -- '
    log = '/tmp/listener.log'

    @staticmethod
    def folder(guest):
        return guest.run('echo /run/urxe/*/sys/class/infiniband/urxe0').strip()

    def start_listener(self, argv):
        self.guest.run(f'rm -f {self.log}')
        server = self.guest.start(f'URXE_LOG=debug {self.prefix}{" ".join(argv)} 2>{self.log}')
        self.guest.run(f'until grep -q "rdma_cm LISTEN: ok" {self.log}; do usleep 20000; done')
        return server


# --- Programs between two stations

def exchange(server, client, argv, version, mtu):
    """Runs a program with its server on one station and its client on the other; checks its output."""
    port = server.port()
    index = '-x' if argv[0].startswith('ib_') else '-g'

    def words(station):
        return [*argv, '-d', station.device, '-p', str(port), index, str(station.gids[version])]

    serving = server.start(words(server))
    server.wait_listening(serving, port)
    finish(argv, serving, client.start([*words(client), client.here]), mtu)


def connect(server, client, serving_argv, asking_argv, version):
    """Connects two programs by rdma_cm; {} is the server's address. perftest's server must be on urxe."""
    serving_argv, asking_argv = ([word.format(server.addresses[version]) for word in argv]
                                 for argv in (serving_argv, asking_argv))
    for _ in range(rdmacm.OWN_ATTEMPTS):
        serving = server.start_listener(serving_argv)
        asking = client.start(asking_argv)
        asking.wait(SECONDS)
        if not rdmacm.came_too_early(asking_argv, asking):
            break
        server.stop(serving, serving_argv)
    for one, other in ((asking, serving), (serving, asking)):
        try:
            rdmacm.end_well(one, SECONDS)
        except Failure as failure:
            raise Failure(f'{failure}\nthe other side: {other.describe()}') from None


def rejected(client, server, version):
    """A client of an address without a listener is rejected."""
    asking = client.start(['rping', '-c', '-p', '4999', '-C', '1', '-a', server.addresses[version]])
    asking.wait(SECONDS)
    if 'RDMA_CM_EVENT_REJECTED, error 8' not in asking.output() + asking.errors():
        raise Failure(f'no rejection: {asking.describe()}')
