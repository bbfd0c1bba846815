/* SPDX-License-Identifier: BSD-2-Clause */
/* nvtx_payload.c - see nvtx_payload.h. */
#include "../common/compat.h"

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
#define VALUE_BYTES 64
#define ENUMS_MAX 64
#define LOOKED_AT_MAX \
	256 /* members and constants of one registration, also those that are left out */
#define CONSTANTS_MAX 16 /* of an enumeration */
#define PAGE 4096u

/* NVTX's numbers. */
enum {
	FIELD_TYPE = 1 << 2,
	FIELD_ENTRIES = 1 << 4,
	FIELD_NENTRIES = 1 << 5,
	FIELD_ID = 1 << 8,
	FIELD_BYTES = 1 << 6,
	SCHEMA_STATIC = 1,
	/* an array, and one whose length is in the schema */
	ENTRY_ARRAY = 0x7 << 4,
	ENTRY_ARRAY_FIXED = 0x1 << 4,
	/* pointers, offsets, a deep copy, and what is to be hidden */
	ENTRY_NOT_PLAIN = 0x1 << 1 | 0x1 << 2 | 0x1 << 3 | 0x1 << 8 | 0x1 << 9,
	ENUM_FIELD_ENTRIES = 1 << 2,
	ENUM_FIELD_NENTRIES = 1 << 3,
	ENUM_FIELD_BYTES = 1 << 4,
	ENUM_FIELD_ID = 1 << 5,
	TYPE_CHAR = 1,
	TYPE_CSTRING = 75,
};
#define DYNAMIC_IDS (1ULL << 32)

enum how { NONE, SIGNED, UNSIGNED, FLOATING, HEX, STRING, TEXT };

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
	uint8_t constants; /* which of enums[] + 1; 0: none */
	uint16_t count;	   /* elements of an array, bytes of TEXT; 0: it is none */
};

struct known {
	const void *domain;
	uint64_t id;
	uint32_t n;
	uint32_t bytes; /* of a payload; 0: not known */
	struct entry entries[ENTRIES_MAX];
};

struct enumeration {
	const void *domain;
	uint64_t id;
	uint32_t n, bytes;
	struct {
		uint64_t value;
		char name[NAME_BYTES];
	} constants[CONSTANTS_MAX];
};

static struct known schemas[SCHEMAS_MAX];
static uint32_t nschemas; /* grows only; those below are complete */
static struct enumeration enums[ENUMS_MAX];
static uint32_t nenums; /* likewise */
static uint64_t nids;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool read_mem(const void *at, void *buf, size_t len)
{
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)at, len };

	return at &&
	       syscall(SYS_process_vm_readv, syscall(SYS_getpid), &to, 1, &from, 1, 0) == (long)len;
}

/* A string, or what of it fits and does not lie in another page. */
static bool nvtx_payload_read_string(const char *at, char *buf, size_t size)
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

static const struct known *nvtx_payload_find(const void *domain, uint64_t id)
{
	uint32_t n = __atomic_load_n(&nschemas, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		if (schemas[i].id == id && schemas[i].domain == domain)
			return &schemas[i];
	return NULL;
}

/* The place of an enumeration in enums[] + 1; 0: there is none. */
static uint8_t find_enum(const void *domain, uint64_t id)
{
	for (uint32_t i = 0; i < nenums; i++)
		if (enums[i].id == id && enums[i].domain == domain)
			return (uint8_t)(i + 1);
	return 0;
}

/* What a schema says of one member, as an entry without its name and place. False: it is not understood. */
static bool understand(const void *domain, const struct nvtx_schema_entry *e, struct entry *to)
{
	uint64_t array = e->flags & ENTRY_ARRAY;

	*to = (struct entry){ .how = UNSIGNED };
	if (e->flags & ENTRY_NOT_PLAIN || (array && array != ENTRY_ARRAY_FIXED))
		return false;
	to->constants = find_enum(domain, e->type);
	if (to->constants) {
		to->bytes = (uint8_t)enums[to->constants - 1].bytes;
	} else if (e->type < sizeof(types) / sizeof(types[0]) && types[e->type].how) {
		to->how = types[e->type].how;
		to->bytes = types[e->type].bytes;
	} else {
		return false;
	}
	if (!array && !(e->type == TYPE_CSTRING && e->detail))
		return true;
	if (!e->detail || e->detail > BYTES_MAX)
		return false;
	to->count = (uint16_t)e->detail;
	if (e->type == TYPE_CHAR || (e->type == TYPE_CSTRING && !array)) {
		to->how = TEXT;
		to->bytes = 1;
	}
	return true;
}

/* Adds the members of a schema that is a member itself, as "name.member". */
static void take_nested(struct known *k, const struct known *inner, const char *name,
			uint64_t offset)
{
	for (uint32_t i = 0; i < inner->n && k->n < ENTRIES_MAX; i++) {
		struct entry *to = &k->entries[k->n];
		size_t len = strlen(name);

		*to = inner->entries[i];
		if (offset > BYTES_MAX || offset + to->offset > BYTES_MAX)
			return;
		to->offset += (uint32_t)offset;
		if (len > NAME_BYTES / 2)
			len = NAME_BYTES / 2;
		memcpy(to->name, name, len);
		snprintf(to->name + len, sizeof(to->name) - len, ".%.*s",
			 (int)(sizeof(to->name) - len - 2), inner->entries[i].name);
		k->n++;
	}
}

/* Returns false if the entry's place cannot be known, nor that of those behind it. */
static bool take_entry(struct known *k, const struct nvtx_schema_entry *e, uint64_t *end)
{
	const struct known *inner = e->flags & (ENTRY_NOT_PLAIN | ENTRY_ARRAY)
					    ? NULL
					    : nvtx_payload_find(k->domain, e->type);
	struct entry what;
	uint64_t offset = e->offset, bytes;
	char name[NAME_BYTES];

	/* where a nested one lies must be said: its alignment is not known */
	if (inner && inner->bytes && offset <= BYTES_MAX && (offset || !*end)) {
		if (nvtx_payload_read_string(e->name, name, sizeof(name)))
			take_nested(k, inner, name, offset);
		*end = offset + inner->bytes;
		return true;
	}
	if (!understand(k->domain, e, &what))
		return e->offset != 0; /* the next one may say where it is */
	if (!offset && *end) {
		if (*end == UINT64_MAX)
			return false;
		offset = (*end + what.bytes - 1) / what.bytes * what.bytes;
	}
	bytes = (uint64_t)what.bytes * (what.count ? what.count : 1);
	if (offset > BYTES_MAX || bytes > BYTES_MAX - offset)
		return false;
	*end = offset + bytes;
	if (!nvtx_payload_read_string(e->name, what.name, sizeof(what.name)) || !what.name[0])
		return true;
	what.offset = (uint32_t)offset;
	k->entries[k->n++] = what;
	return true;
}

static void take_entries(struct known *k, const struct nvtx_schema *s)
{
	uint64_t end = 0;

	for (size_t i = 0; i < s->nentries && i < LOOKED_AT_MAX && k->n < ENTRIES_MAX; i++) {
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
		k->bytes = s.fields & FIELD_BYTES && s.bytes <= BYTES_MAX ? (uint32_t)s.bytes : 0;
		take_entries(k, &s);
		__atomic_store_n(&nschemas, nschemas + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return id;
}

/* ---- enumerations ---- */

static void take_constants(struct enumeration *to, const struct nvtx_enum *from)
{
	for (size_t i = 0; i < from->nentries && i < LOOKED_AT_MAX && to->n < CONSTANTS_MAX; i++) {
		struct nvtx_enum_entry e;

		if (!read_mem(from->entries + i, &e, sizeof(e)))
			return;
		to->constants[to->n].value = e.value;
		if (nvtx_payload_read_string(e.name, to->constants[to->n].name, NAME_BYTES))
			to->n++;
	}
}

uint64_t nvtx_enum_register(const void *domain, const struct nvtx_enum *from)
{
	struct nvtx_enum e;
	struct enumeration *to;
	uint64_t id;

	if (!read_mem(from, &e, sizeof(e)))
		return 0;
	pthread_mutex_lock(&lock);
	id = e.fields & ENUM_FIELD_ID && e.id ? e.id : DYNAMIC_IDS + ++nids;
	to = &enums[nenums % ENUMS_MAX];
	if (nenums < ENUMS_MAX && e.fields & ENUM_FIELD_ENTRIES && e.fields & ENUM_FIELD_NENTRIES &&
	    e.fields & ENUM_FIELD_BYTES && e.bytes && e.bytes <= 8) {
		memset(to, 0, sizeof(*to));
		to->domain = domain;
		to->id = id;
		to->bytes = (uint32_t)e.bytes;
		take_constants(to, &e);
		nenums++; /* read under the lock, or by way of a schema that came later */
	}
	pthread_mutex_unlock(&lock);
	return id;
}

/* ---- payloads ---- */

static int64_t signed_of(const void *at, uint8_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, at, bytes); /* little-endian */
	return (int64_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

/* One element. */
static void put_one(char *out, size_t size, const struct entry *e, const void *at)
{
	const struct enumeration *c = e->constants ? &enums[e->constants - 1] : NULL;
	char string[STRING_BYTES];
	uint64_t v = 0;
	float f;
	double d;

	memcpy(&v, at, e->bytes);
	for (uint32_t i = 0; c && i < c->n; i++)
		if ((c->constants[i].value ^ v) << (64 - 8 * e->bytes) == 0) {
			snprintf(out, size, "%s", c->constants[i].name);
			return;
		}
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
			 nvtx_payload_read_string((const char *)(uintptr_t)v, string,
						  sizeof(string))
				 ? string
				 : "?");
		break;
	default: snprintf(out, size, "0x%llx", (unsigned long long)v);
	}
}

/* A text that lies in the payload itself. */
static void put_text(char *out, const struct entry *e, const char *at)
{
	size_t n = 0;

	for (; n < e->count && n < STRING_BYTES - 1 && at[n]; n++)
		out[n] = at[n] < ' ' || at[n] == 0x7f ? '?' : at[n];
	out[n] = '\0';
}

/* "[1 2 3]"; an array that does not fit ends with "...". */
static void put_array(char *out, const struct entry *e, const char *at)
{
	char one[STRING_BYTES];
	size_t len = 1;

	out[0] = '[';
	for (uint16_t i = 0; i < e->count; i++) {
		size_t n;

		put_one(one, sizeof(one), e, at + (size_t)i * e->bytes);
		n = strlen(one);
		if (len + n + sizeof(" ...]") > VALUE_BYTES) {
			len += (size_t)snprintf(out + len, VALUE_BYTES - len, "%s...",
						i ? " " : "");
			break;
		}
		len += (size_t)snprintf(out + len, VALUE_BYTES - len, "%s%s", i ? " " : "", one);
	}
	snprintf(out + len, VALUE_BYTES - len, "]");
}

static void put_value(char out[VALUE_BYTES], const struct entry *e, const char *at)
{
	if (e->how == TEXT)
		put_text(out, e, at);
	else if (e->count)
		put_array(out, e, at);
	else
		put_one(out, VALUE_BYTES, e, at);
}

/* Adds a piece. Returns false if there is no room for it and for what says so. */
static bool nvtx_payload_add(char *text, size_t *len, const char *name, const char *value)
{
	size_t room = NVTX_PAYLOAD_TEXT - *len - sizeof("...");
	char piece[NAME_BYTES + VALUE_BYTES + 8];
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
		const struct known *k = nvtx_payload_find(domain, p[i].schema);
		size_t bytes = p[i].bytes < BYTES_MAX ? p[i].bytes : BYTES_MAX;
		char data[BYTES_MAX], value[VALUE_BYTES];

		if (!k || !bytes || !read_mem(p[i].at, data, bytes))
			continue;
		for (uint32_t e = 0; e < k->n; e++) {
			const struct entry *entry = &k->entries[e];

			if (entry->offset +
				    (size_t)entry->bytes * (entry->count ? entry->count : 1) >
			    bytes)
				continue;
			put_value(value, entry, data + entry->offset);
			if (!nvtx_payload_add(text, &len, entry->name, value))
				return len;
		}
	}
	return len;
}
