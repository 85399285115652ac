#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The device of one run directory as the HCA of another one: detection, identity, and changes."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from documented import check_document  # noqa: E402
from host import BUSY, Failure, Host, main, until  # noqa: E402
from nested import OUTER, Nested, set_port, without_hca, write_port  # noqa: E402
from rdmacm import end_well  # noqa: E402


def expect(what, found, wanted):
    if found != wanted:
        raise Failure(f'{what}: {found!r}, not {wanted!r}')


def run(host, *command):
    """Output of a program within `urxe run` of that host."""
    result = subprocess.run([host.urxe, 'run', '--run-dir', host.run_dir, '--', *command],
                            capture_output=True, text=True, timeout=30 * BUSY,
                            env=host.environment, check=False)
    if result.returncode:
        raise Failure(f'{command} ended with {result.returncode}: {result.stderr}')
    return result.stdout


def show(host, topic):
    found = json.loads(subprocess.run([host.urxe, 'show', topic, '--json', '--run-dir', host.run_dir],
                                      capture_output=True, text=True, timeout=20 * BUSY,
                                      env=host.environment, check=True).stdout)
    check_document('show', found)
    return found


def hca_of(host):
    """The only RDMA device in the host's report."""
    found = show(host, 'device')['hca']
    if len(found) != 1:
        raise Failure(f'not one HCA: {found}')
    return found[0]


def check_software(build):
    """A host without an RDMA device."""
    with Host(build) as host:
        text = subprocess.run([host.urxe, 'show', 'device', '--run-dir', host.run_dir],
                              capture_output=True, text=True, timeout=20 * BUSY,
                              env=host.environment, check=True).stdout
        if not os.path.exists('/sys/class/infiniband'):
            expect('device', text, 'device       urxe0\nbacked by    software\n')


def check_nested(build):
    """A daemon within `urxe run` uses the device of the outer one, and follows its state."""
    with Host(build, arguments=('--device', 'hca0')) as outer, Host(build, daemon=False) as inner:
        inner.programs.append(outer.spawn([
            outer.urxe, 'run', '--run-dir', outer.run_dir, '--',
            outer.urxe, 'run', '--run-dir', inner.run_dir, '--hca', 'hca0', '--',
            'sh', '-c', 'ibv_devices && exec sleep 1000']))
        until(20, inner.answers, lambda: f'no inner daemon: {inner.programs[0].describe()}')
        found = hca_of(inner)
        expect('HCA', {key: found[key] for key in found if key != 'firmware'}, {
            'device': 'hca0', 'port': 1, 'kind': 'RoCE', 'driver': 'urxe', 'state': 'active',
            'mtu': 4096, 'speed_gbps': 10.0, 'interface': 'lo', 'uplink': None,
            'roce': 'v1, v2', 'used': True, 'reason': None})
        for key in ('mac', 'mtu', 'gids'):
            expect(key, show(inner, 'host')['host'][key], show(outer, 'host')['host'][key])
        check_programs(outer, inner)
        for state, up, owner in ('1: DOWN', False, ''), ('4: ACTIVE', True, 'hca0'):
            set_port(outer, inner, state)
            expect(f'{state}: used', hca_of(inner)['used'], True)
            expect(f'{state}: up', show(inner, 'host')['host']['up'], up)
            with open(os.path.join(inner.run_dir, 'sys/hca'), encoding='ascii') as file:
                expect(f'{state}: HCA that makes connections by address', file.readline().strip(), owner)
        with without_hca(outer, inner):
            pass


def expect_devices(info, names):
    """ibv_devinfo has printed these devices, with different GUIDs."""
    expect('devices', sorted(line.split()[1] for line in info.splitlines() if line.startswith('hca_id')), names)
    expect('different GUIDs', len({line.split()[1] for line in info.splitlines() if 'node_guid' in line}), len(names))


def check_programs(outer, inner):
    """A program under both run directories has both devices."""
    expect_devices(run(outer, outer.urxe, 'run', '--run-dir', inner.run_dir, '--', 'ibv_devinfo'), ['hca0', 'urxe0'])


def check_levels(build):
    """Of three run directories within each other, a program has the devices of the innermost two, with their variables."""
    with Host(build, arguments=('--device', 'first')) as first, Host(build, daemon=False) as second, \
            Host(build, daemon=False) as third:
        # The library of the first device has URXE_LOG, and no other one.
        first.environment['URXE_LOG'] = 'info'
        nested = [first.urxe, 'run', '--run-dir', second.run_dir, '--device', 'second', '--', 'env', '-u', 'URXE_LOG',
                  first.urxe, 'run', '--run-dir', third.run_dir, '--device', 'third', '--']
        expect_devices(run(first, *nested, 'ibv_devinfo'), ['second', 'third'])
        # Another library that is preloaded, such as an allocator, changes nothing.
        ahead = ['sh', '-c', 'LD_PRELOAD=libm.so.6:$LD_PRELOAD exec "$@"', 'sh']
        expect_devices(run(first, *ahead, *nested[:-7], *ahead, *nested[-7:], 'ibv_devinfo'), ['second', 'third'])
        variables = run(first, *nested, 'env').splitlines()
        expect('variables', sorted(line for line in variables if line.startswith(('URXE_DIR=', 'URXE_OUTER_'))),
               [f'URXE_DIR={third.run_dir}', f'URXE_OUTER_DIR={second.run_dir}'])


def check_strangers(build):
    """A daemon that runs already does not know the device of an outer run directory; the user is told."""
    with Host(build, arguments=('--device', 'outer0')) as outer, Host(build) as inner:
        result = subprocess.run(outer.command([outer.urxe, 'run', '--run-dir', inner.run_dir, '--', 'ibv_devinfo']),
                                capture_output=True, text=True, timeout=30 * BUSY, env=outer.environment, check=False)
        expect_devices(result.stdout, ['urxe0'])
        if not re.fullmatch(f'urxe: .* the device of {inner.run_dir}, and not that of {outer.run_dir}: .*\n', result.stderr):
            raise Failure(f'not one line about the outer device: {result.stderr}')


def start_rping(outer, inner, nested, *arguments):
    """Starts a server, and waits until it listens at the HCA."""
    server = outer.spawn([outer.urxe, 'run', '--run-dir', outer.run_dir, '--', *nested, 'rping', '-s', *arguments])
    inner.programs.append(server)
    until(10, lambda: 'listen' in [row['state'] for row in show(outer, 'id')['ids']],
          lambda: f'not at the HCA: {server.describe()}{show(outer, "id")}, {show(inner, "id")}')
    return server


def check_rdma_cm(build):
    """Connections by address are those of the HCA, and those by a wildcard listener, too."""
    with Host(build, arguments=('--device', 'hca0')) as outer, Host(build, daemon=False) as inner:
        nested = [outer.urxe, 'run', '--run-dir', inner.run_dir, '--hca', 'hca0', '--']
        run(outer, *nested, 'true')
        address = next(gid['gid'][len('::ffff:'):] for gid in show(outer, 'host')['host']['gids']
                       if gid['gid'].startswith('::ffff:'))
        for at in ['-a', address], []:
            server = start_rping(outer, inner, nested, '-C', '3', '-V', *at)
            run(outer, *nested, 'rping', '-c', '-a', address, '-C', '3', '-V')
            end_well(server, 30)
            until(10, lambda: not show(outer, 'id')['ids'], lambda: f'remains: {show(outer, "id")}')


def check_listeners(build):
    """A listener at an address of the HCA gets requests also after the HCA's port has become active, or gone down."""
    with Host(build, arguments=OUTER) as outer, Nested(build, outer) as inner:
        for before, after in ('1: DOWN', '4: ACTIVE'), ('4: ACTIVE', '1: DOWN'):
            set_port(outer, inner, before)
            server = inner.start('rping', '-s', '-a', '192.0.2.20', '-C', '3', '-V')
            until(10, lambda: all('listen' in [row['state'] for row in show(host, 'id')['ids']] for host in (outer, inner)),
                  lambda s=server: f'not at both: {s.describe()}{show(outer, "id")}, {show(inner, "id")}')
            set_port(outer, inner, after)
            client = inner.start('rping', '-c', '-a', '192.0.2.20', '-C', '3', '-V')
            end_well(client, 30)
            end_well(server, 30)


def check_mistakes(build):
    """Wrong values of the options."""
    with Host(build, daemon=False) as host:
        for arguments, error in (
                (('--hca', 'a/b'), 'urxed: hca a/b is neither auto, off, nor a device with an '
                                   'optional port; examples: mlx5_0, mlx5_0:2'),
                (('--device', '..'), "urxed: device .. is not a valid device name: letters, digits, "
                                     "'_', '-' and '.', at most 63")):
            result = subprocess.run([host.urxe, 'run', '--run-dir', host.run_dir, *arguments, '--',
                                     'true'], capture_output=True, text=True, timeout=20 * BUSY,
                                    env=host.environment, check=False)
            expect('status', result.returncode, 2)
            expect('error', result.stderr.strip(), error)


# Files of the kernel's devices of other kinds: node type and link layer.
OTHERS = {'ib0': ('1: CA', 'InfiniBand', 'InfiniBand'), 'iw0': ('4: RNIC', 'Ethernet', 'iWARP'),
          'us0': ('5: usNIC', 'Ethernet', 'its transport is unknown')}
COLUMNS = 'HCA PORT TYPE DRIVER FIRMWARE STATE MTU SPEED INTERFACE UPLINK ROCE USE'.split()


def add_device(outer, name):
    """Adds a device with one active port to those that the inner daemon finds. The daemon finds it with all files."""
    node_type, link_layer, _ = OTHERS[name]
    folder = os.path.join(outer.run_dir, f'{name}.new')
    for path, text in {'node_type': node_type, 'fw_ver': '2.42.5000', 'ports/1/link_layer': link_layer,
                       'ports/1/state': '4: ACTIVE', 'ports/1/rate': '40 Gb/sec (4X QDR)'}.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='ascii') as file:
            file.write(f'{text}\n')
    os.rename(folder, os.path.join(outer.run_dir, 'sys/class/infiniband', name))


def check_ports(build):
    """InfiniBand and iWARP ports are named in the log and in the report, and are not used; the RoCE port still is."""
    with Host(build, arguments=OUTER) as outer, Nested(build, outer) as inner:
        for name in OTHERS:
            add_device(outer, name)
        until(10, lambda: len(show(inner, 'device')['hca']) == 1 + len(OTHERS), lambda: f'{show(inner, "device")}')
        rows = {hca['device']: hca for hca in show(inner, 'device')['hca']}
        text = subprocess.run([inner.urxe, 'show', 'device', '--run-dir', inner.run_dir], capture_output=True, text=True,
                              timeout=20 * BUSY, env=inner.environment, check=True).stdout
        expect('columns', text.splitlines()[3].split(), COLUMNS)
        for name, (_, _, kind) in OTHERS.items():
            reason = f'{kind}, not RoCE'
            expect(name, (rows[name]['used'], rows[name]['reason']), (False, reason))
            until(10, lambda n=name, r=reason: f'HCA {n} port 1 is not used: {r}' in inner.daemon.errors(),
                  inner.daemon.describe)
            if not re.search(rf'^{name} +1 .* 2\.42\.5000 +active .* 40 Gb/s .* not used: {reason}$', text, re.MULTILINE):
                raise Failure(f'no row of {name}: {text}')
        expect('used', [name for name, row in rows.items() if row['used']], ['hca0'])
        if 'HCA hca0 port 1 backs urxe0' not in inner.daemon.errors():
            raise Failure(f'the log does not name the HCA: {inner.daemon.describe()}')


def check_rate(build):
    """The port reports the rate of its HCA, also after a change, and without an HCA its own again."""
    with Host(build, arguments=OUTER) as outer, Nested(build, outer) as inner:
        for rate in '10 Gb/sec (4X SDR)', '200 Gb/sec (4X HDR)', '25 Gb/sec (1X EDR)':
            write_port(outer, rate, 'rate')
            inner.expect_rate(rate)
        with without_hca(outer, inner):
            inner.expect_rate('10 Gb/sec (4X SDR)')


CHECKS = {'software': check_software, 'ports': check_ports, 'rate': check_rate, 'nested': check_nested, 'levels': check_levels,
          'strangers': check_strangers, 'rdma_cm': check_rdma_cm, 'listeners': check_listeners,
          'mistakes': check_mistakes}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
