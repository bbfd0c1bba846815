/* SPDX-License-Identifier: BSD-2-Clause */
/* auditor.c - an auditor of the dynamic loader (LD_AUDIT) that looks at each call and each return. At the end it says how many
 * queries it saw, and how many calls of dlsym() by our objects. */
#include <link.h>
#include <stdio.h>
#include <string.h>

static int calls, ours;

unsigned int la_version(unsigned int version)
{
	return version;
}
unsigned int la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie)
{
	*cookie = strstr(map->l_name, "cudatrace") != NULL;
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
Elf64_Addr la_x86_64_gnu_pltenter(Elf64_Sym *symbol, unsigned int n, uintptr_t *from, uintptr_t *to,
				  La_x86_64_regs *regs, unsigned int *flags, const char *name,
				  long int *frame_bytes)
{
	*frame_bytes = 256; /* then it copies the stack, and sees the return */
	return symbol->st_value;
}
unsigned int la_x86_64_gnu_pltexit(Elf64_Sym *symbol, unsigned int n, uintptr_t *from,
				   uintptr_t *to, const La_x86_64_regs *in, La_x86_64_retval *out,
				   const char *name)
{
	calls += !strcmp(name, "cudaStreamQuery");
	ours += !strcmp(name, "dlsym") && *from;
	return 0;
}
__attribute__((destructor)) static void end(void)
{
	dprintf(1, "audited: %d, of ours %d\n", calls, ours);
}
