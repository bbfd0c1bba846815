/* SPDX-License-Identifier: BSD-2-Clause */
/* make_elf.h - heads of ELF files that tests make. */
#ifndef CT_MAKE_ELF_H
#define CT_MAKE_ELF_H

#include <elf.h>
#include <stddef.h>

#include "../../user/util/types.h"

#if defined(__aarch64__)
#define MAKE_ELF_MACHINE EM_AARCH64
#else
#define MAKE_ELF_MACHINE EM_X86_64
#endif
#define MAKE_ELF_IDENT                                                   \
	{                                                                \
		0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT \
	}
/* Members of the head of a library for this machine, with one segment and a table of sections: `file` is the
 * struct that is the file, `ph` and `sh` are its members. */
#define MAKE_ELF_HEAD(file, ph, sh)                                                                \
	.e_ident = MAKE_ELF_IDENT, .e_type = ET_DYN, .e_machine = MAKE_ELF_MACHINE,                \
	.e_phoff = offsetof(__typeof__(file), ph), .e_phentsize = sizeof((file).ph), .e_phnum = 1, \
	.e_shoff = offsetof(__typeof__(file), sh), .e_shentsize = sizeof((file).sh[0]),            \
	.e_shnum = ARRAY_LEN((file).sh)

#endif
