/* SPDX-License-Identifier: BSD-2-Clause */
/* container.h - which container a cgroup belongs to. */
#ifndef CT_CONTAINER_H
#define CT_CONTAINER_H

#include "../util/types.h"

/* The id of the container, 64 hexadecimal digits, of a cgroup (v2) of this machine; false: it belongs to none, or is gone. */
bool container_id(uint64_t cgroup_id, char *buf, size_t size);
/* The same of a cgroup's path, as "/system.slice/docker-<id>.scope". */
bool container_id_of_path(const char *path, char *buf, size_t size);

#endif
