/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz_web.c - the file of --web-config. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/serve/web_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the server relies on. */
static void check(const struct web_config *c)
{
	if (c->nusers < 0 || c->nusers > WEB_USERS_MAX ||
	    (c->tls && (!c->cert_file || !c->key_file)))
		abort();
	for (int i = 0; i < c->nusers; i++)
		if (!c->users[i].name || strlen(c->users[i].hash) != 60 || c->users[i].cost <= 0)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char why[WEB_WHY_MAX] = "", path[64];
	struct web_config c;

	if (fd < 0 || fchmod(fd, 0600) || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!web_config_read(&c, path, why)) {
		check(&c);
		web_config_close(&c);
	} else if (!*why || strlen(why) >= sizeof(why)) {
		abort();
	}
	close(fd);
	return 0;
}
