/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Uses verbs as a plug-in does: opens libibverbs with RTLD_LOCAL, looks its functions up by
 * version, and closes it again, many times. The program itself does not link libibverbs. First it
 * loads a plug-in whose constructor waits for a thread.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <err.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define TIMES 20
/* Ends a program whose threads wait for each other. */
#define SECONDS 60

static void *function(void *library, const char *name)
{
	void *found = dlvsym(library, name, "IBVERBS_1.1");

	if (!found)
		errx(1, "%s: %s", name, dlerror());
	return found;
}

#define FUNCTION(name) __typeof__(name) *p_##name = (__typeof__(name) *)function(library, #name)

static void use(void *library)
{
	static char room[64];
	FUNCTION(ibv_get_device_list);
	FUNCTION(ibv_free_device_list);
	FUNCTION(ibv_open_device);
	FUNCTION(ibv_close_device);
	FUNCTION(ibv_alloc_pd);
	FUNCTION(ibv_dealloc_pd);
	FUNCTION(ibv_create_cq);
	FUNCTION(ibv_destroy_cq);
	/* The header has a macro of the same name. */
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int) =
		(__typeof__(reg_mr))function(library, "ibv_reg_mr");
	int (*dereg_mr)(struct ibv_mr *) = (__typeof__(dereg_mr))function(library, "ibv_dereg_mr");
	struct ibv_device **list = p_ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? p_ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? p_ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = pd ? p_ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	struct ibv_mr *mr = cq ? reg_mr(pd, room, sizeof(room), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_wc wc;

	if (!mr || ibv_poll_cq(cq, 1, &wc))
		err(1, "cannot use the device");
	if (dereg_mr(mr) || p_ibv_destroy_cq(cq) || p_ibv_dealloc_pd(pd) ||
	    p_ibv_close_device(context))
		err(1, "cannot take the device down");
	p_ibv_free_device_list(list);
}

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Before any other call of a function that the library replaces. */
static void load_plugin(void)
{
	alarm(SECONDS);
	if (!dlopen(PLUGIN, RTLD_NOW))
		errx(1, "%s", dlerror());
	alarm(0);
}

int main(void)
{
	int before;

	load_plugin();
	before = count_descriptors();
	for (int i = 0; i < TIMES; i++) {
		void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

		if (!library)
			errx(1, "%s", dlerror());
		use(library);
		if (dlclose(library))
			errx(1, "%s", dlerror());
	}
	if (count_descriptors() != before)
		errx(1, "%d descriptors before, %d after", before, count_descriptors());
	return 0;
}
