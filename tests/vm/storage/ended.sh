#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The writes that fio had ended before an error: those of its log in /tmp/ended_iops.log.
#   verify    reads each of them, and compares it with the checksum in it
set -e
FILE=/mnt/verify.0.0
REPLAY=/tmp/ended.replay

verify() {
	{
		echo 'fio version 2 iolog'
		echo "$FILE add"
		echo "$FILE open"
		awk -F', *' -v file="$FILE" '$3 == 1 { print file " read " $5 " " $4 }' /tmp/ended_iops.log
		echo "$FILE close"
	} >"$REPLAY"
	grep -q ' read ' "$REPLAY"
	echo 3 >/proc/sys/vm/drop_caches
	fio --name=ended --read_iolog="$REPLAY" --bs=16k --direct=1 --ioengine=libaio --verify=crc32c --verify_fatal=1 --minimal
}

"$@"
