/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * station a|b DEVICE PORT: plays one station of a fixture on a real device for record.py, which is
 * the wire. Accepts one TCP connection on PORT, with commands of one line:
 *
 * text LENGTH   followed by the fixture's text. The first text describes the objects; the answer
 * has their numbers. The second text has both stations' numbers and connects the QPs. line N
 * executes line N of the text
 *
 * Each answer is a line: ok, or an error message.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "objects.h"
#include "work.h"

#define TEXT_MAX 65536

static struct objects objects;
static struct fixture *fixture;

/* Accepts the connection, as a stream to read from and one to write to. */
static void accept_one(uint16_t port, FILE **in, FILE **out)
{
	const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), connection;

	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(listener, (const struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, 1))
		objects_fail("listening");
	connection = accept(listener, NULL, NULL);
	if (connection < 0)
		objects_fail("accepting");
	*in = fdopen(connection, "r");
	*out = fdopen(dup(connection), "w");
	if (!*in || !*out)
		objects_fail("accepting");
}

/* Writes the text into a folder, because the parser of fixtures reads a folder. */
static struct fixture *read_text(FILE *in, size_t length)
{
	char folder[] = "/tmp/station-XXXXXX", path[64], *text = calloc(1, TEXT_MAX);
	struct fixture *read;
	FILE *file;

	if (!text || length > TEXT_MAX || fread(text, 1, length, in) != length || !mkdtemp(folder))
		objects_fail("taking the text");
	snprintf(path, sizeof(path), "%s/fixture.txt", folder);
	file = fopen(path, "we");
	if (!file || fwrite(text, 1, length, file) != length || fclose(file))
		objects_fail(path);
	free(text);
	read = fixture_read(folder);
	unlink(path);
	rmdir(folder);
	return read;
}

static void tell_numbers(FILE *out)
{
	fputs("ok qpn", out);
	for (unsigned i = 0; i < fixture->n_connections; i++)
		fprintf(out, " %#x", objects.qp[i]->qp_num);
	fputs(" mr", out);
	for (unsigned i = 0; i < fixture->station[objects.side].n_regions; i++)
		fprintf(out, " %#x", objects.mr[i]->rkey);
	fputs(" mw", out);
	for (unsigned i = 0; i < objects.n_mw; i++)
		fprintf(out, " %#x", objects.mw[i]->rkey);
	fputc('\n', out);
}

static void take_text(FILE *in, FILE *out, size_t length, enum side side, const char *device)
{
	struct fixture *read = read_text(in, length);

	if (!fixture) {
		fixture = read;
		objects_create(&objects, fixture, side, device);
		tell_numbers(out);
		return;
	}
	objects_connect(&objects, read);
	fixture_free(fixture);
	fixture = read;
	fputs("ok\n", out);
}

static void do_line(FILE *out, unsigned line)
{
	char why[256];

	for (unsigned i = 0; fixture && i < fixture->n_steps; i++) {
		const struct step *step = &fixture->steps[i];

		if (step->line != line || work_step(&objects, step, why, sizeof(why)))
			continue;
		fprintf(out, "line %u: %s\n", line, why);
		return;
	}
	fputs("ok\n", out);
}

static void serve(FILE *in, FILE *out, enum side side, const char *device)
{
	char command[64];

	while (fgets(command, sizeof(command), in)) {
		char *space = strchr(command, ' ');
		unsigned long number = space ? strtoul(space, NULL, 10) : 0;

		if (!strncmp(command, "text ", 5))
			take_text(in, out, number, side, device);
		else if (!strncmp(command, "line ", 5))
			do_line(out, (unsigned)number);
		else
			fputs("no such command\n", out);
		fflush(out);
	}
}

int main(int argc, char **argv)
{
	FILE *in, *out;

	if (argc != 4 || (strcmp(argv[1], "a") && strcmp(argv[1], "b"))) {
		fputs("usage: station a|b DEVICE PORT\n", stderr);
		return 2;
	}
	accept_one((uint16_t)atoi(argv[3]), &in, &out);
	serve(in, out, *argv[1] == 'a' ? SIDE_A : SIDE_B, argv[2]);
	return 0;
}
