# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Starts the ranks of Open MPI on two hosts that are network namespaces of one machine."""
import os
import shlex

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
