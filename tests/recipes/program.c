/* SPDX-License-Identifier: BSD-2-Clause */
/* program.c - calls what tests/recipes.sh adds: a function of the runtime, and the second library. */
#include <stddef.h>

int cudaRecipe(int device, size_t size);
int toyOpen(const char *name, int *session);
int toySend(int session, const void *buffer, size_t bytes);
int toyLastSend(int session, const void *buffer, size_t bytes);

int main(void)
{
	int session = 0;

	cudaRecipe(3, 4096);
	toyOpen("first", &session);
	toySend(session, &session, 1 << 20);
	toySend(0, NULL, 7);
	toyLastSend(5, (void *)6, 7);
	return 0;
}
