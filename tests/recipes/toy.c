/* SPDX-License-Identifier: BSD-2-Clause */
/* toy.c - a second stand-in library, for tests/recipes.sh: it calls the runtime inside its calls. */
#include <stddef.h>

int cudaMalloc(void **devPtr, size_t size);
int cudaFree(void *devPtr);

int toyOpen(const char *name, int *session)
{
	*session = name[0];
	return 0;
}

int toySend(int session, const void *buffer, size_t bytes)
{
	void *p = NULL;

	if (!session || !buffer)
		return 3;
	return cudaMalloc(&p, bytes) || cudaFree(p) ? 1 : 0;
}

/* Behind thousands of rows. */
int toyLastSend(int session, const void *buffer, size_t bytes)
{
	return !session || !buffer || !bytes;
}
