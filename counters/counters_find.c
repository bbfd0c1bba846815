/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_find.c - which libcupti: the one that the user names, else the newest of the toolkits
 * and Python environments of this machine whose major version the driver knows. PM sampling came
 * with CUPTI 12.6, so that older majors are not looked for.
 */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

#define MAJOR_MIN 12
#define MAJOR_MAX 19

static char why_text[700];

/* libcupti opens libnvperf_host.so by its bare name, which the loader does not look for beside
 * it: load it first. */
static void load_nvperf(const char *cupti)
{
	const char *slash = strrchr(cupti, '/');
	char path[600];

	if (!slash)
		return;
	snprintf(path, sizeof(path), "%.*s/libnvperf_host.so", (int)(slash - cupti), cupti);
	dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

static bool counters_find_load(struct cupti_found *f, const char *path)
{
	load_nvperf(path);
	f->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!f->handle)
		return false;
	if (!dlsym(f->handle, "cuptiPmSamplingEnable")) {
		snprintf(why_text, sizeof(why_text),
			 "%s is older than CUPTI 12.6, which brought PM sampling", path);
		dlclose(f->handle);
		f->handle = NULL;
		return false;
	}
	snprintf(f->path, sizeof(f->path), "%s", path);
	return true;
}

/* The library in a directory that a pattern names; of several matches the last, which is the
 * newest in most layouts. */
static bool load_glob(struct cupti_found *f, const char *dir, int major)
{
	char pattern[600];
	bool found = false;
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/libcupti.so.%d", dir, major);
	if (!glob(pattern, 0, NULL, &g))
		for (size_t i = g.gl_pathc; i-- && !found;)
			found = counters_find_load(f, g.gl_pathv[i]);
	globfree(&g);
	return found;
}

static bool load_major(struct cupti_found *f, int major)
{
	/* %s: the value of the variable; a row is left out where it is not set. */
	static const struct {
		const char *env, *dir;
	} places[] = {
		{ "CUDA_HOME", "%s/extras/CUPTI/lib64" },
		{ "CUDA_HOME", "%s/lib64" },
		{ "CUDA_PATH", "%s/extras/CUPTI/lib64" },
		{ "CUDA_PATH", "%s/lib64" },
		{ NULL, "/usr/local/cuda/extras/CUPTI/lib64" },
		{ NULL, "/usr/local/cuda/lib64" },
		{ NULL, "/usr/local/cuda/targets/*/lib" },
		{ NULL, "/usr/local/cuda-*/extras/CUPTI/lib64" },
		{ NULL, "/usr/local/cuda-*/lib64" },
		{ NULL, "/opt/cuda/extras/CUPTI/lib64" },
		{ NULL, "/opt/nvidia/hpc_sdk/Linux_*/*/cuda/*/extras/CUPTI/lib64" },
		{ "CONDA_PREFIX", "%s/lib" },
		{ "CONDA_PREFIX", "%s/lib/python3*/site-packages/nvidia/cu*/lib" },
		{ "CONDA_PREFIX", "%s/lib/python3*/site-packages/nvidia/cuda_cupti/lib" },
		{ "VIRTUAL_ENV", "%s/lib/python3*/site-packages/nvidia/cu*/lib" },
		{ "VIRTUAL_ENV", "%s/lib/python3*/site-packages/nvidia/cuda_cupti/lib" },
		{ NULL, "/usr/local/lib/python3*/*-packages/nvidia/cu*/lib" },
		{ NULL, "/usr/local/lib/python3*/*-packages/nvidia/cuda_cupti/lib" },
		{ NULL, "/usr/lib/python3*/*-packages/nvidia/cu*/lib" },
	};
	char name[64];

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const char *value = places[i].env ? getenv(places[i].env) : "";
		char dir[512];

		if (!value || (places[i].env && *value != '/'))
			continue;
		snprintf(dir, sizeof(dir), "%s%s", value,
			 places[i].env ? places[i].dir + 2 : places[i].dir);
		if (load_glob(f, dir, major))
			return true;
	}
	snprintf(name, sizeof(name), "libcupti.so.%d", major);
	return counters_find_load(f, name);
}

const char *cupti_find(struct cupti_found *f, const char *path, int cuda_major)
{
	why_text[0] = '\0';
	if (*path) {
		for (int major = MAJOR_MAX; major >= MAJOR_MIN; major--)
			if (load_glob(f, path, major))
				return NULL;
		if (counters_find_load(f, path))
			return NULL;
		if (!*why_text) {
			const char *err = dlerror();

			snprintf(why_text, sizeof(why_text), "--cupti %s: %s", path,
				 err ? err : "it cannot be loaded");
		}
		return why_text;
	}
	for (int major = cuda_major >= MAJOR_MIN && cuda_major < MAJOR_MAX ? cuda_major : MAJOR_MAX;
	     major >= MAJOR_MIN; major--)
		if (load_major(f, major))
			return NULL;
	if (!*why_text)
		snprintf(why_text, sizeof(why_text),
			 "libcupti was not found; it comes with the CUDA toolkit, or with pip "
			 "install nvidia-cuda-cupti: name it with --cupti PATH");
	return why_text;
}
