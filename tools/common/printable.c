/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define NO_CHARACTER UINT32_MAX
#define REPLACEMENT  0xfffd

/*
 * Returns the number of continuation bytes that follow a first byte of UTF-8. Sets *code to the
 * bits of the first byte, and *least to the least code that needs so many bytes. A byte that begins
 * no character: 0, and *code is NO_CHARACTER.
 */
static size_t tail_of(unsigned char first, uint32_t *code, uint32_t *least)
{
	static const struct {
		unsigned char mask, value;
		uint32_t least;
	} rows[] = {
		{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if ((first & rows[i].mask) != rows[i].value)
			continue;
		*code = (unsigned char)(first & ~rows[i].mask);
		*least = rows[i].least;
		return i;
	}
	*code = NO_CHARACTER;
	return 0;
}

/*
 * Reads a UTF-8 character (RFC 3629) into *code. Returns its length, 1 to 4 bytes. For bytes that
 * are no character *code is NO_CHARACTER and the length 1.
 */
static size_t printable_decode(const char *text, uint32_t *code)
{
	const unsigned char *p = (const unsigned char *)text;
	uint32_t least = 0;
	size_t i, tail = tail_of(p[0], code, &least);

	/* The NUL at the end is no continuation byte, so nothing behind it is read. */
	for (i = 1; i <= tail && (p[i] & 0xc0) == 0x80; i++)
		*code = *code << 6 | (p[i] & 0x3f);
	if (i <= tail || *code < least || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000)) {
		*code = NO_CHARACTER;
		return 1;
	}
	return tail + 1;
}

static bool is_harmless(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} harmful[] = {
		{0x00, 0x1f},          /* C0 */
		{0x7f, 0x9f},          /* DEL, C1 */
		{0xad, 0xad},          /* soft hyphen */
		{0x61c, 0x61c},        /* Arabic letter mark */
		{0x180e, 0x180e},      /* Mongolian vowel separator */
		{0x200b, 0x200f},      /* without width; marks of direction */
		{0x2028, 0x202e},      /* line and paragraph separators; embeddings, overrides */
		{0x2060, 0x206f},      /* without width; isolates */
		{0xd800, 0xf8ff},      /* surrogates, private use */
		{0xfe00, 0xfe0f},      /* variation selectors */
		{0xfeff, 0xfeff},      /* byte order mark */
		{0xfff0, 0xffff},      /* specials */
		{0xe0000, 0xffffffff}, /* tags, private use, no characters */
	};
	size_t i;

	for (i = 0; i < sizeof(harmful) / sizeof(harmful[0]); i++)
		if (code >= harmful[i].first && code <= harmful[i].last)
			return false;
	return true;
}

void printable_copy(char *to, size_t size, const char *text)
{
	size_t len, done = 0;
	uint32_t code;

	for (; *text; text += len) {
		bool harmless;

		len = printable_decode(text, &code);
		harmless = is_harmless(code);
		if (done + (harmless ? len : 1) >= size)
			break;
		if (harmless)
			memcpy(to + done, text, len);
		else
			to[done] = '?';
		done += harmless ? len : 1;
	}
	to[done] = '\0';
}

static void put_escape(FILE *out, uint32_t code)
{
	if (code == NO_CHARACTER)
		code = REPLACEMENT;
	if (code < 0x10000)
		fprintf(out, "\\u%04x", code);
	else
		fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
			0xdc00 + ((code - 0x10000) & 0x3ff));
}

void printable_json(FILE *out, const char *text)
{
	uint32_t code;

	putc('"', out);
	while (*text) {
		text += printable_decode(text, &code);
		if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (char)code);
		else if (code >= ' ' && code <= '~')
			putc((int)code, out);
		else
			put_escape(out, code);
	}
	putc('"', out);
}
