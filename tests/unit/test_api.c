/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api.c - the table of functions: every row fits a record on both architectures, words and
 * reads are where the two ABIs have them, versions choose among rows, and hand-made records
 * decode to the right values, rubbish to harmless ones.
 */
#include <errno.h>

#include "../../user/api/layout.h"
#include "../../user/api/traits.h"
#include "../../user/api/xlat.h"
#include "../../user/event/scopes/products/gemms.h"
#include "api_row.h"
#include "make_call.h"
#include "random.h"
#include "unit.h"

/* ---- a small text of decoded fields, to compare with ---- */

static char text[8192];

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
}

static void put_value(const struct field *f)
{
	const char *name = f->xlat && !f->xlat->flags ? xlat_name(f->xlat, f->i) : NULL;

	if (f->absent) {
		put(f->out ? "absent" : "@%#llx", (unsigned long long)f->u);
		return;
	}
	switch (f->type) {
	case FIELD_INT: put("%lld", (long long)f->i); break;
	case FIELD_ENUM: put("%s", name ? xlat_short(f->xlat, name) : "?"); break;
	case FIELD_ERROR: put("%s", name ? name : "?"); break;
	case FIELD_FLOAT: put("%g", f->f); break;
	case FIELD_DIM3: put("(%u,%u,%u)", f->dim[0], f->dim[1], f->dim[2]); break;
	case FIELD_STR: put("\"%.*s\"%s", (int)f->str_len, f->str, f->cut ? "..." : ""); break;
	case FIELD_BYTES: put("%u bytes", f->str_len); break;
	case FIELD_UNKNOWN: put("?"); break;
	case FIELD_PTR:
	case FIELD_STREAM:
	case FIELD_FUNC:
	case FIELD_FLAGS: put("%#llx", (unsigned long long)f->u); break;
	default: put("%llu", (unsigned long long)f->u);
	}
}

/* name=value, ... of a record; '>' marks an output. Checks that groups are closed. */
static const char *decoded(const struct ct_call *c, enum api_arch arch)
{
	struct field f[64];
	int n = api_decode(c, arch, f, 64), depth = 0;
	bool first = true;

	text[0] = '\0';
	for (int i = 0; i < n; i++) {
		if (f[i].type == FIELD_CLOSE) {
			depth--;
			put("}");
			first = false;
			continue;
		}
		if (!first)
			put(", ");
		first = false;
		if (f[i].name)
			put("%s%s=", f[i].out && !depth ? ">" : "", f[i].name);
		if (f[i].type == FIELD_OPEN) {
			put("%s{", f[i].is_list ? f[i].cut ? "list..." : "list" : "");
			depth++;
			first = true;
			continue;
		}
		put_value(&f[i]);
	}
	CHECK(depth == 0);
	return text;
}

static struct ct_spec spec_of(const char *name, enum api_arch arch)
{
	struct ct_spec s;

	memset(&s, 0, sizeof(s));
	CHECK(!api_spec(row(name), arch, false, &s));
	return s;
}

/* ---- all rows ---- */

static void check_reads(const struct ct_spec *s)
{
	size_t total = s->nwords * 8u;

	for (int i = 0; i < s->nreads; i++) {
		const struct ct_read *r = &s->reads[i];

		CHECK(r->when == (i < s->nentry ? CT_AT_ENTRY : CT_AT_RETURN));
		CHECK(r->len && r->len <= CT_READ_MAX);
		if (r->from & CT_FROM_READ)
			CHECK((r->from & ~CT_FROM_READ) < i &&
			      s->reads[r->from & ~CT_FROM_READ].when == r->when &&
			      s->reads[r->from & ~CT_FROM_READ].kind == CT_READ_BYTES &&
			      r->off + 8 <= s->reads[r->from & ~CT_FROM_READ].len);
		else if (r->from == CT_FROM_RETURN)
			CHECK(r->when == CT_AT_RETURN && r->kind == CT_READ_STR);
		else
			CHECK(r->from < s->nwords);
		if (r->kind != CT_READ_ARRAY) {
			CHECK(r->count_from == CT_COUNT_NONE);
		} else {
			CHECK(r->elem && r->len % r->elem == 0);
			if (r->count_from & CT_FROM_READ)
				CHECK((r->count_from & 7) < i &&
				      s->reads[r->count_from & 7].when == r->when);
			else
				CHECK(r->count_from < s->nwords);
		}
		total += (r->kind == CT_READ_BYTES ? 0u : 8u) + ((r->len + 7u) & ~7u);
	}
	CHECK(total <= CT_PLAN_MAX);
}

static void test_all_rows(void)
{
	int domains[API_DOMAIN_END] = { 0 };

	CHECK(api_nfuncs <= CT_MAX_FUNCS);
	for (int i = 0; i < api_nfuncs; i++) {
		const struct api_func *f = &api_funcs[i];
		bool twin;

		domains[f->domain]++;
		for (int arch = 0; arch < 2; arch++) {
			struct ct_spec s;

			if (api_spec(i, arch, true, &s)) {
				printf("%s does not fit a record\n", f->name);
				CHECK(0);
				continue;
			}
			CHECK(s.flags & CT_S_SHOWN &&
			      s.nwords <= (f->layer ? CT_LAYER_WORDS : CT_MAX_WORDS) &&
			      s.nentry <= s.nreads);
			check_reads(&s);
		}
		CHECK(f->nargs <= API_MAX_ARGS && f->class < API_CLASS_END);
		CHECK(!!(f->flags & CT_S_INTERNAL) == (f->class == API_INTERNAL));
		/* Rows of one name stand together and their versions do not overlap. */
		if (i && !strcmp(f->name, api_funcs[i - 1].name))
			CHECK(api_funcs[i - 1].until && api_funcs[i - 1].until == f->since);
		else
			CHECK(api_next(f->name, -1) == i);
		/* C++ names are looked up by other means: symbols are mangled */
		if (!strstr(f->name, "::"))
			CHECK(api_lookup(f->name, f->since * 10, &twin) >= i && !twin);
		for (int a = 0; a < f->nargs; a++)
			CHECK(f->args[a].name && f->args[a].label &&
			      (f->args[a].width || f->args[a].abi));
	}
	CHECK(domains[API_RUNTIME] >= 310 && domains[API_DRIVER] >= 449);
	for (int i = 0; xlat_all[i]; i++)
		for (int r = 0; r < xlat_all[i]->nrows; r++)
			CHECK(xlat_name(xlat_all[i], xlat_all[i]->rows[r].value) ==
			      xlat_all[i]->rows[r].name);
	for (int i = 0; i < API_CLASS_END; i++)
		CHECK(api_class_parse(api_class_name(i)) == i);
	CHECK(api_class_parse("no such class") == -1);
}

/* All names of arguments, and of members with the way to them ("nodeParams.height"). */
static struct {
	char *names[8192];
	int n;
} spelled;

/* Readers of JSON such as DuckDB make one column of all that have one name, and take names that
 * differ in case only for one. */
static void check_spelling(const char *name, const char *func)
{
	for (int i = 0; i < spelled.n; i++) {
		if (!strcmp(spelled.names[i], name))
			return;
		if (strcasecmp(spelled.names[i], name))
			continue;
		printf("%s: %s is spelled %s elsewhere\n", func, name, spelled.names[i]);
		CHECK(0);
	}
	CHECK(spelled.n < (int)ARRAY_LEN(spelled.names));
	if (spelled.n < (int)ARRAY_LEN(spelled.names))
		spelled.names[spelled.n++] = strdup(name);
}

static void check_members(const char *way, const struct api_struct *s, const char *func)
{
	char name[512];

	for (int i = 0; i < s->nmembers; i++) {
		CHECK((size_t)snprintf(name, sizeof(name), "%s.%s", way, s->members[i].name) <
		      sizeof(name));
		check_spelling(name, func);
		if (s->members[i].layout)
			check_members(name, s->members[i].layout, func);
	}
}

static void test_spelling(void)
{
	for (int i = 0; i < api_nfuncs; i++) {
		for (int a = 0; a < api_funcs[i].nargs; a++) {
			const struct api_arg *arg = &api_funcs[i].args[a];

			/* arguments of products are not printed by the names in the header */
			if (api_funcs[i].layer != API_LAYER_GEMM)
				check_spelling(arg->name, api_funcs[i].name);
			if (arg->layout)
				check_members(arg->name, arg->layout, api_funcs[i].name);
		}
	}
	CHECK(spelled.n > 1000);
	while (spelled.n)
		free(spelled.names[--spelled.n]);
}

/* The most fields that a struct can give: all members outside of unions, and the widest of those
 * inside. */
static int struct_fields(const struct api_struct *s)
{
	int n = 2, widest = 0;

	for (int i = 0; i < s->nmembers; i++) {
		const struct api_member *m = &s->members[i];
		int k = m->n ? m->n + 2 : 1;

		if (m->layout)
			k = m->list ? 2 + m->max * struct_fields(m->layout)
				    : struct_fields(m->layout);
		if (m->cases)
			widest = k > widest ? k : widest;
		else
			n += k;
	}
	return n + widest;
}

static void test_field_counts(void)
{
	for (int i = 0; i < api_nfuncs; i++) {
		int n = 1;

		for (int a = 0; a < api_funcs[i].nargs; a++) {
			const struct api_arg *arg = &api_funcs[i].args[a];
			int one = arg->layout ? struct_fields(arg->layout) : 1;

			n += arg->count ? 2 + arg->max / arg->width * one : one;
		}
		int most = api_funcs[i].layer == API_LAYER_GEMM ? GEMM_FIELDS : EVENT_MAX_FIELDS;

		if (n > most)
			printf("%s may take %d fields\n", api_funcs[i].name, n);
		CHECK(n <= most);
	}
}

static void test_lookup(void)
{
	bool twin;
	int i;

	CHECK(api_lookup("malloc", 0, &twin) == -1);
	CHECK(api_lookup("cudaMallo", 0, &twin) == -1);
	CHECK(api_lookup("cu", 0, &twin) == -1);
	CHECK(api_lookup("_ptsz", 0, &twin) == -1);
	i = api_lookup("cudaMemcpyAsync_ptsz", 13000, &twin);
	CHECK(i == row("cudaMemcpyAsync") && twin);
	i = api_lookup("cuMemcpyHtoD_v2_ptds", 13000, &twin);
	CHECK(i == row("cuMemcpyHtoD_v2") && twin);
	CHECK(row("cuMemcpyHtoD_v2") != row("cuMemcpyHtoD"));
	i = api_lookup("cudaMalloc", 11080, &twin);
	CHECK(i == row("cudaMalloc") && !twin);
	/* Signatures that changed. */
	CHECK(api_funcs[api_lookup("cudaGraphInstantiate", 11080, &twin)].nargs == 5);
	CHECK(api_funcs[api_lookup("cudaGraphInstantiate", 12000, &twin)].nargs == 3);
	CHECK(api_funcs[api_lookup("cudaGraphInstantiate", 13000, &twin)].nargs == 3);
	CHECK(api_funcs[api_lookup("cudaGraphInstantiate", 0, &twin)].nargs == 3);
	CHECK(api_funcs[api_lookup("cudaMemPrefetchAsync", 12090, &twin)].nargs == 4);
	CHECK(api_funcs[api_lookup("cudaMemPrefetchAsync", 13000, &twin)].nargs == 5);
	CHECK(api_funcs[api_lookup("cudaMemPrefetchAsync_ptsz", 0, &twin)].nargs == 5);
	/* A function that 13 dropped is still known. */
	CHECK(api_lookup("cudaThreadSynchronize", 13000, &twin) == row("cudaThreadSynchronize"));
	/* cuMemAlloc v1 has 32-bit sizes and addresses. */
	CHECK(api_funcs[row("cuMemAlloc")].args[1].width == 4 &&
	      api_funcs[row("cuMemAlloc_v2")].args[1].width == 8);
	CHECK(api_funcs[row("cuCtxCreate")].nargs == 3 &&
	      api_funcs[row("cuCtxCreate_v3")].nargs == 5 &&
	      api_funcs[row("cuCtxCreate_v4")].nargs == 4);
	CHECK(api_funcs[row("cuOccupancyMaxPotentialBlockSize")].flags & CT_S_CALLBACK);
	CHECK(spec_of("cuModuleGetFunction", API_X86_64).flags & CT_S_ALWAYS);
	CHECK(spec_of("__cudaRegisterFunction", API_X86_64).flags & CT_S_ALWAYS);
	CHECK(api_funcs[row("cudaStreamQuery")].flags & CT_S_NOT_READY);
	CHECK(api_funcs[row("cudaGetDevice")].class == API_QUERY);
}

/* ---- words ---- */

/* A record with words 0x1000, 0x1001, ... of a row. */
static struct made_call numbered(const char *name, enum api_arch arch, int ret)
{
	struct ct_spec s = spec_of(name, arch);
	struct made_call m;

	memset(&m, 0, sizeof(m));
	m.c.h.kind = CT_CALL;
	m.c.func = (uint16_t)row(name);
	m.c.nwords = s.nwords;
	m.c.h.size = (uint16_t)(sizeof(m.c) + s.nwords * 8u);
	m.c.ret = ret;
	for (int i = 0; i < s.nwords; i++)
		m.c.words[i] = 0x1000 + (uint64_t)i;
	return m;
}

static void test_words(void)
{
	struct made_call m;
	struct ct_spec s;

	/* Measured: grid in rsi, rdx; block in rcx, r8; args r9; sharedMem and stream at
	 * [rsp+8], [rsp+16]. */
	m = numbered("cudaLaunchKernel", API_X86_64, 0);
	CHECK(m.c.nwords == 8);
	CHECK_TEXT("func=0x1000, gridDim=(4097,0,4098), blockDim=(4099,0,4100), args=0x1005, "
		   "sharedMem=4102, stream=0x1007, returned=cudaSuccess",
		   decoded(&m.c, API_X86_64));
	m = numbered("cudaLaunchKernel", API_AARCH64, 0);
	CHECK_TEXT("func=0x1000, gridDim=(4097,0,4098), blockDim=(4099,0,4100), args=0x1005, "
		   "sharedMem=4102, stream=0x1007, returned=cudaSuccess",
		   decoded(&m.c, API_AARCH64));
	/* An aggregate above 16 bytes: on the stack, not in a register; on aarch64 a pointer in
	 * its turn. */
	m = numbered("cudaMalloc3D", API_X86_64, 1);
	CHECK(m.c.nwords == 9);
	CHECK_TEXT("extent={width=4102, height=4103, depth=4104}, >pitchedDevPtr=absent, "
		   "returned=cudaErrorInvalidValue",
		   decoded(&m.c, API_X86_64));
	s = spec_of("cudaMalloc3D", API_AARCH64);
	CHECK(s.nwords == 2 && s.nentry == 1 && s.reads[0].from == 1 && s.reads[0].len == 24);
	/* The stack holds memory aggregates and spilled words in their order; value is the first
	 * register. */
	m = numbered("cudaMemset3DAsync", API_X86_64, 0);
	CHECK_TEXT(
		"pitchedDevPtr={ptr=0x1006, pitch=4103, xsize=4104, ysize=4105}, value=4096, "
		"extent={width=4106, height=4107, depth=4108}, stream=0x1001, returned=cudaSuccess",
		decoded(&m.c, API_X86_64));
	s = spec_of("cudaMemset3DAsync", API_AARCH64);
	CHECK(s.nwords == 4 && s.nentry == 2 && s.reads[0].from == 0 && s.reads[1].from == 2);
	/* A 64-byte handle after an output pointer, and before flags. */
	m = numbered("cudaIpcOpenMemHandle", API_X86_64, 1);
	m.c.words[1] = 1;
	CHECK(m.c.nwords == 14);
	CHECK_TEXT("handle=64 bytes, flags=0x1, >devPtr=absent, returned=cudaErrorInvalidValue",
		   decoded(&m.c, API_X86_64));
	/* Floats take no word. */
	m = numbered("cuTexRefSetMipmapLevelClamp", API_X86_64, 0);
	CHECK(m.c.nwords == 1);
	CHECK_TEXT("hTexRef=0x1000, minMipmapLevelClamp=?, maxMipmapLevelClamp=?, "
		   "returned=CUDA_SUCCESS",
		   decoded(&m.c, API_X86_64));
	/* A struct returned in memory is a hidden first argument on x86-64. */
	m = numbered("cudaCreateChannelDesc", API_X86_64, 0);
	CHECK_TEXT("x=4097, y=4098, z=4099, w=4100, f=?", decoded(&m.c, API_X86_64));
	m = numbered("cudaCreateChannelDesc", API_AARCH64, 0);
	CHECK_TEXT("x=4096, y=4097, z=4098, w=4099, f=?", decoded(&m.c, API_AARCH64));
	/* An 8-byte struct in one register. */
	m = numbered("cudaMemPrefetchAsync_v2", API_X86_64, 0);
	m.c.words[2] = 1 | 3ULL << 32;
	CHECK_TEXT("devPtr=0x1000, count=4097, location={type=Device, id=3}, flags=4099, "
		   "stream=0x1004, returned=cudaSuccess",
		   decoded(&m.c, API_X86_64));
	/* 32-bit arguments: the upper half of a register is rubbish. */
	m = numbered("cudaSetDevice", API_X86_64, 0);
	m.c.words[0] = 0xdeadbeefffffffff;
	CHECK_TEXT("device=-1, returned=cudaSuccess", decoded(&m.c, API_X86_64));
	m = numbered("cuLaunchKernel", API_X86_64, 0);
	CHECK(m.c.nwords == 11);
	CHECK_TEXT("f=0x1000, gridDimX=4097, gridDimY=4098, gridDimZ=4099, blockDimX=4100, "
		   "blockDimY=4101, blockDimZ=4102, sharedMemBytes=4103, hStream=0x1008, "
		   "kernelParams=0x1009, extra=0x100a, returned=CUDA_SUCCESS",
		   decoded(&m.c, API_X86_64));
}

/* ---- values ---- */

#define DECODED(m) decoded(&(m).c, API_ARCH_HERE)

static void test_outputs(void)
{
	struct made_call m;
	uint64_t ptr = 0x7f81dc800000, sizes[2] = { 1ULL << 30, 2ULL << 30 };
	const char *kernel = "_Z9vectorAddPKfS0_Pfi";
	float ms = 1.5f;
	int device = 1;

	make_mem(0x100, &ptr, 8);
	make_call(&m, "cudaMalloc", CT_CALL, 0, 0, U(0x100), U(1048576));
	CHECK_TEXT("size=1048576, >devPtr=0x7f81dc800000, returned=cudaSuccess", DECODED(m));
	CHECK(api_size(&m.c, API_ARCH_HERE) == 1048576 && !api_failed(&m.c));
	make_call(&m, "cudaMalloc", CT_CALL, 0, 2, U(0x100), U(1048576));
	CHECK_TEXT("size=1048576, >devPtr=absent, returned=cudaErrorMemoryAllocation", DECODED(m));
	CHECK(api_failed(&m.c));
	make_call(&m, "cudaMalloc", CT_CALL, 0, 0, U(0), U(1048576));
	CHECK_TEXT("size=1048576, >devPtr=absent, returned=cudaSuccess", DECODED(m));
	make_call(&m, "cudaMalloc", CT_ENTER, 0, 0, U(0x100), U(1048576));
	CHECK_TEXT("size=1048576", DECODED(m));
	make_call(&m, "cudaMalloc", CT_CALL, CT_F_UNFINISHED, 0, U(0x100), U(1048576));
	CHECK_TEXT("size=1048576, >devPtr=absent", DECODED(m));
	make_call(&m, "cudaMalloc", CT_CALL, CT_F_NO_RETURN, 5, U(0x100), U(1048576));
	CHECK(!api_failed(&m.c));
	make_mem(0x200, sizes, 8);
	make_mem(0x208, sizes + 1, 8);
	make_call(&m, "cudaMemGetInfo", CT_CALL, 0, 0, U(0x200), U(0x208));
	CHECK_TEXT(">free=1073741824, >total=2147483648, returned=cudaSuccess", DECODED(m));
	make_mem(0x300, &ms, 4);
	make_call(&m, "cudaEventElapsedTime", CT_CALL, 0, 0, U(0x300), U(0x11), U(0x12));
	CHECK_TEXT("start=0x11, end=0x12, >ms=1.5, returned=cudaSuccess", DECODED(m));
	make_mem(0x400, &device, 4);
	make_call(&m, "cudaGetDevice", CT_CALL, 0, 0, U(0x400));
	CHECK_TEXT(">device=1, returned=cudaSuccess", DECODED(m));
	make_call(&m, "cudaStreamCreate", CT_CALL, 0, 0, U(0x100));
	CHECK_TEXT(">pStream=0x7f81dc800000, returned=cudaSuccess", DECODED(m));
	make_mem(0x500, kernel, strlen(kernel) + 1);
	make_call(&m, "cuModuleGetFunction", CT_CALL, 0, 0, U(0x100), U(0x77), U(0x500));
	CHECK_TEXT("hmod=0x77, name=\"_Z9vectorAddPKfS0_Pfi\", >hfunc=0x7f81dc800000, "
		   "returned=CUDA_SUCCESS",
		   DECODED(m));
	/* A pointer to a pointer to a string. */
	ptr = 0x500;
	make_call(&m, "cudaFuncGetName", CT_CALL, 0, 0, U(0x100), U(0x88));
	CHECK_TEXT("func=0x88, >name=\"_Z9vectorAddPKfS0_Pfi\", returned=cudaSuccess", DECODED(m));
}

static void test_inputs(void)
{
	static const char *const kinds[] = { "HostToHost", "HostToDevice", "DeviceToHost",
					     "DeviceToDevice", "Default" };
	char longer[400], want[256];
	struct made_call m;

	for (int i = 0; i < 5; i++) {
		make_call(&m, "cudaMemcpy", CT_CALL, 0, 0, U(0x10), U(0x20), U(4096), U(i));
		snprintf(want, sizeof(want),
			 "dst=0x10, src=0x20, count=4096, kind=%s, returned=cudaSuccess", kinds[i]);
		CHECK_TEXT(want, DECODED(m));
	}
	/* What was passed, also by a per-thread twin: that 0 is another stream there is the
	 * sink's to say. */
	make_call(&m, "cudaStreamSynchronize", CT_CALL, CT_F_PER_THREAD, 700, U(0));
	CHECK_TEXT("stream=0, returned=cudaErrorIllegalAddress", DECODED(m));
	make_call(&m, "cudaStreamSynchronize", CT_CALL, 0, 700, U(0));
	CHECK_TEXT("stream=0, returned=cudaErrorIllegalAddress", DECODED(m));
	/* Strings: too long, not there. */
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	make_mem(0x600, longer, sizeof(longer));
	make_call(&m, "cuModuleGetFunction", CT_CALL, 0, 500, U(0x100), U(0x77), U(0x600));
	decoded(&m.c, API_ARCH_HERE);
	CHECK(strstr(text, "x\"..., >hfunc=absent, returned=CUDA_ERROR_NOT_FOUND") != NULL);
	make_call(&m, "cuModuleGetFunction", CT_CALL, 0, 500, U(0x100), U(0x77), U(0xdead0000));
	CHECK_TEXT("hmod=0x77, name=@0xdead0000, >hfunc=absent, returned=CUDA_ERROR_NOT_FOUND",
		   DECODED(m));
}

static void test_structs(void)
{
	struct {
		uint32_t grid[3], block[3];
		uint64_t smem, stream, attrs;
		uint32_t n, pad;
	} config = { { 8, 2, 1 }, { 128, 1, 1 }, 1024, 0x55, 0x900, 2, 0 };
	struct {
		uint32_t id, pad;
		uint32_t value[16];
	} attrs[2] = { { 4, 0, { 2, 1, 1 } }, { 6, 0, { 1 } } };
	struct {
		uint64_t array, pos[3], ptr[4], darray, dpos[3], dptr[4], extent[3];
		uint32_t kind, pad;
	} p3 = { .ptr = { 0xa0, 256, 256, 4 },
		 .dptr = { 0xb0, 512, 256, 4 },
		 .extent = { 256, 4, 3 },
		 .kind = 1 };
	uint64_t nodes[6] = { 1, 2, 3, 4, 5, 6 }, sizes[3] = { 100, 200, 300 }, node = 0x99,
		 count = 6;
	struct made_call m;
	uint64_t threshold = 1ULL << 40;

	make_mem(0x800, &config, 56);
	make_mem(0x900, attrs, sizeof(attrs));
	make_call(&m, "cudaLaunchKernelExC", CT_CALL, 0, 0, U(0x800), U(0x1234), U(0x5678));
	CHECK_TEXT("config={gridDim=(8,2,1), blockDim=(128,1,1), dynamicSmemBytes=1024, "
		   "stream=0x55, attrs=list{{id=ClusterDimension, val={clusterDim=(2,1,1)}}, "
		   "{id=ProgrammaticStreamSerialization, "
		   "val={programmaticStreamSerializationAllowed=1}}}, numAttrs=2}, func=0x1234, "
		   "args=0x5678, returned=cudaSuccess",
		   DECODED(m));
	config.n = 9;
	make_call(&m, "cudaLaunchKernelExC", CT_CALL, 0, 0, U(0x800), U(0x1234), U(0x5678));
	decoded(&m.c, API_ARCH_HERE);
	/* nine are not there to be read */
	CHECK(strstr(text, "attrs=@0x900, numAttrs=9}") != NULL);
	config.n = 0;
	make_call(&m, "cudaLaunchKernelExC", CT_CALL, 0, 0, U(0x800), U(0x1234), U(0x5678));
	decoded(&m.c, API_ARCH_HERE);
	CHECK(strstr(text, "attrs=list{}, numAttrs=0}") != NULL);
	make_call(&m, "cudaLaunchKernelExC", CT_CALL, 0, 1, U(0), U(0x1234), U(0));
	CHECK_TEXT("config=@0, func=0x1234, args=0, returned=cudaErrorInvalidValue", DECODED(m));
	make_mem(0xa00, &p3, sizeof(p3));
	make_call(&m, "cudaMemcpy3D", CT_CALL, 0, 0, U(0xa00));
	CHECK_TEXT("p={srcArray=0, srcPos={x=0, y=0, z=0}, srcPtr={ptr=0xa0, pitch=256, xsize=256, "
		   "ysize=4}, dstArray=0, dstPos={x=0, y=0, z=0}, dstPtr={ptr=0xb0, pitch=512, "
		   "xsize=256, ysize=4}, extent={width=256, height=4, depth=3}, "
		   "kind=HostToDevice}, returned=cudaSuccess",
		   DECODED(m));
	CHECK(api_size(&m.c, API_ARCH_HERE) == 256 * 4 * 3);
	p3.array = 0x1; /* the extent counts elements then */
	make_call(&m, "cudaMemcpy3D", CT_CALL, 0, 0, U(0xa00));
	CHECK(api_size(&m.c, API_ARCH_HERE) == -1);
	/* Lists: complete, cut, empty; of an output whose length is an output too. */
	make_mem(0xb00, nodes, sizeof(nodes));
	make_mem(0xc00, &node, 8);
	make_call(&m, "cudaGraphAddEmptyNode", CT_CALL, 0, 0, U(0xc00), U(0x1), U(0xb00), U(2));
	CHECK_TEXT("graph=0x1, pDependencies=list{0x1, 0x2}, numDependencies=2, >pGraphNode=0x99, "
		   "returned=cudaSuccess",
		   DECODED(m));
	make_call(&m, "cudaGraphAddEmptyNode", CT_CALL, 0, 0, U(0xc00), U(0x1), U(0xb00), U(6));
	CHECK_TEXT("graph=0x1, pDependencies=list...{0x1, 0x2, 0x3, 0x4}, numDependencies=6, "
		   ">pGraphNode=0x99, returned=cudaSuccess",
		   DECODED(m));
	make_call(&m, "cudaGraphAddEmptyNode", CT_CALL, 0, 0, U(0xc00), U(0x1), U(0), U(0));
	CHECK_TEXT("graph=0x1, pDependencies=@0, numDependencies=0, >pGraphNode=0x99, "
		   "returned=cudaSuccess",
		   DECODED(m));
	make_mem(0xd00, &count, 8);
	make_call(&m, "cudaGraphGetNodes", CT_CALL, 0, 0, U(0x1), U(0xb00), U(0xd00));
	CHECK_TEXT(
		"graph=0x1, >nodes=list...{0x1, 0x2, 0x3, 0x4}, >numNodes=6, returned=cudaSuccess",
		DECODED(m));
	/* A value whose width an argument selects. */
	make_mem(0xe00, &threshold, 8);
	make_call(&m, "cudaMemPoolSetAttribute", CT_CALL, 0, 0, U(0x1), U(4), U(0xe00));
	CHECK_TEXT(
		"memPool=0x1, attr=AttrReleaseThreshold, value=1099511627776, returned=cudaSuccess",
		DECODED(m));
	make_call(&m, "cudaMemPoolSetAttribute", CT_CALL, 0, 0, U(0x1), U(1), U(0xe00));
	CHECK_TEXT("memPool=0x1, attr=ReuseFollowEventDependencies, value=0, returned=cudaSuccess",
		   DECODED(m));
	make_mem(0xf00, sizes, sizeof(sizes));
	make_call(&m, "cudaMemDiscardBatchAsync", CT_CALL, 0, 0, U(0xb00), U(0xf00), U(3), U(0),
		  U(0));
	CHECK(api_size(&m.c, API_ARCH_HERE) == 600);
}

static void test_sizes(void)
{
	struct made_call m;
	int32_t desc[5] = { 32, 32, 0, 0, 2 };

	make_call(&m, "cudaMemcpy2DAsync", CT_CALL, 0, 0, U(1), U(512), U(2), U(512), U(256), U(10),
		  U(1), U(0));
	CHECK(api_size(&m.c, API_ARCH_HERE) == 2560);
	make_call(&m, "cuMemsetD32_v2", CT_CALL, 0, 0, U(1), U(0), U(1000));
	CHECK(api_size(&m.c, API_ARCH_HERE) == 4000);
	make_call(&m, "cuMemsetD2D16_v2", CT_CALL, 0, 0, U(1), U(64), U(0), U(10), U(3));
	CHECK(api_size(&m.c, API_ARCH_HERE) == 60);
	make_call(&m, "cudaSetDevice", CT_CALL, 0, 0, U(1));
	CHECK(api_size(&m.c, API_ARCH_HERE) == -1);
	make_mem(0x1000, desc, sizeof(desc));
	make_call(&m, "cudaMallocArray", CT_CALL, 0, 0, U(0), U(0x1000), U(100), U(0), U(0));
	CHECK(api_size(&m.c, API_ARCH_HERE) == 800);
	make_call(&m, "cudaMalloc", CT_CALL, 0, 2, U(0), ~0ULL);
	CHECK(api_size(&m.c, API_ARCH_HERE) == INT64_MAX);
	make_call(&m, "cudaMemcpy2D", CT_CALL, 0, 0, U(1), U(1), U(2), U(1), U(1) << 40, U(1) << 40,
		  U(1));
	CHECK(api_size(&m.c, API_ARCH_HERE) == INT64_MAX);
	/* The kernel may filter by one word only where that is the whole truth. */
	CHECK(spec_of("cudaMalloc", API_X86_64).flags & CT_S_MATCH_SIZE &&
	      spec_of("cudaMalloc", API_X86_64).size_word == 1);
	CHECK(!(spec_of("cudaMemcpy2D", API_X86_64).flags & CT_S_MATCH_SIZE));
	CHECK(!(spec_of("cuMemAlloc", API_X86_64).flags & CT_S_MATCH_SIZE));
	CHECK(!(spec_of("cuMemsetD32_v2", API_X86_64).flags & CT_S_MATCH_SIZE));
}

static void test_errors(void)
{
	static const struct {
		int code;
		const char *runtime, *driver;
	} want[] = {
		{ 0, "cudaSuccess", "CUDA_SUCCESS" },
		{ 1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE" },
		{ 2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY" },
		{ 35, "cudaErrorInsufficientDriver", NULL },
		{ 98, "cudaErrorInvalidDeviceFunction", NULL },
		{ 100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE" },
		{ 209, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU" },
		{ 600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY" },
		{ 700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS" },
		{ 719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED" },
		{ 999, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN" },
		{ -1, NULL, NULL },
		{ 123456, NULL, NULL },
	};
	struct made_call m;

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		const char *r = api_error_name((unsigned int)row("cudaMalloc"), want[i].code);
		const char *d = api_error_name((unsigned int)row("cuInit"), want[i].code);

		CHECK_TEXT(want[i].runtime ? want[i].runtime : "none", r ? r : "none");
		CHECK_TEXT(want[i].driver ? want[i].driver : "none", d ? d : "none");
	}
	CHECK(!api_error_name((unsigned int)row("cudaCreateChannelDesc"), 1));
	make_call(&m, "cudaStreamQuery", CT_CALL, 0, 600, U(0));
	CHECK(!api_failed(&m.c));
	make_call(&m, "cudaStreamQuery", CT_CALL, 0, 700, U(0));
	CHECK(api_failed(&m.c));
	make_call(&m, "cudaStreamSynchronize", CT_CALL, 0, 600, U(0));
	CHECK(api_failed(&m.c));
	make_call(&m, "cudaGetErrorString", CT_CALL, 0, 0x7fffffff, U(0));
	CHECK(!api_failed(&m.c));
	m.c.func = 0xffff;
	CHECK(!api_failed(&m.c) && api_size(&m.c, API_ARCH_HERE) == -1 &&
	      !api_decode(&m.c, API_ARCH_HERE, NULL, 0));
}

/* What a function reports of an earlier call is no failure of its own, here and in what the
 * kernel side is told. */
static void test_reported(void)
{
	static const struct {
		const char *name;
		bool failed;
	} rows[] = { { "cudaGetLastError", false },
		     { "cudaPeekAtLastError", false },
		     { "cudaSetDevice", true },
		     { "cuCtxSynchronize", true } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct made_call m;
		struct ct_spec spec;

		make_call(&m, rows[i].name, CT_CALL, 0, 700, U(0));
		CHECK(api_failed(&m.c) == rows[i].failed);
		CHECK(!api_spec(m.c.func, API_ARCH_HERE, true, &spec) &&
		      !!(spec.flags & CT_S_ERROR) == rows[i].failed);
	}
}

/* What functions are to those who add calls up or judge them: a mark that is missing would be
 * silent. */
static void test_traits(void)
{
	static const struct {
		const char *name;
		uint32_t traits;
	} want[] = {
		{ "cudaLaunchKernel", TR_LAUNCH | TR_CHECKED },
		{ "cudaLaunchKernelExC", TR_LAUNCH | TR_CHECKED },
		{ "cuLaunchKernel", TR_LAUNCH | TR_CHECKED },
		{ "cudaLaunchHostFunc", TR_CHECKED },
		{ "cuFuncSetBlockShape", TR_CHECKED },
		{ "cudaGraphLaunch", TR_GRAPH | TR_CHECKED },
		{ "cuGraphLaunch", TR_GRAPH | TR_CHECKED },
		{ "cudaMemcpy", TR_COPY | TR_LINEAR | TR_CHECKED | TR_MOVE },
		{ "cudaMemcpyAsync", TR_COPY | TR_LINEAR | TR_ASYNC | TR_CHECKED | TR_MOVE },
		{ "cuMemcpyDtoH_v2", TR_COPY | TR_LINEAR | TR_CHECKED | TR_MOVE },
		{ "cuMemcpyHtoDAsync_v2", TR_COPY | TR_LINEAR | TR_ASYNC | TR_CHECKED | TR_MOVE },
		{ "cudaMemcpy2D", TR_COPY | TR_CHECKED | TR_MOVE },
		{ "cudaMemPrefetchAsync", TR_ASYNC | TR_CHECKED | TR_MOVE },
		{ "cudaMemset", TR_SET | TR_CHECKED },
		{ "cuMemsetD32Async", TR_SET | TR_ASYNC | TR_CHECKED },
		{ "cudaMalloc", TR_ALLOC | TR_MEMORY | TR_CHECKED | TR_TAKES },
		{ "cuMemAlloc_v2", TR_ALLOC | TR_MEMORY | TR_CHECKED | TR_TAKES },
		{ "cudaMallocAsync", TR_MEMORY | TR_ASYNC | TR_CHECKED | TR_TAKES },
		{ "cudaFree", TR_FREE | TR_MEMORY | TR_CHECKED | TR_GIVES },
		{ "cudaFreeAsync", TR_MEMORY | TR_ASYNC | TR_CHECKED | TR_GIVES },
		{ "cudaHostAlloc", TR_ALLOC | TR_CHECKED | TR_TAKES },
		{ "cudaMallocHost", TR_ALLOC | TR_CHECKED | TR_TAKES },
		{ "cuMemHostRegister_v2", TR_ALLOC | TR_CHECKED | TR_PINS },
		{ "cudaFreeHost", TR_FREE | TR_CHECKED | TR_GIVES },
		{ "cudaHostUnregister", TR_FREE | TR_CHECKED },
		{ "cudaMemGetInfo", TR_CHECKED },
		{ "cudaDeviceSynchronize", TR_SYNC | TR_CHECKED | TR_WAIT_DEVICE },
		{ "cuStreamSynchronize", TR_SYNC | TR_CHECKED | TR_WAIT_STREAM },
		{ "cudaStreamWaitEvent", TR_CHECKED },
		{ "cudaEventCreateWithFlags", TR_EVENT_CREATE | TR_CHECKED },
		{ "cuEventDestroy_v2", TR_EVENT_DESTROY | TR_CHECKED },
		{ "cudaStreamCreateWithPriority", TR_STREAM_CREATE | TR_CHECKED },
		{ "cuStreamDestroy_v2", TR_STREAM_DESTROY | TR_CHECKED },
		{ "cudaEventQuery", TR_POLL | TR_CHECKED },
		{ "cuStreamQuery", TR_POLL | TR_CHECKED },
		{ "cuModuleLoadDataEx", TR_LOAD },
		{ "cudaLibraryLoadData", TR_LOAD },
		{ "cuModuleUnload", TR_UNLOAD },
		{ "cuGraphDestroy", TR_GRAPH_DESTROY },
		{ "cudaStreamEndCapture", TR_GRAPH_CREATE },
		{ "cudaGetLastError", TR_ERROR },
		{ "cudaPeekAtLastError", TR_ERROR },
		{ "cudaGetDevice", 0 },
		{ "cudaEventSynchronize", TR_SYNC | TR_CHECKED | TR_WAIT_EVENT },
		{ "cudaThreadSynchronize", TR_SYNC | TR_CHECKED | TR_WAIT_DEVICE },
		{ "cudaEventRecord", TR_CHECKED | TR_RECORD },
		{ "cuCtxRecordEvent", TR_CHECKED | TR_RECORD },
		{ "cuArrayCreate_v2", TR_ALLOC | TR_MEMORY | TR_CHECKED | TR_TAKES },
		{ "cuArrayDestroy", TR_FREE | TR_MEMORY | TR_CHECKED | TR_GIVES },
		{ "cuMemCreate", TR_ALLOC | TR_MEMORY | TR_CHECKED | TR_TAKES },
		{ "cuMemAddressReserve", TR_ALLOC | TR_MEMORY | TR_CHECKED },
		{ "cuMemUnmap", TR_FREE | TR_MEMORY | TR_CHECKED },
	};

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		int func = api_next(want[i].name, -1);

		CHECK(func >= 0);
		if (api_traits((unsigned int)func) != want[i].traits)
			printf("  %s: %#x\n", want[i].name, api_traits((unsigned int)func));
		CHECK(api_traits((unsigned int)func) == want[i].traits);
	}
}

/* A row says what its function does as CUDA's names have it: here alone they are looked at. */
static void test_marks(void)
{
	static const struct {
		uint32_t traits; /* any of these... */
		uint32_t classes;
		const char *parts[4]; /* ...if the name has any of these... */
		const char *but;      /* ...and not this */
	} marks[] = {
#define IN(class) (1u << (class))
		{ TR_ASYNC, IN(API_COPY) | IN(API_SET) | IN(API_MEMORY), { "Async" }, NULL },
		{ TR_COPY, IN(API_COPY), { "emcpy" }, NULL },
		{ TR_LAUNCH, IN(API_LAUNCH), { "Launch" }, "HostFunc" },
		{ TR_GRAPH, IN(API_GRAPH), { "GraphLaunch" }, NULL },
		{ TR_EVENT_CREATE, IN(API_EVENT), { "Create" }, NULL },
		{ TR_EVENT_DESTROY, IN(API_EVENT), { "Destroy" }, NULL },
		{ TR_STREAM_CREATE, IN(API_STREAM), { "Create" }, NULL },
		{ TR_STREAM_DESTROY, IN(API_STREAM), { "Destroy" }, NULL },
		{ TR_POLL, IN(API_EVENT) | IN(API_STREAM), { "EventQuery", "StreamQuery" }, NULL },
		{ TR_RECORD, IN(API_EVENT), { "EventRecord", "RecordEvent" }, NULL },
		{ TR_LOAD, IN(API_MODULE), { "ModuleLoad", "LibraryLoad", "LinkComplete" }, NULL },
		{ TR_WAIT_STREAM, IN(API_SYNC), { "Stream" }, NULL },
		{ TR_WAIT_EVENT, IN(API_SYNC), { "Event" }, NULL },
		{ TR_WAIT_DEVICE, IN(API_SYNC), { "Device", "Ctx", "Thread" }, NULL },
#undef IN
	};

	for (int i = 0; i < api_nfuncs; i++)
		for (size_t k = 0; k < ARRAY_LEN(marks); k++) {
			const struct api_func *f = &api_funcs[i];
			bool want = false, have = api_traits((unsigned int)i) & marks[k].traits;

			if (!(marks[k].classes >> f->class & 1))
				continue;
			for (size_t j = 0; j < ARRAY_LEN(marks[k].parts); j++)
				want |= marks[k].parts[j] && strstr(f->name, marks[k].parts[j]) &&
					(!marks[k].but || !strstr(f->name, marks[k].but));
			if (want != have)
				printf("  %s: %#x\n", f->name, marks[k].traits);
			CHECK(want == have);
		}
}

/* A library's row holds together, and with its functions' rows. */
static void test_domains(void)
{
	for (int d = 0; d < API_DOMAIN_END; d++) {
		const struct api_domain_row *row = &api_domains[d];
		int version = 0;

		CHECK(!strcmp(api_domain_names[d], row->name));
		CHECK_EQ(d, api_domain_find(row->name, strlen(row->name)));
		/* -e takes both */
		CHECK(api_class_parse(row->name) < 0);
		CHECK(strspn(row->name, "abcdefghijklmnopqrstuvwxyz_") == strlen(row->name));
		CHECK(row->title && row->product && row->library && row->symbols[0]);
		CHECK(!row->linked == !row->linked_title);
		for (int i = 0; i < API_DOMAIN_SINCE && row->since[i].symbol; i++) {
			int func = api_next(row->since[i].symbol, -1);

			CHECK(func >= 0 && api_funcs[func].domain == d);
			CHECK(row->since[i].version >= version);
			version = row->since[i].version;
		}
	}
	for (int i = 0; i < api_nfuncs; i++) {
		const struct api_domain_row *row = &api_domains[api_funcs[i].domain];
		/* of a C++ name the symbol begins so, and not the name */
		bool begins = strstr(api_funcs[i].name, "::");

		for (int k = 0; k < API_DOMAIN_SYMBOLS && row->symbols[k]; k++)
			begins |= !strncmp(api_funcs[i].name, row->symbols[k],
					   strlen(row->symbols[k]));
		if (!begins)
			printf("  %s\n", api_funcs[i].name);
		CHECK(begins);
	}
	CHECK_EQ(API_RUNTIME, api_domain_of_file("/usr/lib/libcudart.so.13"));
	CHECK_EQ(API_RUNTIME, api_domain_of_file("libcudart-0a1b.so.12"));
	CHECK_EQ(API_DRIVER, api_domain_of_file("/x/libcuda.so.1"));
	CHECK_EQ(API_DOMAIN_END, api_domain_of_file("/libcuda.so.1/libc.so.6"));
	CHECK_EQ(11000, api_domain_version(API_RUNTIME, "libcudart.so.11.0"));
	CHECK_EQ(0, api_domain_version(API_RUNTIME, "libcudart.so.x"));
	CHECK_EQ(0, api_domain_version(API_DRIVER, "libcuda.so.1"));
}

/* A row says in which direction it copies where no argument does, as its name has it. */
static void test_ways(void)
{
	static const struct {
		const char *part;
		enum api_way way;
	} parts[] = {
		{ "HtoD", API_WAY_HTOD }, { "HtoA", API_WAY_HTOD }, { "DtoH", API_WAY_DTOH },
		{ "AtoH", API_WAY_DTOH }, { "DtoD", API_WAY_DTOD }, { "DtoA", API_WAY_DTOD },
		{ "AtoD", API_WAY_DTOD }, { "AtoA", API_WAY_DTOD }, { "Peer", API_WAY_PTOP },
	};
	bool per_thread;

	for (int i = 0; i < api_nfuncs; i++)
		for (size_t k = 0; k < ARRAY_LEN(parts); k++)
			if (api_funcs[i].class == API_COPY &&
			    strstr(api_funcs[i].name, parts[k].part))
				CHECK(api_way((unsigned int)i, 0) == parts[k].way);
	for (uint32_t kind = 0; kind < 5; kind++)
		CHECK(api_way((unsigned int)api_lookup("cudaMemcpy", 0, &per_thread), kind) ==
		      (enum api_way)kind);
	CHECK(api_way((unsigned int)api_lookup("cudaMemcpy", 0, &per_thread), 5) ==
	      API_WAY_UNKNOWN);
	CHECK(api_way((unsigned int)api_lookup("cuMemcpyAsync", 0, &per_thread), 0) ==
	      API_WAY_BY_ADDRESS);
	CHECK(api_way((unsigned int)api_lookup("cuMemcpy2D_v2", 0, &per_thread), 1) ==
	      API_WAY_UNKNOWN);
	CHECK(api_way((unsigned int)api_lookup("cudaMalloc", 0, &per_thread), 1) ==
	      API_WAY_UNKNOWN);
}

/* ---- rubbish ---- */

/* Every row, any content: fields stay within bounds, groups are closed, nothing is read outside
 * of the record. */
static void test_rubbish(void)
{
	uint64_t seed = RANDOM_SEED;
	struct made_call *m = malloc(sizeof(*m));
	struct field f[64];

	for (int round = 0; m && round < 40; round++) {
		for (int i = 0; i < api_nfuncs; i++) {
			size_t size = sizeof(m->c) + seed % (CT_DATA_MAX + 1) / 8 * 8, words;
			char *exact = malloc(size);
			struct ct_call *c = (struct ct_call *)exact;
			int depth = 0, n;

			if (!exact)
				abort();
			for (size_t b = 0; b + 8 <= size; b += 8) {
				random_next(&seed);
				memcpy(exact + b, round % 3 ? &seed : &(uint64_t){ seed & 0xff },
				       8);
			}
			words = (size - sizeof(*c)) / 8;
			c->h.size = (uint16_t)size;
			c->h.kind = round % 2 ? CT_CALL : CT_ENTER;
			c->func = (uint16_t)i;
			c->nwords = (uint8_t)(words < CT_MAX_WORDS ? words : CT_MAX_WORDS);
			for (int arch = 0; arch < 2; arch++) {
				int max = round % 5 ? 64 : (int)(seed % 8);

				n = api_decode(c, arch, f, max);
				CHECK(n >= 0 && n <= max);
				for (int k = 0; k < n; k++)
					depth += f[k].type == FIELD_OPEN    ? 1
						 : f[k].type == FIELD_CLOSE ? -1
									    : 0;
				CHECK(depth == 0);
				api_size(c, arch);
			}
			api_failed(c);
			free(exact);
		}
	}
	free(m);
}

/* How the table calls an argument, and what it leaves out. */
static void test_labels(void)
{
	struct made_call m;
	struct field f[64];

	make_call(&m, "cudaMemcpy", CT_ENTER, 0, 0, U(0x10), U(0x20), U(4096), U(1));
	CHECK(api_decode(&m.c, API_ARCH_HERE, f, 64) == 4);
	CHECK_TEXT("size", f[2].label);
	CHECK_TEXT("count", f[2].name);
	make_call(&m, "cudaLaunchKernel", CT_ENTER, 0, 0, U(1), U(1), U(1), U(1), U(1), U(0), U(0),
		  U(0));
	CHECK(api_decode(&m.c, API_ARCH_HERE, f, 64) == 6);
	CHECK_TEXT("function", f[0].label);
	CHECK_TEXT("grid", f[1].label);
	CHECK_TEXT("", f[3].label);
}

int main(void)
{
	RUN(test_all_rows);
	RUN(test_spelling);
	RUN(test_field_counts);
	RUN(test_lookup);
	RUN(test_words);
	RUN(test_outputs);
	RUN(test_inputs);
	RUN(test_structs);
	RUN(test_sizes);
	RUN(test_errors);
	RUN(test_reported);
	RUN(test_domains);
	RUN(test_traits);
	RUN(test_marks);
	RUN(test_ways);
	RUN(test_rubbish);
	RUN(test_labels);
	return unit_end();
}
