/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/defines_symbol.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "process/libc_real.h"

/* The head of a section of type SHT_GNU_HASH. The Bloom filter follows, then the buckets, then the
 * chains. */
struct gnu_hash {
	uint32_t n_buckets;
	uint32_t first_symbol; /* index of the first symbol with an entry in the chains */
	uint32_t bloom_words;
	uint32_t bloom_shift;
	ElfW(Addr) bloom[];
};

struct symbol_table {
	const struct gnu_hash *hash; /* NULL: the file has no such section */
	const ElfW(Sym) * symbols;
	const char *names;
};

/* Returns the address in the entry `tag` of the file's dynamic section; NULL: no such entry. The
 * dynamic linker has made these addresses absolute, unless the section is read-only (ld -z
 * rodynamic). */
NOT_INSTRUMENTED static const void *find_section(const struct dl_find_object *file,
						 ElfW(Sxword) tag)
{
	const ElfW(Dyn) *dynamic = file->dlfo_link_map->l_ld;

	while (dynamic->d_tag != tag)
		if (dynamic++->d_tag == DT_NULL)
			return NULL;
	return (const void *)(dynamic->d_un.d_ptr < (uintptr_t)file->dlfo_map_start
				      ? file->dlfo_link_map->l_addr + dynamic->d_un.d_ptr
				      : dynamic->d_un.d_ptr);
}

NOT_INSTRUMENTED static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Whether the table has a definition of the name. An undefined symbol does not count, even if it
 * has a value: a program that takes the address of a library's function stores its PLT entry there.
 */
NOT_INSTRUMENTED static bool has_definition(const struct symbol_table *table, const char *name)
{
	const struct gnu_hash *hash = table->hash;
	const uint32_t *buckets = (const uint32_t *)&hash->bloom[hash->bloom_words];
	const uint32_t *chains = buckets + hash->n_buckets;
	uint32_t i = hash->n_buckets ? buckets[hash_of(name) % hash->n_buckets] : 0;
	bool last = i < hash->first_symbol;

	for (; !last; i++) {
		if (table->symbols[i].st_shndx != SHN_UNDEF &&
		    !strcmp(table->names + table->symbols[i].st_name, name))
			return true;
		last = chains[i - hash->first_symbol] & 1;
	}
	return false;
}

NOT_INSTRUMENTED bool defines_symbol(void *address, const char *name)
{
	struct dl_find_object file;
	struct symbol_table table;

	if (_dl_find_object(address, &file))
		return false;
	table = (struct symbol_table){
		.hash = find_section(&file, DT_GNU_HASH),
		.symbols = find_section(&file, DT_SYMTAB),
		.names = find_section(&file, DT_STRTAB),
	};
	return table.hash && has_definition(&table, name);
}
