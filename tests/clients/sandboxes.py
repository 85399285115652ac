# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Programs in namespaces, containers and services with fewer rights. Commands that name `urxe run` start there themselves.

- `urxe run` needs `/proc`. The daemon that it starts needs `/sys` and a directory for its sockets: `/run/urxe` of root,
  or `$XDG_RUNTIME_DIR/urxe`, or `/tmp/urxe-UID`.
- A program that `urxe run` has started may enter other namespaces if it sees the run directory at the same path there.
- Processes in two user namespaces exchange packets by `urxed`, and copy nothing from memory to memory.
- A systemd service works with NoNewPrivileges, PrivateTmp, ProtectSystem=strict, MemoryDenyWriteExecute and
  SystemCallFilter=@system-service, if `urxed` runs outside of the service. PrivateUsers= separates user namespaces.
  A service whose own `urxe run` starts the daemon needs `SystemCallFilter=@system-service chroot iopl mincore seccomp`;
  with SystemCallErrorNumber=EPERM, `seccomp` is enough. RestrictAddressFamilies must contain AF_UNIX.
- `hardened.py` is the tests' own: it installs the filters of systemd, because the tests run without systemd.
- The row with `setpriv` and `bwrap` is a rootless container of the user nobody. It has new user, mount, network, PID, IPC
  and UTS namespaces, and its own root directory.
- cron starts programs with four variables only: write the full path of `urxe`.
- `ld.so` preloads nothing into setuid and static programs. `urxe run` refuses setuid programs. It starts static programs
  without the device, and says so.
"""
from debuggers import Silent, pingpong, prints
from row import Refusal, Row

PACKAGES = ['bubblewrap', 'util-linux', 'systemd', 'libseccomp2']
HARDENED = '/usr/bin/python3 {programs}/hardened.py'
SYSTEM = ('--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 '
          '--ro-bind /etc /etc --ro-bind {installed} {installed}')
# A root directory with nothing but the system's programs and urxe.
CONTAINER = f'bwrap --unshare-all {SYSTEM} --dev /dev'
NOBODY = 'setpriv --reuid=65534 --regid=65534 --clear-groups'
CRON = 'env -i HOME=/root LOGNAME=root SHELL=/bin/sh PATH=/usr/bin:/bin'
# PrivateTmp=yes and ProtectSystem=strict.
STRICT = 'bwrap --ro-bind / / --tmpfs /tmp --bind {installed} {installed} --dev /dev'


def memory(command, **options):
    return Silent(f'{command} {{programs}}/fresh_memory {{gid}}', bare=True, check=prints('all is as it was sent'),
                    **options)


def talk(command):
    return pingpong(command, prints('100 iters in'), bare=True)


def refused(command, reason, message):
    return Row(f'{command} ibv_devices', bare=True, refusal=Refusal(reason, message, status=2))


ROWS = [
    talk('{run} unshare --map-root-user'),
    talk('unshare --map-root-user {run}'),
    talk('{run} unshare --mount'),
    talk('{run} unshare --pid --fork --mount-proc'),
    memory('{run} unshare --net'),
    memory('unshare --map-root-user --net {own}'),
    talk("{run} unshare --mount sh -c 'mount --rbind / /mnt && exec chroot /mnt \"$@\"' sh"),
    talk('{run} bwrap --ro-bind / / --dev /dev --proc /proc --unshare-user --unshare-pid --unshare-ipc'),
    memory(f'{CONTAINER} --proc /proc --ro-bind /sys /sys {{default}}'),
    memory(f'{NOBODY} {CONTAINER} --proc /proc --ro-bind /sys /sys {{default}}'),
    refused(f'{CONTAINER} --proc /proc {{default}}', 'DPDK looks processors up in /sys',
            'DPDK cannot start without /sys/devices/system/cpu: mount /sys'),
    refused(f'{CONTAINER} --proc /proc --ro-bind /sys/devices /sys/devices --ro-bind /sys/class /sys/class {{default}}',
            'DPDK looks modules up in /sys, of which systemd-nspawn mounts a part', 'DPDK cannot start without /sys/module: mount /sys'),
    refused(f'{CONTAINER} {{default}}', '`urxe run` finds its library by /proc', '/proc is not mounted'),
    talk('{run} setpriv --no-new-privs --inh-caps=-all --bounding-set=-all'),
    talk(f'{{run}} {HARDENED}'),
    talk(f'{{run}} {STRICT} {HARDENED} --errno'),
    memory(f'{HARDENED} --also chroot --also iopl --also mincore --also seccomp {{own}}'),
    memory(f'{HARDENED} --errno --also seccomp {{own}}'),
    refused(f'{HARDENED} {{own}}', 'urxed calls functions outside of @system-service',
            r'killed by signal 31 \(Bad system call\)'),
    refused(f'{HARDENED} --errno {{own}}', 'urxed restricts its own system calls',
            r'cannot restrict its own system calls, which needs seccomp\(2\)'),
    talk(f'{CRON} {{run}}'),
]
