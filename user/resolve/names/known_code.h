/* SPDX-License-Identifier: BSD-2-Clause */
/* known_code.h - finds the device code in an ELF file of the host, and whether it has only one
 * kernel. */
#ifndef CT_KNOWN_CODE_H
#define CT_KNOWN_CODE_H

#include "../../proc/elf_read.h"

bool code_is_there(const struct elf_file *);
/* 0, 1 (`name`, of CT_NAME_MAX bytes, is the kernel's), 2 for more, or -errno when not all of it
 * can be understood. */
int code_kernels(const struct elf_file *, char *name);

#endif
