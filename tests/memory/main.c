/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * memory -l THEME lists the rows of a theme. memory [-u] THEME ROW runs a row, with -u on urxe0.
 * Exit status 77: the kernel forbids the row.
 */
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "region.h"
#include "row.h"

#define SKIPPED 77

static const struct {
	const char *name;
	const struct row *rows;
} themes[] = {
	{"fork", fork_rows},
	{"pin", pin_rows},
	{"uring", uring_rows},
	{"file", file_rows},
	{"futex", futex_rows},
	{"madvise", madvise_rows},
	{"mapping", mapping_rows},
	{"fault", fault_rows},
	{"stack", stack_rows},
	{"debugger", debugger_rows},
	{"descriptor", descriptor_rows},
	{"dmabuf", dmabuf_rows},
};

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}

void skip(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
	_exit(SKIPPED);
}

void skip_unless(int supported, const char *call)
{
	if (!supported)
		skip("%s: %s", call, strerror(errno));
}

static const struct row *find_theme(const char *name)
{
	for (size_t i = 0; i < sizeof(themes) / sizeof(*themes); i++)
		if (!strcmp(themes[i].name, name))
			return themes[i].rows;
	errx(2, "no theme %s", name);
}

static const struct row *find_row(const struct row *rows, const char *name)
{
	while (rows->name && strcmp(rows->name, name))
		rows++;
	if (!rows->name)
		errx(2, "no row %s", name);
	return rows;
}

int main(int argc, char **argv)
{
	bool with_urxe = argc == 4 && !strcmp(argv[1], "-u");
	const struct row *row;

	if (argc == 3 && !strcmp(argv[1], "-l")) {
		for (row = find_theme(argv[2]); row->name; row++)
			puts(row->name);
		return 0;
	}
	if (argc != 3 + with_urxe)
		errx(2, "usage: memory -l THEME | memory [-u] THEME ROW");
	row = find_row(find_theme(argv[argc - 2]), argv[argc - 1]);
	region_start(with_urxe);
	row->run(row->arg);
	region_stop();
	return 0;
}
