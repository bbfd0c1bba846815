/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seeds.c - writes what the fuzzers begin with: seeds trace RECORDING FOLDER; seeds dwarf LIBRARY FOLDER;
 * seeds agent|hooks|python|payload|device FOLDER.
 *
 * Of a recording each block of records, its columns not compressed, once for each command of
 * fuzz_trace.c. Of a library its sections of debug information. Of an agent the messages that follow its
 * greeting, of hooks these and what their area may hold. Of Python and of NVTX's payloads, memory as a program may have it. Of
 * device code, a cubin and PTX, packed in each way.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <lz4.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "../../wire/agent_wire.h"
#include "../../target/nvtx/nvtx_payload.h"
#include "../../wire/hooks_wire.h"
#include "../unit/make_elf.h"
#include "../unit/make_python.h"
#include "../unit/patch_trace.h"
#include "dwarf_sections.h"
#include "../../wire/control.h"

#define COMMANDS 13		  /* rows of runs[] in fuzz_trace.c */
#define NOWHERE "\x01no function" /* patch_body() is wanted for its columns alone */

static int store(const char *folder, const char *name, int number, const void *head, size_t nhead,
		 const void *body, size_t nbody)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s-%d", folder, name, number);
	f = fopen(path, "w");
	if (!f || fwrite(head, 1, nhead, f) != nhead || fwrite(body, 1, nbody, f) != nbody ||
	    fclose(f))
		return 1;
	return 0;
}

static int trace(const char *path, const char *folder)
{
	static char file[1 << 20], body[8 << 20];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int fd = open(path, O_RDONLY), n = 0, found = 0;
	ssize_t len = fd < 0 ? -1 : read(fd, file, sizeof(file));

	for (ssize_t at = TRACE_MAGIC_LEN;
	     len > 0 && at + (ssize_t)sizeof(struct trace_block) <= len;) {
		struct trace_block b;
		size_t plain;

		memcpy(&b, file + at, sizeof(b));
		at += (ssize_t)sizeof(b);
		if (b.magic != TRACE_BLOCK_MAGIC || at + (ssize_t)b.len > len)
			break;
		plain = b.type == TRACE_DATA
				? patch_body(file + at, body, NOWHERE, NOWHERE, 0, &found)
				: 0;
		for (char command = 0; plain && command < COMMANDS; command++, n++)
			if (store(folder, name, n, &command, 1, body, plain))
				return 1;
		at += (ssize_t)b.len;
	}
	return !n;
}

/* A message as fuzz_agent.c takes it: its type, the length of what follows the head, and that. */
static size_t add(char *to, int type, const void *bytes, size_t len)
{
	to[0] = (char)type;
	to[1] = (char)len;
	to[2] = (char)(len >> 8);
	memcpy(to + 3, bytes, len);
	return len + 3;
}

static int agent(const char *folder)
{
	struct {
		struct agent_list l;
		struct agent_name e;
		char name[24];
	} names = { .l = { .n = 1, .flags = AGENT_LAST },
		    .e = { .cbid = 7, .domain = AGENT_RUNTIME, .len = 22 },
		    .name = "cudaLaunchKernel_v7000" };
	struct agent_started started = { .clock = AGENT_CLOCK_CALLBACK, .kinds = ~0u };
	struct ct_kernel kernel = {
		.w.h = { .size = sizeof(kernel), .kind = CT_KERNEL, .start_ns = 5, .end_ns = 9 }
	};
	struct ct_lost lost = { .h = { .size = sizeof(lost), .kind = CT_LOST },
				.cause = CT_LOSS_DEVICE,
				.count = 3 };
	struct agent_bye bye = { .records = 2 };
	char input[1024], records[sizeof(kernel) + sizeof(lost)];
	size_t n = 0;

	memcpy(records, &kernel, sizeof(kernel));
	memcpy(records + sizeof(kernel), &lost, sizeof(lost));
	n += add(input + n, AGENT_NAMES, (char *)&names + sizeof(struct meet_head),
		 sizeof(names) - sizeof(struct meet_head));
	n += add(input + n, AGENT_STARTED, (char *)&started + sizeof(struct meet_head),
		 sizeof(started) - sizeof(struct meet_head));
	n += add(input + n, AGENT_RECORDS, records, sizeof(records));
	n += add(input + n, AGENT_BYE, (char *)&bye + sizeof(struct meet_head),
		 sizeof(bye) - sizeof(struct meet_head));
	return store(folder, "agent", 0, input, n, "", 0);
}

/* ---- the sections of a library, as fuzz_dwarf.c takes them ---- */

static int dwarf(const char *path, const char *folder)
{
	static char file[1 << 20], input[1 << 20];
	const char *slash = strrchr(path, '/'), *names;
	int fd = open(path, O_RDONLY);
	ssize_t len = fd < 0 ? -1 : read(fd, file, sizeof(file));
	const Elf64_Ehdr *e = (void *)file;
	const Elf64_Shdr *s;
	size_t n = 0;

	if (len < (ssize_t)sizeof(*e) || !slash)
		return 1;
	s = (void *)(file + e->e_shoff);
	names = file + s[e->e_shstrndx].sh_offset;
	for (int i = 1; i < e->e_shnum; i++)
		for (size_t k = 0; k < sizeof(dwarf_sections) / sizeof(dwarf_sections[0]); k++)
			if (!strcmp(names + s[i].sh_name, dwarf_sections[k].name))
				n += add(input + n, (int)k, file + s[i].sh_offset, s[i].sh_size);
	return store(folder, slash + 1, 0, input, n, "", 0);
}

/* ---- memory, which lies at MEMORY ---- */

#define MEMORY 0x10000000ull

/* In each run the process is another one: the fuzzer puts the thread's number in the place of THREADID. */
static int python(const char *folder)
{
	const size_t skip = offsetof(struct ct_python, runtime_interpreters_head);
	struct python_memory m;
	struct ct_python p;
	char head[1 + sizeof(p)], version;
	uint64_t tid;

	memcpy(&tid, "THREADID", sizeof(tid));
	p = make_python(&m, MEMORY, tid);
	for (version = 0; version < 3; version++) {
		head[0] = version;
		memcpy(head + 1, (char *)&p + skip, sizeof(p) - skip);
		if (store(folder, "python", version, head, 1 + sizeof(p) - skip, &m, sizeof(m)))
			return 1;
	}
	return 0;
}

/* An enumeration, a schema with members of many types, one in which it is a member, and two payloads. */
static int payload(const char *folder)
{
	static const uint8_t types[] = { 5, 16, 20, 75, 1, 23 };
	static struct {
		uint8_t steps[16][4];
		struct nvtx_enum en;
		struct nvtx_enum_entry constants[2];
		struct nvtx_schema inner, outer;
		struct nvtx_schema_entry entries[7], outers[2];
		struct nvtx_payload payloads[2];
		char names[8][8];
		uint64_t data[64];
	} m;
#define AT(member) (void *)(MEMORY + offsetof(__typeof__(m), member))
#define STEP(i, what, member)                                                \
	memcpy(m.steps[i],                                                   \
	       (uint8_t[]){ what, 0, offsetof(__typeof__(m), member) & 0xff, \
			    offsetof(__typeof__(m), member) >> 8 },          \
	       4)
	STEP(0, 2, en);
	STEP(1, 1, inner);
	STEP(2, 1, outer);
	STEP(3, 3 | 2 << 2, payloads);
	m.en = (struct nvtx_enum){ 0x3c, AT(names[0]), AT(constants), 2, 4, 70000, NULL };
	m.constants[0] = (struct nvtx_enum_entry){ AT(names[1]), 1, 0 };
	m.constants[1] = (struct nvtx_enum_entry){ AT(names[2]), 2, 0 };
	m.inner = (struct nvtx_schema){ 0x174, AT(names[3]), 1, 0,     AT(entries),
					7,     64,	     8, 70001, NULL };
	for (int i = 0; i < 6; i++)
		m.entries[i] = (struct nvtx_schema_entry){ .type = types[i], .name = AT(names[i]) };
	m.entries[4].flags = 0x10; /* an array of four characters */
	m.entries[4].detail = 4;
	m.entries[6] =
		(struct nvtx_schema_entry){ .type = 70000, .name = AT(names[6]), .offset = 56 };
	m.outer = (struct nvtx_schema){ 0x174, AT(names[3]), 1, 0,     AT(outers),
					2,     128,	     8, 70002, NULL };
	m.outers[0] = (struct nvtx_schema_entry){ .type = 70001, .name = AT(names[7]) };
	m.outers[1] = (struct nvtx_schema_entry){
		.type = 6, .name = AT(names[0]), .offset = 64, .flags = 0x10, .detail = 3
	};
	for (int i = 0; i < 2; i++)
		m.payloads[i] = (struct nvtx_payload){ 70001 + (uint64_t)i, 64 << i, AT(data) };
	for (int i = 0; i < 8; i++)
		memcpy(m.names[i], "member", 6), m.names[i][6] = (char)('a' + i);
	m.data[2] = MEMORY + offsetof(__typeof__(m), names);
	m.data[7] = 1;
	return store(folder, "payload", 0, &m, sizeof(m), "", 0);
}

/* What fuzz_hooks.c reads: a list of messages, and as many bytes of pieces of an area. */
struct half {
	uint8_t bytes[4096];
	size_t n;
};

static void add_message(struct half *to, uint8_t how, const void *body, uint16_t n)
{
	uint8_t head[3] = { how, (uint8_t)n, (uint8_t)(n >> 8) };

	memcpy(to->bytes + to->n, head, 3);
	if (n)
		memcpy(to->bytes + to->n + 3, body, n);
	to->n += 3u + n;
}

/* at: in units of 8 bytes. how: 1 an entry of block `where`, 4 cells, of which `where` are taken. */
static void add_piece(struct half *to, uint8_t how, uint16_t at, uint8_t where, const void *body,
		      uint8_t n)
{
	uint8_t head[5] = { how, (uint8_t)(at >> 8), (uint8_t)at, n, where };

	memcpy(to->bytes + to->n, head, 5);
	memcpy(to->bytes + to->n + 5, body, n);
	to->n += 5u + n;
}

static int hooks(const char *folder)
{
	static struct half said, area;
	int32_t results[6] = { 0, 2, 0, 8, HOOKS_PARTLY, 0 }; /* n, on, late, and the results */
	uint32_t ask[2] = { 1, 0 }, child[4] = { 7, 0, 9, 0 }, bye[2] = { 0, 4096 };
	struct ct_thread_name name = {
		.h = { .size = sizeof(name), .kind = CT_THREAD_NAME, .tid = 1 }, .comm = "thread"
	};
	struct {
		struct ct_call c;
		uint64_t more[4];
	} call = { .c = { .h = { .size = sizeof(call), .kind = CT_CALL, .tid = 1 } } };
	struct ct_entry cell = { .key = { .tgid = 1 }, .n = { .calls = 3, .ns = 300 } };

	add_message(&said, HOOKS_SAY, "\2\0\4\0text", 8);
	add_message(&said, HOOKS_INSTALLED | 8, results, sizeof(results));
	add_message(&said, HOOKS_MAPPED, ask, sizeof(ask));
	add_message(&said, HOOKS_READ, ask, sizeof(ask));
	add_message(&said, HOOKS_LOOK, ask, 0);
	add_message(&said, HOOKS_CHILD | 16, child, sizeof(child));
	add_message(&said, HOOKS_BYE, bye, sizeof(bye));
	call.c.nwords = 4;
	add_piece(&area, 1, 0, 0, &call, sizeof(call));
	add_piece(&area, 1, (8 + sizeof(call)) / 8, 0, &name, sizeof(name));
	add_piece(&area, 1, 0, 1, &name, sizeof(name));
	add_piece(&area, 4, 0, 4, &cell, sizeof(cell));
	said.n = area.n = said.n > area.n ? said.n : area.n;
	return store(folder, "hooks", 0, said.bytes, said.n, area.bytes, area.n);
}

/* ---- device code ---- */

/* A container with one entry, and in *plain what it holds, packed as the flags say. */
static size_t container(uint8_t *out, size_t room, uint16_t kind, uint64_t flags, const void *plain,
			size_t len)
{
	uint8_t *payload = out + 80;
	size_t n = len;
	uint64_t body;

	memset(out, 0, room);
	if (flags & 0x2000)
		n = (size_t)LZ4_compress_default(plain, (char *)payload, (int)len, (int)room - 80);
	else if (flags & 0x8000)
		n = ZSTD_compress(payload, room - 80, plain, len, 3);
	else
		memcpy(payload, plain, len);
	body = 64 + n;
	memcpy(out, (uint8_t[]){ 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0 }, 8);
	memcpy(out + 8, &body, 8);
	memcpy(out + 16, &kind, 2);
	memcpy(out + 20, (uint32_t[]){ 64 }, 4);
	memcpy(out + 24, (uint64_t[]){ n }, 8);
	memcpy(out + 32, (uint32_t[]){ (uint32_t)n }, 4);
	memcpy(out + 56, &flags, 8);
	memcpy(out + 72, (uint64_t[]){ len }, 8);
	return 80 + n;
}

static int device(const char *folder)
{
	static const uint64_t flags[] = { 0x11, 0x2011, 0x8011 };
	static const char ptx[] = ".version 8.0\n.target sm_80\n.visible .entry kernel() {}";
	struct {
		Elf64_Ehdr h;
		Elf64_Shdr sh[3];
		Elf64_Sym symbols[2];
		char names[8];
	} c = {
		.h = { .e_ident = MAKE_ELF_IDENT,
		       .e_machine = EM_CUDA,
		       .e_shoff = sizeof(c.h),
		       .e_shentsize = sizeof(c.sh[0]),
		       .e_shnum = 3 },
		.sh = { [1] = { .sh_type = SHT_SYMTAB,
				.sh_link = 2,
				.sh_entsize = sizeof(Elf64_Sym),
				.sh_offset = sizeof(c.h) + sizeof(c.sh),
				.sh_size = sizeof(c.symbols) },
			[2] = { .sh_type = SHT_STRTAB,
				.sh_offset = sizeof(c) - sizeof(c.names),
				.sh_size = sizeof(c.names) } },
		.symbols = { [1] = { 1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0x10, 1, 0, 0 } },
		.names = "\0kernel",
	};
	uint8_t out[1024];

	for (int i = 0; i < 3; i++)
		if (store(folder, "cubin", i, out,
			  container(out, sizeof(out), 2, flags[i], &c, sizeof(c)), "", 0) ||
		    store(folder, "ptx", i, out,
			  container(out, sizeof(out), 1, flags[i], ptx, sizeof(ptx)), "", 0))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "trace"))
		return trace(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "dwarf"))
		return dwarf(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "agent"))
		return agent(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "hooks"))
		return hooks(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "python"))
		return python(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "payload"))
		return payload(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "device"))
		return device(argv[2]);
	fprintf(stderr, "usage: seeds trace|dwarf FILE FOLDER | seeds "
			"agent|hooks|python|payload|device FOLDER\n");
	return 2;
}
