# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs of Debian between virtual machines with PVRDMA, and their peers."""
from vm import VERBS_CHECK  # noqa: F401  sets the paths of the modules below
from guest import Machine
from host import Failure, free_port, until, wait_listening
from cm import finish as finish_connected
from cm import guest_server, to
from rdma import PATIENT, SECONDS, finish, on_guest, on_host
from rdmacm import KERNEL_ATTEMPTS, OWN_ATTEMPTS, came_too_early, start_server

PATH_MTU = 1024  # of an MTU of 1500

# The pingpongs and verbs_check compare every byte. PVRDMA has no UC and no memory windows.
CHECKED = [
    ['verbs_check', '-W', '-m', '1024'],
    ['verbs_check', '-W', '-m', '1024', '-S', '-e'],
    ['verbs_check', '-W', '-m', '1024', '-c', 'UD'],
    ['ibv_rc_pingpong', '-c', '-n', '100'],
    ['ibv_rc_pingpong', '-c', '-e', '-n', '100'],
    ['ibv_srq_pingpong', '-c', '-n', '100'],
    ['ibv_ud_pingpong', '-c', '-n', '100', '-s', '1024'],
]
PERFTEST = [
    ['ib_write_bw', '-F', '-a', '-n', '20'],
    ['ib_send_bw', '-F', '-a', '-n', '20'],
    ['ib_read_bw', '-F', '-a', '-n', '20'],
    ['ib_atomic_bw', '-F', '-n', '100'],
    ['ib_atomic_bw', '-F', '-n', '100', '-A', 'CMP_AND_SWAP'],
    ['ib_send_bw', '-F', '-c', 'UD', '-s', '512', '-n', '100'],
    ['ib_send_bw', '-F', '-n', '100', '-e'],
    ['ib_send_bw', '-F', '-n', '100', '-q', '8', '--use-srq'],
    ['ib_write_bw', '-F', '-n', '100', '-q', '16', '-b'],
    ['ib_write_lat', '-F', '-n', '100'],
    ['ib_send_lat', '-F', '-n', '100'],
    ['ib_read_lat', '-F', '-n', '100'],
    ['ib_atomic_lat', '-F', '-n', '100'],
]
# Server and client; {} is the server's address. rping -V compares contents.
CONNECTED = [
    (['rping', '-s', '-C', '10', '-V'], ['rping', '-c', '-a', '{}', '-C', '10', '-V']),
    (['rping', '-s', '-C', '3', '-S', '60000', '-V'], ['rping', '-c', '-a', '{}', '-C', '3', '-S', '60000', '-V']),
    (['ucmatose', '-c', '4', '-C', '20'], ['ucmatose', '-s', '{}', '-c', '4', '-C', '20']),
    (['udaddy', '-c', '2'], ['udaddy', '-s', '{}', '-c', '2']),
    (['ib_write_bw', '-R', '-F', '-n', '100'], ['ib_write_bw', '-R', '-F', '-n', '100', '{}']),
    (['ib_send_lat', '-R', '-F', '-n', '100'], ['ib_send_lat', '-R', '-F', '-n', '100', '{}']),
]
FEW = [CHECKED[0], CHECKED[3], PERFTEST[0], PERFTEST[2]]


def patient(argv):
    """perftest's default timeout of 67 ms is too short for an emulated processor."""
    return [*argv, *PATIENT] if argv[0].startswith('ib_') and 'UD' not in argv else argv


# --- By the addresses of queue pairs

def start_client(client, argv, port, tcp):
    if isinstance(client, Machine):
        return client.start(f'{on_guest(client, argv, port, client.address)} {tcp}')
    return client.start(*on_host(client, argv, port, client.address), tcp)


def tcp_address(server, client):
    """
    The port and address at which a server accepts the client's TCP connection. Machines reach each other over their
    vmxnet3, and the host by their other NIC.
    """
    if not isinstance(server, Machine):
        return free_port(), Machine.HERE
    return server.port, server.address if isinstance(client, Machine) else '127.0.0.1'


def run_pair(server, client, argv):
    """Runs a program on two ends, of which each is a machine or a host with an `address`."""
    argv = patient(argv)
    port, tcp = tcp_address(server, client)
    if isinstance(server, Machine):
        serving = server.start(on_guest(server, argv, port, server.address))
        server.wait_listening(port)
    else:
        serving = server.start(*on_host(server, argv, port, server.address))
        wait_listening(serving, port)
    finish(argv, serving, start_client(client, argv, port, tcp), PATH_MTU)


# How a requester of rdma_rxe ends that has numbered its requests anew: docs/interop.md, "Requests".
RENUMBERED = 'remote invalid request error'


def run_pair_again(server, client, argv):
    """As run_pair; once more if the client's rdma_rxe has numbered its requests anew."""
    try:
        run_pair(server, client, argv)
    except Failure as failure:
        if getattr(client, 'RDMA', None) != 'rxe0' or RENUMBERED not in str(failure):
            raise
        print(f'(again, after "{RENUMBERED}" of rdma_rxe)', end=' ', flush=True)
        server.run(f'killall -9 {argv[0]}; true')
        run_pair(server, client, argv)


def run_both_ways(one, other, programs):
    for argv in programs:
        print(' '.join(argv), end=', ', flush=True)
        run_pair_again(one, other, argv)
        if other is not one:
            run_pair_again(other, one, argv)
    print('done', flush=True)


# --- By rdma_cm

def start_listener(server, argv):
    return guest_server(server, argv) if isinstance(server, Machine) else start_server(server, argv)


def start_connector(client, argv):
    return client.start(' '.join(argv)) if isinstance(client, Machine) else client.start(*argv)


def stop(server, serving, argv):
    """Ends a server that perftest's client left."""
    if isinstance(server, Machine):
        server.run(f'killall -9 {argv[0]}')
    else:
        serving.kill()


def run_connected(server, client, server_argv, client_argv):
    for _ in range(KERNEL_ATTEMPTS if isinstance(server, Machine) else OWN_ATTEMPTS):
        serving = start_listener(server, server_argv)
        connecting = start_connector(client, to(client_argv, server.address))
        connecting.wait(SECONDS)
        if not came_too_early(client_argv, connecting):
            break
        stop(server, serving, server_argv)
    finish_connected(serving, connecting)


def run_connected_both_ways(one, other, programs):
    for server_argv, client_argv in programs:
        print(' '.join(client_argv), end=', ', flush=True)
        run_connected(one, other, server_argv, client_argv)
        if other is not one:
            run_connected(other, one, server_argv, client_argv)
    print('done', flush=True)


def run_qperf(server, client):
    """qperf's tests of RDMA, each with figures."""
    job = server.start('qperf')
    server.wait_listening(19765)
    for test in 'rc_bw', 'rc_lat', 'rc_rdma_write_bw', 'rc_rdma_read_lat', 'rc_compare_swap_mr':
        report = client.run(f'qperf {server.address} -t 1 -li {client.RDMA} -ri {server.RDMA} --use_cm 1 {test}')
        if not any(word in report for word in ('bw', 'latency', 'msg_rate')):
            raise Failure(f'qperf {test}: {report}')
    server.run('killall qperf')
    job.wait(60)


def has_gid(vm, address):
    try:
        vm.gid(address)
    except (Failure, ValueError):
        return False
    return True


def wait_gid(vm, address):
    """Waits until the device has a GID for an address."""
    until(60, lambda: has_gid(vm, address), lambda: f'{vm.name}: no GID for {address}')
