#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# stubs.sh - makes the exported functions of a stand-in library, as assembler on stdout.
#
#   stubs.sh OBJECT... -- LIST...
#
# Each LIST names one symbol per line. A symbol FOO for which an OBJECT defines in_FOO goes there, as does its twin
# FOO_ptsz or FOO_ptds; one that no OBJECT knows returns 0, which is success. __cudaLaunchKernel goes on to the exported
# cudaLaunchKernel by a jump, as the real one does. Every function begins with `push %rbp` (aarch64: a store of the frame
# record), which the kernel emulates when a probe is on it; registers and stack words reach in_FOO as the caller left
# them. With -DSTANDIN_HIDDEN the functions are as in the real static library: linkable, never exported.
set -euo pipefail

objects=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	objects+=("$1")
	shift
done
shift

cat <<'ASM'
/* Made by stubs.sh. */
	.text
#ifdef STANDIN_HIDDEN
#define SCOPE(f) .globl f; .hidden f
#else
#define SCOPE(f) .globl f
#endif
#if defined(__x86_64__)
#define BEGIN(f) .p2align 4; SCOPE(f); .type f, @function; f: .Lf_##f: .cfi_startproc; push %rbp; \
	.cfi_adjust_cfa_offset 8; .cfi_rel_offset %rbp, 0; mov %rsp, %rbp
#define POP pop %rbp; .cfi_adjust_cfa_offset -8; .cfi_restore %rbp
#define END(f) .cfi_endproc; .size f, . - f
/* Does a tool watch the calls (tools.c)? Then by way of it, with the name in rax and the code in r11. */
#define WATCHED(f, to) mov tools_at(%rip), %rax; test %rax, %rax; je 1f; cmpq $0, (%rax); je 1f; \
	.cfi_remember_state; POP; lea .Ln_##f(%rip), %rax; lea to(%rip), %r11; jmp tools_enter; .Ln_##f: .asciz #f; \
	.cfi_restore_state; 1:
#define STUB(f) BEGIN(f); WATCHED(f, .Lzero); xor %eax, %eax; POP; ret; END(f)
#define GOTO(f, to) BEGIN(f); WATCHED(f, to); POP; jmp to; END(f)
.Lzero:	xor %eax, %eax
	ret
#elif defined(__aarch64__)
#define BEGIN(f) .p2align 4; SCOPE(f); .type f, %function; f: .Lf_##f: stp x29, x30, [sp, #-16]!; mov x29, sp
#define END(f) .size f, . - f
/* The same with the name in x16 and the code in x17. */
#define WATCHED(f, to) adrp x16, tools_at; ldr x16, [x16, :lo12:tools_at]; cbz x16, 1f; ldr x16, [x16]; cbz x16, 1f; \
	ldp x29, x30, [sp], #16; adr x16, .Ln_##f; adrp x17, to; add x17, x17, :lo12:to; b tools_enter; .Ln_##f: .asciz #f; .p2align 2; 1:
#define STUB(f) BEGIN(f); WATCHED(f, .Lzero); mov w0, wzr; ldp x29, x30, [sp], #16; ret; END(f)
#define GOTO(f, to) BEGIN(f); WATCHED(f, to); ldp x29, x30, [sp], #16; b to; END(f)
.Lzero:	mov w0, wzr
	ret
#else
#error "the stand-in has no entries for this architecture"
#endif
ASM

{
	nm --defined-only "${objects[@]}" | awk '$3 ~ /^in_/ { print "in", substr($3, 4) }'
	sed 's/^/sym /' "$@"
} | awk '
	$1 == "in" { in_[$2] = 1; next }
	$2 in seen { next }
	{
		seen[$2] = 1
		base = $2
		sub(/_pt[sd][sz]$/, "", base)
		twin = substr($2, length(base) + 1)
		if (base == "__cudaLaunchKernel")
			print "GOTO(" $2 ", .Lf_cudaLaunchKernel" twin ")"
		else if (base in in_)
			print "GOTO(" $2 ", in_" base ")"
		else
			print "STUB(" $2 ")"
	}'
echo '	.section .note.GNU-stack, "", %progbits'
