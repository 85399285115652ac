/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hca_device.h"
#include "hca_event.h"
#include "objects/hca_cq.h"
#include "objects/hca_mr.h"
#include "objects/hca_qp.h"
#include "objects/hca_srq.h"

/* Values of ibv_device_attr.vendor_id, which for hardware is an OUI or a PCI vendor. */
#define SOFTWARE_VENDOR 0xffffffu /* of rdma_rxe and urxe */
#define NO_VENDOR       0         /* of rdma_rxe before Linux 5.8, and of mana_ib (hardware) */

static const struct urxe_offload_ops offload_ops = {
	.mr_reg = hca_mr_reg,
	.mr_dereg = hca_mr_dereg,
	.cq_create = hca_cq_create,
	.cq_destroy = hca_cq_destroy,
	.cq_arm = hca_cq_arm,
	.srq_create = hca_srq_create,
	.srq_destroy = hca_srq_destroy,
	.srq_set_limit = hca_srq_set_limit,
	.srq_resize = hca_srq_resize,
	.qp_create = hca_qp_create,
	.qp_destroy = hca_qp_destroy,
	.takes = hca_qp_takes,
	.qp_modify = hca_qp_modify,
	.qp_fail = hca_qp_fail,
	.qp_query = hca_qp_query,
	.mcast_attach = hca_qp_mcast_attach,
	.mcast_detach = hca_qp_mcast_detach,
	.post_send = hca_qp_post_send,
	.post_recv = hca_qp_post_recv,
	.post_srq_recv = hca_srq_post,
};

/* --- Opening. */

#define RETRY_MIN_NS UINT64_C(20000000)
#define RETRY_MAX_NS (60 * UINT64_C(1000000000))

/* Returns the errno value after libibverbs, or the device, was not found. That is `err`, or EMFILE
 * or ENFILE if the process can open no descriptor, which dlopen() and libibverbs do not report. */
static int absence_error(int err)
{
	const int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return err;
}

/* Whether the errno value says that descriptors or memory are lacking. */
static bool is_temporary(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM;
}

static struct ibv_device *find_device(const struct hca_verbs *verbs, struct ibv_device **list,
				      const char *name)
{
	for (; *list; list++)
		if (!strcmp(verbs->get_device_name(*list), name))
			return *list;
	return NULL;
}

/* NULL: sets *err to an errno value; ENODEV: libibverbs gives no list, or the list lacks the
 * device. */
static struct ibv_context *list_and_open(const struct hca_verbs *verbs, const char *name, int *err)
{
	struct ibv_device **list = verbs->get_device_list(NULL), *device;
	struct ibv_context *context;

	if (!list) {
		*err = is_temporary(errno) ? errno : ENODEV;
		return NULL;
	}
	device = find_device(verbs, list, name);
	errno = ENODEV;
	context = device ? verbs->open_device(device) : NULL;
	*err = errno;
	verbs->free_device_list(list);
	return context;
}

/*
 * NULL: sets errno. Lists the devices a second time if the first list lacks the device: libibverbs
 * leaves out a device for whose files the process has no descriptor, and other threads may have
 * closed descriptors before absence_error().
 */
static struct ibv_context *open_by_name(const struct hca_verbs *verbs, const char *name)
{
	struct ibv_context *context = NULL;
	int err = ENODEV;

	for (int i = 0; i < 2 && !context && err == ENODEV; i++) {
		context = list_and_open(verbs, name, &err);
		if (!context && err == ENODEV)
			err = absence_error(ENODEV);
	}
	errno = err;
	return context;
}

static int make_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

/* Reads the port's active MTU; after an error hca->mtu stays the same. Disables cancellation: a
 * thread that has adapter.lock must not end in a write(2) or ioctl(2) of the provider. 0 or a
 * negative errno value. */
static int read_mtu(struct hca *hca)
{
	struct ibv_port_attr attr = {0};
	int rc, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rc = hca->verbs->query_port(hca->context, hca->port, (struct _compat_ibv_port_attr *)&attr);
	pthread_setcancelstate(cancel, NULL);
	if (!rc)
		hca->mtu = (enum urxe_mtu)attr.active_mtu;
	return hca_verbs_error(rc);
}

/* Lets the owner replace *fd in a structure of libibverbs. Providers read *fd for each call. */
static void place_fd(const struct hca *hca, int *fd)
{
	if (hca->owner->place_fd)
		*fd = hca->owner->place_fd(*fd);
}

/* Whether the device is one of rdma_rxe: no other driver has the file `parent` in sysfs. */
static bool is_rxe(const struct ibv_device *device)
{
	char path[sizeof(device->ibdev_path) + sizeof("/parent")];

	snprintf(path, sizeof(path), "%s/parent", device->ibdev_path);
	return !access(path, F_OK);
}

static int read_device(struct hca *hca)
{
	const int rc = hca_verbs_error(hca->verbs->query_device(hca->context, &hca->attr));
	const uint32_t vendor = hca->attr.vendor_id;

	hca->hardware =
		vendor != SOFTWARE_VENDOR && (vendor != NO_VENDOR || !is_rxe(hca->context->device));
	return rc;
}

static int prepare(struct hca *hca)
{
	int rc;

	place_fd(hca, &hca->context->cmd_fd);
	place_fd(hca, &hca->context->async_fd);
	rc = read_device(hca);
	if (!rc)
		rc = read_mtu(hca);
	if (!rc)
		rc = make_nonblocking(hca->context->async_fd);
	if (rc)
		return rc;
	hca->channel = hca->verbs->create_comp_channel(hca->context);
	if (!hca->channel)
		return hca_verbs_null_error();
	place_fd(hca, &hca->channel->fd);
	return make_nonblocking(hca->channel->fd);
}

int hca_open(const struct hca_verbs *verbs, const char *name, uint8_t port,
	     const struct hca_owner *owner, struct hca **out)
{
	struct hca *hca;
	int rc;

	if (!verbs)
		return -ENOSYS;
	hca = calloc(1, sizeof(*hca));
	if (!hca)
		return -ENOMEM;
	hca->verbs = verbs;
	hca->owner = owner;
	hca->port = port;
	hca->holds = 1;
	STAILQ_INIT(&hca->deferred);
	pthread_mutex_init(&hca->resizing, NULL);
	hca_ahs_init(hca);
	hca->context = open_by_name(verbs, name);
	if (!hca->context) {
		rc = hca_verbs_null_error();
		free(hca);
		return rc;
	}
	rc = prepare(hca);
	if (rc) {
		hca_close(hca);
		return rc;
	}
	*out = hca;
	return 0;
}

/* libibverbs stays loaded, because hca_verbs_find() looks up its functions only once. */
int hca_load_and_open(const char *name, uint8_t port, const struct hca_owner *owner,
		      struct hca **hca)
{
	if (!dlopen("libibverbs.so.1", RTLD_NOW))
		return -absence_error(ENOSYS);
	return hca_open(hca_verbs_find(), name, port, owner, hca);
}

void hca_retry_note(struct hca_retry *retry, int rc, uint64_t now)
{
	const uint64_t longer = retry->pause ? 2 * retry->pause : RETRY_MIN_NS;

	*retry = (struct hca_retry){0};
	if (!is_temporary(-rc))
		return;
	retry->pause = longer < RETRY_MAX_NS ? longer : RETRY_MAX_NS;
	retry->at = now + retry->pause;
}

/* If the device is gone, libibverbs' functions may fail, but they free their structures anyway. */
static void close_hca(struct hca *hca)
{
	hca_destroy_rest(hca);
	if (hca->channel)
		hca->verbs->destroy_comp_channel(hca->channel);
	hca->verbs->close_device(hca->context);
	pthread_mutex_destroy(&hca->resizing);
	work_ids_free(&hca->work_ids);
	free(hca);
}

void hca_release(struct hca *hca)
{
	if (__atomic_sub_fetch(&hca->holds, 1, __ATOMIC_ACQ_REL) == 0)
		close_hca(hca);
}

void hca_close(struct hca *hca)
{
	hca_release(hca);
}

void hca_abandon(struct hca *hca)
{
	close(hca->context->cmd_fd);
	close(hca->context->async_fd);
	close(hca->channel->fd);
	hca->abandoned = true;
	/* If a signal handler forked within a command, the command goes on in the child. There
	 * hca_forbid_unlock() must poll no CQ. */
	hca->skipped = false;
}

void hca_attach(struct hca *hca, struct urxe_dev *dev)
{
	hca->dev = dev;
	urxe_offload_set(dev, &offload_ops, hca);
}

void hca_detach(struct hca *hca)
{
	hca->detaching = true;
	urxe_offload_unset(hca->dev);
	hca_pds_end_owned(hca);
	hca->detaching = false;
	hca->dev = NULL;
}

/* --- Attributes. */

bool hca_is_hardware(const struct hca *hca)
{
	return hca->hardware;
}

void hca_set_port_down(struct hca *hca, bool down)
{
	hca->engine_keeps_new = down && !hca_is_hardware(hca);
}

static uint32_t at_most(uint32_t engine, int of_hca)
{
	if (of_hca < 0)
		return 0;
	return (uint32_t)of_hca < engine ? (uint32_t)of_hca : engine;
}

void hca_limits(const struct hca *hca, struct hca_limits *limits)
{
	const struct ibv_device_attr *attr = &hca->attr;

	*limits = (struct hca_limits){
		.max_mr_size = attr->max_mr_size,
		.max_qp_wr = at_most(URXE_MAX_WR, attr->max_qp_wr),
		.max_sge = at_most(URXE_MAX_SGE, attr->max_sge),
		.max_cqe = at_most(INT32_MAX, attr->max_cqe),
		.max_srq_wr = at_most(URXE_MAX_WR, attr->max_srq_wr),
		.max_srq_sge = at_most(URXE_MAX_SGE, attr->max_srq_sge),
		.max_rd_atomic = at_most(URXE_MAX_RD_ATOMIC, attr->max_qp_rd_atom),
		.max_init_rd_atomic = at_most(URXE_MAX_RD_ATOMIC, attr->max_qp_init_rd_atom),
		.mtu = hca->mtu,
		.atomics = attr->atomic_cap != IBV_ATOMIC_NONE,
	};
}

void hca_read_mtu(struct hca *hca)
{
	read_mtu(hca);
}

bool hca_has_mtu(struct hca *hca, enum urxe_mtu mtu)
{
	if (mtu > hca->mtu)
		read_mtu(hca);
	return mtu <= hca->mtu;
}

/* --- Events. */

int hca_comp_fd(const struct hca *hca)
{
	return hca->channel->fd;
}

int hca_async_fd(const struct hca *hca)
{
	return hca->context->async_fd;
}

void hca_handle_events(struct hca *hca)
{
	hca_handle_comp_events(hca);
	hca_handle_async_events(hca);
}

bool hca_drain(struct hca *hca)
{
	hca_handle_events(hca);
	return hca_pass_completions(hca);
}

bool hca_is_dead(const struct hca *hca)
{
	return hca->dead;
}
