/* SPDX-License-Identifier: BSD-2-Clause */
/* again.c - a program for tests/recipes.sh: it makes one call, and becomes another program, which makes two. */
#include <unistd.h>

int cudaDeviceSynchronize(void);

int main(int argc, char **argv)
{
	cudaDeviceSynchronize();
	if (argc > 1)
		return cudaDeviceSynchronize();
	execl(argv[0], argv[0], "again", (char *)NULL);
	return 1;
}
