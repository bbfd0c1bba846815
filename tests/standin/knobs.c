/* SPDX-License-Identifier: BSD-2-Clause */
/* knobs.c - the stand-in's failures, delays and blocked calls on demand: see standin.h. Part of
 * both libraries. */
#include "standin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int knobs_state;

static void sleep_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	while (nanosleep(&ts, &ts))
		;
}

static void spin(const char *path)
{
	int fd = open(path, O_RDONLY);
	const volatile char *byte = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);

	close(fd);
	while (byte != MAP_FAILED && *byte == '0')
		;
}

/* Like spin(), but asks the driver again and again. */
static void poll_stream(const char *path)
{
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	int (*query)(void *) = driver ? (int (*)(void *))dlsym(driver, "cuStreamQuery") : NULL;
	int fd = open(path, O_RDONLY);
	const volatile char *byte = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);

	close(fd);
	while (query && byte != MAP_FAILED && *byte == '0')
		query(NULL);
}

/* Finds NAME in "NAME:VALUE,NAME:VALUE"; copies VALUE. */
static bool knob(const char *env, const char *name, char *value, size_t size)
{
	const char *s = getenv(env);
	size_t len = strlen(name);

	while (s && *s) {
		size_t n = strcspn(s, ",");

		if (n > len + 1 && !strncmp(s, name, len) && s[len] == ':' && n - len - 1 < size) {
			memcpy(value, s + len + 1, n - len - 1);
			value[n - len - 1] = 0;
			return true;
		}
		s += n;
		s += *s == ',';
	}
	return false;
}

int knobs_slow(const char *name)
{
	char value[512];

	if (!knobs_state)
		knobs_state = getenv("STANDIN_FAIL") || getenv("STANDIN_DELAY_US") ||
					      getenv("STANDIN_BLOCK") || getenv("STANDIN_WAIT") ||
					      getenv("STANDIN_SPIN") || getenv("STANDIN_POLL")
				      ? 2
				      : 1;
	if (knobs_state == 1)
		return 0;
	if (knob("STANDIN_DELAY_US", name, value, sizeof(value)))
		sleep_us(atol(value));
	if (knob("STANDIN_BLOCK", name, value, sizeof(value)))
		while (access(value, F_OK))
			sleep_us(2000);
	if (knob("STANDIN_WAIT", name, value, sizeof(value)))
		close(open(value, O_RDONLY));
	if (knob("STANDIN_SPIN", name, value, sizeof(value)))
		spin(value);
	if (knob("STANDIN_POLL", name, value, sizeof(value)))
		poll_stream(value);
	return knob("STANDIN_FAIL", name, value, sizeof(value)) ? atoi(value) : 0;
}
