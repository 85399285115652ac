# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Makes a guest's image: Debian's kernel, and an initramfs with programs of this system and init.sh as the only
process. The guest mounts no file system and runs no daemon, so it boots within seconds.
"""
import fcntl
import glob
import lzma
import os
import re
import shutil
import stat
import subprocess
import tempfile

from host import skip

# The kernel modules that a guest loads, with their dependencies. rdma_rxe requests the CRC by name, so modinfo does
# not show that dependency.
MODULES = ['virtio_pci', 'virtio_net', 'vmxnet3', 'af_packet', 'crc32_generic', 'ib_uverbs', 'rdma_rxe',
           'rdma_ucm', 'algif_hash']

PROGRAMS = ['rdma', 'ibv_devices', 'ibv_devinfo',
            'ibv_rc_pingpong', 'ibv_uc_pingpong', 'ibv_ud_pingpong', 'ibv_srq_pingpong',
            'ib_write_bw', 'ib_write_lat', 'ib_send_bw', 'ib_send_lat', 'ib_read_bw', 'ib_read_lat',
            'ib_atomic_bw', 'ib_atomic_lat',
            'rping', 'ucmatose', 'udaddy', 'mckey', 'rstream', 'rdma_client', 'rdma_server']
PATH = ['/usr/bin', '/usr/sbin', '/bin', '/sbin']
# urxe's files, below /urxe as in the build directory.
URXE = ['tools/urxe', 'tools/urxe-bench', 'tools/urxed', 'verbs/liburxe.so']
# DPDK's drivers for the guest, and the kernel modules, for modprobe, by which DPDK accesses a PCI device.
DRIVERS = ['bus_pci', 'bus_vdev', 'mempool_ring', 'net_af_packet', 'net_e1000', 'net_virtio', 'net_vmxnet3']
DRIVER_LIBRARY = '/usr/lib/*/dpdk/pmds-*/librte_{}.so.*[0-9]'
LEAVING_MODULES = ['uio_pci_generic', 'vfio_pci', 'vfio_iommu_type1']
# A library that pthread_exit loads at run time.
UNWINDER = '/usr/lib/*/libgcc_s.so.1'
# Files of a libibverbs provider.
PROVIDER = '/etc/libibverbs.d/{}.driver'
PROVIDER_LIBRARY = '/usr/lib/*/libibverbs/lib{}-rdmav*.so'


# --- The kernel, whose package ./dev has unpacked

def only(pattern):
    found = sorted(glob.glob(pattern))
    if not found:
        skip(f'there is no {pattern}: ./dev test --suite guests provides it')
    return found[-1]


def unxz(data):
    try:
        return lzma.LZMADecompressor().decompress(data)
    except lzma.LZMAError:
        return b''


def unzstd(data):
    """zstd fails because of the bytes after the frame, but has written all output before."""
    if not shutil.which('zstd'):
        return b''
    return subprocess.run(['zstd', '-dc'], input=data, capture_output=True, check=False).stdout


COMPRESSIONS = {b'\xfd7zXZ\0': unxz, b'\x28\xb5\x2f\xfd': unzstd}


def unpacked(data):
    """The ELF image in a vmlinuz, or None."""
    for magic, decompress in COMPRESSIONS.items():
        for match in re.finditer(re.escape(magic), data):
            image = decompress(data[match.start():])
            if image.startswith(b'\x7fELF'):
                return image
    return None


def packed_kernel(folder):
    return only(os.path.join(folder, 'boot/vmlinuz-*'))


def kernel(folder):
    """The path of the decompressed kernel: an emulated processor would decompress it slowly."""
    packed = packed_kernel(folder)
    path = os.path.join(folder, 'vmlinux')
    with open(packed, 'rb') as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # so tests that start at the same time unpack it once
        if os.path.exists(path):
            return path
        image = unpacked(file.read())
        if image is None:
            return packed
        with open(path + '.new', 'wb') as new:
            new.write(image)
        os.rename(path + '.new', path)
    return path


def module_name(path):
    return os.path.basename(path).split('.ko')[0].replace('-', '_')


def read_module(path):
    with lzma.open(path) if path.endswith('.xz') else open(path, 'rb') as file:
        return file.read()


def modules(folder, names, own=(), before=()):
    """
    (name, contents) of modules in loading order, without built-in ones, and without those that are loaded `before`.
    `own` are paths of modules that the kernel package lacks.
    """
    paths = {module_name(path): path for top in ('lib', 'usr/lib') for path in
             glob.glob(os.path.join(folder, top, 'modules/*/kernel/**/*.ko*'), recursive=True)}
    paths.update((module_name(path), path) for path in own)
    loaded = dict(before)

    def load(name):
        if name in loaded or name not in paths:
            return
        contents = read_module(paths[name])
        for needed in re.search(rb'\0depends=([^\0]*)\0', contents)[1].decode().split(','):
            load(needed.replace('-', '_'))
        loaded[name] = contents

    for name in names:
        load(name)
    return list(loaded.items())[len(before):]


# --- Programs

def find_program(name):
    for folder in PATH:
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    skip(f'there is no {name}: ./dev test --suite guests installs it')


def libraries(*paths):
    """The libraries that ld.so loads for programs or libraries."""
    text = subprocess.run(['ldd', *paths], capture_output=True, text=True, check=True).stdout
    return re.findall(r'(/\S+) \(0x', text)


# --- The archive: cpio's "newc", which the kernel unpacks

class Archive:
    """Writes an initramfs."""

    def __init__(self, path):
        self.file = open(path, 'wb')
        self.inodes = 0
        self.folders = {'/'}
        self.libraries = set()

    def entry(self, path, mode, data=b''):
        self.inodes += 1
        name = path.lstrip('/').encode() + b'\0'
        fields = [self.inodes, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
        header = b'070701' + b''.join(b'%08X' % field for field in fields) + name
        for part in (header, data):
            self.file.write(part + bytes(-len(part) % 4))

    def folder(self, path):
        if path not in self.folders:
            self.folder(os.path.dirname(path))
            self.folders.add(path)
            self.entry(path, stat.S_IFDIR | 0o755)

    def add(self, path, data):
        self.folder(os.path.dirname(path))
        self.entry(path, stat.S_IFREG | 0o755, data)

    def copy(self, source, path=None):
        with open(source, 'rb') as file:
            self.add(path or source, file.read())

    def copy_library(self, path):
        """Copies a library with its symbolic links, so that all its names are one file."""
        if path in self.libraries:
            return
        self.libraries.add(path)
        target = os.path.realpath(path)
        if path == target:
            self.copy(path)
            return
        self.folder(os.path.dirname(path))
        self.entry(path, stat.S_IFLNK | 0o777, target.encode())
        self.copy_library(target)

    def copy_link(self, path):
        self.folder(os.path.dirname(path))
        self.entry(path, stat.S_IFLNK | 0o777, os.readlink(path).encode())

    def copy_folder(self, top, without=()):
        """Copies a folder except files and folders of some names; returns the paths of its shared objects."""
        objects = []
        for folder, inner, names in os.walk(top):
            inner[:] = [name for name in inner if name not in without]
            for path in (os.path.join(folder, name) for name in names if name not in without):
                if os.path.islink(path):
                    self.copy_link(path)
                    continue
                self.copy(path)
                self.libraries.add(path)
                if re.search(r'\.so(\.[\d.]+)?$', path):
                    objects.append(path)
        return objects

    def add_modules(self, folder, named):
        """Adds modules under names that sort in loading order."""
        for number, (name, contents) in enumerate(named):
            self.add(f'{folder}/{number:02}-{name}.ko', contents)

    def close(self):
        self.entry('TRAILER!!!', 0)
        self.file.close()


class Image:
    """
    `kernel` and `initramfs` for QEMU. The initramfs has Debian's programs and the given programs in /bin, and urxe
    if requested; it exists as long as the object. The kernel comes from the unpacked package in kernel_folder
    beside the build directory. The guest also loads the `more_modules`.
    """

    PROGRAMS = PROGRAMS
    PROVIDERS = ['rxe']
    # Folders of files that these programs open at run time, and names in them to leave out.
    FOLDERS = []
    WITHOUT = ()

    def __init__(self, build, programs=(), urxe=False, kernel_folder='kernel', more_modules=()):
        self.package = os.path.join(build + '-guests', kernel_folder)
        self.more_modules = more_modules
        self.kernel = kernel(self.package)
        self.top = tempfile.TemporaryDirectory(prefix='image-')
        self.initramfs = os.path.join(self.top.name, 'initramfs')
        archive = Archive(self.initramfs)
        for empty in ('/dev', '/proc', '/run', '/sys', '/tmp'):
            archive.folder(empty)
        here = os.path.dirname(os.path.abspath(__file__))
        archive.copy(os.path.join(here, 'init.sh'), '/init')
        archive.copy(find_program('busybox'), '/bin/busybox')
        add_programs(archive, [*map(find_program, self.PROGRAMS), *programs], self.PROVIDERS)
        if urxe:
            add_urxe(archive, build)
            add_modprobe(archive, self.package)
        self.add_modules(archive)
        add_folders(archive, self.FOLDERS, self.WITHOUT)
        archive.close()

    def packed_kernel(self):
        """The path of the kernel as the package has it."""
        return packed_kernel(self.package)

    def add_modules(self, archive):
        """Adds the modules that init.sh loads."""
        archive.add_modules('/modules', modules(self.package, [*MODULES, *self.more_modules]))


def add_programs(archive, programs, providers):
    """Adds programs, with their libraries at the same paths as on this system."""
    drivers = [only(PROVIDER_LIBRARY.format(name)) for name in providers]
    for name in providers:
        archive.copy(PROVIDER.format(name))
    for path in [*drivers, only(UNWINDER)]:
        archive.copy(path)
    for program in programs:
        archive.copy(program, '/bin/' + os.path.basename(program))
    add_libraries(archive, [*programs, *drivers])


def add_libraries(archive, paths):
    for library in sorted({name for path in paths for name in libraries(path)}):
        archive.copy_library(library)


def add_folders(archive, patterns, without):
    """Adds folders, with the libraries of the shared objects in them."""
    objects = [path for pattern in patterns for path in archive.copy_folder(only(pattern), without)]
    if objects:
        for library in sorted(set(libraries(*objects))):
            archive.copy_library(library)


def add_urxe(archive, build):
    paths = [os.path.join(build, name) for name in URXE]
    for name, path in zip(URXE, paths):
        archive.copy(path, '/urxe/' + name)
    drivers = [only(DRIVER_LIBRARY.format(name)) for name in DRIVERS]
    for driver in drivers:
        archive.copy_library(driver)
    add_libraries(archive, [*paths, *drivers])


def add_modprobe(archive, package):
    """Writes modprobe's dependencies: each module depends on all modules before it."""
    # Newer packages have their modules below /usr.
    folder = '/lib/modules/' + os.path.basename(packed_kernel(package)).partition('-')[2]
    names, lines = [], ''
    for name, contents in modules(package, LEAVING_MODULES):
        archive.add(f'{folder}/{name}.ko', contents)
        lines += f'{name}.ko: {" ".join(f"{other}.ko" for other in reversed(names))}\n'
        names.append(name)
    archive.add(f'{folder}/modules.dep', lines.encode())
