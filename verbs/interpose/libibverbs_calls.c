/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Interposed functions of libibverbs. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "objects/uverbs_file.h"
#include "process/run_dir.h"
#include "requests/daemon_requests.h"
#include <vnic/driver.h>

/*
 * Finds the function of that name that this library replaces, in liburxe-outer.so or libibverbs.
 * RTLD_NEXT does not find it if dlopen has loaded libibverbs; then uses a handle of libibverbs.
 * NULL: not found. The caller closes *library, unless it is NULL, after its call of the function.
 */
static void *next_function(const char *name, const char *version, void **library)
{
	void *next = dlsym(RTLD_NEXT, name);

	*library = next ? NULL : dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	return *library ? dlvsym(*library, name, version) : next;
}

/*
 * Sets the MAC of the next hop to the GID in *attr. Asks the daemon if the context is of this
 * library's device: libibverbs would search the kernel's neighbour tables, which lack the daemon's
 * addresses. Older providers call this function for each address handle. 0, or a positive errno
 * value.
 */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[6], uint16_t *vid)
{
	int (*next)(struct ibv_context *, struct ibv_ah_attr *, uint8_t *, uint16_t *);
	void *library;
	int rc;

	if (uverbs_file_lookup(context->cmd_fd)) {
		struct vnic_next_hop hop;

		rc = adapter_resolve_next_hop(attr->grh.sgid_index, attr->grh.dgid.raw, &hop);
		if (!rc)
			memcpy(eth_mac, hop.mac, sizeof(hop.mac));
		if (vid)
			*vid = 0xffff; /* no VLAN */
		return -rc;
	}
	next = (__typeof__(next))next_function(__func__, "IBVERBS_1.1", &library);
	rc = next ? next(context, attr, eth_mac, vid) : ENOSYS;
	if (library)
		dlclose(library);
	return rc;
}

/*
 * Does nothing if URXE_DIR is set. libibverbs would take registered pages away from children
 * (MADV_DONTFORK), because without RDMA netlink it cannot ask the kernel whether fork copies pinned
 * pages (RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK). That is not needed: this device pins no pages, and
 * since 5.12 Linux copies pages that other devices have pinned.
 */
int ibv_fork_init(void)
{
	int (*next)(void);
	void *library;
	int rc;

	if (run_dir_path())
		return 0;
	next = (__typeof__(next))next_function(__func__, "IBVERBS_1.1", &library);
	rc = next ? next() : ENOSYS;
	if (library)
		dlclose(library);
	return rc;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	enum ibv_fork_status status, (*next)(void);
	void *library;

	if (run_dir_path())
		return IBV_FORK_UNNEEDED;
	next = (__typeof__(next))next_function(__func__, "IBVERBS_1.13", &library);
	status = next ? next() : IBV_FORK_DISABLED;
	if (library)
		dlclose(library);
	return status;
}

/* Functions of libibverbs without a public declaration: take pages away from children, and give
 * them back. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

static int change_range(const char *name, void *base, size_t size)
{
	int (*next)(void *, size_t), rc;
	void *library;

	if (run_dir_path())
		return 0;
	next = (__typeof__(next))next_function(name, "IBVERBS_1.1", &library);
	rc = next ? next(base, size) : 0;
	if (library)
		dlclose(library);
	return rc;
}

/*
 * Both functions do nothing if URXE_DIR is set, as ibv_fork_init(). They serve programs such as
 * NCCL that find libibverbs' own ibv_fork_init by dlsym() with a handle: libibverbs then calls
 * these functions for each region.
 */
int ibv_dontfork_range(void *base, size_t size)
{
	return change_range(__func__, base, size);
}

int ibv_dofork_range(void *base, size_t size)
{
	return change_range(__func__, base, size);
}
