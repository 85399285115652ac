# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Images of virtual machines with UCX, Open MPI or pyverbs of Debian, which open plug-ins, modules and texts at run time.
"""
import os

from vm import VmImage

# The tests' own programs for such software.
OWN_PROGRAMS = os.path.realpath(os.path.join(os.path.dirname(__file__), '../clients/programs'))
LIBRARIES = '/usr/lib/*-linux-gnu'
# Parts of Python that no test needs, and what only compilers need.
UNNEEDED = ('include', 'pkgconfig', 'test', 'idlelib', 'tkinter', 'lib2to3', 'ensurepip', 'pydoc_data')


class UcxImage(VmImage):
    PROGRAMS = [*VmImage.PROGRAMS, 'ucx_info', 'ucx_perftest']
    FOLDERS = [f'{LIBRARIES}/ucx']


class MpiImage(VmImage):
    """Open MPI finds its files below the folder of mpirun and orted, whose own path is in /usr/bin."""
    PROGRAMS = [*VmImage.PROGRAMS, 'mpirun', 'orted']
    FOLDERS = [*UcxImage.FOLDERS, f'{LIBRARIES}/openmpi', f'{LIBRARIES}/pmix2', '/usr/share/openmpi', '/etc/openmpi']
    WITHOUT = UNNEEDED


class PythonImage(VmImage):
    PROGRAMS = [*VmImage.PROGRAMS, 'python3']
    FOLDERS = ['/usr/lib/python3.[0-9]*', '/usr/lib/python3/dist-packages/pyverbs', '/usr/share/doc/rdma-core/tests',
               OWN_PROGRAMS]
    WITHOUT = UNNEEDED


class UcxAndPythonImage(PythonImage):
    PROGRAMS = [*PythonImage.PROGRAMS, 'ucx_perftest']
    FOLDERS = [*PythonImage.FOLDERS, *UcxImage.FOLDERS]
