/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * embed.h - files that become part of the program: the assembler includes their bytes.
 *
 * EMBED(page, "a.html") declares page_begin[] and page_end[], for this file and for others that
 * declare them too. The path is relative to the folder where make runs.
 */
#ifndef CT_EMBED_H
#define CT_EMBED_H

#define EMBED(name, file)                                                    \
	__asm__(".section .rodata\n"                                         \
		".balign 64\n"                                               \
		".global " #name "_begin, " #name "_end\n" #name "_begin:\n" \
		".incbin \"" file "\"\n" #name "_end:\n"                     \
		".previous\n");                                              \
	extern const char name##_begin[], name##_end[]

#endif
