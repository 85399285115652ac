# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Four ranks of the same program as Open MPI's, on one host. `MPIR_CVAR_NOLOCAL=1` forbids MPICH to send them through shared
memory.
"""
from openmpi import UCX, Ranks

PACKAGES = ['mpich', 'libmpich-dev']

ROWS = [Ranks(f'env MPIR_CVAR_NOLOCAL=1 {" ".join(UCX)} mpiexec.mpich -np 4 {{programs}}/mpi_payload', compiler='mpicc.mpich',
              spread=False)]
