# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Four ranks of the tests' own program, which `mpicc` compiles: messages between all ranks, and collectives, every byte
compared. The ranks may use the transport `rc_verbs` only, and UCX's log confirms it.

Between two hosts each host has two ranks. `mpirun` itself runs under `urxe run --`, and these options run Open MPI's
daemon under `urxe run` on the other host: `--host SERVER:2,CLIENT:2 --mca orte_launch_agent "urxe run -- orted"`.
In the tests a script instead of ssh enters the client's namespace.
"""
import os
import re
import subprocess
import tempfile

from host import Failure
from mpi import write_agent
from row import PROGRAMS, Refusal, Row, words
from ucx import LANES

PACKAGES = ['openmpi-bin', 'libopenmpi-dev']
RANKS = 4


def compile_ranks(top):
    program = os.path.join(top, 'mpi_payload')
    made = subprocess.run(['mpicc', '-O2', '-o', program, os.path.join(PROGRAMS, 'mpi_payload.c')],
                          capture_output=True, text=True, check=False)
    if made.returncode:
        raise Failure(f'mpicc: {made.stderr}')
    return program


def check(ranks, elsewhere):
    if len(re.findall(rf'^rank \d of {RANKS}: all is as it was sent$', ranks, re.MULTILINE)) != RANKS:
        raise Failure('not all ranks')
    lanes = set(re.findall(LANES, ''.join(re.findall(r'ep_cfg\[.*', ranks))))
    if lanes != {('self', 'memory0'), ('rc_verbs', 'urxe0:1')}:
        raise Failure(f'the ranks have {lanes}')
    if len(set(re.findall(r'\[other:(\d+) *:\w+\] +ucp_worker', ranks))) != elsewhere:
        raise Failure(f'not {elsewhere} ranks on the other host')


class RefusedRanks(Row):
    def argv(self, at):
        return [*super().argv(at)[:-1], compile_ranks(at.client.top)]


class Ranks(Row):
    def run(self, at):
        with tempfile.TemporaryDirectory() as top:
            argv = [*words(self.client, at, at.server)[:-1], compile_ranks(top)]
            one = at.server is at.client
            if not one:
                hosts = ','.join(f'{address}:{RANKS // 2}' for address in at.addresses)
                agent = f'{at.client.urxe} run --run-dir {at.client.run_dir} -- orted'
                argv[1:1] = ['--host', hosts, '--mca', 'orte_launch_agent', agent,
                             '--mca', 'plm_rsh_agent', write_agent(top, at.client.prefix)]
            program = at.server.start(*argv)
            try:
                self.judge(program)
                check(program.output(), 0 if one else RANKS // 2)
            except Failure as failure:
                raise Failure(f'{failure}\nmpirun: {program.describe()}') from None
            finally:
                program.kill()


ROWS = [Ranks(f'mpirun --allow-run-as-root --oversubscribe -np {RANKS} --mca pml ucx --mca pml_ucx_tls any '
              '--mca pml_ucx_devices any --mca mpi_yield_when_idle 1 -x UCX_TLS=rc_v,self '
              '-x UCX_NET_DEVICES=urxe0:1 -x UCX_LOG_LEVEL=info {programs}/mpi_payload'),
        RefusedRanks('mpirun --allow-run-as-root --oversubscribe -np 2 --mca pml ob1 --mca btl openib,self '
                     '--mca btl_openib_allow_ib 1 {programs}/mpi_payload', refusal=Refusal(
                         'Debian builds openib with the connection manager udcm only, which refuses RoCE',
                         'BTLs attempted: +self'))]
