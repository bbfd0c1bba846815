/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * library.c - chooses a libcupti. The order is: the one that the process has loaded; the one that
 * the user named; the one beside the process's cudart, or in the Python packages around it; the one
 * beside the driver's library; the toolkit's; the one that the loader finds. Its major version is
 * never newer than the driver's, and the version of the process's cudart is preferred. It is never
 * unloaded, because other code may use it later.
 *
 * A libcupti calls its driver through tables of functions that the driver keeps for NVIDIA's tools.
 * With a libcuda that is not NVIDIA's it calls functions that do not exist, and the program
 * crashes: CUPTI 13.0 jumps to address 0 inside cuptiSubscribe if cuGetExportTable returns success
 * and no table, and CUPTI 13.2 calls itself endlessly inside cuptiGetVersion, with such a driver
 * and also if no libcuda can be loaded. So the agent looks for the driver before it loads a
 * libcupti, and checks the driver before it calls any function of libcupti (fits_driver).
 */
#include "agent_state.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../common/objects.h"

#define NEWEST 13
#define OLDEST 11
#define DIRS 24

struct found {
	char cupti[512]; /* of a libcupti that is already loaded */
	char dirs[DIRS][512];
	int ndirs;
	int cudart; /* major version; 0: none is mapped, or its name has no version */
	/* the folder of the process's libcuda, with a slash at its end; "": not known */
	char driver[512];
	/* fits_driver() has asked the driver for a table that no driver has; the driver returned it */
	bool asked, accepted;
};

const char *library_error(int result)
{
	static __thread char number[32];
	const char *text = NULL;

	if (agent.cupti.cuptiGetResultString && !agent.cupti.cuptiGetResultString(result, &text) &&
	    text)
		return text;
	snprintf(number, sizeof(number), "error %d", result);
	return number;
}

/* Libraries of tools that use CUPTI, or the hook that CUPTI uses. Every PyTorch has the last one,
 * so it proves the least. */
static const struct {
	const char *library, *tool;
} tools[] = {
	{ "libToolsInjection", "Nsight Systems" },
	{ "libcuda-injection", "Nsight Compute" },
	{ "libsanitizer-collection", "compute-sanitizer" },
	{ "libcudadebugger", "cuda-gdb" },
	{ "libwprofinj", "wprof" },
	{ "libparcagpucupti", "parca" },
	{ "libtorch_cpu", "torch.profiler, perhaps" },
};
#define NTOOLS (sizeof(tools) / sizeof(tools[0]))

static void look_tool(void *ctx, const char *path)
{
	size_t *best = ctx;

	for (size_t i = 0; i < *best; i++)
		if (strstr(path, tools[i].library))
			*best = i;
}

/* Calls look for each object that is loaded. No other thread of the agent reads memory meanwhile. */
static void look_at_loaded(void (*look)(void *ctx, const char *path), void *ctx)
{
	text_open(); /* it is read without, too */
	objects_loaded(look, ctx);
	text_close();
}

void library_tool(char *name, size_t size)
{
	size_t best = NTOOLS;

	look_at_loaded(look_tool, &best);
	snprintf(name, size, "%s", best < NTOOLS ? tools[best].tool : "");
}

static void add_dir(struct found *f, const char *path, size_t len, const char *rest)
{
	char *to = f->dirs[f->ndirs];

	if (f->ndirs == DIRS || (size_t)snprintf(to, sizeof(f->dirs[0]), "%.*s%s", (int)len, path,
						 rest) >= sizeof(f->dirs[0]))
		return;
	for (int i = 0; i < f->ndirs; i++)
		if (!strcmp(f->dirs[i], to))
			return;
	f->ndirs++;
}

static void look(void *ctx, const char *path)
{
	const char *base = strrchr(path, '/'), *packages;
	struct found *f = ctx;

	if (!base)
		return;
	base++;
	if (!strncmp(base, "libcupti.so", 11) && !f->cupti[0])
		snprintf(f->cupti, sizeof(f->cupti), "%s", path);
	/* examples: libcudart.so.13, libcudart.so as ctypes loads it, libcudart-d0da41ae.so.12 in
	 * wheels */
	if (!strncmp(base, "libcudart.so", 12) || !strncmp(base, "libcudart-", 10)) {
		const char *major = strstr(base, ".so.");

		if (major)
			f->cudart = atoi(major + 4);
		add_dir(f, path, (size_t)(base - path), "");
		add_dir(f, path, (size_t)(base - path), "../extras/CUPTI/lib64/");
	}
	/* site-packages/nvidia/cu13/lib, site-packages/nvidia/cuda_cupti/lib */
	packages = strstr(path, "/nvidia/");
	if (packages) {
		add_dir(f, path, (size_t)(packages - path), "/nvidia/cu13/lib/");
		add_dir(f, path, (size_t)(packages - path), "/nvidia/cuda_cupti/lib/");
	}
}

static void toolkit(struct found *f)
{
	static const char *const vars[] = { "CUDA_HOME", "CUDA_PATH", NULL };
	static const char *const below[] = { "/extras/CUPTI/lib64/", "/lib64/", "/lib/",
					     "/targets/x86_64-linux/lib/",
					     "/targets/sbsa-linux/lib/" };
	const char *roots[3] = { "/usr/local/cuda" };
	int n = 1;

	for (int i = 0; vars[i]; i++) {
		/* read only once, because the program may change its environment at the same
		 * time */
		const char *root = getenv(vars[i]);

		if (root && *root)
			roots[n++] = root;
	}
	for (int i = n - 1; i >= 0; i--)
		for (size_t j = 0; j < sizeof(below) / sizeof(below[0]); j++)
			add_dir(f, roots[i], strlen(roots[i]), below[j]);
}

/* Returns a function of the driver that the process has loaded, or NULL. */
static void *driver_function(const char *name)
{
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	return lib ? dlsym(lib, name) : NULL;
}

/*
 * Loads the driver, if the process has not done so yet; this does not start it. The loader may find
 * the driver for a library that says where it is (cudart beside it, NixOS), and not for the agent,
 * so these folders are tried, too.
 */
static bool load_driver(const struct found *f, char *why, size_t size)
{
	static const char *const also[] = { "/run/opengl-driver/lib/", "/usr/lib/wsl/lib/" };
	char path[600];

	if (dlopen("libcuda.so.1", RTLD_LAZY))
		return true;
	snprintf(why, size, "%s", dlerror());
	for (int i = 0; i < f->ndirs + 2; i++) {
		snprintf(path, sizeof(path), "%slibcuda.so.1",
			 i < f->ndirs ? f->dirs[i] : also[i - f->ndirs]);
		if (!access(path, R_OK) && dlopen(path, RTLD_LAZY))
			return true;
	}
	return false;
}

static uint32_t driver_version(void)
{
	int (*get)(int *) = (int (*)(int *))driver_function("cuDriverGetVersion");
	int version = 0;

	return get && !get(&version) && version > 0 ? (uint32_t)version : 0;
}

/* Gets the folder of the file that a path names, with links followed. */
static void folder_of(const char *path, char *dir, size_t size)
{
	char *full = path ? realpath(path, NULL) : NULL, *base = full ? strrchr(full, '/') : NULL;

	dir[0] = '\0';
	if (base && (size_t)(base - full) + 2 <= size)
		snprintf(dir, size, "%.*s", (int)(base + 1 - full), full);
	free(full);
}

static void driver_folder(char *dir, size_t size)
{
	void *fn = driver_function("cuGetExportTable");
	Dl_info info;

	folder_of(fn && dladdr(fn, &info) ? info.dli_fname : NULL, dir, size);
}

/* Returns whether the process has a device of NVIDIA's kernel driver open. If so, its libcuda is
 * the one that came with that driver. */
static bool has_device(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	bool found = false;
	char link[64];

	while (d && !found && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = '\0';
		found = !strncmp(link, "/dev/nvidia", 11);
	}
	if (d)
		closedir(d);
	return found;
}

/*
 * Returns whether the process's driver has what a libcupti needs. A libcupti in the driver's own
 * folder came with the driver and fits. Otherwise the driver is asked for a table that no driver
 * has: NVIDIA's driver refuses. A trace would show that call, so it is made only once.
 */
static bool fits_driver(struct found *f, const char *cupti)
{
	static const unsigned char nobodys[16] = { 0xc0, 0xda, 0x7a, 0xce, 0x5e, 0x1d, 0x4b, 0x0a,
						   0x9a, 0x11, 0x6e, 0x0f, 0x0b, 0x0d, 0x1e, 0x55 };
	int (*get)(const void **, const void *) =
		(int (*)(const void **, const void *))driver_function("cuGetExportTable");
	const void *table = NULL;
	char dir[512];

	folder_of(cupti, dir, sizeof(dir));
	if (*dir && !strcmp(dir, f->driver))
		return true;
	if (!get || has_device())
		return true;
	if (!f->asked)
		f->accepted = !get(&table, nobodys);
	f->asked = true;
	return !f->accepted;
}

static bool resolve(struct cupti *c, const char **missing)
{
#define MUST(name, args)                                     \
	c->name = (__typeof__(c->name))dlsym(c->lib, #name); \
	if (!c->name)                                        \
		*missing = #name;
#define MAY(name, args) c->name = (__typeof__(c->name))dlsym(c->lib, #name);
	*missing = NULL;
	CUPTI_FUNCS(MUST, MAY)
	return !*missing;
}

/* Returns the file that contains a function, or `otherwise` if it is not known. */
static const char *file_of(void *fn, const char *otherwise)
{
	Dl_info info;

	return dladdr(fn, &info) && info.dli_fname ? info.dli_fname : otherwise;
}

/* Opens a libcupti and takes it if it fits. why: the text to report if none fits. */
static bool take(struct cupti *c, struct found *f, const char *path, int flags, char *why,
		 size_t size)
{
	const char *missing;

	c->lib = dlopen(path, RTLD_LAZY | RTLD_LOCAL | flags);
	if (!c->lib) {
		if (!access(path, F_OK) || !*why)
			snprintf(why, size, "%s", dlerror());
		return false;
	}
	if (!resolve(c, &missing)) {
		snprintf(why, size, "%s has no function %s", path, missing);
	} else if (!fits_driver(f, file_of((void *)c->cuptiGetVersion, path))) {
		snprintf(why, size,
			 "%s does not belong to the driver in use, %slibcuda.so.1, which is not "
			 "NVIDIA's",
			 file_of((void *)c->cuptiGetVersion, path), f->driver);
	} else if (c->cuptiGetVersion(&c->version)) {
		snprintf(why, size, "%s does not tell its version", path);
	} else if (cupti_major(c->version) < OLDEST) {
		snprintf(why, size, "%s is older than 11.8", path);
	} else if (c->driver && cupti_major(c->version) > c->driver / 1000) {
		snprintf(why, size, "%s is of CUDA %u, newer than the driver's %u", path,
			 cupti_major(c->version), c->driver / 1000);
	} else {
		snprintf(c->path, sizeof(c->path), "%s", file_of((void *)c->cuptiGetVersion, path));
		return true;
	}
	c->version = 0;
	dlclose(c->lib); /* nobody can use it through the agent, because it was not taken */
	c->lib = NULL;
	return false;
}

static bool try_major(struct cupti *c, struct found *f, int major, char *why, size_t size)
{
	char name[32], path[600];

	snprintf(name, sizeof(name), major == 11 ? "libcupti.so.11.8" : "libcupti.so.%d", major);
	for (int i = 0; i < f->ndirs; i++) {
		snprintf(path, sizeof(path), "%s%s", f->dirs[i], name);
		if (!access(path, R_OK) && take(c, f, path, 0, why, size))
			return true;
	}
	return take(c, f, name, 0, why, size);
}

/* NVTX's first call and the driver's start may happen at the same time, in two threads. */
static pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER;

void library_reset(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	finding = fresh;
}

static int library_look_up(struct cupti *c, const char *wanted, char *why, size_t size)
{
	struct found *f;
	int newest;
	bool ok = false;

	if (c->lib) /* the library is known from an earlier attach */
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	look_at_loaded(look, f);
	if (!load_driver(f, why, size)) {
		free(f);
		return -ENODEV;
	}
	driver_folder(f->driver, sizeof(f->driver));
	if (*f->driver)
		add_dir(f, f->driver, strlen(f->driver), "");
	toolkit(f);
	/* In a program that already runs, asking for the driver's version would be a call in its
	 * trace. CUDA has started there, so the driver is not older than the cudart, and a libcupti
	 * that is loaded fits. */
	if (agent.early || (!f->cupti[0] && (*wanted || f->cudart < OLDEST)))
		c->driver = driver_version();
	newest = c->driver ? (int)(c->driver / 1000) : f->cudart >= OLDEST ? f->cudart : NEWEST;
	if (f->cupti[0])
		ok = take(c, f, f->cupti, RTLD_NOLOAD, why, size);
	else if (*wanted)
		ok = take(c, f, wanted, 0, why, size);
	if (!ok && !f->cupti[0] && !*wanted) {
		if (f->cudart >= OLDEST && f->cudart <= newest)
			ok = try_major(c, f, f->cudart, why, size);
		for (int m = newest; m >= OLDEST && !ok; m--)
			ok = try_major(c, f, m, why, size);
	}
	free(f);
	c->get_driver_version = (int (*)(int *))driver_function("cuDriverGetVersion");
	return ok ? 0 : -ENOENT;
}

int library_find(struct cupti *c, const char *wanted, char *why, size_t size)
{
	int err;

	*why = '\0';
	pthread_mutex_lock(&finding);
	err = library_look_up(c, wanted, why, size);
	pthread_mutex_unlock(&finding);
	return err;
}
