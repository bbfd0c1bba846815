/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_insn.c - the engine's decoder against Zydis, and what it takes, run: test_insn [ROUNDS]
 *
 * Each of ROUNDS random byte strings, most of them made of what compilers begin functions with, is decoded by both. What
 * the engine takes must be an instruction to Zydis, of the same length, no branch, and relative to %rip where both say so;
 * and the other spellings of its REX prefix must be the same instruction. Then instructions are run, where they are and
 * moved by the engine, with random registers and flags: all registers, flags and memory must come out the same.
 */
#include <Zydis/Zydis.h>
#include <setjmp.h>
#include <sys/mman.h>

#include "../../target/common/insn.h"
#include "hooktest.h"
#include "../unit/random.h"

#define CALLBACK __attribute__((target("general-regs-only")))

static ZydisDecoder decoder;
static uint64_t seed = RANDOM_SEED;
static long rounds = 300000;

static __u64 next(void)
{
	return random_next(&seed);
}

/* An instruction that is likely to be one: prefixes now and then, REX often, an opcode that is taken often. */
static void make(__u8 *b)
{
	static const __u8 common[] = { 0x50, 0x55, 0x53, 0x54, 0x57, 0x89, 0x8b, 0x83, 0x81,
				       0x31, 0x33, 0x85, 0x8d, 0xb8, 0xc7, 0xf6, 0xf7, 0xff,
				       0x0f, 0x0f, 0x0f, 0x0f, 0x63, 0x80, 0x38, 0x3b };
	unsigned int n = 0;

	for (unsigned int i = 0; i < 16; i++)
		b[i] = (__u8)next();
	if (next() % 8 == 0)
		b[n++] = next() & 1 ? 0x66 : next() & 1 ? 0xf3 : 0xf2;
	if (next() % 2)
		b[n++] = 0x40 | (next() & 15);
	if (next() % 4)
		b[n++] = common[next() % sizeof(common)];
	if (next() % 3 == 0)
		b[n + (b[n - (n > 0)] == 0x0f)] = next() & 1 ? 0xc0 | (next() & 63)
							     : (next() & 0x3f) | 4;
}

static bool decode(const __u8 *b, ZydisDecodedInstruction *i, ZydisDecodedOperand *o)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, b, 15, i, o));
}

static bool is_relative(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o)
{
	for (int k = 0; k < i->operand_count_visible; k++)
		if (o[k].type == ZYDIS_OPERAND_TYPE_MEMORY && o[k].mem.base == ZYDIS_REGISTER_RIP)
			return true;
	return false;
}

static void show(const char *what, const __u8 *b)
{
	printf("%s:", what);
	for (int i = 0; i < 15; i++)
		printf(" %02x", b[i]);
	printf("\n");
}

static bool same_instruction(const __u8 *a, const __u8 *b)
{
	ZydisDecodedOperand p[ZYDIS_MAX_OPERAND_COUNT], q[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction i, j;

	if (!decode(a, &i, p) || !decode(b, &j, q) || i.mnemonic != j.mnemonic ||
	    i.length != j.length || i.operand_width != j.operand_width ||
	    i.operand_count_visible != j.operand_count_visible)
		return false;
	for (int k = 0; k < i.operand_count_visible; k++)
		if (p[k].type != q[k].type || p[k].size != q[k].size ||
		    p[k].reg.value != q[k].reg.value || p[k].mem.base != q[k].mem.base ||
		    p[k].mem.index != q[k].mem.index || p[k].mem.scale != q[k].mem.scale ||
		    p[k].mem.disp.value != q[k].mem.disp.value ||
		    p[k].imm.value.u != q[k].imm.value.u)
			return false;
	return true;
}

static void test_decode(void)
{
	long taken = 0, spelled = 0, branches = 0, bad = 0;

	CHECK(ZYAN_SUCCESS(
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)));
	for (long n = 0; n < rounds; n++) {
		ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction i;
		struct insn mine;
		__u8 b[16];
		bool is;

		make(b);
		mine = insn_decode(b, 16);
		is = decode(b, &i, o);
		if (is && mine.kind == INSN_UNKNOWN)
			continue;
		if (mine.kind == INSN_UNKNOWN)
			continue;
		taken++;
		if (!is) {
			/* It faults in either place: no harm, but not meant. */
			bad++;
			if (bad < 20)
				show("taken, and none to Zydis", b);
			continue;
		}
		branches += mine.kind == INSN_BRANCH || mine.kind == INSN_END;
		if (mine.len != i.length ||
		    (mine.kind == INSN_RELATIVE) !=
			    (is_relative(&i, o) && mine.kind != INSN_BRANCH &&
			     mine.kind != INSN_END) ||
		    (mine.kind == INSN_RELATIVE && mine.disp_at != i.raw.disp.offset) ||
		    ((mine.kind == INSN_PLAIN || mine.kind == INSN_RELATIVE) &&
		     (i.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE ||
		      i.meta.category == ZYDIS_CATEGORY_RET ||
		      i.meta.category == ZYDIS_CATEGORY_INTERRUPT ||
		      i.meta.category == ZYDIS_CATEGORY_SYSCALL))) {
			printf("kind %d length %u, Zydis: %u\n", mine.kind, mine.len, i.length);
			show("differs", b);
			fflush(stdout);
			_exit(1);
		}
		for (unsigned int change = 1; change < 16; change++) {
			__u8 other[16];

			if (change & ~mine.rex_free)
				continue;
			memcpy(other, b, 16);
			other[0] ^= (__u8)change;
			spelled++;
			if (!same_instruction(b, other)) {
				show("another instruction", other);
				show("for", b);
				fflush(stdout);
				_exit(1);
			}
		}
	}
	printf("%ld of %ld taken, %ld branches among them, %ld other spellings\n", taken, rounds,
	       branches, spelled);
	CHECK(taken > rounds / 10);
	CHECK(spelled > rounds / 20);
	CHECK(branches > 100);
	CHECK_EQ(0, bad);
}

/* ---- run ---- */

#if defined(__x86_64__)
struct machine {
	__u64 r[16]; /* in the order of their numbers; r[4], rsp, is not set */
	__u64 flags;
	__u8 xmm[16][16];
};
struct machine machine_in, machine_out;
__u64 saved_sp;
extern char run_back[];
/* All registers from machine_in, a call of rax's place (in target), all registers into machine_out. */
void *target;
__asm__(".text\n.globl run_machine\nrun_machine:\n"
	" push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n mov %rsp, "
	"saved_sp(%rip)\n"
	" lea machine_in(%rip), %rax\n"
	" .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movdqu 136+16*\\n(%rax), %xmm\\n\n "
	".endr\n"
	" pushq 128(%rax)\n popfq\n"
	" mov 8(%rax), %rcx\n mov 16(%rax), %rdx\n mov 24(%rax), %rbx\n mov 40(%rax), %rbp\n mov "
	"48(%rax), %rsi\n"
	" mov 56(%rax), %rdi\n mov 64(%rax), %r8\n mov 72(%rax), %r9\n mov 80(%rax), %r10\n mov "
	"88(%rax), %r11\n"
	" mov 96(%rax), %r12\n mov 104(%rax), %r13\n mov 112(%rax), %r14\n mov 120(%rax), %r15\n "
	"mov 0(%rax), %rax\n"
	" call *target(%rip)\n"
	".globl run_back\nrun_back:\n"
	" mov %rax, machine_out(%rip)\n lea machine_out(%rip), %rax\n pushfq\n popq 128(%rax)\n"
	" mov %rcx, 8(%rax)\n mov %rdx, 16(%rax)\n mov %rbx, 24(%rax)\n mov %rsp, 32(%rax)\n mov "
	"%rbp, 40(%rax)\n mov %rsi, 48(%rax)\n"
	" mov %rdi, 56(%rax)\n mov %r8, 64(%rax)\n mov %r9, 72(%rax)\n mov %r10, 80(%rax)\n mov "
	"%r11, 88(%rax)\n"
	" mov %r12, 96(%rax)\n mov %r13, 104(%rax)\n mov %r14, 112(%rax)\n mov %r15, 120(%rax)\n"
	" .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movdqu %xmm\\n, 136+16*\\n(%rax)\n "
	".endr\n"
	" mov saved_sp(%rip), %rsp\n cld\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n "
	"pop %rbx\n ret\n");
void run_machine(void);

static sigjmp_buf out;
static void on_fault(int s)
{
	siglongjmp(out, s);
}

#define DATA 4096
static __u8 *code, *data;

/* Registers point into `data`, or are small numbers: an instruction that reads or writes memory mostly may. */
static int run_once(__u8 *memory_out, const __u8 *memory_in)
{
	int fault;

	memcpy(data - DATA, memory_in, 3 * DATA);
	memset(&machine_out, 0, sizeof(machine_out));
	fault = sigsetjmp(out, 1);
	if (!fault)
		run_machine();
	memcpy(memory_out, data - DATA, 3 * DATA);
	return fault;
}

static unsigned long seen;
static bool once_wanted;
static CALLBACK bool entry(struct hook_frame *f, const struct hook_regs *r)
{
	(void)f;
	(void)r;
	seen++;
	return once_wanted;
}
static CALLBACK void leave(struct hook_frame *f, __u64 result)
{
	(void)f;
	(void)result;
}
static const struct hook_ops ops = { .entry = entry, .leave = leave };

/* Which registers a callee may change for us: the engine uses r10 and r11, as the linker's own code at a call does. */
static bool is_same(const struct machine *a, const struct machine *b, const __u8 *insn,
		    unsigned int len)
{
	bool same = true;

	for (int i = 0; i < 16; i++)
		if (i != 10 && i != 11 && a->r[i] != b->r[i]) {
			printf("register %d: %llx, %llx\n", i, a->r[i], b->r[i]);
			same = false;
		}
	if (memcmp(a->xmm, b->xmm, sizeof(a->xmm))) {
		printf("vector registers differ\n");
		same = false;
	}
	(void)insn;
	(void)len;
	return same;
}

/* A function knows nothing about r10 and r11 at its begin; an instruction that sets rsp would
 * not return. */
static bool is_not_ours(ZydisRegister r, bool sets)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	return whole == ZYDIS_REGISTER_R10 || whole == ZYDIS_REGISTER_R11 ||
	       (sets && whole == ZYDIS_REGISTER_RSP);
}

/* Memory that is not put back between the two runs. */
static bool is_elsewhere(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.base != ZYDIS_REGISTER_RIP &&
	       (o->mem.disp.value > 1024 || o->mem.disp.value < -1024);
}

static void test_run(void)
{
	static __u8 memory[3 * DATA], bare[3 * DATA], moved[3 * DATA];
	long done = 0, relative = 0, faults = 0, refused = 0, n, stack = 0;
	struct sigaction s = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
	stack_t alternate = { .ss_sp = malloc(65536), .ss_size = 65536 };

	s.sa_flags |= SA_ONSTACK;
	CHECK(!sigaltstack(&alternate, NULL));
	CHECK(!sigaction(SIGSEGV, &s, NULL) && !sigaction(SIGILL, &s, NULL) &&
	      !sigaction(SIGBUS, &s, NULL) && !sigaction(SIGFPE, &s, NULL));
	CHECK(ZYAN_SUCCESS(
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)));
	/* Between the two there is room for displacements of 32 bits, and above for jumps to land. */
	data = mmap(NULL, 3 * DATA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(data != MAP_FAILED);
	data += DATA;
	CHECK_EQ(0, engine_open(&ops));
	for (n = 0; n < rounds / 100; n++) {
		struct hook_leftover left;
		struct machine first;
		struct insn insn;
		int fault, fault2, len;
		__u8 b[16];
		bool to_sp;
		__u32 flags;

		do {
			make(b);
			insn = insn_decode(b, 16);
		} while (insn.kind != INSN_PLAIN && insn.kind != INSN_RELATIVE);
		/* A page for each, as the engine knows a function by its address. */
		code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(code != MAP_FAILED);
		memset(code, 0x90, 64);
		memcpy(code, b, insn.len);
		len = insn.len;
		if (insn.kind == INSN_RELATIVE) {
			int displacement = (int)(data + next() % 1024 - (code + len));

			memcpy(code + insn.disp_at, &displacement, 4);
			relative++;
		}
		/* Then flags into memory that is compared (after what may have pushed), and back to the caller. */
		memcpy(code + len, "\x48\x8b\x64\x24\xf8\xff\x25\0\0\0\0", 11);
		{
			/* pushfq; popq flags_at; mov saved_sp, %rsp; jmp run_back - by absolute addresses, through r11 */
			__u8 *at = code + len;
			__u64 sp_at = (__u64)(size_t)&saved_sp, back = (__u64)(size_t)run_back;

			*at++ = 0x49, *at++ = 0xbb, memcpy(at, &sp_at, 8),
			at += 8;				  /* mov $sp_at, %r11 */
			*at++ = 0x4d, *at++ = 0x8b, *at++ = 0x13; /* mov (%r11), %r10 */
			*at++ = 0x9c;				  /* pushfq */
			*at++ = 0x41, *at++ = 0x5b;		  /* pop %r11 */
			*at++ = 0x4c, *at++ = 0x89, *at++ = 0xd4; /* mov %r10, %rsp */
			*at++ = 0x41, *at++ = 0x53;		  /* push %r11 */
			*at++ = 0x9d;				  /* popfq */
			*at++ = 0x49, *at++ = 0xbb, memcpy(at, &back, 8), at += 8;
			*at++ = 0x41, *at++ = 0xff, *at++ = 0xe3; /* jmp *%r11 */
		}
		CHECK(!mprotect(code, 4096, PROT_READ | PROT_EXEC));
		for (int i = 0; i < 16; i++)
			machine_in.r[i] = next() % 3 ? (__u64)(size_t)data + next() % 2048
						     : next() % 64;
		machine_in.flags = 0x202 | (next() & 0x8d5);
		for (int i = 0; i < 16; i++)
			for (int k = 0; k < 16; k++)
				machine_in.xmm[i][k] = (__u8)next();
		for (unsigned int i = 0; i < sizeof(memory); i++)
			memory[i] = (__u8)(i * 7);
		target = code;
		/* What changes rsp itself is not run: nobody comes back from there. */
		{
			ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
			ZydisDecodedInstruction i;

			to_sp = true;
			flags = 0;
			if (decode(code, &i, o)) {
				/* Flags mean nothing at a function's begin, and the engine changes them. */
				to_sp = i.cpu_flags && i.cpu_flags->tested;
				/* A shift by 0 leaves them. */
				if (i.cpu_flags && i.meta.category != ZYDIS_CATEGORY_SHIFT &&
				    i.meta.category != ZYDIS_CATEGORY_ROTATE)
					flags = (i.cpu_flags->modified | i.cpu_flags->set_0 |
						 i.cpu_flags->set_1) &
						~i.cpu_flags->undefined;
				for (int k = 0; k < i.operand_count_visible; k++)
					to_sp |= is_not_ours(o[k].reg.value, true) ||
						 is_not_ours(o[k].mem.base, true) ||
						 is_not_ours(o[k].mem.index, false) ||
						 is_elsewhere(&o[k]);
			}
		}
		if (to_sp) {
			stack++;
			munmap(code, 4096);
			continue;
		}
		fault = run_once(bare, memory);
		first = machine_out;
		once_wanted = next() & 1;
		if (hook_one(code, 1, next() & 1 ? HOOK_ENTRY_ONLY : 0) != HOOK_ON) {
			refused++;
			munmap(code, 4096);
			continue;
		}
		/* The entry alone: these functions do not return. */
		once_wanted = false;
		seen = 0;
		fault2 = run_once(moved, memory);
		done++;
		faults += fault != 0;
		/* An instruction that reads the stack sees what is above its return address; not the address itself,
		 * and none of these takes it. */
		if (fault != fault2 || seen != 1 || memcmp(bare, moved, sizeof(bare)) ||
		    (!fault && !is_same(&first, &machine_out, b, insn.len)) ||
		    (!fault && (first.flags ^ machine_out.flags) & flags & 0x8d5)) {
			printf("fault %d, %d; seen %lu; flags %llx, %llx; memory %s\n", fault,
			       fault2, seen, first.flags, machine_out.flags,
			       memcmp(bare, moved, sizeof(bare)) ? "differs" : "same");
			show("moved", code);
			show("was", b);
			fflush(stdout);
			_exit(1);
		}
		CHECK_EQ(0, engine_remove(&left));
		CHECK(!memcmp(code, b, insn.kind == INSN_RELATIVE ? insn.disp_at : insn.len));
		munmap(code, 4096);
	}
	printf("%ld run bare and moved, %ld relative, %ld that fault in both; %ld refused, %ld not "
	       "run\n",
	       done, relative, faults, refused, stack);
	CHECK(done > n / 4);
	CHECK(relative > 0);
	CHECK(faults < done / 2);
}
#endif

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atol(argv[1]);
	run("decode", test_decode, NULL);
	run("run", test_run, NULL);
	return failed;
}
