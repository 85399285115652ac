#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# NFS over RDMA by the guest's kernel, version 4.1. The script answers what the server would ask mountd.
#   serve ADDRESS DISK CLIENT   knfsd exports the file system on the disk to the client
#   mount_export ADDRESS        mounts the export at /mnt
set -e
EXPORT=/srv/disk
NEVER=2147483647
# NFSEXP_INSECURE_PORT, NFSEXP_NOSUBTREECHECK, NFSEXP_FSID
FLAGS=$((0x2 + 0x400 + 0x2000))

# Versions 2 and 3 would need rpcbind. The state of clients is on the disk, so that they keep their open files when the server boots again.
serve() {
	mkdir -p $EXPORT
	mount -t ext4 "$2" $EXPORT
	mkdir -p $EXPORT/clients
	[ -e /proc/fs/nfsd/threads ] || mount -t nfsd none /proc/fs/nfsd
	echo -2 -3 +4 >/proc/fs/nfsd/versions
	echo $EXPORT/clients >/proc/fs/nfsd/nfsv4recoverydir
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	echo "nfsd $3 $NEVER $3" >/proc/net/rpc/auth.unix.ip/channel
	echo "$3 $EXPORT $NEVER $FLAGS -2 -2 0" >/proc/net/rpc/nfsd.export/channel
	printf '%s\n' "$3 1 \\x00000000 $NEVER $EXPORT" >/proc/net/rpc/nfsd.fh/channel
	echo "rdma 20049" >/proc/fs/nfsd/portlist
	echo 4 >/proc/fs/nfsd/threads
}

mount_export() {
	mount -t nfs4 -o "vers=4.1,proto=rdma,port=20049,hard,timeo=50" "$1:/" /mnt
}

"$@"
