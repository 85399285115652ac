# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Fetches what virtual machines with a PVRDMA device need, for ./dev, into build-guests/: a QEMU with the vfio-user
# client, which Debian 12 lacks, and the driver vmw_pvrdma.ko, which Debian's kernels lack.

# Debian 13's backports have QEMU 11; the vfio-user client came with QEMU 10.1.
qemu_suites=(trixie trixie-backports)

# Fetches a package and all packages that it depends on, and unpacks them. Nothing is installed.
fetch_qemu() {
	local folder=build-guests/qemu new=$PWD/build-guests/new-qemu package
	[[ ! -d $folder ]] || return 0
	rm -rf "$new"
	mkdir -p "$new"
	echo "fetching QEMU with vfio-user" >&2
	private_apt "$new/apt" "${qemu_suites[@]}"
	APT_CONFIG=$new/apt/apt.conf quietly apt-get update
	# An empty list of installed packages makes apt fetch each library too.
	APT_CONFIG=$new/apt/apt.conf quietly apt-get install -y --no-install-recommends --download-only \
		-t "${qemu_suites[-1]}" qemu-system-x86
	for package in "$new"/apt/cache/archives/*.deb; do
		quietly dpkg -x "$package" "$new/root"
	done
	write_qemu_command "$new"
	quietly "$new/qemu-system-x86_64" -device vfio-user-pci,help
	rm -r "$new/apt"
	mv "$new" "$folder"
}

# Writes a command that runs the unpacked QEMU with its own libraries, modules and firmware.
write_qemu_command() {
	cat >"$1/qemu-system-x86_64" <<-'END_OF_COMMAND'
	#!/bin/sh
	# QEMU of a newer Debian, with its own libraries.
	root=$(dirname "$(readlink -f "$0")")/root
	libraries=$root/usr/lib/x86_64-linux-gnu
	export QEMU_MODULE_DIR="$libraries/qemu"
	exec "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$libraries" \
		"$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" "$@"
	END_OF_COMMAND
	chmod +x "$1/qemu-system-x86_64"
}

# The release of the kernel that guests boot.
kernel_release() {
	basename build-guests/kernel/lib/modules/*
}

# Builds the driver for the kernel that guests boot, from Debian's sources of the same version. If the mirror has
# no headers for that kernel any more, fetches the mirror's kernel instead.
fetch_driver() {
	local release driver
	release=$(kernel_release)
	driver=build-guests/vmw_pvrdma-$release/vmw_pvrdma.ko
	[[ ! -f $driver ]] || return 0
	[[ $(id -u) != 0 ]] || quietly apt-get update
	if ! apt-cache show "linux-headers-$release" >/dev/null 2>&1; then
		rm -r build-guests/kernel
		fetch_kernel kernel
		release=$(kernel_release)
		driver=build-guests/vmw_pvrdma-$release/vmw_pvrdma.ko
	fi
	build_driver "$release" "$driver"
}

# fetch_driver_of SUITE: the same for the kernel of another suite of Debian.
fetch_driver_of() {
	local apt=$PWD/build-guests/apt-driver release driver
	fetch_kernel_of "$1"
	release=$(basename "build-guests/kernel-$1"/lib/modules/*)
	driver=build-guests/vmw_pvrdma-$release/vmw_pvrdma.ko
	[[ ! -f $driver ]] || return 0
	private_apt "$apt" "$1"
	(export APT_CONFIG=$apt/apt.conf && quietly apt-get update && build_driver "$release" "$driver")
	rm -r "$apt"
}

# build_driver RELEASE FILE
build_driver() {
	local new=build-guests/new-driver version kbuild headers
	echo "building vmw_pvrdma.ko for $1" >&2
	rm -rf "$new"
	mkdir -p "$new"
	version=$(apt-cache show "linux-headers-$1" | awk '/^Version:/ && !n++ { print $2 }')
	kbuild=$(apt-cache depends "linux-headers-$1=$version" | awk '/Depends: linux-kbuild/ && !n++ { print $2 }')
	(cd "$new" && quietly apt-get download "linux-headers-$1=$version" "linux-headers-${1%-*}-common=$version" \
		"$(at_version "$kbuild" "$version")" "$(at_version "linux-source-$(cut -d . -f 1-2 <<<"$1")" "$version")")
	for headers in "$new"/linux-{headers,kbuild}*.deb; do
		quietly dpkg -x "$headers" "$new/root"
	done
	extract_driver "$new"
	headers=$PWD/$new/root/usr/src/linux-headers
	quietly make -C "$headers-${1%-*}-common" O="$headers-$1" M="$PWD/$new/vmw_pvrdma" \
		CONFIG_INFINIBAND_VMWARE_PVRDMA=m CONFIG_DEBUG_INFO_BTF_MODULES= -j "$(nproc)" modules
	strip --strip-debug "$new/vmw_pvrdma/vmw_pvrdma.ko"
	mkdir "${2%/*}"
	mv "$new/vmw_pvrdma/vmw_pvrdma.ko" "$2"
	rm -r "$new"
}

# at_version PACKAGE VERSION: PACKAGE=VERSION if the mirror has it, else PACKAGE. The mirror replaces packages of one
# kernel at different times.
at_version() {
	apt-cache madison "$1" | awk -v package="$1" -v wanted="$2" \
		'$1 == package && $3 == wanted { found = "=" wanted } END { print package found }'
}

# Extracts the driver's sources from the package of the kernel's sources.
extract_driver() {
	# tar stops reading after the folder, and dpkg-deb complains.
	dpkg-deb --fsys-tarfile "$1"/linux-source-*.deb 2>/dev/null |
		tar xO --wildcards './usr/src/linux-source-*.tar.xz' |
		tar xJ -C "$1" --strip-components 4 --wildcards '*/drivers/infiniband/hw/vmw_pvrdma/*' ||
		die "cannot extract the driver's sources"
}
