# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The process of a daemon's only vhost: port."""
import contextlib
import os

from host import until


def status(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        return dict(line.rstrip('\n').split(':\t', 1) for line in file)


def port_process(host):
    """The process of the daemon's only vhost: port; None between two of them."""
    for name in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            with open(f'/proc/{name}/cmdline', encoding='utf-8') as file:
                words = file.read().split('\0')
            # A helper of the daemon starts the process.
            if '--vhost-port' in words and int(status(status(name)['PPid'])['PPid']) == host.daemon_pid():
                return int(name)
    return None


def port(host, spec='vhost:'):
    """The entry of the host's only port of that kind in `urxe show port`."""
    found, = [port for port in host.show('port')['ports'] if port['name'].startswith(spec)]
    return found


def wait_restarted(host, restarts):
    """Waits until the daemon has started the process again at least that many times, and it serves the port."""
    until(30, lambda: host.daemon.errors().count('serves the port') >= max(restarts, port(host)['device']['restarts']) and
          port_process(host),
          lambda: f'no restart {restarts}: {port(host)}\n{host.daemon.describe()}')
