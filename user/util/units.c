/* SPDX-License-Identifier: BSD-2-Clause */
/* units.c - see units.h. */
#include <stdio.h>

#include "units.h"

const char *print_duration(char *buf, size_t size, double ns)
{
	static const struct {
		double unit;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" } };

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		double v = ns / units[i].unit;

		if (v < 1)
			continue;
		snprintf(buf, size, "%.*f %s",
			 v < 10	     ? 3
			 : v < 100   ? 2
			 : v < 10000 ? 1
				     : 0,
			 v, units[i].name);
		return buf;
	}
	snprintf(buf, size, "%.0f ns", ns);
	return buf;
}

const char *print_bytes(char *buf, size_t size, double bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t i = 0;

	while (bytes >= 1024 && i + 1 < ARRAY_LEN(units)) {
		bytes /= 1024;
		i++;
	}
	snprintf(buf, size, "%.*f %s", i ? 1 : 0, bytes, units[i]);
	return buf;
}
