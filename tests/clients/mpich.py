# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Ranks of the same programs as Open MPI's, on one host. `MPIR_CVAR_NOLOCAL=1` forbids MPICH to send them through shared
memory. A collective whose long messages are not contiguous, as MPI_Gather with a root other than 0, ends in "Message truncated"
over UCX's `rc_v`, as if MPICH 4.0.2 unpacked whole elements only, and UCX's fragments cut an element in two.
`UCX_IB_SEG_SIZE=8201` avoids it; of 8200 to 8207 no other size does. `ud_v` needs no such setting.
Without any of these options MPICH sends messages between ranks of one host through shared memory, and only messages that connect
the ranks go by urxe0.
"""
from openmpi import UCX, Ranks
from ucx import check_shared_memory

PACKAGES = ['mpich', 'libmpich-dev']

WHOLE_ELEMENTS = 'UCX_IB_SEG_SIZE=8201'


class LocalRanks(Ranks):
    """Ranks without options, on one host."""

    def check_way(self, ranks, at, count, elsewhere):
        check_shared_memory(ranks)


ROWS = [Ranks(f'env MPIR_CVAR_NOLOCAL=1 {" ".join([*UCX, *more])} mpiexec.mpich -np {count} {{programs}}/{program}',
              compiler='mpicc.mpich', spread=False)
        for count, program, *more in ((4, 'mpi_payload'), *[(count, 'mpi_collectives 3', WHOLE_ELEMENTS)
                                                            for count in (2, 5, 8, 16)])]
ROWS.append(LocalRanks('env URXE_LOG=info mpiexec.mpich -np 2 {programs}/mpi_payload', compiler='mpicc.mpich', spread=False))
