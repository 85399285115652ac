#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The only process of a guest. It reads commands from the second serial line, one in each line after a
# number. When a command has ended, it answers with a line: number, exit status, output and errors in base64.
/bin/busybox mkdir -p /usr/sbin /usr/bin /sbin
/bin/busybox --install -s
export PATH=/bin:/usr/bin:/usr/sbin:/sbin
# DPDK loads no driver from a directory below a world-writable one.
chmod 755 /
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
	insmod "$module" || echo "no $module"
done
# Goes back to the state that the guest has saved on its disk, if any.
[ ! -b /dev/vda ] || cat /sys/class/block/vda/dev >/sys/power/resume
ip link set lo up
# For pinned completion queues and buffers.
ulimit -l unlimited

# Writes one answer at a time, so that lines do not mix.
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
# The end of a child would interrupt `read`, and busybox would lose the partly read line. So the reader's
# children end at once, and process 1 adopts the commands.
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
