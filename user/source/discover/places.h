/* SPDX-License-Identifier: BSD-2-Clause */
/* places.h - inside discover: where CUDA's libraries are installed, for programs that have not
 * started yet. */
#ifndef CT_PLACES_H
#define CT_PLACES_H

#include "../../util/types.h"

/* The path of a libcudart or libcuda that may or may not exist, and may come more than once. */
typedef void (*places_fn)(void *ctx, const char *path);

/* From the loader's cache, then the usual directories, then CUDA_HOME, CUDA_PATH, CONDA_PREFIX
 * and VIRTUAL_ENV. */
void places_list(places_fn, void *ctx);

/* The same for the loader's cache alone, from any file in its format: it is checked. */
void places_cache(const char *cache, places_fn, void *ctx);

#endif
