/* SPDX-License-Identifier: BSD-2-Clause */
/* domain.c - see domain.h. */
#include "domain.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "xlat.h"

const struct api_domain_row api_domains[API_DOMAIN_END] = {
#define DOMAIN(id, word, ...) [API_##id] = { .name = word, __VA_ARGS__ },
#include "domains.def"
#undef DOMAIN
};

const char *const api_domain_names[] = {
#define DOMAIN(id, word, ...) word,
#include "domains.def"
#undef DOMAIN
	NULL
};

const char *const api_layer_names[] = {
#define DOMAIN(id, word, ...) word,
#include "layers/layers.def"
#undef DOMAIN
	NULL
};

bool api_layers_inlined(uint32_t layers)
{
	for (int d = API_FIRST_LAYER; d < API_DOMAIN_END; d++)
		if (layers >> (d - API_FIRST_LAYER) & 1 && api_domains[d].inlined)
			return true;
	return false;
}

const char *api_domain_name(enum api_domain domain)
{
	return domain < API_DOMAIN_END ? api_domains[domain].name : "?";
}

enum api_domain api_domain_find(const char *name, size_t len)
{
	int d = 0;

	while (d < API_DOMAIN_END &&
	       (strlen(api_domains[d].name) != len || memcmp(api_domains[d].name, name, len)))
		d++;
	return (enum api_domain)d;
}

enum api_domain api_domain_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	for (int d = 0; d < API_DOMAIN_END; d++)
		for (int i = 0; i < API_DOMAIN_FILES && api_domains[d].files[i]; i++)
			if (!fnmatch(api_domains[d].files[i], base, 0))
				return (enum api_domain)d;
	return API_DOMAIN_END;
}

const char *const *api_domain_symbols(void)
{
	static const char *all[API_DOMAIN_END * API_DOMAIN_SYMBOLS + 1];
	static bool made;
	int n = 0;

	for (int d = 0; d < API_DOMAIN_END && !made; d++)
		for (int i = 0; i < API_DOMAIN_SYMBOLS && api_domains[d].symbols[i]; i++)
			all[n++] = api_domains[d].symbols[i];
	made = true;
	return all;
}

bool api_domain_symbol(const char *symbol)
{
	for (const char *const *begin = api_domain_symbols(); *begin; begin++)
		if (*symbol == **begin && !strncmp(symbol, *begin, strlen(*begin)))
			return true;
	return false;
}

int api_domain_since(enum api_domain domain, const char *symbol)
{
	const struct api_domain_row *d = &api_domains[domain];

	for (int i = 0; i < API_DOMAIN_SINCE && d->since[i].symbol; i++)
		if (!strcmp(d->since[i].symbol, symbol))
			return d->since[i].version;
	return 0;
}

int api_domain_version(enum api_domain domain, const char *soname)
{
	const char *begin = api_domains[domain].soname;
	int major;

	if (!begin || strncmp(soname, begin, strlen(begin)))
		return 0;
	major = atoi(soname + strlen(begin));
	return major > 0 && major < 100 ? major * 1000 : 0;
}
