/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuda_events_test.c - the sample program: adds two vectors on the GPU and knows what a trace of it
 * must show.
 *
 * It calls the runtime in most of the ways in which programs do: pageable and pinned copies,
 * asynchronous ones, streams, events, a kernel out of embedded PTX, and two calls that fail on
 * purpose. After each call it notes the row that cudatrace must print for it (EVENT and DETAILS;
 * the duration is written as DUR), so a test is one diff. It checks its own result, and runs on a
 * GPU or on the stand-in (tests/standin). Plain C: builds with gcc or nvcc.
 *
 * 	cc -I$CUDA_HOME/include cuda_events_test.c -L$CUDA_HOME/lib64 -lcudart -ldl
 *
 * It knows nothing of cudatrace's sources.
 */
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT 262144
#define BYTES (COUNT * sizeof(float))
#define BLOCK 256
#define GRID (COUNT / BLOCK)
#define NO_GPU 77 /* exit status: nothing could be run here */

/* c[i] = a[i] + b[i]. PTX of an old target: every driver translates it for the GPU that it finds. */
static const char ptx[] =
	".version 6.3\n"
	".target sm_52\n"
	".address_size 64\n"
	".visible .entry vec_add(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .f32 %f<4>;\n"
	"	.reg .b32 %r<6>;\n"
	"	.reg .b64 %rd<8>;\n"
	"	ld.param.u64 %rd1, [pa];\n"
	"	ld.param.u64 %rd2, [pb];\n"
	"	ld.param.u64 %rd3, [pc];\n"
	"	ld.param.u32 %r1, [pn];\n"
	"	mov.u32 %r2, %ctaid.x;\n"
	"	mov.u32 %r3, %ntid.x;\n"
	"	mov.u32 %r4, %tid.x;\n"
	"	mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"	setp.ge.s32 %p, %r5, %r1;\n"
	"	@%p bra DONE;\n"
	"	mul.wide.s32 %rd4, %r5, 4;\n"
	"	add.s64 %rd5, %rd1, %rd4;\n"
	"	add.s64 %rd6, %rd2, %rd4;\n"
	"	add.s64 %rd7, %rd3, %rd4;\n"
	"	ld.global.f32 %f1, [%rd5];\n"
	"	ld.global.f32 %f2, [%rd6];\n"
	"	add.f32 %f3, %f1, %f2;\n"
	"	st.global.f32 [%rd7], %f3;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n";

/* ---- the expected trace ---- */

static FILE *trace; /* NULL: nobody asked */

static const char *result_name(int err)
{
	switch (err) {
	case 0: return "success";
	case 2: return "cudaErrorMemoryAllocation";
	case 101: return "cudaErrorInvalidDevice";
	}
	return "?";
}

/* Notes the row of a call: its name, its result, and its arguments and outputs as a format. */
__attribute__((format(printf, 3, 4))) static int row(int err, const char *event, const char *fmt,
						     ...)
{
	va_list ap;
	int n;

	if (!trace)
		return err;
	fprintf(trace, "%s ", event);
	va_start(ap, fmt);
	n = vfprintf(trace, fmt, ap);
	va_end(ap);
	fprintf(trace, "%sreturned=%d (%s), DUR\n", n ? ", " : "", err, result_name(err));
	return err;
}

static unsigned long long hex(const void *p)
{
	return (unsigned long long)(uintptr_t)p;
}

#define PTR "0x%llx"

/* Ends the program when a call that must succeed did not. */
static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "cuda_events_test: %s failed: %d\n", what, err);
	exit(1);
}

/* ---- the kernel ---- */

#if CUDART_VERSION >= 12080
static cudaLibrary_t library;
static cudaKernel_t kernel;

static void load_kernel(void)
{
	int err = cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);

	must(row(err, "cudaLibraryLoadData",
		 "code=" PTR
		 ", jitOptions=0x0, jitOptionsValues=0x0, numJitOptions=0, libraryOptions=0x0, "
		 "libraryOptionValues=0x0, numLibraryOptions=0, library=" PTR,
		 hex(ptx), hex(library)),
	     "cudaLibraryLoadData");
	err = cudaLibraryGetKernel(&kernel, library, "vec_add");
	must(row(err, "cudaLibraryGetKernel", "library=" PTR ", name=\"vec_add\", pKernel=" PTR,
		 hex(library), hex(kernel)),
	     "cudaLibraryGetKernel");
}

static void launch(void **args, cudaStream_t stream)
{
	dim3 grid = { GRID, 1, 1 }, block = { BLOCK, 1, 1 };

	must(row(cudaLaunchKernel((const void *)kernel, grid, block, args, 0, stream),
		 "cudaLaunchKernel",
		 "vec_add, grid=(%d,1,1), block=(%d,1,1), sharedMem=0 bytes, stream=" PTR, GRID,
		 BLOCK, hex(stream)),
	     "cudaLaunchKernel");
}

static void unload_kernel(void)
{
	must(row(cudaLibraryUnload(library), "cudaLibraryUnload", "library=" PTR, hex(library)),
	     "cudaLibraryUnload");
}
#else
/* Before CUDA 12.8 the runtime cannot load PTX: the driver does. It is looked up, so that the
 * program links without it. */
static void *module, *function;
static int (*mod_load)(void **, const void *);
static int (*mod_function)(void **, void *, const char *);
static int (*mod_unload)(void *);
static int (*mod_launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			 unsigned, void *, void **, void **);

static void *driver_symbol(const char *name)
{
	static void *driver;
	void *fn;

	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	fn = driver ? dlsym(driver, name) : NULL;
	must(!fn, name);
	return fn;
}

static void load_kernel(void)
{
	int err;

	*(void **)&mod_load = driver_symbol("cuModuleLoadData");
	*(void **)&mod_function = driver_symbol("cuModuleGetFunction");
	*(void **)&mod_unload = driver_symbol("cuModuleUnload");
	*(void **)&mod_launch = driver_symbol("cuLaunchKernel");
	err = mod_load(&module, ptx);
	must(row(err, "cuModuleLoadData", "image=" PTR ", module=" PTR, hex(ptx), hex(module)),
	     "cuModuleLoadData");
	err = mod_function(&function, module, "vec_add");
	must(row(err, "cuModuleGetFunction", "hmod=" PTR ", name=\"vec_add\", hfunc=" PTR,
		 hex(module), hex(function)),
	     "cuModuleGetFunction");
}

static void launch(void **args, cudaStream_t stream)
{
	must(row(mod_launch(function, GRID, 1, 1, BLOCK, 1, 1, 0, stream, args, NULL),
		 "cuLaunchKernel",
		 "f=vec_add, gridDimX=%d, gridDimY=1, gridDimZ=1, blockDimX=%d, blockDimY=1, "
		 "blockDimZ=1, sharedMemBytes=0 bytes, hStream=" PTR,
		 GRID, BLOCK, hex(stream)),
	     "cuLaunchKernel");
}

static void unload_kernel(void)
{
	must(row(mod_unload(module), "cuModuleUnload", "hmod=" PTR, hex(module)), "cuModuleUnload");
}
#endif

/* ---- calls that are made more than once ---- */

static const char *const kinds[] = { "HostToHost", "HostToDevice", "DeviceToHost",
				     "DeviceToDevice" };

static void *device_alloc(size_t size)
{
	void *p = NULL;
	int err = cudaMalloc(&p, size);

	must(row(err, "cudaMalloc", "size=%zu bytes, devPtr=" PTR, size, hex(p)), "cudaMalloc");
	return p;
}

static void device_free(void *p)
{
	must(row(cudaFree(p), "cudaFree", "devPtr=" PTR, hex(p)), "cudaFree");
}

static void copy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind)
{
	must(row(cudaMemcpy(dst, src, size, kind), "cudaMemcpy",
		 "dst=" PTR ", src=" PTR ", size=%zu bytes, kind=%d (%s)", hex(dst), hex(src), size,
		 kind, kinds[kind]),
	     "cudaMemcpy");
}

static void copy_async(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind,
		       cudaStream_t stream)
{
	must(row(cudaMemcpyAsync(dst, src, size, kind, stream), "cudaMemcpyAsync",
		 "dst=" PTR ", src=" PTR ", size=%zu bytes, kind=%d (%s), stream=" PTR, hex(dst),
		 hex(src), size, kind, kinds[kind], hex(stream)),
	     "cudaMemcpyAsync");
}

static cudaEvent_t event_create(void)
{
	cudaEvent_t event = NULL;
	int err = cudaEventCreate(&event);

	must(row(err, "cudaEventCreate", "event=" PTR, hex(event)), "cudaEventCreate");
	return event;
}

static void event_record(cudaEvent_t event, cudaStream_t stream)
{
	must(row(cudaEventRecord(event, stream), "cudaEventRecord", "event=" PTR ", stream=" PTR,
		 hex(event), hex(stream)),
	     "cudaEventRecord");
}

static void event_destroy(cudaEvent_t event)
{
	must(row(cudaEventDestroy(event), "cudaEventDestroy", "event=" PTR, hex(event)),
	     "cudaEventDestroy");
}

static void stream_sync(cudaStream_t stream)
{
	must(row(cudaStreamSynchronize(stream), "cudaStreamSynchronize", "stream=" PTR,
		 hex(stream)),
	     "cudaStreamSynchronize");
}

static void stream_destroy(cudaStream_t stream)
{
	must(row(cudaStreamDestroy(stream), "cudaStreamDestroy", "stream=" PTR, hex(stream)),
	     "cudaStreamDestroy");
}

/* ---- the program ---- */

static void use_device(void)
{
	int count = 0, device = -1, err = cudaGetDeviceCount(&count);

	if (err == cudaErrorInsufficientDriver || err == cudaErrorNoDevice || (!err && !count)) {
		fprintf(stderr,
			"cuda_events_test: this machine has no GPU that CUDA can use (%d); run it "
			"with the stand-in: LD_LIBRARY_PATH=.output/standin\n",
			err);
		exit(NO_GPU);
	}
	must(row(err, "cudaGetDeviceCount", "count=%d", count), "cudaGetDeviceCount");
	must(row(cudaSetDevice(0), "cudaSetDevice", "device=0"), "cudaSetDevice");
	err = cudaGetDevice(&device);
	must(row(err, "cudaGetDevice", "device=%d", device), "cudaGetDevice");
}

/* Two calls that fail, on purpose, and what cudaGetLastError says of them. */
static void fail(void)
{
	size_t huge = (size_t)1 << 60;
	void *p = NULL;
	int err;

	err = row(cudaMalloc(&p, huge), "cudaMalloc", "size=%zu bytes", huge);
	must(err != cudaErrorMemoryAllocation, "a cudaMalloc that must be refused");
	row(cudaGetLastError(), "cudaGetLastError", "%s", "");
	err = row(cudaSetDevice(9999), "cudaSetDevice", "device=9999");
	must(err != cudaErrorInvalidDevice, "a cudaSetDevice that must be refused");
	row(cudaGetLastError(), "cudaGetLastError", "%s", "");
}

/* Returns the number of wrong sums. */
static int add_vectors(cudaStream_t stream, cudaStream_t other)
{
	float *a = malloc(BYTES), *c = malloc(BYTES), *b = NULL, *sum = NULL, ms = 0;
	int n = COUNT, wrong = 0, err;
	void *da, *db, *dc, *args[] = { &da, &db, &dc, &n };
	cudaEvent_t start, stop;
	size_t room = 0, total = 0;

	must(!a || !c, "malloc");
	err = cudaMallocHost((void **)&b, BYTES);
	must(row(err, "cudaMallocHost", "size=%zu bytes, ptr=" PTR, BYTES, hex(b)),
	     "cudaMallocHost");
	err = cudaHostAlloc((void **)&sum, BYTES, cudaHostAllocDefault);
	must(row(err, "cudaHostAlloc", "size=%zu bytes, flags=0x0, pHost=" PTR, BYTES, hex(sum)),
	     "cudaHostAlloc");
	for (int i = 0; i < n; i++) {
		a[i] = (float)i;
		b[i] = (float)(2 * i);
	}
	da = device_alloc(BYTES);
	db = device_alloc(BYTES);
	dc = device_alloc(BYTES);
	err = cudaMemGetInfo(&room, &total);
	must(row(err, "cudaMemGetInfo", "free=%zu bytes, total=%zu bytes", room, total),
	     "cudaMemGetInfo");
	start = event_create();
	stop = event_create();

	copy(da, a, BYTES, cudaMemcpyHostToDevice);
	copy_async(db, b, BYTES, cudaMemcpyHostToDevice, stream);
	must(row(cudaMemset(dc, 255, BYTES), "cudaMemset",
		 "devPtr=" PTR ", value=255, size=%zu bytes", hex(dc), BYTES),
	     "cudaMemset");
	must(row(cudaMemsetAsync(dc, 0, 4096, stream), "cudaMemsetAsync",
		 "devPtr=" PTR ", value=0, size=4096 bytes, stream=" PTR, hex(dc), hex(stream)),
	     "cudaMemsetAsync");
	event_record(start, stream);
	launch(args, stream);
	event_record(stop, stream);
	must(row(cudaStreamWaitEvent(other, stop, 0), "cudaStreamWaitEvent",
		 "stream=" PTR ", event=" PTR ", flags=0x0", hex(other), hex(stop)),
	     "cudaStreamWaitEvent");
	copy_async(sum, dc, BYTES, cudaMemcpyDeviceToHost, other);
	must(row(cudaEventSynchronize(stop), "cudaEventSynchronize", "event=" PTR, hex(stop)),
	     "cudaEventSynchronize");
	err = cudaEventElapsedTime(&ms, start, stop);
	must(row(err, "cudaEventElapsedTime", "start=" PTR ", end=" PTR ", ms=%.7g", hex(start),
		 hex(stop), (double)ms),
	     "cudaEventElapsedTime");
	stream_sync(other);
	copy(da, dc, BYTES, cudaMemcpyDeviceToDevice);
	copy(c, da, BYTES, cudaMemcpyDeviceToHost);
	must(row(cudaDeviceSynchronize(), "cudaDeviceSynchronize", "%s", ""),
	     "cudaDeviceSynchronize");

	for (int i = 0; i < n; i++)
		wrong += c[i] != a[i] + b[i] || sum[i] != c[i];
	event_destroy(start);
	event_destroy(stop);
	device_free(da);
	device_free(db);
	device_free(dc);
	must(row(cudaFreeHost(b), "cudaFreeHost", "ptr=" PTR, hex(b)), "cudaFreeHost");
	must(row(cudaFreeHost(sum), "cudaFreeHost", "ptr=" PTR, hex(sum)), "cudaFreeHost");
	free(a);
	free(c);
	return wrong;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct options {
	long loops;
	double seconds, rate;
};

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: cuda_events_test [--print-trace | --expect FILE] [--loop N] [--seconds S] "
		"[--rate R]\n"
		"  --print-trace  print the trace that is expected, and nothing else, on stdout\n"
		"  --expect FILE  write it to FILE\n"
		"  --loop N       add the vectors N times (default 1)\n"
		"  --seconds S    go on for S seconds instead\n"
		"  --rate R       at most R additions a second (default 10 with --seconds)\n");
	exit(status);
}

static const char *value_of(int argc, char **argv, int *i)
{
	if (++*i >= argc)
		usage(2);
	return argv[*i];
}

static struct options parse(int argc, char **argv)
{
	struct options o = { .loops = 1 };

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--print-trace")) {
			trace = stdout;
		} else if (!strcmp(argv[i], "--expect")) {
			const char *path = value_of(argc, argv, &i);

			trace = fopen(path, "w");
			if (!trace) {
				perror(path);
				exit(1);
			}
		} else if (!strcmp(argv[i], "--loop")) {
			o.loops = atol(value_of(argc, argv, &i));
		} else if (!strcmp(argv[i], "--seconds")) {
			o.seconds = atof(value_of(argc, argv, &i));
			if (o.rate <= 0)
				o.rate = 10;
		} else if (!strcmp(argv[i], "--rate")) {
			o.rate = atof(value_of(argc, argv, &i));
		} else {
			usage(strcmp(argv[i], "--help") && strcmp(argv[i], "-h") ? 2 : 0);
		}
	}
	return o;
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	cudaStream_t stream = NULL, other = NULL;
	double begin = now_s();
	int wrong = 0, err;
	long rounds = 0;

	if (trace != stdout) {
		printf("cuda_events_test: pid %d\n", (int)getpid());
		fflush(stdout);
	}
	use_device();
	err = cudaStreamCreate(&stream);
	must(row(err, "cudaStreamCreate", "pStream=" PTR, hex(stream)), "cudaStreamCreate");
	err = cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
	must(row(err, "cudaStreamCreateWithFlags",
		 "flags=0x1 (cudaStreamNonBlocking), pStream=" PTR, hex(other)),
	     "cudaStreamCreateWithFlags");
	load_kernel();
	while (o.seconds > 0 ? now_s() - begin < o.seconds : rounds < o.loops) {
		wrong += add_vectors(stream, other);
		rounds++;
		if (o.rate > 0) {
			double wait = (double)rounds / o.rate - (now_s() - begin);

			if (wait > 0)
				usleep((unsigned)(wait * 1e6));
		}
	}
	fail();
	unload_kernel();
	stream_destroy(stream);
	stream_destroy(other);
	if (trace && fclose(trace)) {
		perror("cuda_events_test: the expected trace");
		return 1;
	}
	if (trace != stdout)
		printf("cuda_events_test: %ld additions of %d numbers, %s\n", rounds, COUNT,
		       wrong ? "WRONG" : "all correct");
	return wrong != 0;
}
