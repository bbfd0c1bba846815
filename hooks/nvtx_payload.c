/* SPDX-License-Identifier: BSD-2-Clause */
/* nvtx_payload.c - see nvtx_payload.h. */
#include "../cupti/agent/compat.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "nvtx_payload.h"

#define SCHEMAS_MAX 256
#define ENTRIES_MAX 16
#define LISTED_MAX 4  /* payloads of one event */
#define BYTES_MAX 512 /* of one payload, that are read */
#define NAME_BYTES 24
#define STRING_BYTES 32
#define PAGE 4096u

/* NVTX's numbers. */
enum {
	FIELD_TYPE = 1 << 2,
	FIELD_ENTRIES = 1 << 4,
	FIELD_NENTRIES = 1 << 5,
	FIELD_ID = 1 << 8,
	SCHEMA_STATIC = 1,
	/* pointers, offsets, arrays, a deep copy, and what is to be hidden */
	ENTRY_NOT_PLAIN = 0x1 << 1 | 0x1 << 2 | 0x1 << 3 | 0x7 << 4 | 0x1 << 8 | 0x1 << 9,
};
#define DYNAMIC_IDS (1ULL << 32)

enum how { NONE, SIGNED, UNSIGNED, FLOATING, HEX, STRING };

/* By NVTX's numbers of types. */
static const struct {
	uint8_t how, bytes;
} types[] = {
	[1] = { SIGNED, 1 },
	[2] = { UNSIGNED, 1 },
	[3] = { SIGNED, 2 },
	[4] = { UNSIGNED, 2 },
	[5] = { SIGNED, 4 },
	[6] = { UNSIGNED, 4 },
	[7] = { SIGNED, sizeof(long) },
	[8] = { UNSIGNED, sizeof(long) },
	[9] = { SIGNED, 8 },
	[10] = { UNSIGNED, 8 },
	[11] = { SIGNED, 1 },
	[12] = { UNSIGNED, 1 },
	[13] = { SIGNED, 2 },
	[14] = { UNSIGNED, 2 },
	[15] = { SIGNED, 4 },
	[16] = { UNSIGNED, 4 },
	[17] = { SIGNED, 8 },
	[18] = { UNSIGNED, 8 },
	[19] = { FLOATING, 4 },
	[20] = { FLOATING, 8 },
	[22] = { UNSIGNED, sizeof(size_t) },
	[23] = { HEX, sizeof(void *) },
	[32] = { HEX, 1 },
	[43] = { FLOATING, 4 },
	[44] = { FLOATING, 8 },
	[71] = { UNSIGNED, 4 },
	[72] = { UNSIGNED, 8 },
	[73] = { UNSIGNED, 4 },
	[74] = { UNSIGNED, 8 },
	[75] = { STRING, sizeof(char *) },
	[76] = { STRING, sizeof(char *) },
};

struct entry {
	char name[NAME_BYTES];
	uint32_t offset;
	uint8_t how, bytes;
};

struct known {
	const void *domain;
	uint64_t id;
	uint32_t n;
	struct entry entries[ENTRIES_MAX];
};

static struct known schemas[SCHEMAS_MAX];
static uint32_t nschemas; /* grows only; those below are complete */
static uint64_t nids;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool read_mem(const void *at, void *buf, size_t len)
{
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)at, len };

	return at &&
	       syscall(SYS_process_vm_readv, syscall(SYS_getpid), &to, 1, &from, 1, 0) == (long)len;
}

/* A string, or what of it fits and does not lie in another page. */
static bool read_string(const char *at, char *buf, size_t size)
{
	size_t len = PAGE - (uintptr_t)at % PAGE;

	memset(buf, 0, size);
	if (len > size - 1)
		len = size - 1;
	if (!read_mem(at, buf, len))
		return false;
	for (char *p = buf; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	return true;
}

/* ---- schemas ---- */

/* Returns false if the entry's place cannot be known, nor that of those behind it. */
static bool take_entry(struct known *k, const struct nvtx_schema_entry *e, uint64_t *end)
{
	struct entry *to = &k->entries[k->n];
	uint64_t type = e->type, offset = e->offset;

	if (type >= sizeof(types) / sizeof(types[0]) || !types[type].how ||
	    e->flags & ENTRY_NOT_PLAIN)
		return e->offset != 0; /* the next one may say where it is */
	if (!offset && *end) {
		if (*end == UINT64_MAX)
			return false;
		offset = (*end + types[type].bytes - 1) / types[type].bytes * types[type].bytes;
	}
	if (offset > (uint64_t)BYTES_MAX - types[type].bytes)
		return false;
	*end = offset + types[type].bytes;
	if (!read_string(e->name, to->name, sizeof(to->name)) || !to->name[0])
		return true;
	to->offset = (uint32_t)offset;
	to->how = types[type].how;
	to->bytes = types[type].bytes;
	k->n++;
	return true;
}

static void take_entries(struct known *k, const struct nvtx_schema *s)
{
	uint64_t end = 0;

	for (size_t i = 0; i < s->nentries && k->n < ENTRIES_MAX; i++) {
		struct nvtx_schema_entry e;

		if (!read_mem(s->entries + i, &e, sizeof(e)))
			return;
		if (i && !e.offset && !end)
			end = UINT64_MAX; /* the one before was not understood */
		if (!take_entry(k, &e, &end))
			return;
	}
}

uint64_t nvtx_schema_register(const void *domain, const struct nvtx_schema *from)
{
	struct nvtx_schema s;
	struct known *k;
	uint64_t id;

	if (!read_mem(from, &s, sizeof(s)))
		return 0;
	pthread_mutex_lock(&lock);
	id = s.fields & FIELD_ID && s.id ? s.id : DYNAMIC_IDS + ++nids;
	k = &schemas[nschemas % SCHEMAS_MAX];
	if (nschemas < SCHEMAS_MAX && s.fields & FIELD_ENTRIES && s.fields & FIELD_NENTRIES &&
	    (!(s.fields & FIELD_TYPE) || s.type == SCHEMA_STATIC)) {
		memset(k, 0, sizeof(*k));
		k->domain = domain;
		k->id = id;
		take_entries(k, &s);
		__atomic_store_n(&nschemas, nschemas + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return id;
}

/* ---- payloads ---- */

static const struct known *find(const void *domain, uint64_t id)
{
	uint32_t n = __atomic_load_n(&nschemas, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		if (schemas[i].id == id && schemas[i].domain == domain)
			return &schemas[i];
	return NULL;
}

static int64_t signed_of(const void *at, uint8_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, at, bytes); /* little-endian */
	return (int64_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

static void put_value(char *out, size_t size, const struct entry *e, const void *at)
{
	char string[STRING_BYTES];
	uint64_t v = 0;
	float f;
	double d;

	memcpy(&v, at, e->bytes);
	switch (e->how) {
	case SIGNED: snprintf(out, size, "%lld", (long long)signed_of(at, e->bytes)); break;
	case UNSIGNED: snprintf(out, size, "%llu", (unsigned long long)v); break;
	case FLOATING:
		memcpy(&f, at, sizeof(f));
		d = f;
		if (e->bytes == sizeof(d))
			memcpy(&d, at, sizeof(d));
		snprintf(out, size, "%.6g", d);
		break;
	case STRING:
		snprintf(out, size, "%s",
			 read_string((const char *)(uintptr_t)v, string, sizeof(string)) ? string
											 : "?");
		break;
	default: snprintf(out, size, "0x%llx", (unsigned long long)v);
	}
}

/* Adds a piece. Returns false if there is no room for it and for what says so. */
static bool add(char *text, size_t *len, const char *name, const char *value)
{
	size_t room = NVTX_PAYLOAD_TEXT - *len - sizeof("...");
	char piece[NAME_BYTES + STRING_BYTES + 8];
	int n = snprintf(piece, sizeof(piece), "%s%s=%s", *len ? ", " : "", name, value);

	if (n < 0 || (size_t)n > room) {
		memcpy(text + *len, "...", sizeof("..."));
		*len += 3;
		return false;
	}
	memcpy(text + *len, piece, (size_t)n + 1);
	*len += (size_t)n;
	return true;
}

size_t nvtx_payload_text(const void *domain, const struct nvtx_payload *list, uint32_t n,
			 char text[NVTX_PAYLOAD_TEXT])
{
	struct nvtx_payload p[LISTED_MAX];
	size_t len = 0;

	text[0] = '\0';
	if (n > LISTED_MAX)
		n = LISTED_MAX;
	if (!n || !read_mem(list, p, n * sizeof(p[0])))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct known *k = find(domain, p[i].schema);
		size_t bytes = p[i].bytes < BYTES_MAX ? p[i].bytes : BYTES_MAX;
		char data[BYTES_MAX], value[STRING_BYTES];

		if (!k || !bytes || !read_mem(p[i].at, data, bytes))
			continue;
		for (uint32_t e = 0; e < k->n; e++) {
			const struct entry *entry = &k->entries[e];

			if (entry->offset + entry->bytes > bytes)
				continue;
			put_value(value, sizeof(value), entry, data + entry->offset);
			if (!add(text, &len, entry->name, value))
				return len;
		}
	}
	return len;
}
