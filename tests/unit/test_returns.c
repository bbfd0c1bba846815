/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_returns.c - the lengths of instructions, compared with the assembler's, and where functions return. A breakpoint inside
 * an instruction would break the program: what is not known or is cut has no length.
 */
#include "../../user/source/symbols/returns.h"
#include "unit.h"

#include <unistd.h>

#if defined(__x86_64__)
static const char *const known[] = {
	"add %eax, %ebx",
	"add $1, %al",
	"add $100000, %eax",
	"addw $1000, %ax",
	"push %r15",
	"pop %rbx",
	"movslq %eax, %rbx",
	"push $100000",
	"push $1",
	"imul $100000, %eax, %ebx",
	"imul $10, %eax, %ebx",
	"jne .+8",
	"jne .+4096",
	"addl $100000, (%rax)",
	"addw $1000, (%rax)",
	"addl $1, (%rax)",
	"testb %al, (%rbx)",
	"mov %rax, 8(%rsp)",
	"mov %rax, 4096(%rsp)",
	"mov (%rax,%rbx,4), %rcx",
	"mov 8(%rax,%rbx,4), %rcx",
	"mov 4096(,%rbx,4), %rcx",
	"mov 4096(%rip), %rcx",
	"mov %fs:40, %rax",
	"lea 1(%rdi), %eax",
	"nop",
	"cltq",
	"cqto",
	"testb $1, %al",
	"test $100000, %eax",
	"rep movsb",
	"rep stosq",
	"scasb",
	"mov $1, %al",
	"mov $100000, %eax",
	"movw $1000, %ax",
	"movabs $0x1122334455667788, %rax",
	"movabs 0x1122334455667788, %al",
	"shl $3, %eax",
	"shl %cl, %rax",
	"shlb $3, (%rax)",
	"sar %eax",
	"ret",
	"leave",
	"movb $1, (%rax)",
	"movl $100000, 8(%rsp)",
	"movq $100000, 8(%rsp)",
	"fldl (%rax)",
	"fstpt 16(%rsp)",
	"jrcxz .+8",
	"jmp .+8",
	"jmp .+4096",
	"call .+4096",
	"cmc",
	"clc",
	"cld",
	"testb $1, (%rax)",
	"notb (%rax)",
	"testl $100000, (%rax)",
	"testw $1000, (%rax)",
	"negl (%rax)",
	"idivl %ecx",
	"incb (%rax)",
	"call *%rax",
	"jmp *8(%rax)",
	"jmp *(%rax,%rbx,8)",
	"syscall",
	"ud2",
	"cpuid",
	"rdtsc",
	"movzbl (%rax), %ecx",
	"movsbl %al, %ecx",
	"cmove %eax, %ecx",
	"sete %al",
	"bswap %rax",
	"lock cmpxchg %ecx, (%rax)",
	"lock xadd %eax, (%rcx)",
	"bt $3, %eax",
	"bts %eax, (%rcx)",
	"shld $3, %eax, %ecx",
	"shrd %cl, %eax, %ecx",
	"movaps %xmm0, (%rsp)",
	"movups 16(%rax), %xmm1",
	"movdqa %xmm0, %xmm1",
	"movq %xmm0, %rax",
	"pshufd $1, %xmm0, %xmm1",
	"pxor %xmm0, %xmm0",
	"psrlq $3, %xmm0",
	"cmpps $1, %xmm0, %xmm1",
	"shufps $1, %xmm0, %xmm1",
	"pinsrw $1, %eax, %xmm0",
	"pextrw $1, %xmm0, %eax",
	"cvtsi2sd %rax, %xmm0",
	"ucomisd (%rax), %xmm0",
	"pshufb %xmm0, %xmm1",
	"palignr $3, %xmm0, %xmm1",
	"pinsrd $1, %eax, %xmm0",
	"crc32b %al, %ecx",
	"movbe (%rax), %ecx",
	"prefetcht0 (%rax)",
	"nopw 8(%rax,%rax)",
	".byte 0x66; cs nopw 512(%rax,%rax)",
	"endbr64",
	"pause",
	"mfence",
	"xgetbv",
	"vmovaps %ymm0, (%rsp)",
	"vpxor %xmm0, %xmm1, %xmm2",
	"vpshufd $1, %xmm0, %xmm1",
	"vzeroupper",
	"vfmadd213ss %xmm0, %xmm1, %xmm2",
	"vpermq $1, %ymm0, %ymm1",
	"vpblendd $1, %ymm0, %ymm1, %ymm2",
	"andn %eax, %ecx, %edx",
	"rorx $3, %eax, %ecx",
	"vmovdqu64 64(%rax), %zmm0",
	"vpaddd 4096(%rax), %zmm1, %zmm2",
	"vpternlogd $1, %zmm0, %zmm1, %zmm2",
	"vpermw %zmm0, %zmm1, %zmm2",
};

/* Assembles them. Writes their bytes one behind the other, and the length of each. Returns the number of bytes. */
static size_t assemble(uint8_t *code, size_t room, uint8_t lengths[ARRAY_LEN(known)])
{
	char dir[] = "/tmp/test_returns.XXXXXX", path[64], command[512];
	size_t n = 0;
	FILE *f;

	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/code.s", dir);
	f = fopen(path, "w");
	if (!f)
		abort();
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		fprintf(f, ".text\n1: %s\n2: .section .lengths\n.byte 2b - 1b\n", known[i]);
	fclose(f);
	snprintf(command, sizeof(command),
		 "cd %s && cc -c -o code.o code.s && objcopy -O binary -j .text code.o code && "
		 "objcopy -O binary -j .lengths --set-section-flags .lengths=alloc code.o lengths",
		 dir);
	CHECK(!system(command));
	snprintf(path, sizeof(path), "%s/code", dir);
	f = fopen(path, "r");
	if (CHECK(f)) {
		n = fread(code, 1, room, f);
		fclose(f);
	}
	snprintf(path, sizeof(path), "%s/lengths", dir);
	f = fopen(path, "r");
	if (CHECK(f)) {
		CHECK_EQ(ARRAY_LEN(known), fread(lengths, 1, ARRAY_LEN(known), f));
		fclose(f);
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(!system(command));
	return n;
}

static void test_lengths(void)
{
	uint8_t code[2048], lengths[ARRAY_LEN(known)] = { 0 };
	size_t n = assemble(code, sizeof(code), lengths), at = 0;

	for (size_t i = 0; i < ARRAY_LEN(known) && at < n; at += lengths[i++]) {
		CASE_ROW("%s", known[i]);
		CHECK_EQ(lengths[i], returns_length(code + at, n - at));
		/* one that is cut is none */
		for (unsigned len = 0; len < lengths[i]; len++) {
			uint8_t *exact = malloc(len + 1);

			memcpy(exact + 1, code + at, len);
			CHECK_EQ(0, returns_length(exact + 1, len));
			free(exact);
		}
	}
	CHECK_EQ(n, at);
}

/* What no compiler writes, what 64-bit mode does not have, and what is longer than an instruction may be. */
static void test_not_known(void)
{
	static const struct {
		const char *what;
		uint8_t code[17];
	} rows[] = {
		{ "push %es", { 0x06 } },
		{ "daa", { 0x27 } },
		{ "pusha", { 0x60 } },
		{ "a far call", { 0x9a } },
		{ "int3", { 0xcc } },
		{ "int", { 0xcd, 0x80 } },
		{ "iret", { 0xcf } },
		{ "in", { 0xe4, 1 } },
		{ "hlt", { 0xf4 } },
		{ "cli", { 0xfa } },
		{ "a call with the prefix 66", { 0x66, 0xe8, 0, 0, 0, 0 } },
		{ "a jump with the prefix 66", { 0x66, 0x0f, 0x84, 0, 0, 0, 0 } },
		{ "an opcode of two bytes", { 0x0f, 0x04, 0xc0 } },
		{ "a control register", { 0x0f, 0x20, 0xc0 } },
		{ "3DNow, whose opcode is its last byte", { 0x0f, 0x0f, 0xc1, 0x90 } },
		{ "a vector with the prefix 66", { 0x66, 0xc5, 0xf8, 0x28, 0xc0 } },
		{ "a vector of another map", { 0xc4, 0xe4, 0x78, 0x28, 0xc0 } },
		{ "a jump in a vector's map", { 0xc5, 0xf8, 0x84, 0xc0 } },
		{ "too many prefixes",
		  { 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e,
		    0x2e, 0x90 + 1, 0x90 } },
		{ "nothing but prefixes",
		  { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
		    0x66, 0x66, 0x66, 0x66 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool fits = !strcmp(rows[i].what, "too many prefixes");

		CASE_ROW("%s", rows[i].what);
		CHECK_EQ(fits ? 15 : 0, returns_length(rows[i].code, sizeof(rows[i].code)));
		if (!fits)
			continue;
		/* one more than 15 bytes */
		CHECK_EQ(0, returns_length((const uint8_t[]){ 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e,
							      0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e,
							      0x2e, 0x2e, 0x2e, 0x90 },
					   16));
	}
}

/* Each return, and none where an instruction only has a byte like one. */
static void test_functions(void)
{
	static const struct {
		const char *what;
		uint8_t code[40];
		size_t len;
		int n;
		uint32_t at[2];
	} rows[] = {
		{ "one", { 0x55, 0x5d, 0xc3 }, 3, 1, { 2 } },
		{ "two, one with a prefix", { 0xf3, 0xc3, 0x90, 0xc3 }, 4, 2, { 0, 3 } },
		{ "inside of a number", { 0xb8, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3 }, 6, 1, { 5 } },
		{ "none", { 0x90, 0x90 }, 2, 0, { 0 } },
		{ "no code", { 0 }, 0, 0, { 0 } },
		{ "behind one that is not known", { 0xc3, 0x06, 0xc3 }, 3, 0, { 0 } },
		{ "before one that is cut", { 0xc3, 0xb8, 0xc3 }, 3, 0, { 0 } },
		{ "with a number of bytes to drop", { 0xc2, 8, 0 }, 3, 0, { 0 } },
	};
	uint32_t at[RETURNS_MAX];
	uint8_t many[RETURNS_MAX + 1];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int n = returns_find(rows[i].code, rows[i].len, at);

		CASE_ROW("%s", rows[i].what);
		if (CHECK_EQ(rows[i].n, n))
			for (int k = 0; k < n; k++)
				CHECK_EQ(rows[i].at[k], at[k]);
	}
	CASE_ROW("many");
	memset(many, 0xc3, sizeof(many));
	CHECK_EQ(RETURNS_MAX, returns_find(many, RETURNS_MAX, at));
	CHECK_EQ(RETURNS_MAX - 1, at[RETURNS_MAX - 1]);
	CHECK_EQ(0, returns_find(many, RETURNS_MAX + 1, at));
}
#endif

int main(void)
{
#if defined(__x86_64__)
	RUN(test_lengths);
	RUN(test_not_known);
	RUN(test_functions);
#endif
	return unit_end();
}
