/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_names.c - names as people read them, which kernel a call is about, and the table that
 * CT_NAME records fill: names that are not names, names that are made to hurt, and more of them
 * than there is room for.
 */
#include <errno.h>
#include <malloc.h>
#include <time.h>

#include "../../user/util/demangle.h"
#include "make_call.h"
#include "unit.h"

/* ---- demangling ---- */

static void check_full(const char *mangled, const char *want)
{
	char *full = demangle_full(mangled);

	CHECK_TEXT(want, full ? full : "");
	free(full);
}

static void check_brief(const char *full, const char *want)
{
	char *brief = demangle_brief(full);

	CHECK_TEXT(want, brief ? brief : full);
	free(brief);
}

static void test_full(void)
{
	check_full("_Z6vecAddPKfS0_Pfi", "vecAdd(float const*, float const*, float*, int)");
	check_full("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
		   "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
		   "void at::native::vectorized_elementwise_kernel<4, "
		   "at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, "
		   "at::native::FillFunctor<float>, std::array<char*, 1ul>)");
	check_full("_ZN12_GLOBAL__N_11kEi", "(anonymous namespace)::k(int)");
	/* not mangled, or not well */
	check_full("vec_add", "");
	check_full("", "");
	check_full("_Z", "");
	check_full("_Z6vecAd", "");
	check_full("_ZN", "");
	check_full("__Z6vecAddi", "");
	check_full("_Z3fo\xff\xfei", "");
}

static void test_brief(void)
{
	/* at most 64 columns: all but the return type stays */
	check_brief("vecAdd(float const*, float const*, float*, int)",
		    "vecAdd(float const*, float const*, float*, int)");
	check_brief("void scale<float, 4>(float*, float)", "scale<float, 4>(float*, float)");
	check_brief("a(int, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)",
		    "a(int, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)");
	check_brief("a(int, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)", "a(...)");
	/* wider: without template arguments, then without parameters */
	check_brief("void at::native::f<int, float, at::native::(anonymous "
		    "namespace)::Functor<double, long> >(int, float)",
		    "at::native::f<...>(int, float)");
	check_brief("void at::native::vectorized_elementwise_kernel<4, "
		    "at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, "
		    "at::native::FillFunctor<float>, std::array<char*, 1ul>)",
		    "at::native::vectorized_elementwise_kernel<...>(...)");
	/* names that have brackets of their own */
	check_brief("foo::operator()<int, float, double, long, unsigned long, short, unsigned "
		    "short>(int, float) const",
		    "foo::operator()<...>(int, float) const");
	check_brief("bool std::operator< <char, std::char_traits<char>, std::allocator<char>, "
		    "std::allocator<char> >(int, int)",
		    "std::operator< <...>(int, int)");
	check_brief("std::ostream& ns::operator>> <int>(std::ostream&, int)",
		    "ns::operator>> <int>(std::ostream&, int)");
	check_brief("ns::operator<<(std::vector<std::pair<int, int>, std::allocator<std::pair<int, "
		    "int> > >&, int)",
		    "ns::operator<<(std::vector<...>&, int)");
	check_brief("foo::operator unsigned long<int, "
		    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb>() const",
		    "foo::operator unsigned long<...>() const");
	check_brief("p::operator->(int)", "p::operator->(int)");
	/* lambdas, and functions inside functions */
	check_brief("auto "
		    "foo<int>(int)::{lambda(aaaaaaaaaaaaaaaaaaaaaaaa)#1}::operator()<float>(float, "
		    "bbbbbbbbbbbbbbb) const",
		    "foo<int>(int)::{lambda(...)#1}::operator()<...>(...) const");
	check_brief("ns::(anonymous "
		    "namespace)::foo(at::TensorIteratorBase&)::{lambda()#1}::operator()() "
		    "const::{lambda(float)#2}::operator()(float) const",
		    "ns::(anonymous namespace)::foo(...)::{lambda()#1}::operator()() "
		    "const::{lambda(...)#2}::operator()(...) const");
	/* return types that are hard to tell from names */
	check_brief("unsigned long ns::h<int>(unsigned long)", "ns::h<int>(unsigned long)");
	check_brief("decltype (a<b, c>(0)) ns::g<int>(int)", "ns::g<int>(int)");
	check_brief("std::enable_if<((1)>(2)), int>::type k<3>(int)", "k<3>(int)");
	check_brief("void ns::(anonymous namespace)::kern<int>(float*)",
		    "ns::(anonymous namespace)::kern<int>(float*)");
	check_brief("foo[abi:cxx11]<int>(long) [clone .x]", "foo[abi:cxx11]<int>(long) [clone .x]");
	/* what is no function's name stays what it is */
	check_brief("vec_add", "vec_add");
	check_brief("a b", "a b");
	check_brief("", "");
	check_brief("f(", "f(");
	check_brief(")>}](", ")>}](");
	check_brief("operator", "operator");
	check_brief("operator(", "operator(");
}

/* Processor time of this thread: other programs on the machine do not change it. */
static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void bomb(const char *what, const char *name)
{
	uint64_t start = now_ns();
	char *full = demangle_full(name), *brief = full ? demangle_brief(full) : NULL;

	if (now_ns() - start > 2000000000ULL)
		printf("%s took %llu ms\n", what, (unsigned long long)(now_ns() - start) / 1000000);
	CHECK(now_ns() - start < 2000000000ULL);
	CHECK(!full || strlen(full) < 1 << 16);
	free(full);
	free(brief);
}

static const char *repeat(const char *head, const char *part, int n, const char *tail)
{
	static char buf[CT_NAME_MAX + 1];
	char *at = stpcpy(buf, head);

	for (int i = 0; i < n && at + strlen(part) + strlen(tail) < buf + sizeof(buf); i++)
		at = stpcpy(at, part);
	strcpy(at, tail);
	return buf;
}

/* Names of up to 16 KiB that would take gigabytes, an age, or more stack than there is. */
static void test_bombs(void)
{
	static const char *const parts[] = { "P",      "N1a",	 "F",	 "1AI",	    "1fIL",
					     "Z",      "ZN1aEv", "Uli",	 "cv",	    "T_I",
					     "cvT_I",  "DpT_",	 "J",	 "XplLi1E", "Xsr",
					     "1fIXcv", "R",	 "K",	 "Dv1_",    "S_",
					     "M1a",    "A_",	 "DTcl", "B1a",	    "\xff" };
	char doubling[4096] = "_Z1f1AIiiE", *at = doubling + strlen(doubling),
	     brackets[CT_NAME_MAX + 1];

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		bomb(parts[i], repeat("_Z1f", parts[i], CT_NAME_MAX, "i"));
		bomb(parts[i], repeat("_ZN1fIiE", parts[i], CT_NAME_MAX, "E"));
		bomb(parts[i], repeat("_ZN1fIiEcv", parts[i], 100, "iEv"));
	}
	/* each type has the one before it twice: 2^60 of them */
	for (int i = 0, id = 1; i < 60; i++, id += 2) {
		char ref[8];

		if (id - 1 < 36)
			snprintf(ref, sizeof(ref), "S%c_",
				 "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[id - 1]);
		else
			snprintf(ref, sizeof(ref), "S%c%c_",
				 "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(id - 1) / 36],
				 "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(id - 1) % 36]);
		at += sprintf(at, "1BI%s%sE", ref, ref);
		if (i == 3 || i == 12 || i == 20)
			bomb("doubling", doubling);
	}
	bomb("doubling", doubling);
	/* brackets without an end, for the short form */
	for (size_t i = 0; i < 4; i++) {
		memset(brackets, "(<{["[i], CT_NAME_MAX);
		brackets[CT_NAME_MAX] = '\0';
		free(demangle_brief(brackets));
		memset(brackets, ")>}]"[i], CT_NAME_MAX);
		free(demangle_brief(brackets));
	}
}

/* Any text gives a short form that is no longer, and no error of the sanitizers. */
static void test_random_brief(void)
{
	static const char *const parts[] = { "operator",
					     "(",
					     ")",
					     "<",
					     ">",
					     "{",
					     "}",
					     "[",
					     "]",
					     " ",
					     "const",
					     "::",
					     "a",
					     "->",
					     "&",
					     ",",
					     "(anonymous namespace)",
					     "decltype ",
					     "lambda",
					     "operator()",
					     "operator<",
					     "\xc3\xa9" };
	unsigned int seed = 1;

	for (int round = 0; round < 20000; round++) {
		char text[600] = "", *brief;

		for (int i = rand_r(&seed) % 40; i >= 0; i--)
			strcat(text, parts[(size_t)rand_r(&seed) % ARRAY_LEN(parts)]);
		brief = demangle_brief(text);
		CHECK(!brief || strlen(brief) <= strlen(text));
		free(brief);
	}
}

/* ---- which kernel? ---- */

static uint64_t kernel_of(const struct ct_call *c)
{
	uint64_t handle = 0;

	CHECK(!record_check(c, c->h.size));
	return api_kernel(c, API_ARCH_HERE, &handle) ? handle : 0;
}

#define KERNEL(name, ...) kernel_of(make_call(&m, name, CT_CALL, 0, 0, __VA_ARGS__))

static void test_kernels_of_calls(void)
{
	struct made_call m;
	uint64_t out = 0x77, params[9] = { 0x1111 }, node[32] = { 0 };

	make_mem(0x5000, &out, 8);
	make_mem(0x6000, params, sizeof(params));
	make_mem(0x7000, node, sizeof(node));
	CHECK(KERNEL("cudaLaunchKernel", U(0xabc), U(1), U(1), U(1), U(1), U(0), U(0), U(0)) ==
	      0xabc);
	CHECK(KERNEL("cuLaunchKernelEx", U(0), U(0xabd), U(0), U(0)) == 0xabd);
	CHECK(KERNEL("cudaFuncSetAttribute", U(0xabe), U(0), U(0)) == 0xabe);
	CHECK(KERNEL("cuKernelSetAttribute", U(0), U(0), U(0xabf), U(0)) == 0xabf);
	CHECK(KERNEL("cudaMalloc", U(0x5000), U(16)) == 0);
	CHECK(KERNEL("cudaLaunchKernel", U(0), U(1), U(1), U(1), U(1), U(0), U(0), U(0)) == 0);
	/* an input before an output, else the output, once it is there */
	CHECK(KERNEL("__cudaGetKernel", U(0x5000), U(0xac0)) == 0xac0);
	CHECK(KERNEL("cuModuleGetFunction", U(0x5000), U(0x1), U(0)) == 0x77);
	CHECK(kernel_of(make_call(&m, "cuModuleGetFunction", CT_CALL, 0, 500, U(0x5000), U(0x1),
				  U(0))) == 0);
	CHECK(kernel_of(make_call(&m, "cuModuleGetFunction", CT_ENTER, 0, 0, U(0x5000), U(0x1),
				  U(0))) == 0);
	/* a list of handles is about none of them */
	CHECK(KERNEL("cuModuleEnumerateFunctions", U(0x5000), U(1), U(0x1)) == 0);
	/* in structs */
	CHECK(KERNEL("cudaGraphAddKernelNode", U(0x5000), U(1), U(0), U(0), U(0x6000)) == 0x1111);
	CHECK(KERNEL("cuGraphAddKernelNode_v2", U(0x5000), U(1), U(0), U(0), U(0x6000)) == 0x1111);
	params[0] = 0;
	params[7] = 0x2222; /* kern, where there is no func */
	CHECK(KERNEL("cuGraphAddKernelNode_v2", U(0x5000), U(1), U(0), U(0), U(0x6000)) == 0x2222);
	CHECK(KERNEL("cudaGraphAddKernelNode", U(0x5000), U(1), U(0), U(0), U(0x6000)) == 0);
	node[2] = 0x3333;
	CHECK(KERNEL("cudaGraphNodeSetParams", U(1), U(0x7000)) == 0x3333);
	node[0] = 1; /* a copy */
	CHECK(KERNEL("cudaGraphNodeSetParams", U(1), U(0x7000)) == 0);
	node[0] = 0xffffffff;
	CHECK(KERNEL("cudaGraphNodeSetParams", U(1), U(0x7000)) == 0);
	params[0] = 0x4444;
	CHECK(KERNEL("cudaLaunchCooperativeKernelMultiDevice", U(0x6000), U(1), U(0)) == 0x4444);
	/* a struct that could not be read */
	CHECK(KERNEL("cudaGraphNodeSetParams", U(1), U(0x999999)) == 0);
	CHECK(api_has_kernel(api_next("cudaLaunchKernel", -1)) &&
	      !api_has_kernel(api_next("cudaMalloc", -1)));
}

/* What rows are marked as: the whole of it, so that nobody takes a mark off without noticing. */
static void test_marks(void)
{
	uint64_t teaching[CT_MAX_FUNCS / 64] = { 0 };
	char text[4096] = "";
	int n = 0;

	api_teaching(teaching);
	for (int i = 0; i < api_nfuncs; i++) {
		struct ct_spec s;

		if (!(teaching[i / 64] >> (i % 64) & 1))
			continue;
		n++;
		CHECK(!api_spec(i, API_ARCH_HERE, false, &s) && s.flags & CT_S_ALWAYS);
		CHECK(!!(s.more & CT_S_WHOLE_NAME) == api_says_name(i));
		CHECK(!!(s.more & CT_S_FORGETS) == api_forgets(i));
		sprintf(text + strlen(text), "%s%s%s%s ", api_funcs[i].name,
			s.more & CT_S_WHOLE_NAME ? "=" : "", s.more & CT_S_FORGETS ? "-" : "",
			s.more & CT_S_ENTRY_ONLY ? "|" : "");
	}
	CHECK_TEXT("cudaDeviceReset- cudaThreadExit- cudaExecutionCtxDestroy- cudaGetFuncBySymbol "
		   "cudaGetKernel cudaLibraryGetKernel= cudaLibraryUnload- cudaFuncGetName= "
		   "__cudaGetKernel __cudaRegisterFunction=| __cudaUnregisterFatBinary- "
		   "cuCtxDestroy- cuCtxDestroy_v2- cuCtxDetach- cuDevicePrimaryCtxRelease- "
		   "cuDevicePrimaryCtxRelease_v2- cuDevicePrimaryCtxReset- "
		   "cuDevicePrimaryCtxReset_v2- cuGreenCtxDestroy- cuKernelGetFunction "
		   "cuLibraryGetKernel= cuLibraryGetModule cuLibraryUnload- cuModuleGetFunction= "
		   "cuModuleUnload- cuFuncGetName= cuKernelGetName= ",
		   text);
	CHECK(n == 27);
}

/* ---- the table ---- */

static char record_room[sizeof(struct ct_name) + CT_NAME_MAX + 8];

static const struct ct_hdr *name_record(uint32_t pid, uint64_t handle, const char *name, size_t len,
					int source, bool cut)
{
	struct ct_name *n = (struct ct_name *)record_room;

	memset(record_room, 0, sizeof(*n) + len + 8);
	n->h.size = (uint16_t)(sizeof(*n) + ((len + 7) & ~(size_t)7));
	n->h.kind = CT_NAME;
	n->h.pid = pid;
	n->handle = handle;
	n->len = (uint32_t)len;
	n->source = (uint8_t)source;
	n->cut = cut;
	memcpy(n->name, name, len);
	CHECK(!record_check(n, n->h.size));
	return &n->h;
}

static void say(struct name_table *t, uint32_t pid, uint64_t handle, const char *name)
{
	CHECK(!name_table_record(t, name_record(pid, handle, name, strlen(name), CT_NAME_REGISTERED,
						false)));
}

static const struct kernel_name *find(struct name_table *t, uint32_t pid, uint64_t handle)
{
	struct made_call m;
	struct ct_call *c = make_call(&m, "cudaLaunchKernel", CT_CALL, 0, 0, handle, U(1), U(1),
				      U(1), U(1), U(0), U(0), U(0));

	c->h.pid = pid;
	return name_table_find(t, c);
}

static const char *mangled(struct name_table *t, uint32_t pid, uint64_t handle)
{
	const struct kernel_name *k = find(t, pid, handle);

	return k ? k->mangled : "none";
}

static void life(struct name_table *t, int kind, uint32_t pid, uint64_t start)
{
	struct ct_process p = {
		.h = { .size = sizeof(p), .kind = (uint16_t)kind, .pid = pid, .tid = pid },
		.start_boottime_ns = start
	};

	if (kind == CT_EXIT)
		p.h.size = sizeof(struct ct_exit);
	CHECK(!record_check(&p, p.h.size));
	CHECK(!name_table_record(t, &p.h));
}

static void test_table(void)
{
	struct name_table *t = name_table_open();
	const struct kernel_name *k;
	struct made_call m;

	life(t, CT_PROCESS, 1, 100);
	say(t, 1, 0x10, "_Z6vecAddPKfS0_Pfi");
	say(t, 1, 0x20, "plain");
	say(t, 2, 0x10, "other");
	k = find(t, 1, 0x10);
	if (CHECK(k)) {
		CHECK_EQ(CT_NAME_REGISTERED, k->source);
		CHECK(!k->cut);
	}
	CHECK_TEXT("_Z6vecAddPKfS0_Pfi", k ? k->mangled : "");
	CHECK_TEXT("vecAdd(float const*, float const*, float*, int)", k ? k->full : "");
	CHECK_TEXT("vecAdd(float const*, float const*, float*, int)", k ? k->brief : "");
	CHECK_TEXT("registered", kernel_name_source(k ? k->source : 0));
	k = find(t, 1, 0x20);
	if (CHECK(k)) {
		CHECK_TEXT("plain", k->full);
		CHECK_TEXT("plain", k->brief);
	}
	CHECK_TEXT("other", mangled(t, 2, 0x10));
	CHECK_TEXT("none", mangled(t, 3, 0x10));
	CHECK_TEXT("none", mangled(t, 1, 0x11));
	CHECK(!name_table_find(t, make_call(&m, "cudaFree", CT_CALL, 0, 0, U(0x10))));
	/* another meaning, and none, also of the one that was asked for last */
	CHECK_TEXT("plain", mangled(t, 1, 0x20));
	say(t, 1, 0x20, "_Z3newv");
	CHECK_TEXT("_Z3newv", mangled(t, 1, 0x20));
	say(t, 1, 0x20, "");
	CHECK_TEXT("none", mangled(t, 1, 0x20));
	say(t, 1, 0x20, "");
	CHECK_TEXT("_Z6vecAddPKfS0_Pfi", mangled(t, 1, 0x10));
	/* names outlive the process, and a second word of it, but no other process under its number */
	life(t, CT_PROCESS, 1, 100);
	CHECK_TEXT("_Z6vecAddPKfS0_Pfi", mangled(t, 1, 0x10));
	life(t, CT_EXIT, 1, 0);
	CHECK_TEXT("_Z6vecAddPKfS0_Pfi", mangled(t, 1, 0x10));
	life(t, CT_PROCESS, 1, 200);
	CHECK_TEXT("none", mangled(t, 1, 0x10));
	CHECK_TEXT("other", mangled(t, 2, 0x10));
	/* without a word of the first one's end */
	say(t, 1, 0x10, "second");
	life(t, CT_PROCESS, 1, 300);
	CHECK_TEXT("none", mangled(t, 1, 0x10));
	say(t, 2, 0x10, "other");
	life(t, CT_EXEC, 2, 200);
	CHECK_TEXT("none", mangled(t, 2, 0x10));
	/* a name that is cut, one with a NUL inside, sources of the future */
	CHECK(!name_table_record(t,
				 name_record(1, 0x30, "_Z6vecAddPKf", 12, CT_NAME_DRIVER, true)));
	k = find(t, 1, 0x30);
	if (CHECK(k)) {
		CHECK(k->cut);
		CHECK_TEXT("_Z6vecAddPKf", k->full);
		CHECK_TEXT("_Z6vecAddPKf", k->brief);
	}
	CHECK(!name_table_record(t, name_record(1, 0x30, "ab\0cd", 5, 200, false)));
	k = find(t, 1, 0x30);
	CHECK(k && !strcmp(k->mangled, "ab"));
	CHECK_TEXT("unknown", kernel_name_source(k ? k->source : 0));
	name_table_close(t);
	name_table_close(NULL);
}

/* Many handles come and go: what is there is what was said last. */
static void test_table_random(void)
{
	struct name_table *t = name_table_open();
	static int now[3][2048]; /* 0: none */
	unsigned int seed = 7;
	char name[64];
	int wrong = 0;

	memset(now, 0, sizeof(now));
	for (int i = 0; i < 60000; i++) {
		uint32_t pid = (uint32_t)rand_r(&seed) % 3;
		uint64_t h = (uint64_t)rand_r(&seed) % 2048;

		now[pid][h] = rand_r(&seed) % 3 ? rand_r(&seed) % 5000 + 1 : 0;
		name[0] = '\0';
		if (now[pid][h])
			snprintf(name, sizeof(name), "_Z5k%04di", now[pid][h]);
		say(t, pid + 1, h * 16 + 4096, name);
		if (i % 20000 == 19999) {
			life(t, CT_EXEC, pid + 1, 1);
			memset(now[pid], 0, sizeof(now[pid]));
		}
	}
	for (uint32_t pid = 0; pid < 3; pid++) {
		for (uint64_t h = 0; h < 2048; h++) {
			snprintf(name, sizeof(name), now[pid][h] ? "_Z5k%04di" : "none",
				 now[pid][h]);
			wrong += strcmp(name, mangled(t, pid + 1, h * 16 + 4096)) != 0;
		}
	}
	CHECK(wrong == 0);
	name_table_close(t);
}

/* A hundred MiB of names: those of a process that ended go first, those that are used stay. */
static void test_table_room(void)
{
	struct name_table *t = name_table_open();
	static char name[8001];
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;

	memset(name, 'a', 8000);
	for (int i = 0; i < 3000; i++) {
		sprintf(name, "ended%08d", i);
		name[13] = 'a';
		say(t, 5, 0x10000u + (uint64_t)i, name);
	}
	say(t, 6, 0x1, "used");
	life(t, CT_EXIT, 5, 0);
	for (int i = 0; i < 12000; i++) {
		sprintf(name, "alive%08d", i);
		name[13] = 'a';
		say(t, 6, 0x10000u + (uint64_t)i, name);
		if (i % 64 == 0)
			CHECK_TEXT("used", mangled(t, 6, 0x1));
		if (i == 4000)
			CHECK(strcmp("none", mangled(t, 5, 0x10000)));
	}
	CHECK_TEXT("none", mangled(t, 5, 0x10000));
	CHECK_TEXT("none", mangled(t, 6, 0x10000));
	CHECK(!strncmp("alive00011999", mangled(t, 6, 0x10000 + 11999), 13));
	if (before)
		CHECK(mallinfo2().uordblks + mallinfo2().hblkhd - before < (size_t)80 << 20);
	/* one handle after another under the same name takes room too */
	for (uint64_t i = 0; i < 1500000; i++)
		name_table_record(t,
				  name_record(6, i * 16 + 16, "k", 1, CT_NAME_REGISTERED, false));
	CHECK_TEXT("k", mangled(t, 6, 1499999 * 16 + 16));
	if (before)
		CHECK(mallinfo2().uordblks + mallinfo2().hblkhd - before < (size_t)160 << 20);
	name_table_close(t);
}

/* ---- records ---- */

/* Lengths that reach beyond the record, by one byte, and by as much as the field holds. */
static void test_checks(void)
{
	static union {
		struct ct_hdr h;
		struct ct_more more;
		struct ct_name name;
		struct ct_user_stack user;
		struct ct_py_stack py;
		struct ct_py_code code;
		struct ct_frame frame;
		struct ct_stack stack;
		char room[65536];
	} r;
#define RECORD(k, type, tail)                                   \
	do {                                                    \
		memset(&r, 0, sizeof(r));                       \
		r.h.kind = k;                                   \
		r.h.size = (uint16_t)(sizeof(type) + (tail));   \
		CHECK(!record_check(&r, r.h.size));             \
		r.h.size = sizeof(type) - 8;                    \
		CHECK(record_check(&r, sizeof(r)) == -EBADMSG); \
		r.h.size = (uint16_t)(sizeof(type) + (tail));   \
	} while (0)
#define BAD CHECK(record_check(&r, sizeof(r)) == -EBADMSG)
#define GOOD CHECK(!record_check(&r, sizeof(r)))

	RECORD(CT_MORE, struct ct_more, 16);
	r.more.len = 16;
	GOOD;
	r.more.len = 17;
	BAD;
	r.more.len = ~0u;
	BAD;
	r.more.len = 8;
	r.more.read = CT_MAX_READS;
	BAD;
	r.more.read = 0;
	r.more.func = 0xffff;
	BAD;
	r.more.func = 0;
	r.more.offset = ~0u;
	BAD;
	RECORD(CT_NAME, struct ct_name, 8);
	r.name.len = 8;
	GOOD;
	r.name.len = 9;
	BAD;
	r.name.len = ~0u;
	BAD;
	r.h.size = sizeof(struct ct_name) + CT_NAME_MAX + 8;
	r.name.len = CT_NAME_MAX + 1;
	BAD;
	RECORD(CT_USER_STACK, struct ct_user_stack, 16);
	r.user.len = 16;
	GOOD;
	r.user.nsaved = CT_MAX_FRAMES + 1;
	BAD;
	r.user.nsaved = 0;
	r.user.len = 17;
	BAD;
	r.user.len = 12;
	r.user.how = CT_STACK_ADDRESSES;
	BAD;
	r.user.len = 8;
	GOOD;
	r.user.how = CT_STACK_LIVE;
	BAD;
	r.user.how = 3;
	BAD;
	RECORD(CT_PY_STACK, struct ct_py_stack, 24);
	r.py.n = 1;
	GOOD;
	r.py.n = 2;
	BAD;
	r.py.n = 1;
	r.py.first = CT_PY_MAX;
	BAD;
	RECORD(CT_PY_CODE, struct ct_py_code, 24);
	r.code.name_len = 1;
	r.code.file_len = 8;
	r.code.table_len = 7;
	GOOD;
	r.code.name_kind = 3;
	BAD;
	r.code.name_kind = 4;
	GOOD;
	r.code.name_len = 9;
	BAD;
	r.code.name_len = 0xffff;
	BAD;
	RECORD(CT_FRAME, struct ct_frame, 8);
	r.frame.function_len = 4;
	r.frame.file_len = 2;
	r.frame.object_len = 2;
	GOOD;
	r.frame.object_len = 3;
	BAD;
	r.frame.function_len = r.frame.file_len = r.frame.object_len = 0xffff;
	BAD;
	RECORD(CT_STACK, struct ct_stack, 8);
	r.stack.nframes = 2;
	GOOD;
	r.stack.nframes = 3;
	BAD;
	r.stack.nframes = 0x40000002;
	BAD;
}

/* The id of a call's stack is its last word: there must be room for it behind all that the call
 * announces. */
static void test_stack_word(void)
{
	struct made_call m;
	struct ct_call *c = make_call(&m, "cudaFree", CT_CALL, 0, 0, U(0x10));
	struct field f[64];
	struct event ev = { .rec = &c->h };

	CHECK(!record_check(c, c->h.size));
	c->h.flags = CT_F_STACK;
	CHECK(record_check(c, c->h.size) == -EBADMSG);
	c->h.size += 8;
	CHECK(!record_check(c, c->h.size));
	CHECK(api_decode(c, API_ARCH_HERE, f, 64) == 2);
	/* of a call that began before the trace nothing is known, and nothing is made up */
	c->h.flags = CT_F_UNFINISHED | CT_F_BEFORE;
	c->nwords = 0;
	c->h.size = sizeof(*c);
	CHECK(!record_check(c, c->h.size));
	CHECK(event_fields(&ev, f, 64) == 0);
	c->h.flags = CT_F_UNFINISHED;
	CHECK(record_check(c, c->h.size) == -EBADMSG);
}

static void test_fields(void)
{
	struct event ev = { .rec = name_record(1, 0x10, "_Z1kv", 5, CT_NAME_INNER, true) };
	struct ct_stack *s = calloc(1, sizeof(*s) + 400 * 4);
	struct field f[64];
	int n;

	CHECK(event_fields(&ev, f, 64) == 3);
	CHECK_EQ(0x10, f[0].u);
	CHECK_EQ(5, f[1].str_len);
	CHECK(!memcmp(f[1].str, "_Z1kv", 5));
	CHECK(f[1].cut);
	CHECK(!strncmp(f[2].str, "inner", f[2].str_len));
	s->h = (struct ct_hdr){ .size = (uint16_t)(sizeof(*s) + 400 * 4), .kind = CT_STACK };
	s->id = 7;
	s->nframes = 400;
	CHECK(!record_check(s, s->h.size));
	ev.rec = &s->h;
	n = event_fields(&ev, f, 64);
	if (CHECK_EQ(64, n)) {
		CHECK(f[2].is_list);
		CHECK(f[2].cut);
		CHECK_EQ(FIELD_CLOSE, f[63].type);
	}
	free(s);
}

int main(void)
{
	RUN(test_full);
	RUN(test_brief);
	RUN(test_bombs);
	RUN(test_random_brief);
	RUN(test_kernels_of_calls);
	RUN(test_marks);
	RUN(test_table);
	RUN(test_table_random);
	RUN(test_table_room);
	RUN(test_checks);
	RUN(test_stack_word);
	RUN(test_fields);
	return unit_end();
}
