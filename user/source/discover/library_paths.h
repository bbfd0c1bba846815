/* SPDX-License-Identifier: BSD-2-Clause */
/* library_paths.h - inside discover: where CUDA's libraries are installed, for programs that have not
 * started yet. */
#ifndef CT_LIBRARY_PATHS_H
#define CT_LIBRARY_PATHS_H

#include "../../util/types.h"

/* The path of a libcudart or libcuda that may or may not exist, and may come more than once. */
typedef void (*library_paths_fn)(void *ctx, const char *path);

/* From the loader's cache, then the usual directories, then CUDA_HOME, CUDA_PATH, CONDA_PREFIX
 * and VIRTUAL_ENV. */
void library_paths_list(library_paths_fn, void *ctx);

/* The same, only for the loader's cache, from any file in its format: it is checked. */
void library_paths_cache(const char *cache, library_paths_fn, void *ctx);

#endif
