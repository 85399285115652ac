/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of a dmabuf, which a program maps and registers like other memory. The kernel may refuse
 * to copy it by process_vm_writev(2): then packets carry all data.
 */
#include <err.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "region.h"
#include "row.h"

/* Of the kernel's drm/drm.h and drm/drm_mode.h, which Debian's linux-libc-dev lacks. */
struct drm_mode_create_dumb {
	uint32_t height, width, bpp, flags;
	uint32_t handle, pitch;
	uint64_t size;
};

struct drm_prime_handle {
	uint32_t handle, flags;
	int32_t fd;
};

#define DRM_IOCTL_MODE_CREATE_DUMB   _IOWR('d', 0xb2, struct drm_mode_create_dumb)
#define DRM_IOCTL_PRIME_HANDLE_TO_FD _IOWR('d', 0x2d, struct drm_prime_handle)

static void use(int dmabuf, struct region (*register_memory)(uint8_t *bytes, size_t size))
{
	uint8_t *bytes = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
	struct region region;

	if (bytes == MAP_FAILED)
		err(1, "mmap of the dmabuf");
	close(dmabuf);
	region = register_memory(bytes, MIB);
	region_fill(&region, 3);
	say("the memory holds what the peer wrote: %s", region_says(&region, 3));
	region_write_to_peer(&region);
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	region_unmap(&region);
}

/* Pages of a memfd. */
static void of_udmabuf(uintptr_t unused)
{
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), memfd, dmabuf;
	struct udmabuf_create create = {.flags = UDMABUF_FLAGS_CLOEXEC, .size = MIB};

	(void)unused;
	skip_unless(device >= 0, "/dev/udmabuf");
	memfd = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memfd < 0 || ftruncate(memfd, MIB) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		err(1, "memfd_create");
	create.memfd = (uint32_t)memfd;
	dmabuf = ioctl(device, UDMABUF_CREATE, &create);
	if (dmabuf < 0)
		err(1, "UDMABUF_CREATE");
	close(memfd);
	close(device);
	use(dmabuf, region_register);
}

/*
 * A dumb buffer of a GPU; the module vgem is a GPU without hardware. The kernel has no page
 * structures for this mapping (VM_PFNMAP), so only an on-demand region may have it: Linux fails
 * ibv_reg_mr with EFAULT otherwise, and so does urxe.
 */
static void of_gpu(uintptr_t unused)
{
	struct drm_mode_create_dumb create = {.height = 1, .width = MIB / 4, .bpp = 32};
	int device = open("/dev/dri/card0", O_RDWR | O_CLOEXEC);
	struct drm_prime_handle prime = {.flags = O_RDWR | O_CLOEXEC};

	(void)unused;
	skip_unless(device >= 0, "/dev/dri/card0");
	skip_unless(!ioctl(device, DRM_IOCTL_MODE_CREATE_DUMB, &create), "CREATE_DUMB");
	prime.handle = create.handle;
	skip_unless(!ioctl(device, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), "PRIME_HANDLE_TO_FD");
	close(device);
	use(prime.fd, region_register_on_demand);
}

const struct row dmabuf_rows[] = {
	{"udmabuf", of_udmabuf, 0},
	{"gpu", of_gpu, 0},
	{0},
};
