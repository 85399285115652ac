/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct hca_verbs loaded;
static bool complete;

#define FUNCTION(member, name)                           \
	{                                                \
		offsetof(struct hca_verbs, member), name \
	}

static const struct {
	size_t at;
	const char *name;
} functions[] = {
	FUNCTION(get_device_list, "ibv_get_device_list"),
	FUNCTION(free_device_list, "ibv_free_device_list"),
	FUNCTION(get_device_name, "ibv_get_device_name"),
	FUNCTION(open_device, "ibv_open_device"),
	FUNCTION(close_device, "ibv_close_device"),
	FUNCTION(query_device, "ibv_query_device"),
	FUNCTION(query_port, "ibv_query_port"),
	FUNCTION(query_pkey, "ibv_query_pkey"),
	FUNCTION(query_gid_table, "_ibv_query_gid_table"),
	FUNCTION(get_async_event, "ibv_get_async_event"),
	FUNCTION(ack_async_event, "ibv_ack_async_event"),
	FUNCTION(alloc_pd, "ibv_alloc_pd"),
	FUNCTION(dealloc_pd, "ibv_dealloc_pd"),
	FUNCTION(reg_mr, "ibv_reg_mr_iova2"),
	FUNCTION(dereg_mr, "ibv_dereg_mr"),
	FUNCTION(create_comp_channel, "ibv_create_comp_channel"),
	FUNCTION(destroy_comp_channel, "ibv_destroy_comp_channel"),
	FUNCTION(create_cq, "ibv_create_cq"),
	FUNCTION(resize_cq, "ibv_resize_cq"),
	FUNCTION(destroy_cq, "ibv_destroy_cq"),
	FUNCTION(get_cq_event, "ibv_get_cq_event"),
	FUNCTION(ack_cq_events, "ibv_ack_cq_events"),
	FUNCTION(create_srq, "ibv_create_srq"),
	FUNCTION(modify_srq, "ibv_modify_srq"),
	FUNCTION(destroy_srq, "ibv_destroy_srq"),
	FUNCTION(create_qp, "ibv_create_qp"),
	FUNCTION(modify_qp, "ibv_modify_qp"),
	FUNCTION(query_qp, "ibv_query_qp"),
	FUNCTION(destroy_qp, "ibv_destroy_qp"),
	FUNCTION(create_ah, "ibv_create_ah"),
	FUNCTION(destroy_ah, "ibv_destroy_ah"),
	FUNCTION(attach_mcast, "ibv_attach_mcast"),
	FUNCTION(detach_mcast, "ibv_detach_mcast"),
};

_Static_assert(sizeof(functions) / sizeof(functions[0]) ==
		       sizeof(struct hca_verbs) / sizeof(void (*)(void)),
	       "every function has a name");

/*
 * Sets `loaded`, and `complete` if libibverbs has all functions. Looks them up by the library's
 * handle, because a libibverbs that a program has loaded with dlopen() may be outside the global
 * scope. dlsym() finds the default version of each name, which is the newest. The handle stays
 * open, because the HCA is used until the program ends.
 */
static void find(void)
{
	void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (!library)
		return;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *f = dlsym(library, functions[i].name);

		if (!f)
			return;
		memcpy((char *)&loaded + functions[i].at, &f, sizeof(f));
	}
	complete = true;
}

const struct hca_verbs *hca_verbs_find(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find);
	return complete ? &loaded : NULL;
}

int hca_verbs_error(int rc)
{
	if (rc < 0)
		return errno > 0 ? -errno : -EIO;
	return -rc;
}

int hca_verbs_null_error(void)
{
	return errno > 0 ? -errno : -ENOMEM;
}
