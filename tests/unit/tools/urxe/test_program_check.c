/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* `urxe run` looks at the file on PATH that execvp(3) executes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "urxe/program_check.h"

/* The linker puts this function in the place of log_line. */
static bool logged, logged_musl;

void __wrap_log_line(const char *format, ...);

void __wrap_log_line(const char *format, ...)
{
	logged = strstr(format, "statically linked");
	logged_musl = strstr(format, "linked with musl");
}

/* A program with the interpreter; NULL: without one. */
static void write_program(const char *path, const char *interpreter)
{
	struct {
		Elf64_Ehdr file;
		Elf64_Phdr segment;
		char interpreter[64];
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
		.segment = {.p_type = interpreter ? PT_INTERP : PT_LOAD},
	};
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	if (interpreter) {
		snprintf(image.interpreter, sizeof(image.interpreter), "%s", interpreter);
		image.segment.p_offset = sizeof(image.file) + sizeof(image.segment);
		image.segment.p_filesz = strlen(interpreter) + 1;
	}
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

/* In a user namespace that has user and group 0 only. */
static int check_in_namespace(void)
{
	static const char *const maps[][2] = {{"/proc/self/uid_map", "0 0 1"},
					      {"/proc/self/setgroups", "deny"},
					      {"/proc/self/gid_map", "0 0 1"}};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		int fd = open(maps[i][0], O_WRONLY | O_CLOEXEC);

		if (write(fd, maps[i][1], strlen(maps[i][1])) < 0)
			return -1;
		close(fd);
	}
	return program_check("./prog");
}

/* The kernel ignores the bits of a user or group that the user namespace does not have. */
static void test_setuid_of_an_unknown_user_is_ignored(void **state)
{
	int status;
	pid_t child;

	(void)state;
	if (getuid()) {
		print_message("skipped: only root can give a file to another user\n");
		skip();
	}
	assert_int_equal(chown("prog", 12345, 0), 0);
	assert_int_equal(chmod("prog", 04755), 0);
	assert_int_equal(program_check("./prog"), -1);
	child = fork();
	if (!child)
		_exit(unshare(CLONE_NEWUSER) ? 77 : -check_in_namespace());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: no user namespace can be made\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void write_script(const char *path, const char *line)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fprintf(file, "%s\n", line);
	fclose(file);
}

/* The kernel executes the interpreter of a script, so only the interpreter's bits count. */
static void test_bits_of_a_script_have_no_effect(void **state)
{
	static const char *const lines[] = {"#!./prog", "#! \t./prog -e x"};

	(void)state;
	if (getuid()) {
		print_message("skipped: only root can give a file to another group\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		write_script("script", lines[i]);
		write_script("script2", "#!./script");
		assert_int_equal(chown("script", 0, 12345), 0);
		assert_int_equal(chmod("script", 02775), 0);
		assert_int_equal(chmod("script2", 0755), 0);
		assert_int_equal(chown("prog", 0, 12345), 0);
		assert_int_equal(chmod("prog", 0755), 0);
		assert_int_equal(program_check("./script"), 0);
		assert_int_equal(program_check("./script2"), 0);
		assert_int_equal(chmod("prog", 02755), 0);
		assert_int_equal(program_check("./script"), -1);
		assert_int_equal(program_check("./script2"), -1);
	}
	/* Without an interpreter, execvp(3) has a shell execute the file. */
	write_script("script", "#!");
	assert_int_equal(chmod("script", 0755), 0);
	assert_int_equal(program_check("./script"), 0);
	unlink("script");
	unlink("script2");
}

/* musl's dynamic linker would end the program, because it cannot load the library. */
static void test_programs_of_musl_are_refused(void **state)
{
	(void)state;
	write_program("musl", "/lib/ld-musl-x86_64.so.1");
	assert_int_equal(program_check("./musl"), -1);
	assert_true(logged_musl);
	write_program("musl", "/lib64/ld-linux-x86-64.so.2");
	logged = false;
	assert_int_equal(program_check("./musl"), 0);
	assert_false(logged);
	unlink("musl");
}

/* As in `urxe run -- /lib/ld-musl-x86_64.so.1 PROGRAM`. */
static void test_the_linker_of_musl_is_refused(void **state)
{
	(void)state;
	logged = logged_musl = false;
	write_program("ld-musl-x86_64.so.1", NULL);
	assert_int_equal(program_check("./ld-musl-x86_64.so.1"), -1);
	assert_true(logged_musl);
	assert_false(logged);
	unlink("ld-musl-x86_64.so.1");
}

/* The dynamic linker of this process, which has no interpreter itself. */
static int find_linker(struct dl_phdr_info *program, size_t size, void *linker)
{
	(void)size;
	for (size_t i = 0; i < program->dlpi_phnum; i++)
		if (program->dlpi_phdr[i].p_type == PT_INTERP)
			*(const char **)linker =
				(const char *)(uintptr_t)(program->dlpi_addr +
							  program->dlpi_phdr[i].p_vaddr);
	return 1; /* the first one is the program */
}

/* As in `urxe run -- /lib64/ld-linux-x86-64.so.2 PROGRAM`, where the program has the device. */
static void test_a_dynamic_linker_is_no_static_program(void **state)
{
	const char *linker = NULL;

	(void)state;
	dl_iterate_phdr(find_linker, &linker);
	if (!linker) {
		print_message("skipped: this program is statically linked\n");
		skip();
	}
	logged = false;
	assert_int_equal(program_check(linker), 0);
	assert_false(logged);
}

static int enter_directory(void **state)
{
	static char directory[] = "/tmp/urxe-program-XXXXXX";

	*state = mkdtemp(directory);
	if (!*state || chdir(directory))
		return -1;
	write_program("prog", NULL);
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
		cmocka_unit_test(test_setuid_of_an_unknown_user_is_ignored),
		cmocka_unit_test(test_bits_of_a_script_have_no_effect),
		cmocka_unit_test(test_programs_of_musl_are_refused),
		cmocka_unit_test(test_the_linker_of_musl_is_refused),
		cmocka_unit_test(test_a_dynamic_linker_is_no_static_program),
	};

	return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
