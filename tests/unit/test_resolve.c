/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_resolve.c - names of kernels from what calls teach: each test is a program's calls, as
 * records, and the name that its launches are shown with. What a launch is shown with is asked
 * of the table that CT_NAME records fill, as in a trace.
 */
#include <errno.h>
#include <malloc.h>

#include "../../user/stages/nest.h"
#include "../../user/resolve/names/names.h"
#include "../../wire/control.h"
#include "../../user/resolve/absent.h"
#include "../../user/resolve/resolve.h"
#include "make_call.h"
#include "unit.h"

#define OK 0
#define FAILED 500 /* cudaErrorSymbolNotFound, CUDA_ERROR_NOT_FOUND */

static struct fix {
	struct names *names;
	struct name_table *table;
	uint64_t now_ns;
	uint32_t pid;
	int reported;	/* CT_NAME records with a name */
	int taken_back; /* and without one */
	uint8_t source; /* of the last launch's name */
	/* what there is to be read of processes */
	struct {
		uint64_t handle;
		const char *name;
		enum ct_name_source source;
	} known[8];
	int asked, taught, forgotten;
} fix;

static int out(void *ctx, const struct ct_hdr *rec)
{
	struct fix *f = ctx;

	CHECK(rec->kind == CT_NAME && !record_check(rec, rec->size));
	if (((const struct ct_name *)rec)->len)
		f->reported++;
	else
		f->taken_back++;
	return name_table_record(f->table, rec);
}

static const char *ask(void *ctx, uint32_t pid, uint64_t handle, bool driver,
		       enum ct_name_source *source, uint32_t *len)
{
	struct fix *f = ctx;

	(void)pid;
	(void)driver;
	f->asked++;
	for (size_t i = 0; i < ARRAY_LEN(f->known); i++) {
		if (f->known[i].handle != handle || !f->known[i].name)
			continue;
		*source = f->known[i].source;
		*len = (uint32_t)strlen(f->known[i].name);
		return f->known[i].name;
	}
	return NULL;
}

static void taught(void *ctx, uint32_t pid, uint64_t handle, const char *name, uint32_t len)
{
	(void)pid;
	(void)handle;
	CHECK(strlen(name) == len);
	((struct fix *)ctx)->taught++;
}

static void forgotten(void *ctx, uint32_t pid)
{
	(void)pid;
	((struct fix *)ctx)->forgotten++;
}

static const struct names_ops fix_ops = {
	.out = out, .ask = ask, .teach = taught, .forget = forgotten
};

static void begin(bool inner)
{
	memset(&fix, 0, sizeof(fix));
	fix.names = names_open(&fix_ops, &fix, inner);
	fix.table = name_table_open();
	fix.now_ns = 1000000;
	fix.pid = 100;
	CHECK(fix.names && fix.table);
}

static void finish(void)
{
	names_close(fix.names);
	name_table_close(fix.table);
}

/* One record, as it comes from the source: to resolve, and what resolve hands on to the table. */
static void feed(const struct ct_hdr *h)
{
	CHECK(!record_check(h, h->size));
	CHECK(!names_record(fix.names, h));
	if (h->kind != CT_MORE)
		CHECK(!name_table_record(fix.table, h));
}

/* Passes a call of the current process on; it takes 500 ns. Returns it. */
static struct ct_call *pass(struct ct_call *c)
{
	c->h.pid = c->h.tid = fix.pid;
	fix.now_ns += 1000;
	c->h.start_ns = fix.now_ns - 500;
	c->h.end_ns = fix.now_ns;
	feed(&c->h);
	return c;
}

/* The name that the call is shown with; "-": none. */
static const char *shown(const struct ct_call *c)
{
	const struct kernel_name *k = name_table_find(fix.table, c);

	fix.source = k ? k->source : 0;
	return k ? k->mangled : "-";
}

static struct made_call made;

/* A successful call whose output, if it has one, is put into `out_mem` at address OUT. */
#define OUT 0x900000
#define STRING 0xa00000
static uint64_t out_mem;
#define CALL(name, ...) pass(make_call(&made, name, CT_CALL, 0, OK, __VA_ARGS__))

static void set_string(const char *s)
{
	make_nmemory = 0;
	make_mem(OUT, &out_mem, sizeof(out_mem));
	make_mem(STRING, s, strlen(s) + 1);
}

/* ---- the calls of a program ---- */

static void register_kernel(uint64_t fatbin, uint64_t stub, const char *name)
{
	set_string(name);
	pass(make_call(&made, "__cudaRegisterFunction", CT_CALL, CT_F_NO_RETURN | CT_F_HIDDEN, 0,
		       fatbin, stub, U(STRING), U(STRING), U(-1), U(0), U(0), U(0), U(0), U(0)));
}

static void unregister(uint64_t fatbin)
{
	pass(make_call(&made, "__cudaUnregisterFatBinary", CT_CALL, CT_F_HIDDEN, 0, fatbin));
}

/* Any of those that look a handle up by another. */
static void look_up(const char *function, uint64_t from, uint64_t handle, int ret)
{
	set_string("");
	out_mem = handle;
	pass(make_call(&made, function, CT_CALL, CT_F_HIDDEN, ret, U(OUT), from));
}

/* Any of those that look a handle up by name. */
static void look_up_name(const char *function, uint64_t owner, const char *name, uint64_t handle,
			 int ret)
{
	set_string(name);
	out_mem = handle;
	pass(make_call(&made, function, CT_CALL, CT_F_HIDDEN, ret, U(OUT), owner, U(STRING)));
}

static const char *launch(uint64_t handle)
{
	return shown(CALL("cudaLaunchKernel", handle, U(1), U(1), U(1), U(1), U(0), U(0), U(0)));
}

static const char *cu_launch(uint64_t handle)
{
	return shown(CALL("cuLaunchKernel", handle, U(1), U(1), U(1), U(1), U(1), U(1), U(0), U(0),
			  U(0), U(0)));
}

static void life(int kind, uint32_t pid, uint64_t start)
{
	struct ct_process p = { .h = { .size = sizeof(p),
				       .kind = (uint16_t)kind,
				       .pid = pid,
				       .tid = pid,
				       .start_ns = fix.now_ns,
				       .end_ns = fix.now_ns },
				.start_boottime_ns = start };

	feed(&p.h);
}

static void forked(uint32_t parent, uint32_t child)
{
	struct ct_fork f = { .h = { .size = sizeof(f),
				    .kind = CT_FORK,
				    .pid = parent,
				    .tid = parent,
				    .start_ns = fix.now_ns,
				    .end_ns = fix.now_ns },
			     .child_pid = child };

	feed(&f.h);
}

/* ---- tests ---- */

/* nvcc 12 and before: the host stub's address is what is launched. */
static void test_registered(void)
{
	uint64_t launches, named;

	begin(false);
	life(CT_PROCESS, 100, 7);
	register_kernel(0xf0, 0x401000, "_Z6vecAddPKfS0_Pfi");
	register_kernel(0xf0, 0x402000, "_Z5otherv");
	CHECK(fix.reported == 0); /* nobody launched it yet */
	CHECK_TEXT("_Z6vecAddPKfS0_Pfi", launch(0x401000));
	CHECK(fix.source == CT_NAME_REGISTERED && fix.reported == 1);
	CHECK_TEXT("_Z6vecAddPKfS0_Pfi", launch(0x401000));
	CHECK(fix.reported == 1);
	CHECK_TEXT("-", launch(0x403000));
	CHECK_TEXT("_Z6vecAddPKfS0_Pfi",
		   shown(CALL("cudaFuncSetAttribute", U(0x401000), U(8), U(0))));
	CHECK_TEXT("_Z5otherv",
		   shown(pass(make_call(&made, "cudaLaunchKernel", CT_ENTER, 0, 0, U(0x402000),
					U(1), U(1), U(1), U(1), U(0), U(0), U(0)))));
	/* what was not asked for need not be told of */
	register_kernel(0xf0, 0x404000, "_Z6hiddenv");
	pass(make_call(&made, "cudaLaunchKernel", CT_CALL, CT_F_HIDDEN, 0, U(0x404000), U(1), U(1),
		       U(1), U(1), U(0), U(0), U(0)));
	CHECK(fix.reported == 2);
	/* another process knows nothing of it */
	fix.pid = 101;
	CHECK_TEXT("-", launch(0x401000));
	names_totals(fix.names, &launches, &named);
	CHECK(launches == 4 && named == 2);
	CHECK(fix.taken_back == 0 && fix.forgotten == 0);
	finish();
}

/* Every way from one handle to another. */
static void test_chains(void)
{
	begin(false);
	register_kernel(0xf0, 0x401000, "_Z1kv");
	look_up("__cudaGetKernel", 0x401000, 0x501000, OK);
	CHECK_TEXT("_Z1kv", launch(0x501000)); /* nvcc 13 */
	look_up("cudaGetKernel", 0x401000, 0x502000, OK);
	CHECK_TEXT("_Z1kv", launch(0x502000));
	look_up("cudaGetFuncBySymbol", 0x401000, 0x503000, OK);
	CHECK_TEXT("_Z1kv", cu_launch(0x503000));
	look_up_name("cudaLibraryGetKernel", 0x11, "_Z1lv", 0x504000, OK);
	CHECK_TEXT("_Z1lv", launch(0x504000));
	look_up_name("cuLibraryGetKernel", 0x12, "_Z1mv", 0x505000, OK);
	CHECK_TEXT("_Z1mv", cu_launch(0x505000));
	look_up("cuKernelGetFunction", 0x505000, 0x506000, OK);
	CHECK_TEXT("_Z1mv", cu_launch(0x506000));
	look_up_name("cuModuleGetFunction", 0x13, "triton_kernel", 0x507000, OK);
	CHECK_TEXT("triton_kernel", cu_launch(0x507000));
	CHECK(fix.source == CT_NAME_REGISTERED);
	CHECK(fix.taught == 3); /* those of the driver */
	/* asked for its name: of a handle that came by itself */
	out_mem = STRING;
	make_nmemory = 0;
	make_mem(OUT, &out_mem, 8);
	make_mem(STRING, "enumerated", 11);
	CALL("cuFuncGetName", U(OUT), U(0x508000));
	CHECK_TEXT("enumerated", cu_launch(0x508000));
	/* what failed teaches nothing, whatever lies where the output would be */
	look_up("__cudaGetKernel", 0x401000, 0x601000, FAILED);
	CHECK_TEXT("-", launch(0x601000));
	look_up_name("cuModuleGetFunction", 0x13, "nothing", 0x602000, FAILED);
	CHECK_TEXT("-", cu_launch(0x602000));
	/* nor does a call that has not returned, or whose return is not looked at */
	set_string("x");
	out_mem = 0x603000;
	pass(make_call(&made, "cuModuleGetFunction", CT_CALL, CT_F_UNFINISHED, 0, U(OUT), U(0x13),
		       U(STRING)));
	pass(make_call(&made, "cuModuleGetFunction", CT_CALL, CT_F_NO_RETURN, 0, U(OUT), U(0x13),
		       U(STRING)));
	pass(make_call(&made, "cuModuleGetFunction", CT_ENTER, 0, 0, U(OUT), U(0x13), U(STRING)));
	CHECK_TEXT("-", cu_launch(0x603000));
	/* a name that could not be read */
	set_string("");
	make_nmemory = 1;
	out_mem = 0x604000;
	CALL("cuModuleGetFunction", U(OUT), U(0x13), U(STRING));
	CHECK_TEXT("-", cu_launch(0x604000));
	/* a kernel node of a graph */
	uint64_t node[7] = { 0x401000 };

	make_mem(0xb00000, node, sizeof(node));
	CHECK_TEXT("_Z1kv",
		   shown(CALL("cudaGraphAddKernelNode", U(OUT), U(1), U(0), U(0), U(0xb00000))));
	finish();
}

/* A handle that is used again never goes by the old name. */
static void test_reused(void)
{
	begin(false);
	look_up_name("cuModuleGetFunction", 0x13, "first", 0x507000, OK);
	look_up_name("cuModuleGetFunction", 0x14, "neighbour", 0x508000, OK);
	CHECK_TEXT("first", cu_launch(0x507000));
	CHECK_TEXT("neighbour", cu_launch(0x508000));
	pass(make_call(&made, "cuModuleUnload", CT_CALL, CT_F_HIDDEN, FAILED, U(0x13)));
	CHECK(fix.taken_back == 0);
	pass(make_call(&made, "cuModuleUnload", CT_CALL, CT_F_HIDDEN, OK, U(0x13)));
	CHECK(fix.taken_back == 1 && fix.forgotten == 1);
	CHECK_TEXT("-", cu_launch(0x507000));
	CHECK_TEXT("neighbour", cu_launch(0x508000));
	/* the same module address, the same handle */
	look_up_name("cuModuleGetFunction", 0x13, "second", 0x507000, OK);
	CHECK_TEXT("second", cu_launch(0x507000));
	/* without a word of the unloading: the new name wins, and the old is taken back before
	 * the launch */
	look_up_name("cuModuleGetFunction", 0x15, "third", 0x507000, OK);
	CHECK(fix.taken_back == 2);
	CHECK_TEXT("third", cu_launch(0x507000));
	/* a handle whose new name cannot be known */
	set_string("");
	make_nmemory = 1;
	out_mem = 0x507000;
	CALL("cuModuleGetFunction", U(OUT), U(0x16), U(STRING));
	CHECK_TEXT("-", cu_launch(0x507000));
	/* the same name again is no news */
	look_up_name("cuModuleGetFunction", 0x14, "neighbour", 0x508000, OK);
	CHECK(fix.taken_back == 3);
	CHECK_TEXT("neighbour", cu_launch(0x508000));
	/* the look-up's own row is not shown with what the handle was before */
	look_up_name("cuModuleGetFunction", 0x17, "fourth", 0x508000, OK);
	CHECK_TEXT("-", shown(&made.c));
	finish();
}

/* While one thread unloads, another is given the address: its record may come first. */
static void test_reused_meanwhile(void)
{
	struct made_call unload;
	struct ct_call *c;

	begin(false);
	look_up_name("cuModuleGetFunction", 0x13, "old", 0x507000, OK);
	look_up_name("cuModuleGetFunction", 0x13, "old2", 0x509000, OK);
	CHECK_TEXT("old", cu_launch(0x507000));
	c = make_call(&unload, "cuModuleUnload", CT_CALL, CT_F_HIDDEN, OK, U(0x13));
	c->h.pid = fix.pid;
	c->h.tid = 7;
	c->h.start_ns = fix.now_ns + 100;
	fix.now_ns += 1000;
	look_up_name("cuModuleGetFunction", 0x13, "new", 0x507000, OK);
	c->h.end_ns = fix.now_ns + 100;
	feed(&c->h);
	CHECK_TEXT("new", cu_launch(0x507000));
	CHECK_TEXT("-", cu_launch(0x509000));
	finish();
}

static void test_owners(void)
{
	begin(false);
	/* a fat binary's kernels, and all handles made of them */
	register_kernel(0xf0, 0x401000, "_Z1av");
	register_kernel(0xf1, 0x402000, "_Z1bv");
	look_up("__cudaGetKernel", 0x401000, 0x501000, OK);
	CHECK_TEXT("_Z1av", launch(0x501000));
	CHECK_TEXT("_Z1bv", launch(0x402000));
	unregister(0xf0);
	CHECK_TEXT("-", launch(0x501000));
	CHECK_TEXT("-", launch(0x401000));
	CHECK_TEXT("_Z1bv", launch(0x402000));
	/* a library mapped where the first one was */
	register_kernel(0xf0, 0x401000, "_Z1cv");
	CHECK_TEXT("_Z1cv", launch(0x401000));
	/* a library's module, whose functions go with the library */
	look_up("cuLibraryGetModule", 0x12, 0x21, OK);
	look_up_name("cuModuleGetFunction", 0x21, "of_library", 0x507000, OK);
	look_up_name("cuLibraryGetKernel", 0x12, "kernel", 0x508000, OK);
	look_up("cuKernelGetFunction", 0x508000, 0x509000, OK);
	CHECK_TEXT("of_library", cu_launch(0x507000));
	CHECK_TEXT("kernel", cu_launch(0x509000));
	pass(make_call(&made, "cuLibraryUnload", CT_CALL, CT_F_HIDDEN, OK, U(0x12)));
	CHECK_TEXT("-", cu_launch(0x507000));
	CHECK_TEXT("-", cu_launch(0x509000));
	CHECK_TEXT("-", cu_launch(0x508000));
	CHECK_TEXT("_Z1cv", launch(0x401000));
	look_up_name("cudaLibraryGetKernel", 0x31, "rt", 0x50a000, OK);
	CHECK_TEXT("rt", launch(0x50a000));
	CALL("cudaLibraryUnload", U(0x31));
	CHECK_TEXT("-", launch(0x50a000));
	/* asked for its name later: it still belongs to what it was looked up in */
	look_up_name("cuModuleGetFunction", 0x41, "named", 0x50b000, OK);
	out_mem = STRING;
	make_nmemory = 0;
	make_mem(OUT, &out_mem, 8);
	make_mem(STRING, "named", 6);
	CALL("cuFuncGetName", U(OUT), U(0x50b000));
	CALL("cuModuleUnload", U(0x99));
	CHECK_TEXT("named", cu_launch(0x50b000));
	CALL("cuModuleUnload", U(0x41));
	CHECK_TEXT("-", cu_launch(0x50b000));
	finish();
}

/* What ends a context ends what was looked up in it, not the runtime's kernels and those of
 * libraries. */
static void test_contexts(void)
{
	static const char *const ends[] = { "cuCtxDestroy_v2", "cuCtxDestroy",
					    "cuDevicePrimaryCtxReset_v2",
					    "cuDevicePrimaryCtxRelease_v2", "cudaDeviceReset" };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		begin(false);
		register_kernel(0xf0, 0x401000, "_Z1av");
		look_up("__cudaGetKernel", 0x401000, 0x501000, OK);
		look_up("cudaGetFuncBySymbol", 0x401000, 0x502000, OK);
		look_up_name("cuLibraryGetKernel", 0x12, "kernel", 0x503000, OK);
		look_up("cuKernelGetFunction", 0x503000, 0x504000, OK);
		look_up_name("cuModuleGetFunction", 0x13, "function", 0x505000, OK);
		CHECK_TEXT("function", cu_launch(0x505000));
		CHECK_TEXT("kernel", cu_launch(0x504000));
		CALL(ends[i], U(0));
		CHECK_TEXT("_Z1av", launch(0x401000));
		CHECK_TEXT("_Z1av", launch(0x501000));
		CHECK_TEXT("-", cu_launch(0x502000));
		CHECK_TEXT("kernel", cu_launch(0x503000));
		CHECK_TEXT("-", cu_launch(0x504000));
		CHECK_TEXT("-", cu_launch(0x505000));
		look_up_name("cuModuleGetFunction", 0x13, "again", 0x505000, OK);
		CHECK_TEXT("again", cu_launch(0x505000));
		finish();
	}
}

/* Many unloadings: what was not unloaded stays. */
static void test_many_unloads(void)
{
	char name[32];
	int wrong = 0;

	begin(false);
	for (uint64_t i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "_Z5k%04dv", (int)i);
		register_kernel(0x10000 + i, 0x400000 + i * 16, name);
	}
	for (uint64_t i = 0; i < 3000; i += 10)
		launch(0x400000 + i * 16);
	for (uint64_t i = 0; i < 3000; i++)
		if (i % 3)
			unregister(0x10000 + i);
	for (uint64_t i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), i % 3 ? "-" : "_Z5k%04dv", (int)i);
		wrong += strcmp(name, launch(0x400000 + i * 16)) != 0;
	}
	CHECK(wrong == 0);
	finish();
}

static void test_fork(void)
{
	begin(false);
	life(CT_PROCESS, 100, 7);
	register_kernel(0xf0, 0x401000, "_Z1av");
	CHECK_TEXT("_Z1av", launch(0x401000));
	forked(100, 200);
	/* from here on each has its own */
	register_kernel(0xf1, 0x402000, "_Z6parentv");
	fix.pid = 200;
	life(CT_PROCESS, 200, 9);
	CHECK_TEXT("_Z1av", launch(0x401000));
	CHECK_TEXT("-", launch(0x402000));
	register_kernel(0xf1, 0x402000, "_Z5childv");
	CHECK_TEXT("_Z5childv", launch(0x402000));
	unregister(0xf0);
	CHECK_TEXT("-", launch(0x401000));
	fix.pid = 100;
	CHECK_TEXT("_Z1av", launch(0x401000));
	CHECK_TEXT("_Z6parentv", launch(0x402000));
	/* a grandchild of a child that ended, and a child that is its own parent, which no
	 * kernel says */
	forked(200, 300);
	life(CT_EXIT, 200, 0);
	fix.pid = 300;
	CHECK_TEXT("_Z5childv", launch(0x402000));
	forked(300, 300);
	CHECK_TEXT("_Z5childv", launch(0x402000));
	finish();
}

static void test_exec_and_exit(void)
{
	begin(false);
	life(CT_PROCESS, 100, 7);
	register_kernel(0xf0, 0x401000, "_Z1av");
	CHECK_TEXT("_Z1av", launch(0x401000));
	life(CT_PROCESS, 100, 7); /* said once more */
	CHECK_TEXT("_Z1av", launch(0x401000));
	life(CT_EXEC, 100, 7);
	CHECK_TEXT("-", launch(0x401000));
	register_kernel(0xf0, 0x401000, "_Z1bv");
	CHECK_TEXT("_Z1bv", launch(0x401000));
	life(CT_EXIT, 100, 0);
	CHECK_TEXT("_Z1bv", launch(0x401000)); /* a last record that was on the way */
	life(CT_PROCESS, 100, 8);
	CHECK_TEXT("-", launch(0x401000));
	register_kernel(0xf0, 0x401000, "_Z1cv");
	CHECK_TEXT("_Z1cv", launch(0x401000));
	life(CT_PROCESS, 100, 9); /* its end was lost */
	CHECK_TEXT("-", launch(0x401000));
	finish();
}

/* A library like libtorch, with names of all lengths; every one is right. */
static void test_many(void)
{
	enum { N = 20000 };
	static char names[N][260];
	unsigned int seed = 3;
	int wrong = 0;

	begin(false);
	for (int i = 0; i < N; i++) {
		int len = snprintf(names[i], sizeof(names[i]), "_Z%dk%06d", i, i),
		    more = rand_r(&seed) % 230;

		for (int j = 0; j < more; j++)
			names[i][len + j] = (char)('a' + rand_r(&seed) % 26);
		register_kernel(0xf000u + (uint64_t)i / 16, 0x400000 + (uint64_t)i * 48, names[i]);
	}
	CHECK(fix.reported == 0);
	for (int i = N - 1; i >= 0; i--) {
		look_up("__cudaGetKernel", 0x400000 + (uint64_t)i * 48,
			0x7000000 + (uint64_t)i * 64, OK);
		wrong += strncmp(names[i], launch(0x7000000 + (uint64_t)i * 64), 247) != 0;
	}
	CHECK(wrong == 0 && fix.reported == N);
	finish();
}

/* ---- long names ---- */

static char long_name[CT_NAME_MAX + 5000];

/* Registers long_name's first len bytes as the kernel side does: pieces, without those in
 * `missing` (a bit each), then the call. */
static void register_long(uint64_t stub, uint32_t len, uint32_t missing, bool call)
{
	union {
		struct ct_more m;
		char room[sizeof(struct ct_more) + CT_MORE_PIECE];
	} r;
	uint32_t head = 247, step = CT_MORE_PIECE - 1;
	char saved = long_name[len];

	long_name[len] = '\0';
	for (uint32_t i = 0, off = head; i < 16 && len >= head; i++, off += step) {
		uint32_t n = len - off < step ? len - off : step;

		memset(&r, 0, sizeof(r));
		r.m.h = (struct ct_hdr){
			.size = sizeof(r), .kind = CT_MORE, .pid = fix.pid, .tid = fix.pid
		};
		r.m.h.size = (uint16_t)((sizeof(struct ct_more) + n + 7) & ~7u);
		r.m.func = (uint16_t)api_next("__cudaRegisterFunction", -1);
		r.m.offset = off;
		r.m.len = n;
		r.m.last = n < step;
		memcpy(r.m.bytes, long_name + off, n);
		if (!(missing >> i & 1))
			feed(&r.m.h);
		if (r.m.last)
			break;
	}
	if (call)
		register_kernel(0xf0, stub, long_name);
	long_name[len] = saved;
}

/* Whether the launch is shown with the first len bytes of long_name. */
static bool is_long(uint64_t stub, uint32_t len, bool cut)
{
	const char *name = launch(stub);
	const struct kernel_name *k = name_table_find(fix.table, &made.c);

	return strlen(name) == len && !memcmp(name, long_name, len) && k && k->cut == cut;
}

static void test_long_names(void)
{
	static const uint32_t lens[] = { 246, 247, 248, 1245, 1246, 1247, 2245, 9000, CT_NAME_MAX };

	begin(false);
	for (size_t i = 0; i < sizeof(long_name) - 1; i++)
		long_name[i] = (char)('a' + i * 31 % 26);
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		register_long(0x400000 + i * 16, lens[i], 0, true);
		/* 16 pieces of 999 bytes and the head do not reach CT_NAME_MAX */
		CHECK(is_long(0x400000 + i * 16, lens[i] < 16231 ? lens[i] : 16231,
			      lens[i] >= 16231));
	}
	/* a piece is missing: what is before it is right */
	register_long(0x500000, 5000, 1, true);
	CHECK(is_long(0x500000, 247, true));
	register_long(0x500010, 5000, 2, true);
	CHECK(is_long(0x500010, 247 + 999, true));
	register_long(0x500020, 5000, 16, true);
	CHECK(is_long(0x500020, 247 + 4 * 999, true));
	register_long(0x500030, 5000, ~0u, true);
	CHECK(is_long(0x500030, 247, true));
	/* the call of the pieces is missing, and said to be: they are not taken for the next one's */
	register_long(0x500040, 5000, 0, false);
	long_name[300] = '!';
	set_string(long_name);
	make_call(&made, "__cudaRegisterFunction", CT_CALL, CT_F_NO_RETURN | CT_F_HIDDEN, 0,
		  U(0xf0), U(0x500050), U(STRING), U(STRING), U(-1), U(0), U(0), U(0), U(0), U(0));
	made.c.h.lost = 1;
	pass(&made.c);
	CHECK(is_long(0x500050, 247, true));
	/* nor for those of a call with a short name */
	register_long(0x500060, 5000, 0, false);
	register_kernel(0xf0, 0x500070, "short");
	CHECK_TEXT("short", launch(0x500070));
	register_long(0x500080, 5000, ~0u, true);
	CHECK(is_long(0x500080, 247, true));
	/* another thread's pieces do not get in between */
	register_long(0x500090, 5000, 0, false);
	fix.pid = 101;
	register_long(0x5000a0, 3000, 0, true);
	CHECK(is_long(0x5000a0, 3000, false));
	fix.pid = 100;
	register_long(0x500090, 5000, ~0u, true);
	CHECK(is_long(0x500090, 5000, false));
	/* more threads than there is room for */
	for (uint32_t p = 0; p < 500; p++) {
		fix.pid = 1000 + p;
		register_long(0x600000, 5000, 0, false);
	}
	register_long(0x600000, 5000, ~0u, true);
	CHECK(is_long(0x600000, 5000, false));
	fix.pid = 1000;
	register_long(0x600000, 5000, ~0u, true);
	CHECK(is_long(0x600000, 247, true));
	finish();
}

/* Eight processes with the 21 504 kernels of libtorch, names of 400 bytes. */
static void test_memory(void)
{
	struct mallinfo2 before = mallinfo2(), after;

	begin(false);
	for (uint32_t p = 0; p < 8; p++) {
		fix.pid = 100 + p;
		for (uint64_t i = 0; i < 21504; i++) {
			memset(long_name, 'n', 400);
			long_name[snprintf(long_name, 30, "_Z9%08llu", (unsigned long long)i)] =
				'n';
			register_long(0x400000 + i * 48, 400, 0, true);
		}
	}
	after = mallinfo2();
	if (before.uordblks) /* not under the sanitizers */
		CHECK(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd <
		      (size_t)30 << 20);
	fix.pid = 107;
	CHECK(is_long(0x400000 + 21503 * 48, 400, false));
	/* they end, and after a while nothing is kept */
	for (uint32_t p = 0; p < 8; p++)
		life(CT_EXIT, 100 + p, 0);
	fix.now_ns += 10000000000ULL;
	life(CT_PROCESS, 1000, 1);
	after = mallinfo2();
	if (before.uordblks)
		CHECK(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd <
		      (size_t)2 << 20);
	finish();
}

static void test_hostile_names(void)
{
	static const char *const names[] = {
		"\xff\xfe\x80", "\x1b[31m", "a b\n", "_Z", "_Z999999999999999999999a",
		"\xe2\x80\xae"
	};

	begin(false);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		register_kernel(0xf0, 0x401000 + i * 16, names[i]);
		CHECK_TEXT(names[i], launch(0x401000 + i * 16)); /* sinks make them harmless */
	}
	register_kernel(0xf0, 0x402000, "");
	CHECK_TEXT("-", launch(0x402000));
	finish();
}

/* ---- what is read of processes ---- */

static void test_asked(void)
{
	begin(false);
	fix.known[0].handle = 0x401000;
	fix.known[0].name = "_Z4stubv";
	fix.known[0].source = CT_NAME_SYMBOL;
	fix.known[1].handle = 0x501000;
	fix.known[1].name = "_Z6driverv";
	fix.known[1].source = CT_NAME_DRIVER;
	CHECK_TEXT("_Z4stubv", launch(0x401000));
	CHECK(fix.source == CT_NAME_SYMBOL);
	CHECK_TEXT("_Z6driverv", cu_launch(0x501000));
	CHECK(fix.source == CT_NAME_DRIVER && fix.asked == 2);
	cu_launch(0x501000);
	CHECK(fix.asked == 2);
	CHECK_TEXT("-", launch(0x402000));
	CHECK_TEXT("-", launch(0x402000));
	CHECK(fix.asked == 4);
	/* known before, looked up while traced */
	look_up("__cudaGetKernel", 0x401000, 0x502000, OK);
	CHECK_TEXT("_Z4stubv", launch(0x502000));
	CHECK(fix.source == CT_NAME_SYMBOL);
	/* a module goes: whatever was read of the driver may have been of it; it is read again */
	CALL("cuModuleUnload", U(0x13));
	CHECK(fix.forgotten == 1 && fix.taken_back == 1);
	fix.known[1].name = "_Z5otherv";
	CHECK_TEXT("_Z5otherv", cu_launch(0x501000));
	CHECK_TEXT("_Z4stubv", launch(0x401000));
	CHECK_TEXT("_Z4stubv", launch(0x502000));
	fix.known[0].name = NULL;
	unregister(0xf3);
	CHECK_TEXT("-", launch(0x401000));
	CHECK_TEXT("-", launch(0x502000));
	/* a handle of a library that the driver loaded and the runtime launches: it goes when
	 * the driver unloads */
	fix.known[0].handle = 0x506000;
	fix.known[0].name = "_Z3oldv";
	fix.known[0].source = CT_NAME_DRIVER;
	CHECK_TEXT("_Z3oldv", launch(0x506000));
	CALL("cuLibraryUnload", U(0x14));
	fix.known[0].name = "_Z3newv";
	CHECK_TEXT("_Z3newv", launch(0x506000));
	/* what is registered beats what is read */
	register_kernel(0xf0, 0x501000, "_Z3regv");
	CHECK_TEXT("_Z3regv", cu_launch(0x501000));
	CHECK(fix.source == CT_NAME_REGISTERED);
	/* unloading calls got lost: the driver's handles are asked for again, the runtime's are
	 * what they were */
	register_kernel(0xf0, 0x404000, "_Z1rv");
	look_up_name("cuModuleGetFunction", 0x13, "function", 0x505000, OK);
	CHECK_TEXT("_Z1rv", launch(0x404000));
	CHECK_TEXT("function", cu_launch(0x505000));
	CHECK(!names_doubt(fix.names, fix.now_ns + 1));
	CHECK_TEXT("_Z1rv", launch(0x404000));
	CHECK_TEXT("-", cu_launch(0x505000));
	finish();
}

/* A runtime launch with the driver's inside, whose record comes first. */
static const char *launch_around(uint64_t stub, int n, const uint64_t *inner)
{
	struct made_call in;
	uint64_t start = fix.now_ns + 1000;

	fix.now_ns = start;
	for (int i = 0; i < n; i++) {
		struct ct_call *c = make_call(&in, "cuLaunchKernel", CT_CALL, CT_F_HIDDEN, 0,
					      inner[i], U(1), U(1), U(1), U(1), U(1), U(1), U(0),
					      U(0), U(0), U(0));

		c->depth = 1;
		pass(c);
	}
	make_call(&made, "cudaLaunchKernel", CT_CALL, 0, 0, stub, U(1), U(1), U(1), U(1), U(0),
		  U(0), U(0));
	made.c.h.pid = made.c.h.tid = fix.pid;
	made.c.h.start_ns = start;
	made.c.h.end_ns = fix.now_ns += 1000;
	feed(&made.c.h);
	return shown(&made.c);
}

static void test_inner(void)
{
	const uint64_t one = 0x501000, two[2] = { 0x501000, 0x502000 }, unknown = 0x503000;

	begin(true);
	look_up_name("cuModuleGetFunction", 0x13, "_Z3onev", one, OK);
	look_up_name("cuModuleGetFunction", 0x13, "_Z3twov", two[1], OK);
	CHECK(!names_wants_nested(fix.names));
	register_kernel(0xf0, 0x400000, "_Z3regv");
	launch(0x400000);
	CHECK(!names_wants_nested(fix.names)); /* it has a name */
	cu_launch(0x777000);
	CHECK(!names_wants_nested(fix.names)); /* the driver's have no inner ones */
	CHECK_TEXT("-", launch(0x401000));
	CHECK(names_wants_nested(fix.names));
	CHECK_TEXT("_Z3onev", launch_around(0x401000, 1, &one));
	CHECK(fix.source == CT_NAME_INNER);
	CHECK_TEXT("_Z3onev", launch(0x401000));
	/* a stub is never named by what is not its own */
	CHECK_TEXT("-", launch_around(0x402000, 2, two));
	/* nothing inside this one: what was inside of the one before is none of its */
	CHECK_TEXT("-", launch(0x402000));
	CHECK_TEXT("_Z3twov", launch_around(0x402000, 1, &two[1]));
	/* not for ever */
	fix.now_ns += 3000000000ULL;
	launch(0x400000);
	CHECK(!names_wants_nested(fix.names));
	/* of a kernel that they do not help, three are enough */
	CHECK_TEXT("-", launch_around(0x403000, 1, &unknown));
	CHECK(names_wants_nested(fix.names));
	CHECK_TEXT("-", launch_around(0x403000, 1, &unknown));
	CHECK_TEXT("-", launch_around(0x403000, 1, &unknown));
	fix.now_ns += 3000000000ULL;
	CHECK_TEXT("-", launch_around(0x403000, 1, &unknown));
	CHECK(!names_wants_nested(fix.names));
	/* the same when none is ever seen */
	for (int i = 0; i < 10; i++) {
		launch(0x404000);
		fix.now_ns += 300000000ULL;
	}
	fix.now_ns += 3000000000ULL;
	launch(0x404000);
	CHECK(!names_wants_nested(fix.names));
	finish();
	/* a source that has none */
	begin(false);
	launch(0x401000);
	CHECK(!names_wants_nested(fix.names));
	finish();
}

/* ---- the stage ---- */

static struct {
	char kinds[4096]; /* a letter each */
	uint64_t forgets;
} stage;

static int stage_out(void *ctx, const struct ct_hdr *rec)
{
	size_t n = strlen(stage.kinds);

	(void)ctx;
	CHECK(!record_check(rec, rec->size));
	if (n + 1 < sizeof(stage.kinds))
		stage.kinds[n] = rec->kind == CT_NAME
					 ? (((const struct ct_name *)rec)->len ? 'N' : 'n')
				 : rec->kind == CT_CALL	   ? 'c'
				 : rec->kind == CT_PROCESS ? 'p'
				 : rec->kind == CT_MAP	   ? 'M'
							   : '?';
	return 0;
}

static uint64_t stage_forgets(void *ctx)
{
	(void)ctx;
	return stage.forgets;
}

static void test_stage(void)
{
	struct resolve_opts opts = { .names = true, .nested = true, .forgets = stage_forgets };
	struct process_table *procs = process_table_open();
	struct resolve *r = resolve_open(&opts, procs, stage_out, NULL);
	struct ct_hdr map = { .size = sizeof(map), .kind = CT_MAP, .pid = 12345 };
	struct ct_more more = { .h = { .size = sizeof(more), .kind = CT_MORE, .pid = 12345 } };
	struct resolve_totals totals;

	memset(&stage, 0, sizeof(stage));
	set_string("k");
#define STAGE(name, ...) resolve_record(r, &make_call(&made, name, CT_CALL, 0, 0, __VA_ARGS__)->h)
#define LAUNCH(h)                                                                                  \
	CHECK(!STAGE("cuLaunchKernel", U(h), U(1), U(1), U(1), U(1), U(1), U(1), U(0), U(0), U(0), \
		     U(0)))
	out_mem = 0x501000;
	CHECK(!STAGE("cuModuleGetFunction", U(OUT), U(0x13), U(STRING)));
	LAUNCH(0x501000);
	LAUNCH(0x501000);
	LAUNCH(0x502000);
	/* these end here */
	CHECK(!resolve_record(r, &map) && !resolve_record(r, &more.h));
	CHECK_TEXT("cNccc", stage.kinds);
	/* an unloading call was lost: its kernel's name is not used any more */
	stage.forgets = 1;
	make_call(&made, "cudaFree", CT_CALL, 0, 0, U(1));
	made.c.h.lost = 3;
	made.c.h.start_ns += 1000000;
	made.c.h.end_ns += 1000000;
	CHECK(!resolve_record(r, &made.c.h));
	LAUNCH(0x501000);
	CHECK_TEXT("cNcccncc", stage.kinds);
	resolve_totals(r, &totals);
	CHECK(totals.launches == 4 && totals.named == 2 && totals.stacks == 0);
	resolve_close(r);
	/* nothing wanted: all goes through as it is, but for what is for nobody else */
	opts = (struct resolve_opts){ 0 };
	r = resolve_open(&opts, procs, stage_out, NULL);
	memset(&stage, 0, sizeof(stage));
	CHECK(!STAGE("cuModuleGetFunction", U(OUT), U(0x13), U(STRING)));
	LAUNCH(0x501000);
	CHECK(!resolve_record(r, &map) && !resolve_record(r, &more.h));
	CHECK(!resolve_wants_nested(r));
	CHECK_TEXT("cc", stage.kinds);
	resolve_close(r);
	resolve_close(NULL);
	process_table_close(procs);
}

/* Calls that are held until the call around them returns are not shown with a name that came later. */
static int nest_out(void *ctx, struct event *ev)
{
	return stage_out(ctx, ev->rec);
}

static int nest(struct nest *n, const struct ct_hdr *h)
{
	struct event ev = { .rec = h };

	return nest_record(n, &ev);
}

static void test_nested(void)
{
	struct nest *n = nest_open(nest_out, NULL);
	struct ct_name name = { .h = { .size = sizeof(name), .kind = CT_NAME, .pid = 12345 },
				.handle = 1 };

	memset(&stage, 0, sizeof(stage));
	make_call(&made, "cudaFree", CT_CALL, 0, 0, U(1));
	made.c.depth = 1;
	CHECK(!nest(n, &made.c.h));
	CHECK_TEXT("", stage.kinds);
	CHECK(!nest(n, &name.h));
	CHECK_TEXT("cn", stage.kinds);
	CHECK(!nest_flush(n, UINT64_MAX));
	CHECK_TEXT("cn", stage.kinds);
	nest_close(n);
}

/* An outlet that fails stops the stage. */
static int fails;
static int failing(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	(void)rec;
	return fails;
}

static void test_errors(void)
{
	struct resolve_opts opts = { .names = true };
	struct process_table *procs = process_table_open();
	struct resolve *r = resolve_open(&opts, procs, failing, NULL);

	set_string("k");
	out_mem = 0x501000;
	fails = -EPIPE;
	CHECK(STAGE("cuModuleGetFunction", U(OUT), U(0x13), U(STRING)) == -EPIPE);
	CHECK(STAGE("cuLaunchKernel", U(0x501000), U(1), U(1), U(1), U(1), U(1), U(1), U(0), U(0),
		    U(0), U(0)) == -EPIPE);
	resolve_close(r);
	process_table_close(procs);
}

/* Bytes of any kind that pass the check do no harm; most are near to real records. */
static void test_fuzz(void)
{
	static const int kinds[] = { CT_CALL,  CT_CALL,	 CT_CALL,	CT_CALL,     CT_ENTER,
				     CT_MORE,  CT_NAME,	 CT_PROCESS,	CT_EXEC,     CT_FORK,
				     CT_EXIT,  CT_MAP,	 CT_USER_STACK, CT_PY_STACK, CT_PY_CODE,
				     CT_FRAME, CT_STACK, CT_LOST,	99 };
	uint64_t teaching[CT_MAX_FUNCS / 64] = { 0 }, room[600];
	struct resolve_opts opts = {
		.names = true, .nested = true, .stacks = true, .forgets = stage_forgets
	};
	struct process_table *procs = process_table_open();
	struct resolve *r = resolve_open(&opts, procs, stage_out, NULL);
	struct name_table *t = name_table_open();
	struct ct_hdr *h = (struct ct_hdr *)room;
	struct ct_call *c = (struct ct_call *)room;
	unsigned int seed = 11;
	int rows[64], nrows = 0, good = 0;

	api_teaching(teaching);
	for (int i = 0; i < api_nfuncs && nrows < 40; i++)
		if (teaching[i / 64] >> (i % 64) & 1)
			rows[nrows++] = i;
	rows[nrows++] = api_next("cudaLaunchKernel", -1);
	rows[nrows++] = api_next("cuLaunchKernelEx", -1);
	rows[nrows++] = api_next("cuGraphAddKernelNode_v2", -1);
	for (int round = 0; round < 300000; round++) {
		/* little memory of numbers, so that they meet again */
		for (size_t i = 0; i < ARRAY_LEN(room); i++)
			room[i] = rand_r(&seed) % 4 ? (uint64_t)rand_r(&seed) % 40
						    : (uint64_t)rand_r(&seed) << 20;
		h->size = (uint16_t)((rand_r(&seed) % 8 ? (size_t)rand_r(&seed) % 400
							: (size_t)rand_r(&seed) % sizeof(room)) &
				     ~(size_t)7);
		h->kind = (uint16_t)kinds[(size_t)rand_r(&seed) % ARRAY_LEN(kinds)];
		h->flags = rand_r(&seed) % 3 ? 0 : (uint16_t)(1 << rand_r(&seed) % 8);
		h->lost = rand_r(&seed) % 50 ? 0 : 1;
		h->pid = h->tid = (uint32_t)(rand_r(&seed) % 6) + 0x7ffffff0; /* nobody's */
		h->start_ns = (uint64_t)round * 100000;
		h->end_ns = h->start_ns + 10;
		if (h->kind == CT_CALL || h->kind == CT_ENTER) {
			c->func = (uint16_t)(rand_r(&seed) % 10 ? rows[rand_r(&seed) % nrows]
								: rand_r(&seed) % api_nfuncs);
			c->nwords = (uint8_t)(8 + rand_r(&seed) % 9);
			c->depth = rand_r(&seed) % 3 == 0;
			c->got = rand_r(&seed) % 8;
			c->ret = rand_r(&seed) % 4 == 0;
		}
		if (record_check(h, sizeof(room)))
			continue;
		good++;
		stage.kinds[0] = '\0';
		stage.forgets += rand_r(&seed) % 10 == 0;
		CHECK(!process_table_record(procs, h));
		CHECK(!resolve_record(r, h));
		CHECK(!name_table_record(t, h));
		if (h->kind == CT_CALL)
			name_table_find(t, c);
	}
	CHECK(good > 20000);
	name_table_close(t);
	resolve_close(r);
	process_table_close(procs);
}

/* What was not in memory and could not be read is missing in a row, or belongs to a call that has none. */
static void test_absent(void)
{
	static const struct {
		int flags;
		bool shown;
	} rows[] = { { 0, true }, { CT_F_HIDDEN, false } };
	struct absent *ab = absent_open(NULL, NULL, NULL, NULL);
	uint64_t missing, filled, unshown;
	struct ct_spec spec;
	struct made_call m;
	struct ct_call *c;

	for (size_t i = 0; i < ARRAY_LEN(rows) && ab; i++) {
		CASE_ROW("%zu", i);
		make_nmemory = 0;
		c = make_call(&m, "cuModuleGetFunction", CT_CALL, rows[i].flags, 0, U(0x1000),
			      U(0x2000), U(0x3000));
		CHECK(c && !api_spec(c->func, API_ARCH_HERE, true, &spec));
		for (uint8_t r = 0; c && r < spec.nreads; r++) {
			struct ct_absent a = { .h = c->h,
					       .address = 0x3000,
					       .func = c->func,
					       .read = r,
					       .flags = CT_ABSENT_OTHER };

			absent_add(ab, NULL, &a);
		}
		CHECK(c && absent_has(ab, c) && absent_fill(ab, NULL, c) == c);
		CHECK(c && !absent_has(ab, c));
		absent_totals(ab, &missing, &filled, &unshown);
		CHECK_EQ(spec.nreads, missing);
		CHECK_EQ(0, filled);
		CHECK_EQ(rows[i].shown ? 0 : spec.nreads, unshown);
	}
	absent_close(ab);
}

int main(void)
{
	RUN(test_registered);
	RUN(test_chains);
	RUN(test_reused);
	RUN(test_reused_meanwhile);
	RUN(test_owners);
	RUN(test_contexts);
	RUN(test_many_unloads);
	RUN(test_fork);
	RUN(test_exec_and_exit);
	RUN(test_many);
	RUN(test_long_names);
	RUN(test_memory);
	RUN(test_hostile_names);
	RUN(test_asked);
	RUN(test_inner);
	RUN(test_stage);
	RUN(test_nested);
	RUN(test_errors);
	RUN(test_fuzz);
	RUN(test_absent);
	return unit_end();
}
