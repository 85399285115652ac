# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Ranks of the tests' own program, which `mpicc` compiles: messages between all ranks, and collectives, every byte compared;
and PEs of OpenSHMEM (`oshcc`): put, get and an atomic. They may use the transport `rc_verbs` only, or `ud_verbs` only, and
UCX's log confirms it; or libfabric's RDM endpoints, tagged. Sixteen ranks share two processors. `mpi_collectives` calls 22
collectives of MPI, blocking and non-blocking, in two sizes, also with parts of unequal length and with three collectives at
the same time. It compares each result, and prints the time of each (docs/performance-tables.md).
UCX registers the heap of each PE, which fills 256 MiB with pages unless `SHMEM_SYMMETRIC_HEAP_SIZE` is smaller, and for `rc_v`
about 80 MiB more.

Between two hosts each host has two of four ranks; the other commands run on one host. `mpirun` itself runs under `urxe run --`,
and these options run Open MPI's daemon under `urxe run` on the other host:
`--host SERVER:2,CLIENT:2 --mca orte_launch_agent "urxe run -- orted"`.
In the tests a script instead of ssh enters the client's namespace.

`mpirun` without options works, and does not use urxe0: Open MPI's UCX component wants other devices, and `vader`, its shared
memory, needs none.
`shmem_finalize` of Open MPI 4.1.4 crashes, over TCP as well, so the program ends by `shmem_global_exit`.
"""
import os
import re
import tempfile
from dataclasses import dataclass

from compiled import PROGRAMS
from host import Failure
from mpi import compile_ranks, write_agent
from row import Refusal, Row, words
from ucx import LANES

PACKAGES = ['openmpi-bin', 'libopenmpi-dev']
RANKS = 4
LIBFABRIC = 'libfabric'
CRASHES = 5  # of mpirun, in a row that is refused
UCX = ['UCX_TLS=rc_v,self', 'UCX_NET_DEVICES=urxe0:1', 'UCX_LOG_LEVEL=info']
OPTIONS = '--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any ' + ' '.join(f'-x {name}' for name in UCX)
DATAGRAMS = OPTIONS.replace('rc_v', 'ud_v')
# libfabric's message endpoints of verbs, with its layer for reliable datagram endpoints.
FABRIC = '--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "verbs;ofi_rxm" --mca mtl_base_verbose 1'


def check_lanes(ranks, transport, elsewhere):
    lanes = set(re.findall(LANES, ''.join(re.findall(r'ep_cfg\[.*', ranks))))
    if lanes != {('self', 'memory0'), (transport, 'urxe0:1')}:
        raise Failure(f'the ranks have {lanes}')
    if len(set(re.findall(r'\[other:(\d+) *:\w+\] +ucp_worker', ranks))) != elsewhere:
        raise Failure(f'not {elsewhere} ranks on the other host')


def check_fabric(ranks, count):
    if len(re.findall('mtl:ofi:provider: urxe0$', ranks, re.MULTILINE)) != count:
        raise Failure('not all ranks use libfabric on urxe0')


def check_payload(ranks, count):
    """`ranks`: standard output and standard error of all."""
    if len(re.findall(rf'^(rank|PE) \d+ of {count}: all is as it was (sent|put)$', ranks, re.MULTILINE)) != count:
        raise Failure('not all ranks')


def compile_program(argv, top, compiler):
    """The command, with the compiled program in place of the tests' own program."""
    return [compile_ranks(top, os.path.basename(word), compiler) if os.path.dirname(word) == PROGRAMS else word
            for word in argv]


class RefusedRanks(Row):
    """
    mpirun of Open MPI 4.1.4 sometimes crashes in its own thread of PMIx, which logs the messages of the ranks. Then the
    test starts it again.
    """

    def argv(self, at):
        return [*super().argv(at)[:-1], compile_ranks(at.client.top)]

    def run(self, at):
        for attempt in range(CRASHES + 1):
            try:
                super().run(at)
                return
            except Failure as failure:
                if attempt == CRASHES or 'pmix_server_log_fn' not in str(failure):
                    raise


@dataclass(frozen=True)
class Ranks(Row):
    compiler: str = 'mpicc.openmpi'
    spread: bool = True  # over the hosts
    transport: str = 'rc_verbs'  # UCX's, or LIBFABRIC, or '': Open MPI's own choice, which is not checked

    def prepare(self, argv, top):
        return compile_program(argv, top, self.compiler)

    def check_results(self, ranks, count, _top):
        check_payload(ranks, count)

    def check_way(self, ranks, at, count, elsewhere):
        if self.transport == LIBFABRIC:
            check_fabric(ranks, count)
        elif self.transport:
            check_lanes(ranks, self.transport, elsewhere)

    def run(self, at):
        with tempfile.TemporaryDirectory() as top:
            argv = self.prepare(words(self.client, at, at.server), top)
            spread = self.spread and at.server is not at.client
            if spread:
                hosts = ','.join(f'{address}:{RANKS // 2}' for address in at.addresses)
                agent = ' '.join(at.client.command(['orted']))
                argv[1:1] = ['--host', hosts, '--mca', 'orte_launch_agent', agent,
                             '--mca', 'plm_rsh_agent', write_agent(top, at.client.prefix)]
            program = at.server.start(*argv)
            try:
                self.judge(program)
                ranks, count = program.output() + program.errors(), int(argv[argv.index('-np') + 1])
                self.check_results(ranks, count, top)
                self.check_way(ranks, at, count, RANKS // 2 if spread else 0)
            except Failure as failure:
                raise Failure(f'{failure}\nmpirun: {program.describe()}') from None
            finally:
                program.kill()


ROWS = [Ranks(f'mpirun --allow-run-as-root --oversubscribe -np {RANKS} --mca mpi_yield_when_idle 1 {OPTIONS} '
              '{programs}/mpi_payload'),
        Ranks(f'mpirun --allow-run-as-root --oversubscribe -np 16 {OPTIONS} {{programs}}/mpi_payload', spread=False),
        Ranks(f'mpirun --allow-run-as-root --oversubscribe -np {RANKS} --mca mpi_yield_when_idle 1 {DATAGRAMS} '
              '{programs}/mpi_payload', transport='ud_verbs'),
        Ranks(f'mpirun --allow-run-as-root --oversubscribe -np {RANKS} --mca mpi_yield_when_idle 1 {FABRIC} '
              '{programs}/mpi_payload', transport=LIBFABRIC),
        Ranks(f'mpirun --allow-run-as-root --oversubscribe -np {RANKS} {{programs}}/mpi_payload', transport=''),
        *[Ranks(f'mpirun --allow-run-as-root --oversubscribe -np {count} --mca mpi_yield_when_idle 1 {OPTIONS} '
                '{programs}/mpi_collectives 3', spread=False) for count in (2, 5, 8, 16)],
        Ranks(f'oshrun --allow-run-as-root --oversubscribe -np 2 --mca spml ucx {OPTIONS} {{programs}}/shmem_payload',
              compiler='oshcc', spread=False),
        *[Ranks(f'oshrun --allow-run-as-root --oversubscribe -np {count} --mca spml ucx {options} '
                '-x SHMEM_SYMMETRIC_HEAP_SIZE=32M {programs}/shmem_payload', compiler='oshcc', spread=False, transport=transport)
          for count, options, transport in ((8, OPTIONS, 'rc_verbs'), (16, OPTIONS, 'rc_verbs'), (16, DATAGRAMS, 'ud_verbs'))],
        RefusedRanks('mpirun --allow-run-as-root --oversubscribe -np 2 --mca pml ob1 --mca btl openib,self '
                     '--mca btl_openib_allow_ib 1 {programs}/mpi_payload', refusal=Refusal(
                         'Debian builds openib with the connection manager udcm only, which refuses RoCE',
                         'BTLs attempted: +self'))]
