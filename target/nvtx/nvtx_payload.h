/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nvtx_payload.h - converts payloads of NVTX 3 to text, if the program has described their layout
 * (nvtxPayloadSchemaRegister). This is a part of the object for NVTX (target/nvtx/nvtx.c), in a process
 * that is not ours: nothing is allocated, and memory behind the program's pointers is read by
 * process_vm_readv(2), which fails where a load would crash. Structs are those of
 * nvtx3/nvToolsExtPayload.h.
 */
#ifndef CT_NVTX_PAYLOAD_H
#define CT_NVTX_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

struct nvtx_schema_entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail, offset;
	const void *semantics, *reserved;
};

struct nvtx_schema {
	uint64_t fields; /* which of the others are given */
	const char *name;
	uint64_t type, flags;
	const struct nvtx_schema_entry *entries;
	size_t nentries, bytes, align;
	uint64_t id;
	void *extension;
};

struct nvtx_enum_entry {
	const char *name;
	uint64_t value;
	int8_t is_flag;
};

struct nvtx_enum {
	uint64_t fields;
	const char *name;
	const struct nvtx_enum_entry *entries;
	size_t nentries, bytes;
	uint64_t id;
	void *extension;
};

struct nvtx_payload {
	uint64_t schema;
	size_t bytes;
	const void *at;
};

#define NVTX_PAYLOAD_TEXT 120 /* bytes of a text, with its NUL: what a probe reads */

/* Returns the id of a schema in a domain; 0: it is not a schema. A schema that is not kept (there
 * are too many, or its layout is not understood) has an id, too. */
uint64_t nvtx_schema_register(const void *domain, const struct nvtx_schema *);

/* The same for an enumeration, whose values then have names. */
uint64_t nvtx_enum_register(const void *domain, const struct nvtx_enum *);

/* Writes a text such as "nranks=4, rank=2" for n payloads, as far as their schemas are known. A
 * text that does not fit ends with "...". Returns its length; 0: no schema is known. */
size_t nvtx_payload_text(const void *domain, const struct nvtx_payload *, uint32_t n,
			 char text[NVTX_PAYLOAD_TEXT]);

#endif
