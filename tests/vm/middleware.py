#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""UCX, Open MPI and pyverbs of Debian on the PVRDMA devices of two virtual machines."""
import contextlib
import functools
import os
import re
import sys
import tempfile

from software import OWN_PROGRAMS, MpiImage, PythonImage, UcxImage
from verbs import Lab, add_host
from ethernet import Ethernet
from host import Failure, main, succeed
from rdma import SECONDS
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../clients'))
from mpi import compile_ranks  # noqa: E402
import pyverbs  # noqa: E402
import ucx  # noqa: E402

DEVICE = 'vmw_pvrdma0'
RANKS = 4
MEMORY_MB = 1536  # each rank registers 100 MB
AGENT_PORT = 2222
AGENT, SERVER = '/tmp/agent', '/tmp/serve_agent'
PYTHON = 'env PYTHONHOME=/usr python3'


def run_commands(server, client, commands, port):
    """A server and a client; returns their output, client first."""
    serving = server.start(commands[0])
    server.wait_listening(port)
    asking = client.start(commands[1].format(server.address))
    try:
        for one in asking, serving:
            succeed(one, SECONDS)
    except Failure as failure:
        raise Failure(f'{failure}\nthe server: {serving.describe()}\nthe client: {asking.describe()}') from None
    return asking.output(), serving.output()


def boot_two(lab, hosts, doorbells):
    """
    A machine on each of two hosts, which may be the same one. The machines have names, and a file system for shared
    memory, in which UCX and Open MPI place files.
    """
    machines = [lab.boot(host, memory_mb=MEMORY_MB, arguments=['--doorbells', doorbells]) for host in hosts]
    for vm in machines:
        vm.run(f'hostname {vm.name}; mkdir /dev/shm && mount -t tmpfs none /dev/shm')
    return machines


# --- UCX

def check_devices(vm):
    """UCX offers its transports of InfiniBand on the device."""
    found = re.findall(rf'Transport: (\S+)\n# +Device: {DEVICE}:1\n', vm.run('ucx_info -d'))
    if found != ['rc_verbs', 'ud_verbs']:
        raise Failure(f'UCX has the transports {found}')


def check_ucx(build, stack, doorbells='trapped'):
    lab = Lab(build, stack, UcxImage(build))
    host = add_host(build, stack)
    one, two = boot_two(lab, [host, host], doorbells)
    check_devices(one)
    for short, transport in ucx.TRANSPORTS.items():
        # The datagrams of ud_verbs carry all tests alike.
        for test in ucx.TESTS if transport == 'rc_verbs' else ucx.TESTS[::4]:
            print(transport, *test, end=', ', flush=True)
            output = run_commands(one, two, ucx.ucp_commands(short, *test, DEVICE), ucx.PORT)
            ucx.check_endpoints(transport, DEVICE)(*output)
    # Short operations are inline data, which PVRDMA has not. Without it a flush by ud_verbs may never end: UCX (1.13
    # and later) then waits for the completion of its own acknowledgement, but requests none.
    for words in [[word.replace('short', 'bcopy') for word in words] for words in ucx.LOW_LEVEL
                  if words[0] == 'rc_verbs']:
        print(*words, end=', ', flush=True)
        ucx.check_figures(run_commands(two, one, ucx.uct_commands(*words, DEVICE), ucx.PORT)[0])
    print('done', flush=True)
    return lab


# --- Open MPI

def serve_agent(vm):
    """Runs the command of another machine's agent."""
    vm.write_script(SERVER, 'read -r command', 'sh -c "$command" </dev/null >/tmp/orted 2>&1')
    vm.start(f'nc -ll -p {AGENT_PORT} -e {SERVER}')
    vm.wait_listening(AGENT_PORT)


def write_agent(vm):
    """Makes the program that mpirun starts in place of ssh: AGENT HOST COMMAND..."""
    vm.write_script(AGENT, 'host=$1', 'shift', f'echo "$*" | nc $host {AGENT_PORT}')


def check_ranks(output, elsewhere):
    """All ranks have compared all bytes, and used UCX's rc_verbs on the device."""
    if len(re.findall(rf'^rank \d of {RANKS}: all is as it was sent$', output, re.MULTILINE)) != RANKS:
        raise Failure(f'not all ranks: {output}')
    lanes = set(re.findall(ucx.LANES, ''.join(re.findall(r'ep_cfg\[.*', output))))
    if lanes != {('self', 'memory0'), ('rc_verbs', f'{DEVICE}:1')}:
        raise Failure(f'the ranks have {lanes}: {output}')
    if len(set(re.findall(r'\[vm2:(\d+) *:\w+\] +ucp_worker', output))) != elsewhere:
        raise Failure(f'not {elsewhere} ranks on the other machine: {output}')


def mpirun(vm, hosts):
    """Runs all ranks on hosts of mpirun's list; empty: on this machine."""
    return vm.run(f'env HOME=/tmp mpirun --allow-run-as-root --oversubscribe -np {RANKS} {hosts} '
                  f'--mca plm_rsh_agent {AGENT} --mca oob_tcp_if_include 192.0.2.0/24 '
                  '--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any '
                  f'--mca mpi_yield_when_idle 1 -x UCX_TLS=rc_v,self -x UCX_NET_DEVICES={DEVICE}:1 '
                  '-x UCX_LOG_LEVEL=info mpi_payload', SECONDS)


def check_mpi(build, stack, doorbells='trapped', cable=False):
    """With `cable` the machines are on two hosts, which a cable joins."""
    top = stack.enter_context(tempfile.TemporaryDirectory())
    lab = Lab(build, stack, MpiImage(build, [compile_ranks(top)]))
    hosts = stack.enter_context(Ethernet(build, [1500, 1500])).hosts if cable else [add_host(build, stack)] * 2
    one, two = boot_two(lab, hosts, doorbells)
    for vm in one, two:
        write_agent(vm)  # orted on the other machine looks for it, too
    serve_agent(two)
    check_ranks(mpirun(one, ''), 0)
    check_ranks(mpirun(one, f'--host {one.address}:2,{two.address}:2'), 2)
    return lab


# --- pyverbs

# Tests of rdma-core that fail by the kernel's driver, which reports no limits of a queue pair in state RESET, and by the
# provider, in which the size 0xffffffff becomes 0.
FAILING = {'test_query_rc_qp', 'test_query_ud_qp', 'test_create_raw_qp_ex_with_illegal_caps_max_send_wr',
           'test_create_raw_qp_ex_with_illegal_caps_max_recv_wr'}
LEAST_TESTS = 50  # of 268; rdma-core skips those for devices of other vendors, and for features that PVRDMA lacks


def check_suite(vm):
    """All of rdma-core's own tests for PVRDMA, with both ends in one process."""
    suite = vm.start(f'{PYTHON} {OWN_PROGRAMS}/pyverbs_suite.py {DEVICE}')
    suite.wait(SECONDS)
    ran = re.search(r'^(\d+) tests ran', suite.output(), re.MULTILINE)
    failed = set(re.findall(r'^(?:FAIL|ERROR): (\w+)', suite.output(), re.MULTILINE))
    if not ran or int(ran[1]) < LEAST_TESTS or failed != FAILING:
        raise Failure(f'{ran and ran[0]}, failed: {failed}\n{suite.describe()}')
    print(ran[0], flush=True)


def check_pyverbs(build, stack):
    lab = Lab(build, stack, PythonImage(build))
    host = add_host(build, stack)
    one, two = lab.boot(host), lab.boot(host)
    for server, client in (one, two), (two, one), (one, one):
        commands = [f'{PYTHON} {OWN_PROGRAMS}/pyverbs_pair.py -d {DEVICE} {vm.gid(vm.address)}'
                    for vm in (server, client)]
        run_commands(server, client, (commands[0], f'{commands[1]} {{}}'), pyverbs.PORT)
    check_suite(one)
    # The driver logs each command that the device refuses, as rdma-core's tests want.
    lab.machines.remove(one)
    return lab


MAPPED = {'doorbells': 'mapped'}
PARTS = {'ucx': check_ucx, 'ucx_mapped': functools.partial(check_ucx, **MAPPED), 'mpi': check_mpi,
         'mpi_mapped': functools.partial(check_mpi, **MAPPED), 'mpi_cable': functools.partial(check_mpi, cable=True),
         'pyverbs': check_pyverbs}


def run():
    build, part = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        for vm in PARTS[part](build, stack).machines:
            vm.expect_healthy()


if __name__ == '__main__':
    main(run)
