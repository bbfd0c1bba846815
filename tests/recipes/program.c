/* SPDX-License-Identifier: BSD-2-Clause */
/* program.c - calls what tests/recipes.sh adds: a function of the runtime, and the second library; and gets a signal. */
#include <signal.h>
#include <stddef.h>

int cudaRecipe(int device, size_t size);
int toyOpen(const char *name, int *session);
int toySend(int session, const void *buffer, size_t bytes);
int toyLastSend(int session, const void *buffer, size_t bytes);

static void nothing(int signal)
{
	(void)signal;
}

int main(void)
{
	int session = 0;

	signal(SIGUSR1, nothing);
	cudaRecipe(3, 4096);
	toyOpen("first", &session);
	toySend(session, &session, 1 << 20);
	toySend(0, NULL, 7);
	toyLastSend(5, (void *)6, 7);
	raise(SIGUSR1);
	return 0;
}
