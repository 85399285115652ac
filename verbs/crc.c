/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "crc.h"

#include <dlfcn.h>
#include <errno.h>

#include <isa-l/crc.h>

#include "log.h"

#define LIBRARY "libisal.so.2"

static __typeof__(&crc32_gzip_refl) loaded;

/* What the engine calls. */
uint32_t crc32_gzip_refl(uint32_t crc, const unsigned char *bytes, uint64_t n)
{
	return loaded(crc, bytes, n);
}

int crc_load(void)
{
	void *library;

	if (loaded)
		return 0;
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library)
		loaded = (__typeof__(loaded))dlsym(library, "crc32_gzip_refl");
	if (loaded)
		return 0;
	log_error("cannot load " LIBRARY ": %s", dlerror());
	return -ENOENT;
}
