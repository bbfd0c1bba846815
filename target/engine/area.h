/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * area.h - where things lie in a thread's area, for C and for the assembler.
 *
 * The region is a section of this object without bytes in the file: HOOK_AREAS areas of two parts,
 * HOOK_PART bytes each:
 *
 *	code	from AREA_FIRST on a stub for each frame
 *	data	struct area; from AREA_FIRST on the frames
 *
 * A stub and its frame are HOOK_PART apart, so that a return address in a stub determines the
 * frame, and with it the true return address. The CPU, the engine and unwinders find it in this
 * way; unwinders use one expression that needs no thread-local storage.
 */
#ifndef CT_HOOKS_LAYOUT_H
#define CT_HOOKS_LAYOUT_H

#define HOOK_PAGE 4096
#define HOOK_PART 16384
#define HOOK_AREA 32768
#define HOOK_AREAS 4096
/* offset of the first frame, and of the first stub: this bit is set in each frame's address */
#define AREA_FIRST 0x2000
#define FRAME_SIZE 128
#define FRAME_RA 8
#if defined(__x86_64__)
#define STUB_BACK 3 /* offset of the call's return address in the stub */
#else
#define STUB_BACK 4
#endif
#define GUARD_BIT 1 /* in hooks_top */

#define HOT_GO 0
#define HOT_ID 8
#define HOT_FLAGS 12
#define HOT_REGS_BIT 4 /* HOOK_REGS */
#define HOT_REGS_SHIFT 2

#endif
