#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# iSCSI extensions for RDMA by the guest's kernel. Only logins need a program, iscsid of Debian's package open-iscsi.
#   serve ADDRESS DISK    isert offers the disk at the address
#   connect ADDRESS       iser makes it a SCSI disk
#   device                prints the path of that disk
#   disconnect            removes it
set -e
IQN=iqn.2026-11.org.example:disk
TARGET=/sys/kernel/config/target
GROUP=$TARGET/iscsi/$IQN/tpgt_1
DISK=$TARGET/core/iblock_0/disk

serve() {
	[ -d /sys/kernel/config/target ] || mount -t configfs none /sys/kernel/config
	mkdir -p "$DISK"
	echo "udev_path=$2" >"$DISK/control"
	echo 1 >"$DISK/enable"
	mkdir -p "$GROUP/lun/lun_0" "$GROUP/np/$1:3260"
	ln -s "$DISK" "$GROUP/lun/lun_0/disk"
	echo 1 >"$GROUP/np/$1:3260/iser"
	echo 0 >"$GROUP/attrib/authentication"
	echo 1 >"$GROUP/attrib/generate_node_acls"
	echo 0 >"$GROUP/attrib/demo_mode_write_protect"
	echo 1 >"$GROUP/enable"
}

# iscsid accepts commands of users in /etc/passwd. Requests wait for ten minutes after the loss of the target.
start_iscsid() {
	mkdir -p /etc/iscsi /run/lock/iscsi
	echo root:x:0:0::/:/bin/sh >/etc/passwd
	echo InitiatorName=iqn.2026-11.org.example:host >/etc/iscsi/initiatorname.iscsi
	cat >/etc/iscsi/iscsid.conf <<-END
		node.startup = manual
		node.session.timeo.replacement_timeout = 600
		node.conn[0].timeo.noop_out_interval = 2
		node.conn[0].timeo.noop_out_timeout = 5
		node.session.scan = auto
	END
	iscsid
}

connect() {
	[ -e /etc/iscsi/iscsid.conf ] || start_iscsid
	iscsiadm -m node -o new -T "$IQN" -p "$1:3260" >/dev/null
	iscsiadm -m node -o update -T "$IQN" -p "$1:3260" -n iface.transport_name -v iser
	iscsiadm -m node -T "$IQN" -p "$1:3260" --login
	until [ -b "$(device)" ]; do usleep 20000; done
}

device() {
	echo "/dev/$(ls /sys/class/iscsi_session/session*/device/target*/*/block)"
}

disconnect() {
	iscsiadm -m node -T "$IQN" --logout
}

"$@"
