/* SPDX-License-Identifier: BSD-2-Clause */
/* known_code.c - see known_code.h. Finds the containers; fatbin.c knows what is in them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin.h"
#include "known_code.h"
#include "../../../wire/cudatrace.h"

#define MAX_CONTAINER (256u << 20) /* bytes of one fat binary */
/* bytes searched for fat binaries if there are no section headers */
#define MAX_SCAN (512ULL << 20)
#define MAX_PLAIN (1ULL << 30) /* bytes of a file's device code, decompressed */
#define SCAN_CHUNK (1u << 20)

static bool is_device_section(const char *name)
{
	return !strcmp(name, ".nv_fatbin") || !strcmp(name, "__nv_relfatbin");
}

/* Whether there is a fat binary's head at p: the magic, version 1, a header of 16 bytes. */
static bool is_container(const uint8_t *p)
{
	static const uint8_t head[8] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0 };

	return !memcmp(p, head, sizeof(head));
}

typedef int (*place_fn)(const struct elf_file *, uint64_t at, uint64_t len, void *ctx);

/* Without section headers: visits every place in a segment that looks like the beginning of a fat
 * binary. */
static int scan_segments(const struct elf_file *f, place_fn fn, void *ctx)
{
	uint64_t budget = MAX_SCAN;
	uint8_t *buf = malloc(SCAN_CHUNK);
	int err = buf ? 0 : -ENOMEM;

	for (int i = 0; !err && i < f->nphdr; i++) {
		const Elf64_Phdr *ph = &f->phdr[i];
		uint64_t end = ph->p_offset + ph->p_filesz, at = (ph->p_offset + 7) & ~7ULL;

		if (ph->p_type != PT_LOAD || end < ph->p_offset || end > f->size)
			continue;
		while (!err && at + 16 <= end) {
			uint64_t len = end - at < SCAN_CHUNK ? end - at : SCAN_CHUNK, skip = 0;

			if (len > budget) {
				err = -E2BIG;
				break;
			}
			budget -= len;
			err = elf_read(f, buf, len, at);
			for (uint64_t o = 0; !err && !skip && o + 16 <= len; o += 8) {
				uint64_t body;

				if (!is_container(buf + o))
					continue;
				memcpy(&body, buf + o + 8, sizeof(body));
				if (body > end - at - o - 16)
					continue;
				err = fn(f, at + o, body + 16, ctx);
				skip = (o + body + 16 + 7) & ~7ULL;
			}
			at += skip ? skip : (len - 8) & ~7ULL;
		}
	}
	free(buf);
	return err;
}

static int each_device_code(const struct elf_file *f, place_fn fn, void *ctx)
{
	if (!f->nshdr || !f->shstr)
		return scan_segments(f, fn, ctx);
	for (uint32_t i = 0; i < f->nshdr; i++) {
		const Elf64_Shdr *sh = &f->shdr[i];
		int err;

		if (sh->sh_type == SHT_NOBITS || !is_device_section(elf_section_name(f, i)))
			continue;
		err = fn(f, sh->sh_offset, sh->sh_size, ctx);
		if (err)
			return err;
	}
	return 0;
}

static int found_code(const struct elf_file *f, uint64_t at, uint64_t len, void *ctx)
{
	(void)f, (void)at, (void)len;
	*(bool *)ctx = true;
	return -ECANCELED;
}

bool code_is_there(const struct elf_file *f)
{
	bool there = false;

	each_device_code(f, found_code, &there);
	return there;
}

struct count {
	int n;
	uint64_t budget;
	char name[CT_NAME_MAX];
};

static int on_kernel(void *ctx, const char *name)
{
	struct count *c = ctx;

	if (c->n && !strcmp(c->name, name))
		return 0;
	if (++c->n > 1)
		return -ECANCELED;
	memcpy(c->name, name, strlen(name) + 1);
	return 0;
}

/* Reads one fat binary after the other, so that a file with thousands is not read further than its
 * second kernel. */
static int count_at(const struct elf_file *f, uint64_t at, uint64_t len, void *ctx)
{
	struct count *c = ctx;
	int err = 0;

	while (!err && len >= 16) {
		uint64_t head[2], body;
		uint8_t *data;

		err = elf_read(f, head, sizeof(head), at);
		if (err)
			break;
		if (!head[0]) {
			at += 8;
			len -= 8;
			continue;
		}
		body = head[1];
		if (!is_container((const uint8_t *)head) || body > len - 16 || body > MAX_CONTAINER)
			return -EBADMSG;
		data = malloc(body + 16);
		if (!data)
			return -ENOMEM;
		err = elf_read(f, data, body + 16, at);
		if (!err)
			err = fatbin_kernels(data, body + 16, &c->budget, on_kernel, c);
		free(data);
		body = (body + 16 + 7) & ~7ULL;
		at += body;
		len -= body < len ? body : len;
	}
	return err;
}

int code_kernels(const struct elf_file *f, char *name)
{
	struct count *c = calloc(1, sizeof(*c));
	int n;

	if (!c)
		return -ENOMEM;
	c->budget = MAX_PLAIN;
	n = each_device_code(f, count_at, c);
	if (c->n > 1)
		n = 2;
	else if (!n)
		n = c->n;
	memcpy(name, c->name, sizeof(c->name));
	free(c);
	return n;
}
