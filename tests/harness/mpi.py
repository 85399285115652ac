# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Compiles the tests' MPI programs, and starts ranks of Open MPI on two hosts that are network namespaces of one machine."""
import os
import shlex
import subprocess

from host import Failure

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../clients/programs')

# Open MPI takes two hosts with one name for one host, so the second one gets its own UTS namespace and name.
AGENT = '''#!/bin/sh
shift
unset URXE_DIR URXE_JOB LD_PRELOAD
exec {prefix} unshare --uts sh -c 'hostname other && exec sh -c "$*"' sh "$@"
'''


def write_agent(top, prefix):
    """Writes the script that mpirun starts instead of ssh to run ranks on the host of a command line prefix."""
    path = os.path.join(top, 'agent')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(AGENT.format(prefix=shlex.join(prefix)))
    os.chmod(path, 0o755)
    return path


def compile_ranks(top, name='mpi_payload', compiler='mpicc.openmpi'):
    program = os.path.join(top, name)
    made = subprocess.run([compiler, '-O2', '-w', '-o', program, os.path.join(PROGRAMS, f'{name}.c')],
                          capture_output=True, text=True, check=False)
    if made.returncode:
        raise Failure(f'{compiler}: {made.stderr}')
    return program
