#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# A guest's only process. On the second serial line it is given commands, a line each, behind a
# number, and answers each when it has ended with a line: number, exit status, output and errors in
# base64.
/bin/busybox mkdir -p /usr/sbin /usr/bin /sbin
/bin/busybox --install -s
export PATH=/bin:/usr/bin:/usr/sbin:/sbin
# DPDK loads no driver from below a folder that anybody may write.
chmod 755 /
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
	insmod "$module" || echo "no $module"
done
ip link set lo up
# Completion queues and buffers are pinned.
ulimit -l unlimited

# One at a time, lest lines mix.
answer() {
	until mkdir /tmp/lock 2>/dev/null; do usleep 1000; done
	printf '%s %s %s %s\n' "$1" "$2" "$(base64 -w0 "/tmp/$1")" "$(base64 -w0 "/tmp/$1.err")" >&3
	rm -r "/tmp/$1" "/tmp/$1.err" /tmp/lock
}

exec 3<>/dev/ttyS1
stty raw -echo <&3
: >/tmp/0
: >/tmp/0.err
answer 0 0
# A process that ends would interrupt the reading of a line, and busybox forgets what it had read.
# So the reader has no children but for a moment: the commands become those of process 1.
(
	while read -r number command; do
		(
			{
				setsid sh -c "$command" >"/tmp/$number" 2>"/tmp/$number.err" </dev/null 3>&-
				answer "$number" $?
			} &
		)
	done <&3
)
poweroff -f
