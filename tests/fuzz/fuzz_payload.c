/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_payload.c - schemas, enumerations and payloads of NVTX 3, as a program gives them. The input lies
 * at MEMORY, so that 4 of its bytes make a pointer into it, and begins with what is asked: steps of
 * 4 bytes, (what, domain, place in 16 bits). The code is included, because what it keeps is never freed: each
 * input begins with nothing.
 */
#include <stdlib.h>
#include <sys/mman.h>

#define CT_NO_COMPAT
#include "../../target/nvtx/nvtx_payload.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY ((uint8_t *)0x10000000)
#define MEMORY_BYTES 65536u
#define STEPS 16

static void forget(void)
{
	nschemas = nenums = 0;
	nids = 0;
	memset(schemas, 0, sizeof(schemas));
	memset(enums, 0, sizeof(enums));
}

static void text(const void *domain, const void *at, uint32_t n)
{
	char said[NVTX_PAYLOAD_TEXT];
	size_t len;

	memset(said, 'x', sizeof(said));
	len = nvtx_payload_text(domain, at, n, said);
	if (len >= sizeof(said) || strnlen(said, sizeof(said)) != len)
		abort();
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)said[i] < ' ' || said[i] == 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool mapped;

	if (!mapped && mmap(MEMORY, MEMORY_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MEMORY)
		abort();
	mapped = true;
	if (size > MEMORY_BYTES)
		return 0;
	memset(MEMORY, 0, MEMORY_BYTES);
	memcpy(MEMORY, data, size);
	forget();
	for (size_t i = 0; i < STEPS && (i + 1) * 4 <= size; i++) {
		const uint8_t *step = data + i * 4;
		const void *at = MEMORY + (step[2] | step[3] << 8);
		const void *domain = MEMORY + (step[1] & 1);

		switch (step[0] & 3) {
		case 1: nvtx_schema_register(domain, at); break;
		case 2: nvtx_enum_register(domain, at); break;
		case 3: text(domain, at, step[0] >> 2); break;
		default: return 0;
		}
	}
	return 0;
}
