#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# NVMe over RDMA by the guest's kernel.
#   serve ADDRESS DISK    nvmet-rdma offers the disk at the address
#   connect ADDRESS       nvme-rdma makes it the device /dev/nvme0n1
#   device                prints that device
#   disconnect            removes it
set -e
NQN=nqn.2026-11.org.example:disk
# Without it each boot of the server would give the disk another identity, and nvme-rdma would refuse it.
UUID=00000000-0000-4000-8000-000000000001
PORT=/sys/kernel/config/nvmet/ports/1
SUBSYSTEM=/sys/kernel/config/nvmet/subsystems/$NQN

serve() {
	[ -d /sys/kernel/config/nvmet ] || mount -t configfs none /sys/kernel/config
	mkdir "$SUBSYSTEM" "$SUBSYSTEM/namespaces/1" "$PORT"
	echo 1 >"$SUBSYSTEM/attr_allow_any_host"
	echo "$2" >"$SUBSYSTEM/namespaces/1/device_path"
	echo $UUID >"$SUBSYSTEM/namespaces/1/device_uuid"
	echo 1 >"$SUBSYSTEM/namespaces/1/enable"
	echo rdma >"$PORT/addr_trtype"
	echo ipv4 >"$PORT/addr_adrfam"
	echo "$1" >"$PORT/addr_traddr"
	echo 4420 >"$PORT/addr_trsvcid"
	ln -s "$SUBSYSTEM" "$PORT/subsystems/"
}

# After the loss of the target, nvme-rdma tries to connect every second for ten minutes; requests wait meanwhile.
connect() {
	echo "transport=rdma,traddr=$1,trsvcid=4420,nqn=$NQN,hostnqn=nqn.2026-11.org.example:host,keep_alive_tmo=5,reconnect_delay=1,ctrl_loss_tmo=600" >/dev/nvme-fabrics
	until [ -b /dev/nvme0n1 ]; do usleep 20000; done
}

device() {
	echo /dev/nvme0n1
}

disconnect() {
	echo 1 >/sys/class/nvme/nvme0/delete_controller
	while [ -e /dev/nvme0n1 ]; do usleep 20000; done
}

"$@"
