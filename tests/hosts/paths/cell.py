#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs programs between two hosts over one path, MTU and loss. All must succeed with the right output."""
import argparse
import re
import time

from ethernet import Bridged, Ethernet, INTERFACE
from host import Failure, Pair, main
import network
import programs
import report

SECONDS = 120  # for one program
TRIES = 5
# ARP, neighbour discovery, multicast, CM: more only if the programs' frames pass the switch.
SWITCH_FRAMES = 2000
LOSS = """
table netdev loss {{
    chain egress {{
        type filter hook egress device "{interface}" priority 0;
        udp dport 4791 numgen random mod 10000 < {of_10000} drop
        ether type 0x8915 numgen random mod 10000 < {of_10000} drop
    }}
}}
"""


def check_device(host, path_mtu):
    """Checks ibv_devices and ibv_devinfo for a device whose uplink has this path MTU."""
    if not re.search(r'^\s+urxe0\s+[0-9a-f]{16}$', host.run('ibv_devices'), re.MULTILINE):
        raise Failure('ibv_devices does not list urxe0')
    info = host.run('ibv_devinfo', '-v', '-d', 'urxe0')
    if not re.search(rf'active_mtu:\s+{path_mtu} ', info):
        raise Failure(f'the active MTU is not {path_mtu}:\n{info}')


def ended_first(failure, pair):
    """
    Whether the last ACK was lost after its sender had ended: the pingpong examples destroy their queue pair
    without waiting for the peer.
    """
    outputs = pair.server.output(), pair.client.output()
    return ('transport retry counter exceeded' in str(failure)
            and any(report.PINGPONG.search(output) for output in outputs))


def run_pair(ends, argv, lossy):
    """Returns the output of server and client."""
    (server, server_gid, address), (client, client_gid, _) = ends
    for _ in range(TRIES):
        pair = Pair(server, client, argv, server_gid, address, client_gid=client_gid)
        try:
            return pair.finish(SECONDS)
        except Failure as failure:
            if not (lossy and ended_first(failure, pair)):
                raise
            print('(the last acknowledgement was lost)', end=' ')
    raise Failure(f'{argv[0]} ended before its peer {TRIES} times')


def run_program(ends, argv, path_mtu, lossy):
    """The first of ends, (host, GID index, address for TCP), is the server."""
    print(' '.join(argv), end=' ', flush=True)
    if argv[0] == 'verbs_check':
        argv = [ends[0][0].verbs_check, *argv[1:], *(['-L'] if lossy else [])]
    start = time.monotonic()
    report.check(argv, *run_pair(ends, argv, lossy), path_mtu)
    print(f'{time.monotonic() - start:.1f} s', flush=True)


def over_af_xdp(*arguments):
    network.require_af_xdp()
    return Ethernet(*arguments, uplink=f'af_xdp:{INTERFACE}')


NETWORKS = {'af_packet': Ethernet, 'af_xdp': over_af_xdp, 'tap': Bridged}


def lose_frames(net, share):
    """Each interface drops this share of the RoCE frames that it should send."""
    for namespace in net.namespaces:
        namespace.run(['nft', '-f', '-'], LOSS.format(interface=INTERFACE, of_10000=round(float(share[:-1]) * 100)))


def check_way(net, way):
    """Whether the programs' frames went by their own sockets, or by the switch."""
    for host in net.hosts:
        frames = host.counter('switch', 'in_frames')
        if (frames > SWITCH_FRAMES) != (way == 'switch'):
            raise Failure(f'{frames} frames passed the switch, in spite of the way {way}')


def chosen(options):
    if options.programs == 'section':
        return programs.section(options.path, options.mtu, options.loss)
    everything = programs.everything(options.loss)
    if options.programs == 'once':
        return [programs.one_size(argv) for argv in everything]
    return everything


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--path', required=True, choices=programs.PATHS)
    parser.add_argument('--mtu', required=True, type=int, choices=programs.ALL_MTUS)
    parser.add_argument('--loss', required=True, choices=programs.LOSSES)
    parser.add_argument('--uplink', choices=NETWORKS, default='af_packet')
    parser.add_argument('--way', choices=['direct', 'switch'], default='switch',
                        help='by sockets of the programs on the uplink, or by urxed')
    parser.add_argument('--programs', choices=['section', 'once', 'all'], default='section',
                        help='a part of the programs, all with one message size, or all')
    options = parser.parse_args()
    path_mtu = programs.ALL_MTUS[options.mtu]
    address, kind, _ = programs.PATHS[options.path]
    # By the switch, each host's urxed drops this share of received and of sent frames.
    lossy = options.loss != programs.LOSSES[0]
    direct = options.way == 'direct'
    arguments = [] if direct else ['--direct-uplink', 'none']
    if lossy and not direct:
        arguments += ['--fault', f'drop={options.loss}']
    with NETWORKS[options.uplink](options.build, [options.mtu] * 2, arguments) as net:
        if lossy and direct:
            lose_frames(net, options.loss)
        for host in net.hosts:
            check_device(host, path_mtu)
        ends = net.ends(address, kind)
        for argv in chosen(options):
            argv = programs.fitted(argv, options.path, path_mtu)
            run_program(ends, argv, path_mtu, lossy)
            if argv[0] == 'verbs_check':
                run_program(ends[::-1], argv, path_mtu, lossy)
        check_way(net, options.way)


if __name__ == '__main__':
    main(run)
