/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "urxed/session/slot_file.h"

static void limit_files(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Puts an object, and returns what that has logged. */
static const char *log_of_put(struct slot_file *s)
{
	static char text[4096];
	const int file = memfd_create("log", MFD_CLOEXEC), standard_error = dup(STDERR_FILENO);

	assert_true(dup2(file, STDERR_FILENO) >= 0);
	errno = EPERM;
	assert_int_not_equal(slot_file_put(s, SLOT_FILE_NONE, "object", 6), SLOT_FILE_NONE);
	dup2(standard_error, STDERR_FILENO);
	close(standard_error);
	memset(text, 0, sizeof(text));
	limit_files(RLIM_INFINITY);
	assert_true(pread(file, text, sizeof(text) - 1, 0) >= 0);
	close(file);
	return text;
}

/* The file system has room for a part of the object. */
static void a_short_write_is_a_lack_of_room(void **state)
{
	char dir[] = "/tmp/urxe-test-XXXXXX";
	struct slot_file s;
	struct stat status;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(slot_file_open(&s, dir, "slots", "test"), 0);
	assert_int_equal(slot_file_put(&s, SLOT_FILE_NONE, "first", 5), 0);
	assert_int_equal(fstat(s.fd, &status), 0);
	limit_files((rlim_t)status.st_size + 1004);
	assert_non_null(strstr(log_of_put(&s), strerror(ENOSPC)));
	slot_file_close(&s, dir, "slots", false);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_short_write_is_a_lack_of_room)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
