# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Starts a urxed in a run directory of its own, and programs on its device."""
import collections
import ipaddress
import json
import os
import pwd
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

START_SECONDS = 20
# The tests' timeouts are for an idle machine and only end programs that hang. With 20 runnable processes for
# each CPU everything takes longer, without an error.
BUSY = 6
SKIP = 77  # meson's exit status of a skipped test
# Signals by which a defective program ends.
CRASH_SIGNALS = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGSYS)
# Hosts that were not ended yet; main() ends them, such as those whose __init__ raised.
started_hosts = set()
# Sockets with abstract names, which exist once in a network namespace. The oldest one is closed when another one is added.
port_claims = collections.deque(maxlen=64)
# What describes the programs that have crashed in a test that noticed nothing; main() reports them.
crashed_programs = []


class Failure(Exception):
    """A failed check; the text describes it."""


class Program:
    """A started program in a process group of its own, with its output in files."""

    def __init__(self, argv, environment, stdin=subprocess.DEVNULL):
        self.argv = argv
        self.may_crash = False
        self.files = [tempfile.TemporaryFile() for _ in range(2)]
        self.process = subprocess.Popen(argv, stdin=stdin, stdout=self.files[0],
                                        stderr=self.files[1], env=environment,
                                        start_new_session=True)

    def wait(self, seconds):
        """Returns the exit status as subprocess does. Kills a program that hangs, and raises Failure."""
        try:
            return self.process.wait(seconds * BUSY)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f'still running after {seconds * BUSY} s: {self.describe()}') from None

    def kill(self, number=signal.SIGKILL):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass
        if number == signal.SIGKILL:
            self.process.wait()
        if number == signal.SIGSTOP:
            wait_stopped(self.process.pid)

    def running(self):
        return self.process.poll() is None

    def crashed(self):
        return not self.may_crash and self.process.poll() in [-number for number in CRASH_SIGNALS]

    def output(self):
        return self.read(0)

    def errors(self):
        return self.read(1)

    def read(self, which):
        # pread: the program shares the file position, which must not change.
        descriptor = self.files[which].fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors='replace')

    def describe(self):
        return f'{" ".join(self.argv)}\n{self.output()}{self.errors()}'


class Host:
    """
    Copies of a build's programs, which every user can run from any directory, and a run directory. With
    daemon=False `urxe run` starts a private daemon, as it does for users.
    """

    def __init__(self, build, user=None, daemon=True, prefix=(), arguments=()):
        self.user = user
        self.prefix = list(prefix)
        self.programs = []
        self.daemon = None
        self.arguments = ()
        self.top = tempfile.mkdtemp(prefix='smoke-')
        self.run_dir = os.path.join(self.top, 'run')
        started_hosts.add(self)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(('URXE_', 'LD_', 'XDG_'))}
        for path in ('tools/urxe', 'tools/urxed', 'verbs/liburxe.so', 'verbs/liburxe-outer.so',
                     'tests/smoke/verbs_check', 'netdev/xdp/roce.bpf.o'):
            copy = os.path.join(self.top, path)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            if os.path.exists(os.path.join(build, path)):  # the last one is optional
                shutil.copy2(os.path.join(build, path), copy)
        self.urxe = os.path.join(self.top, 'tools/urxe')
        self.verbs_check = os.path.join(self.top, 'tests/smoke/verbs_check')
        os.mkdir(self.run_dir, 0o700)
        os.chmod(self.top, 0o755)
        if user and os.getuid() == 0:
            entry = pwd.getpwnam(user)
            os.chown(self.run_dir, entry.pw_uid, entry.pw_gid)
            self.prefix += ['setpriv', f'--reuid={entry.pw_uid}', f'--regid={entry.pw_gid}',
                            '--clear-groups', '--inh-caps=-all', '--no-new-privs']
            self.environment.update(HOME='/', USER=user)
        if daemon:
            self.start_daemon(arguments)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        crashed = [program.describe() for program in self.programs if program.crashed()]
        if self.daemon and kind:
            print(f'urxed {"runs" if self.daemon.running() else "has ended"}; its {listing(self.run_dir)}')
        for program in self.programs:
            program.kill()
        if self.daemon and kind:
            print(f'urxed said:\n{self.daemon.errors()}')
        pid = self.daemon_pid()
        if self.daemon:
            self.daemon.kill()
        if pid:
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.top, ignore_errors=True)
        started_hosts.discard(self)
        if not kind:
            crashed_programs.extend(crashed)

    def start_daemon(self, arguments=None):
        """Starts a daemon; without arguments, with those of the daemon before."""
        if arguments is not None:
            self.arguments = arguments
        self.daemon = self.spawn([os.path.join(self.top, 'tools/urxed'), '--foreground',
                                  '--run-dir', self.run_dir, *self.arguments])
        until(START_SECONDS, lambda: self.answers() or not self.daemon.running(),
              lambda: f'no answer: {self.daemon.describe()}')
        if not self.daemon.running():
            raise Failure(f'ended at its start: {self.daemon.describe()}')

    def answers(self):
        """Whether a daemon listens in the run directory."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            try:
                client.connect(os.path.join(self.run_dir, 'urxed.sock'))
            except OSError:
                return False
        return True

    def kill_private_daemon(self):
        """Kills the daemon that listens in the run directory, and waits for its end."""
        pid = self.daemon_pid()
        gone = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([gone], [], [])
        os.close(gone)

    def daemon_pid(self):
        """The pid of the daemon that listens in the run directory, or None."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            try:
                client.connect(os.path.join(self.run_dir, 'urxed.sock'))
            except OSError:
                return None
            peer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return int.from_bytes(peer[:4], 'little') or None

    def spawn(self, argv, stdin=subprocess.DEVNULL):
        program = Program(self.prefix + list(argv), self.environment, stdin)
        self.programs.append(program)
        return program

    def gid(self, address, kind='RoCE v2'):
        """The index of an address in the GID table."""
        wanted = ipaddress.ip_address(address)
        if wanted.version == 4:
            wanted = ipaddress.ip_address(f'::ffff:{address}')
        info = self.run('ibv_devinfo', '-v', '-d', 'urxe0')
        for index, gid, found in re.findall(r'GID\[ *(\d+)\]:\s+(\S+), (.*\S)', info):
            if found == kind and ipaddress.ip_address(gid) == wanted:
                return int(index)
        raise Failure(f'no GID {address}, {kind}:\n{info}')

    def show(self, *topic):
        """
        The JSON output of `urxe show` for a topic or for all. Repeats the command if urxed or a process was too busy to
        answer.
        """
        for _ in range(BUSY):
            result = subprocess.run([*self.prefix, self.urxe, 'show', '--json', '--run-dir',
                                     self.run_dir, '--wait', '1s', *topic],
                                    capture_output=True, text=True, timeout=20 * BUSY,
                                    env=self.environment, check=False)
            if not re.fullmatch(r'(urxe: .* does not answer\n)+(urxe: these processes .*\n)?', result.stderr):
                break
        if result.returncode or result.stderr:
            raise Failure(f'urxe show --json {topic}: status {result.returncode}, {result.stderr}')
        return json.loads(result.stdout)

    def counter(self, of, name):
        """A counter of `urxe show counter`."""
        return next(row['value'] for row in self.show('counter')['counters']
                    if row['of'] == of and row['name'] == name)

    def rate_in_sysfs(self):
        with open(os.path.join(self.run_dir, 'sys/class/infiniband/urxe0/ports/1/rate'), encoding='ascii') as file:
            return file.read().strip()

    def expect_rate(self, wanted):
        """Waits until sysfs has that rate of urxe0. ibv_query_port must report the same to a program that starts then."""
        until(10, lambda: self.rate_in_sysfs() == wanted, lambda: f'{self.rate_in_sysfs()} instead of {wanted}')
        queried = self.run('ibv_devinfo', '-v', '-d', 'urxe0')
        lanes, speed = (re.search(pattern, queried).group(1) for pattern in (r'active_width:\s+(\d+)X',
                                                                             r'active_speed:\s+(\S+) Gbps'))
        if not wanted.startswith(f'{int(lanes) * float(speed):g} Gb/sec ({lanes}X '):
            raise Failure(f'{wanted} in sysfs, but {lanes} lanes of {speed} Gb/s by ibv_query_port')

    def command(self, argv):
        return [self.urxe, 'run', '--run-dir', self.run_dir, '--', *argv]

    def add_path(self, folder):
        """Adds a folder to PATH, so that tests start its programs by name, as Debian's."""
        self.environment['PATH'] = f'{folder}:{self.environment["PATH"]}'

    def start(self, *argv, stdin=subprocess.DEVNULL):
        """Starts a program on the device."""
        return self.spawn(self.command(argv), stdin)

    def run(self, *argv, seconds=30):
        """Runs a program on the device, which must succeed; returns its output."""
        program = self.start(*argv)
        succeed(program, seconds)
        return program.output()


class Pair:
    """Server and client of one program."""

    def __init__(self, server_host, client_host, argv, gid=1, address='127.0.0.1', device='urxe0',
                 client_gid=None, stdin=subprocess.DEVNULL):
        self.port = free_port()
        # The option of the GID index is -g in the pingpong examples and -x in perftest.
        index = '-x' if any(word.startswith('ib_') for word in argv) else '-g'
        argv = [*argv, '-d', device, '-p', str(self.port), index]
        self.server = server_host.start(*argv, str(gid))
        wait_listening(self.server, self.port)
        if client_gid is None:
            client_gid = gid
        self.client = client_host.start(*argv, str(client_gid), address, stdin=stdin)

    def finish(self, seconds):
        """Waits for both, which must succeed; returns the output of server and client."""
        until(seconds, lambda: not (self.server.running() and self.client.running()),
              lambda: f'hangs:\n{self.server.describe()}\n{self.client.describe()}')
        for one, other in ((self.client, self.server), (self.server, self.client)):
            try:
                succeed(one, 10)
            except Failure as failure:
                other.kill()
                raise Failure(f'{failure}\nthe other side: {other.describe()}') from None
        return self.server.output(), self.client.output()

    def kill(self):
        self.server.kill()
        self.client.kill()


def listing(directory):
    try:
        return f'{directory} has {" ".join(sorted(os.listdir(directory)))}'
    except OSError as error:
        return f'{directory} cannot be listed: {error.strerror}'


def succeed(program, seconds):
    status = program.wait(seconds)
    if status:
        raise Failure(f'exit status {status}: {program.describe()}')


def until(seconds, condition, complaint):
    """Waits for a condition; raises Failure with complaint() after the time."""
    end = time.monotonic() + seconds * BUSY
    while not condition():
        if time.monotonic() > end:
            raise Failure(complaint())
        time.sleep(0.02)


def size_of(path):
    """A file's size in bytes; 0 if the file does not exist: a program may make it later than its start."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def open_files(pid):
    """The targets of a process's descriptors; empty if the process has ended."""
    links = []
    try:
        for name in os.listdir(f'/proc/{pid}/fd'):
            try:
                links.append(os.readlink(f'/proc/{pid}/fd/{name}'))
            except FileNotFoundError:
                pass  # closed since listdir
    except FileNotFoundError:
        pass
    return links


def wait_stopped(pid):
    """Waits until SIGSTOP has stopped every thread of a process."""
    def stopped():
        try:
            for task in os.listdir(f'/proc/{pid}/task'):
                with open(f'/proc/{pid}/task/{task}/stat', encoding='utf-8') as stat:
                    # The state follows the name, which may contain any character: stopped, or ended.
                    if stat.read().rpartition(')')[2].split()[0] not in 'TZX':
                        return False
        except FileNotFoundError:
            return False  # a thread has ended; the caller tries again
        return True

    until(10, stopped, lambda: f'process {pid} does not stop')


def free_port():
    """A free TCP port below the range of ephemeral ports, which no other test chooses before a server can bind it."""
    while True:
        port = random.randrange(20000, 32000)
        claim = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            try:
                claim.bind(f'\0urxe-test-port-{port}')
                probe.bind(('', port))
            except OSError:
                claim.close()
                continue
        port_claims.append(claim)
        return port


def wait_listening(program, port):
    """Waits until a program listens, according to /proc: a connection would disturb the program."""
    pattern = re.compile(rf'^ *\d+: [0-9A-F]+:{port:04X} [0-9A-F]+:0000 0A ', re.MULTILINE)

    def listening():
        if not program.running():
            raise Failure(f'ended before it listened: {program.describe()}')
        pid = program.process.pid
        for name in ('tcp', 'tcp6'):
            try:
                with open(f'/proc/{pid}/net/{name}') as table:
                    if pattern.search(table.read()):
                        return True
            except OSError:
                pass
        return False

    until(START_SECONDS, listening, lambda: f'does not listen: {program.describe()}')


def main(test):
    """
    Runs a test function and exits with meson's status. After SIGTERM, by which meson ends a test that takes too long, the
    test ends its programs, if the 0.5 s until SIGKILL suffice.
    """
    def time_out(*_):
        print('FAILED: timed out', flush=True)
        raise SystemExit(1)

    signal.signal(signal.SIGTERM, time_out)
    try:
        try:
            test()
        finally:
            for host in list(started_hosts):
                host.__exit__(*sys.exc_info())
        if crashed_programs:
            raise Failure(f'crashed: {crashed_programs[0]}')
    except Failure as failure:
        # The result is the last line, because meson shows the end of a long log.
        print(f'{failure}\nFAILED: {str(failure).splitlines()[0]}')
        raise SystemExit(1) from None


def skip(reason):
    print(f'skipped: {reason}')
    raise SystemExit(SKIP)
