# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Fetches what builds urxe for arm64 on another processor and emulates its programs, for ./dev, into
# build-guests/arm64/. Nothing is installed, and this system gets no other architecture.

# Unpacks Debian's libraries for arm64, with all libraries that these need, and their headers; then an emulator.
fetch_arm64() {
	local folder=build-guests/arm64 new=$PWD/build-guests/new-arm64 suite
	[[ ! -d $folder ]] || return 0
	rm -rf "$new"
	mkdir -p "$new"
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	echo "fetching libraries for arm64, and qemu-user" >&2
	private_apt "$new/apt" "$suite"
	cat >>"$new/apt/apt.conf" <<-END
	APT::Architecture "arm64";
	APT::Architectures "arm64";
	END
	unpack_with_needs "$new/apt" "$new/root" "${build_libraries[@]}" "${cm_packages[0]}" ibverbs-providers
	remove_programs "$new/root"
	make_links_relative "$new/root"
	fetch_qemu_user "$new"
	mv "$new" "$folder"
}

# unpack_with_needs APT FOLDER PACKAGE...: an empty list of installed packages makes apt fetch each library too.
unpack_with_needs() {
	local apt=$1 folder=$2 package
	APT_CONFIG=$apt/apt.conf quietly apt-get update
	APT_CONFIG=$apt/apt.conf quietly apt-get install -y --no-install-recommends --download-only "${@:3}"
	for package in "$apt"/cache/archives/*.deb; do
		quietly dpkg -x "$package" "$folder"
	done
	rm -r "$apt"
}

# meson puts these folders into the PATH of tests.
remove_programs() {
	rm -r "$1"/{bin,sbin,usr/bin,usr/sbin}
}

# The compiler and the emulator follow absolute links to files of this system.
make_links_relative() {
	local link target
	find "$1" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
		ln -srfn "$1$target" "$link"
	done
}

# fetch_qemu_user FOLDER: Debian 12's emulator lacks mremap of shared pages and other calls of urxe. The one of the
# suites of fetch_qemu is one program without libraries.
fetch_qemu_user() {
	private_apt "$1/apt" "${qemu_suites[@]}"
	APT_CONFIG=$1/apt/apt.conf quietly apt-get update
	(cd "$1" && APT_CONFIG=$1/apt/apt.conf quietly apt-get download -t "${qemu_suites[-1]}" qemu-user)
	quietly dpkg -x "$1"/qemu-user_*.deb "$1/unpacked"
	mv "$1/unpacked/usr/bin/qemu-aarch64" "$1"
	rm -r "$1"/{apt,unpacked,qemu-user_*.deb}
}

# Configures and compiles everything for arm64.
build_arm64() {
	mkdir -p build-guests
	cat >build-guests/arm64.ini <<-END
	[constants]
	folder = '$PWD/build-guests/arm64'
	root = folder / 'root'

	[binaries]
	c = 'aarch64-linux-gnu-gcc'
	ar = 'aarch64-linux-gnu-gcc-ar'
	strip = 'aarch64-linux-gnu-strip'
	pkgconfig = 'pkg-config'
	exe_wrapper = [folder / 'qemu-aarch64', '-L', root]

	[built-in options]
	c_args = ['--sysroot=' + root]
	c_link_args = ['--sysroot=' + root]

	[properties]
	sys_root = root
	pkg_config_libdir = root / 'usr/lib/aarch64-linux-gnu/pkgconfig'

	[host_machine]
	system = 'linux'
	cpu_family = 'aarch64'
	cpu = 'aarch64'
	endian = 'little'
	END
	configure build-arm64 --cross-file build-guests/arm64.ini
	compile build-arm64
}
