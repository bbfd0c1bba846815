/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots_lib.c - libraries for test_slots.c. With -DCALLEE: functions that are hooked without a jump. Else one that calls them, in each way
 * in which a caller may have their addresses.
 */
#if defined(CALLEE)
/* Too short for a jump, and one that begins with a branch. */
#if defined(__x86_64__)
__asm__(".text\n.globl slot_short\n.type slot_short, @function\n"
	"slot_short: lea 1(%rdi), %eax\n ret\n .size slot_short, . - slot_short\n .balign 64\n"
	".globl slot_jump\n.type slot_jump, @function\n"
	"slot_jump: jmp 1f\n nop\n nop\n nop\n nop\n 1: lea 2(%rdi), %eax\n ret\n"
	".size slot_jump, . - slot_jump\n .balign 64\n");
#else
__asm__(".text\n.globl slot_short\n.type slot_short, %function\n"
	"slot_short: add w0, w0, #1\n ret\n .size slot_short, . - slot_short\n .balign 64\n"
	".globl slot_jump\n.type slot_jump, %function\n"
	"slot_jump: b 1f\n nop\n 1: add w0, w0, #2\n ret\n"
	".size slot_jump, . - slot_jump\n .balign 64\n");
#endif
int slot_short(int);
/* Through the library's own slot. */
__attribute__((visibility("default"))) int slot_inside(int n)
{
	volatile int kept = slot_short(n);

	return kept + 10;
}
#else
int slot_short(int);
int slot_jump(int);
/* One table is made like the virtual table of a C++ class, the other like any other table. */
struct table {
	void *head[2];
	int (*f)(int);
};
__attribute__((visibility("default"))) const struct table _ZTV4Slot = { { 0, 0 }, slot_short };
__attribute__((visibility("default"))) const struct table plain = { { 0, 0 }, slot_short };
__attribute__((visibility("default"))) int by_slot(int n)
{
	volatile int kept = slot_short(n);

	return kept;
}
__attribute__((visibility("default"))) int by_slot2(int n)
{
	volatile int kept = slot_jump(n);

	return kept;
}
__attribute__((visibility("default"))) int by_table(int n)
{
	const volatile struct table *t = &_ZTV4Slot;

	return t->f(n);
}
__attribute__((visibility("default"))) int by_plain(int n)
{
	const volatile struct table *t = &plain;

	return t->f(n);
}
#endif
