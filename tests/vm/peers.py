#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
UCX and pyverbs of Debian between a machine with PVRDMA and a program of the host, and a machine of another host over a
cable; pyverbs also with Linux' rdma_rxe in another machine. UCX 1.13 does not connect over rdma_rxe of Linux 6.1, even
to itself on one device: its datagrams time out. middleware.py has two machines with PVRDMA on one host.
"""
import contextlib
import os
import sys

from ends import tcp_address, wait_gid
from software import OWN_PROGRAMS, UcxAndPythonImage
from verbs import LONG_MTU, Lab, add_host
from vm import Vm
from ethernet import Ethernet
from host import Failure, main, succeed, wait_listening
from rdma import SECONDS
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../clients'))
import ucx  # noqa: E402

UCX_TESTS = [('tag_lat', 8), ('tag_bw', 100000), ('stream_bw', 100000), ('ucp_put_bw', 100000), ('ucp_get', 100000),
             ('ucp_fadd', 8), ('ucp_cswap', 8), ('ucp_am_bw', 100000)]
MEMORY_MB = 1024


def device_of(end):
    return end.RDMA if isinstance(end, Vm) else 'urxe0'


def start(end, command):
    return end.start(command) if isinstance(end, Vm) else end.start(*command.split())


def wait_served(server, serving, port):
    if isinstance(server, Vm):
        server.wait_listening(port)
    else:
        wait_listening(serving, port)


def run_two(server, client, make):
    """Runs the commands that make(end, port) returns; the client's gets the server's address. Returns both outputs."""
    port, tcp = tcp_address(server, client)
    serving = start(server, make(server, port))
    wait_served(server, serving, port)
    asking = start(client, f'{make(client, port)} {tcp}')
    try:
        for one in asking, serving:
            succeed(one, SECONDS)
    except Failure as failure:
        raise Failure(f'{failure}\nthe server: {serving.describe()}\nthe client: {asking.describe()}') from None
    return serving.output(), asking.output()


def run_ucx(server, client, test, size):
    def make(end, port):
        return (f'env UCX_LOG_LEVEL=info UCX_NET_DEVICES={device_of(end)}:1 UCX_TLS=rc_v '
                f'UCX_IB_GID_INDEX={end.gid(end.address)} ucx_perftest -p {port} -t {test} -s {size} {ucx.COUNT}')

    outputs = run_two(server, client, make)
    ucx.check_figures(outputs[1])
    for end, output in zip((server, client), outputs):
        ucx.check_lanes(output, 'rc_verbs', device_of(end))


def run_pyverbs(server, client):
    """Every byte is compared."""
    def make(end, port):
        python = 'env PYTHONHOME=/usr python3' if isinstance(end, Vm) else '/usr/bin/python3'
        return f'{python} {OWN_PROGRAMS}/pyverbs_pair.py -d {device_of(end)} -p {port} {end.gid(end.address)}'

    run_two(server, client, make)


def run_both_ways(one, other, ucx_tests):
    for server, client in (one, other), (other, one):
        print('pyverbs', end=', ', flush=True)
        run_pyverbs(server, client)
        for words in ucx_tests:
            print(*words, end=', ', flush=True)
            run_ucx(server, client, *words)
    print('done', flush=True)


def check_host(lab, build, stack):
    host = add_host(build, stack)
    run_both_ways(lab.boot(host, memory_mb=MEMORY_MB), host, UCX_TESTS)


def check_cable(lab, build, stack):
    hosts = stack.enter_context(Ethernet(build, [1500, 1500])).hosts
    run_both_ways(*(lab.boot(host, memory_mb=MEMORY_MB) for host in hosts), UCX_TESTS)


def check_rxe(lab, build, stack):
    host = add_host(build, stack)
    one, two = (lab.boot(host, rdma, ['--mtu', str(LONG_MTU)], mtu=LONG_MTU, memory_mb=MEMORY_MB) for rdma in (True, False))
    two.use_rxe()
    wait_gid(two, two.address)
    run_both_ways(one, two, [])


PEERS = {'host': check_host, 'cable': check_cable, 'rxe': check_rxe}


def run():
    build, peer = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        lab = Lab(build, stack, UcxAndPythonImage(build))
        PEERS[peer](lab, build, stack)
        for vm in lab.machines:
            vm.expect_healthy()


if __name__ == '__main__':
    main(run)
