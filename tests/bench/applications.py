# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Measures of whole programs: OpenFOAM's icoFoam on two ranks of Open MPI, by urxe, TCP and shared memory; an alltoall of
more ranks than processors; and reads from a disk by iSCSI.
"""
import os
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager, nullcontext

from measure import SECONDS, Unavailable, installed, processor_seconds
from host import Failure, Program, succeed  # noqa: E402  by the path that measure has set
from iscsi_target import CONTROL, DISK, NAME, POOL, reserved_pages, serve_disk  # noqa: E402
from mpi import compile_ranks, write_agent  # noqa: E402

CELLS = 200  # in each direction; OpenFOAM's tutorial has 20
STEPS = 40
FOAM = '/usr/share/openfoam'
# The lid-driven cavity of OpenFOAM's tutorial, with more cells and a time step that fits them.
CASE = {
    'system/controlDict': f'''dictionary
        application icoFoam; startFrom startTime; startTime 0; stopAt endTime; endTime {STEPS * 1e-4}; deltaT 1e-4;
        writeControl timeStep; writeInterval {2 * STEPS}; writeFormat ascii; runTimeModifiable false;''',
    'system/fvSchemes': '''dictionary
        ddtSchemes { default Euler; } gradSchemes { default Gauss linear; }
        divSchemes { default none; div(phi,U) Gauss linear; } interpolationSchemes { default linear; }
        laplacianSchemes { default Gauss linear orthogonal; } snGradSchemes { default orthogonal; }''',
    'system/fvSolution': '''dictionary
        solvers { p { solver PCG; preconditioner DIC; tolerance 1e-6; relTol 0.05; } pFinal { $p; relTol 0; }
        U { solver smoothSolver; smoother symGaussSeidel; tolerance 1e-5; relTol 0; } }
        PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }''',
    'system/decomposeParDict': '''dictionary
        numberOfSubdomains 2; method simple; simpleCoeffs { n (2 1 1); delta 0.001; }''',
    'system/blockMeshDict': f'''dictionary
        scale 0.1; vertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 0.1) (1 0 0.1) (1 1 0.1) (0 1 0.1)); edges ();
        blocks (hex (0 1 2 3 4 5 6 7) ({CELLS} {CELLS} 1) simpleGrading (1 1 1));
        boundary (movingWall {{ type wall; faces ((3 7 6 2)); }}
        fixedWalls {{ type wall; faces ((0 4 7 3) (2 6 5 1) (1 5 4 0)); }}
        frontAndBack {{ type empty; faces ((0 3 2 1) (4 5 6 7)); }});''',
    'constant/transportProperties': 'dictionary nu 0.01;',
    '0/U': '''volVectorField dimensions [0 1 -1 0 0 0 0]; internalField uniform (0 0 0);
        boundaryField { movingWall { type fixedValue; value uniform (1 0 0); } fixedWalls { type noSlip; }
        frontAndBack { type empty; } }''',
    '0/p': '''volScalarField dimensions [0 2 -2 0 0 0 0]; internalField uniform 0;
        boundaryField { movingWall { type zeroGradient; } fixedWalls { type zeroGradient; }
        frontAndBack { type empty; } }''',
}
# Each rank prints its processor time, because the second host's Open MPI is no child of mpirun.
RANK = ['bash', '-c', '"$@"; status=$?; times; exit $status', 'rank', 'icoFoam', '-parallel', '-case']
OPTIONS = {
    'urxe': '--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=rc_v,self '
            '-x UCX_NET_DEVICES=urxe0:1',
    'tcp': '--mca pml ob1 --mca btl tcp,self',
    'vader': '--mca pml ob1 --mca btl vader,self',
    'no options': '',
    'no options, urxe run': '',
}


def write_case(folder):
    for path, text in CASE.items():
        kind, rest = text.split(maxsplit=1)
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='ascii') as file:
            file.write(f'FoamFile {{ version 2.0; format ascii; class {kind}; object {os.path.basename(path)}; }}\n'
                       f'{rest}\n')


def seconds_of_ranks(output):
    """The sum of the times that RANK prints, as 0m7.120s 0m0.310s, of bash and of its child."""
    times = re.findall(r'(\d+)m(\d+\.\d+)s', output)
    if len(times) != 2 * 2 * 2:
        raise Failure(f'the ranks have not told their times: {output}')
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in times)


@contextmanager
def load(cpus):
    """
    A process on each processor that computes until the end of the block. Both are in one session, as the ranks are: the
    kernel divides a processor among sessions, if it has autogroups.
    """
    spin = 'for cpu; do taskset -c $cpu sh -c "while :; do :; done" & done; wait'
    others = Program(['sh', '-c', spin, 'sh', *map(str, cpus)], os.environ)
    try:
        yield
    finally:
        others.kill()


class Solver:
    """
    Runs of icoFoam on one host, or with a rank on each of two hosts. A run gives one figure of each kind. All runs must
    print the same residuals. With `loaded` a process that computes without end shares the processor of each rank.
    """

    def __init__(self, uplink=None, bind='core', loaded=False):
        self.uplink = uplink
        self.bind = bind
        self.loaded = loaded
        self.case = None
        self.residuals = None
        self.figures = {}

    def open(self, bench):
        """Makes the mesh, and divides it among two ranks."""
        if not shutil.which('icoFoam') or not shutil.which('mpirun'):
            raise Unavailable('OpenFOAM is not installed: ./dev bench --group applications does that')
        if self.case:
            return
        os.environ['WM_PROJECT_DIR'] = FOAM
        self.case = bench.stack.enter_context(tempfile.TemporaryDirectory(prefix='bench-'))
        write_case(self.case)
        for program in 'blockMesh', 'decomposePar':
            result = subprocess.run([program, '-case', self.case], capture_output=True, text=True, check=False)
            if result.returncode:
                raise Failure(f'{program}: {result.stdout}{result.stderr}')

    def ranks_elsewhere(self, bench, kind):
        """The options by which the second rank runs on the second host."""
        hosts, _, address = bench.ends(self.uplink)
        prefix = bench.prefixes(self.uplink)[0][1]
        other = address.rpartition('.')[0] + '.2'
        agent = write_agent(self.case, [*prefix, 'taskset', '-c', str(bench.cpus[1])])
        options = ['--host', f'{address}:1,{other}:1', '--mca', 'plm_rsh_agent', agent,
                   '--mca', 'btl_tcp_if_include', f'{address}/24']
        if kind == 'urxe':
            options += ['--mca', 'orte_launch_agent', f'{hosts[1].urxe} run --run-dir {hosts[1].run_dir} -- orted']
        return options

    def command(self, bench, kind):
        # By default Open MPI binds each rank to a core of its host. Two hosts share this machine's cores, so taskset
        # binds their ranks.
        bind = 'none' if self.uplink else self.bind
        elsewhere = self.ranks_elsewhere(bench, kind) if self.uplink else []
        argv = ['mpirun', '--allow-run-as-root', '-np', '2', '--bind-to', bind, '-x', 'WM_PROJECT_DIR', *elsewhere,
                *OPTIONS[kind].split(), *RANK, self.case]
        if 'urxe' in kind:
            argv = bench.ends(self.uplink)[0][0].command(argv)
        pinned = ['taskset', '-c', str(bench.cpus[0])] if self.uplink else ['taskset', '-c', ','.join(map(str, bench.cpus))]
        return [*bench.prefixes(self.uplink)[0][0], *pinned, *argv]

    def daemons(self, bench):
        pids = {host.daemon_pid() for host in bench.ends(self.uplink)[0]} - {None}
        return sum(processor_seconds(pid) for pid in pids)

    def solve(self, bench, kind):
        self.open(bench)
        host = bench.ends(self.uplink)[0][0]
        argv = self.command(bench, kind)
        used = self.daemons(bench)
        with load(bench.cpus) if self.loaded else nullcontext():
            start = time.monotonic()
            program = Program(argv, host.environment | {'WM_PROJECT_DIR': FOAM})
            succeed(program, SECONDS)
            seconds = time.monotonic() - start
        self.compare(program.output())
        return {'wall clock': seconds,
                'CPU seconds': seconds_of_ranks(program.output()) + self.daemons(bench) - used}

    def compare(self, output):
        residuals = re.findall(r'^.* residual = .*$', output, re.MULTILINE)
        self.residuals = self.residuals or residuals
        if not residuals or residuals != self.residuals:
            raise Failure(f'icoFoam has other residuals than in the first run: {output}')

    def take(self, bench, kind, key):
        """A figure that no earlier call has used."""
        figures = self.figures.setdefault(kind, {})
        if key not in figures:
            figures.update(self.solve(bench, kind))
        return figures.pop(key)


class Solved:
    """The wall clock or the CPU seconds of a run."""

    def __init__(self, solver, kind, key):
        self.solver = solver
        self.arguments = kind, key

    def measure(self, bench):
        return self.solver.take(bench, *self.arguments)


class Alltoall:
    """
    The mean time of an alltoall of 64 KiB for each pair of ranks, all on one host, while a process on each processor
    computes without end.
    """

    REPETITIONS = 10

    def __init__(self, ranks, kind):
        self.ranks = ranks
        self.kind = kind

    def measure(self, bench):
        if not shutil.which('mpirun') or not shutil.which('mpicc.openmpi'):
            raise Unavailable('Open MPI is not installed: ./dev bench --group applications does that')
        host = bench.ends(None)[0][0]
        argv = ['mpirun', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', '-np', str(self.ranks),
                '--mca', 'mpi_yield_when_idle', '1', *OPTIONS[self.kind].split()]
        with tempfile.TemporaryDirectory(prefix='bench-') as top, load(bench.cpus):
            argv += [compile_ranks(top, 'mpi_collectives'), str(self.REPETITIONS), 'Alltoall']
            program = Program(host.command(argv) if self.kind == 'urxe' else argv, host.environment)
            succeed(program, SECONDS)
        return float(re.search(r'^Alltoall 65536 (.+)$', program.output(), re.MULTILINE)[1]) * 1e-6


class DiskReads:
    """READs of 4 KiB per second of iscsi-perf, 32 at a time, from a target on the same host: over iSER, or over TCP without urxe."""

    TIME = 2  # seconds

    def __init__(self, iser):
        self.iser = iser

    def measure(self, bench):
        for program in 'tgtd', 'iscsi-perf':
            installed(program)
        with reserved_pages() as given, tempfile.TemporaryDirectory(prefix='bench-') as top:
            if self.iser and not given:
                raise Unavailable('the kernel gives no huge pages')
            path = os.path.join(top, 'disk')
            with open(path, 'wb') as file:
                file.truncate(DISK)
            return self.perf(bench, path)

    def perf(self, bench, path):
        host = bench.ends(None)[0][0]
        # libiscsi 1.19 takes the content of its fresh memory for a pointer.
        pinned = [['taskset', '-c', str(cpu), 'env', '-u', 'MALLOC_PERTURB_'] for cpu in bench.cpus]
        start = host.start if self.iser else lambda *argv: host.spawn(argv)
        target = serve_disk(host, start, [*pinned[0], 'tgtd', '-f', '-C', CONTROL, *POOL.split()], path,
                            'iser' if self.iser else 'iscsi')
        try:
            client = start(*pinned[1], 'iscsi-perf', '-i', f'{NAME}:initiator', '-t', str(self.TIME),
                           f'iscsi://127.0.0.1:3260/{NAME}:disk/1{"?iser" if self.iser else ""}')
            try:
                succeed(client, SECONDS)
                return float(re.findall(r'iops average (\d+)', client.output())[-1])
            finally:
                client.kill()
        finally:
            target.kill()
