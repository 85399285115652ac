# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The HPC Challenge benchmark on four ranks of Open MPI, over `rc_verbs` only or `ud_verbs` only: transposed matrices, the Linpack
benchmark, random updates of memory, Fourier transforms, and messages of all lengths around rings. It checks its results
itself; the test reads them in `hpccoutf.txt`. Without `hpccinf.txt` in its folder it would compute for minutes:
`tests/clients/programs/hpccinf.txt` has small matrices.
"""
import os
import re
import shutil
from dataclasses import dataclass

from compiled import PROGRAMS
from host import Failure
from openmpi import DATAGRAMS, OPTIONS, RANKS, Ranks

PACKAGES = ['hpcc', 'openmpi-bin']
RESULTS = ['Success=1', 'MPIRandomAccess_LCG_Errors=0', 'MPIRandomAccess_Errors=0']
CHECKS = 6  # of matrices: five transposed, one solved


@dataclass(frozen=True)
class Benchmark(Ranks):

    def prepare(self, argv, top):
        shutil.copy(os.path.join(PROGRAMS, 'hpccinf.txt'), top)
        return [*argv[:1], '-wdir', top, *argv[1:]]

    def check_results(self, _ranks, _count, top):
        with open(os.path.join(top, 'hpccoutf.txt'), encoding='utf-8') as file:
            output = file.read()
        missing = [result for result in RESULTS if not re.search(f'^{result}$', output, re.MULTILINE)]
        if missing or 'FAILED' in output or len(re.findall(r'PASSED', output)) < CHECKS:
            raise Failure(f'without {missing} in:\n{output}')


ROWS = [Benchmark(f'mpirun --allow-run-as-root --oversubscribe -np {RANKS} --mca mpi_yield_when_idle 1 {options} hpcc',
                  transport=transport)
        for options, transport in ((OPTIONS, 'rc_verbs'), (DATAGRAMS, 'ud_verbs'))]
