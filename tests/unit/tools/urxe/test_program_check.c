/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* `urxe run` looks at the file on PATH that execvp(3) executes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "urxe/program_check.h"

/* The linker puts this function in the place of log_line. */
static bool logged;

void __wrap_log_line(const char *format, ...);

void __wrap_log_line(const char *format, ...)
{
	assert_non_null(strstr(format, "statically linked"));
	logged = true;
}

/* A program without an interpreter. */
static void write_static_program(const char *path)
{
	const struct {
		Elf64_Ehdr file;
		Elf64_Phdr segment;
	} image = {
		.file = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT},
			 .e_type = ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(Elf64_Ehdr),
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1},
		.segment = {.p_type = PT_LOAD},
	};
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(&image, sizeof(image), 1, file), 1);
	fclose(file);
	assert_int_equal(chmod(path, 0755), 0);
}

/* Whether the static program of the current directory is found. */
static bool finds(const char *path)
{
	if (path)
		setenv("PATH", path, 1);
	else
		unsetenv("PATH");
	logged = false;
	assert_int_equal(program_check("prog"), 0);
	return logged;
}

static void test_empty_elements_are_the_current_directory(void **state)
{
	(void)state;
	assert_true(finds("."));
	assert_true(finds(""));
	assert_true(finds(":/none"));
	assert_true(finds("/none::/none"));
	assert_true(finds("/none:"));
	assert_false(finds("/none"));
	assert_false(finds(NULL));
}

static void test_directories_are_no_programs(void **state)
{
	(void)state;
	assert_int_equal(mkdir("dir", 0755), 0);
	assert_int_equal(mkdir("dir/prog", 0755), 0);
	assert_true(finds("dir:."));
	rmdir("dir/prog");
	rmdir("dir");
}

static int enter_directory(void **state)
{
	static char directory[] = "/tmp/urxe-program-XXXXXX";

	*state = mkdtemp(directory);
	if (!*state || chdir(directory))
		return -1;
	write_static_program("prog");
	return 0;
}

static int leave_directory(void **state)
{
	unlink("prog");
	return chdir("/") || rmdir(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_elements_are_the_current_directory),
		cmocka_unit_test(test_directories_are_no_programs),
	};

	return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
