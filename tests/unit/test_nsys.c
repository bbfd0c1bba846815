/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nsys.c - the database of nsys-sqlite from hand-made records: rows and numbers, names,
 * files that cannot be written, and records full of rubbish. What queries in the manner of
 * nsys's reports make of such a database: tests/export/nsys.py, which has it made here
 * (argument: the file to write).
 */
#include <errno.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/export/nsys/nsys.h"
#include "make_play.h"
#include "unit.h"

static const char *file(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/ct_test_nsys.%d", (int)getpid());
	return path;
}

static struct sink_end the_end(void)
{
	return (struct sink_end){ .reason = "finished", .uptime_ns = 9000000 };
}

static void write_with(const char *path, bool all_tables)
{
	const struct nsys_options how = { .all_tables = all_tables };
	struct sink_opts opts = { .path = path,
				  .own = &how,
				  .version = "test",
				  .title = "train.py",
				  .start_ns = PLAY_START,
				  .realtime_offset_ns = 1700000000000000000ULL - PLAY_START };
	struct sink_end end = the_end();
	struct play p;

	play_begin(&p, &sink_nsys, &opts);
	play_all(&p);
	play_quiet(true);
	CHECK(!play_end(&p, &end));
	play_quiet(false);
}

static void write_to(const char *path)
{
	write_with(path, false);
}

/* The first column of the first row as text; NULL: no row. */
static const char *ask(const char *sql)
{
	static char text[512];
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;
	const char *got = NULL;

	if (!sqlite3_open_v2(file(), &db, SQLITE_OPEN_READONLY, NULL) &&
	    !sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) && sqlite3_step(stmt) == SQLITE_ROW) {
		snprintf(text, sizeof(text), "%s",
			 sqlite3_column_text(stmt, 0) ? (const char *)sqlite3_column_text(stmt, 0)
						      : "NULL");
		got = text;
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return got ? got : "no row";
}

static void rows(void)
{
	write_to(file());
	CHECK_TEXT("ok", ask("PRAGMA integrity_check"));
	CHECK_TEXT("3.24.14",
		   ask("SELECT value FROM META_DATA_EXPORT WHERE name='EXPORT_SCHEMA_VERSION'"));
	CHECK_TEXT("1700000000000000000|2023-11-14 22:13:20",
		   ask("SELECT utcEpochNs||'|'||utcTime FROM TARGET_INFO_SESSION_START_TIME"));
	CHECK_TEXT("cudaLaunchKernel_v7000,cudaLaunchKernel_ptsz_v7000,cudaMemcpy_v3020,"
		   "cudaMemcpyAsync_v3020,cudaMemset_v3020,cuLaunchKernel,cudaDeviceSynchronize_"
		   "v3020,cudaMalloc_v3020",
		   ask("SELECT group_concat(value) FROM (SELECT DISTINCT value FROM "
		       "CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id=nameId ORDER BY "
		       "r.rowid)"));
	/* pid << 24 | tid, times from the start on, numbers of calls, results as returned */
	CHECK_TEXT("1000|1500|0|1677721701|1|0",
		   ask("SELECT "
		       "start||'|'||end||'|'||eventClass||'|'||globalTid||'|'||correlationId||'|'||"
		       "returnValue FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY rowid"));
	CHECK_TEXT("2", ask("SELECT returnValue FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds "
			    "s ON s.id=nameId WHERE value LIKE 'cudaMalloc%'"));
	CHECK_TEXT("-1", ask("SELECT returnValue FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds "
			     "s ON s.id=nameId WHERE value LIKE 'cudaDeviceSync%'"));
	/* a driver call */
	CHECK_TEXT("1", ask("SELECT eventClass FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s "
			    "ON s.id=nameId WHERE value='cuLaunchKernel'"));
	CHECK_TEXT("axpy(float*, float const*, int)|axpy|_Z4axpyPfPKfi",
		   ask("SELECT d.value||'|'||s.value||'|'||m.value FROM CUPTI_ACTIVITY_KIND_KERNEL "
		       "JOIN StringIds d ON d.id=demangledName JOIN StringIds s ON s.id=shortName "
		       "JOIN StringIds m ON m.id=mangledName"));
	/* kinds of memory are CUPTI's less one, and unknown is 7 */
	CHECK_TEXT("1|2,0|2,7|7", ask("SELECT group_concat(DISTINCT srcKind||'|'||dstKind) FROM "
				      "CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind<10"));
	CHECK_TEXT(
		"0|1|0|7",
		ask("SELECT srcDeviceId||'|'||dstDeviceId||'|'||min(deviceId)||'|'||srcContextId "
		    "FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind=10"));
	CHECK_TEXT(
		"11",
		ask("SELECT copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE virtualAddress=4096"));
	CHECK_TEXT(
		"0,1",
		ask("SELECT group_concat(memoryOperationType) FROM CUDA_GPU_MEMORY_USAGE_EVENTS"));
	CHECK_TEXT("59|step|training",
		   ask("SELECT eventType||'|'||t.value||'|'||d.value FROM NVTX_EVENTS JOIN "
		       "StringIds t ON t.id=textId JOIN StringIds d ON d.id=domainId"));
	/* the domain's own row: once in a process, with its name as text */
	CHECK_TEXT("1|training|training:step",
		   ask("SELECT count(*)||'|'||d.text||'|'||d.text||':'||t.value FROM NVTX_EVENTS n "
		       "JOIN NVTX_EVENTS d ON d.eventType=75 AND d.domainId=n.domainId AND "
		       "d.globalTid>>24=n.globalTid>>24 JOIN StringIds t ON t.id=n.textId"));
	CHECK_TEXT("1|1", ask("SELECT count(*)||'|'||sum(n.text=t.value) FROM NVTX_EVENTS n JOIN "
			      "StringIds t ON t.id=n.textId"));
	CHECK_TEXT("4|Context sync",
		   ask("SELECT syncType||'|'||label FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION JOIN "
		       "ENUM_CUPTI_SYNC_TYPE e ON e.id=syncType"));
	CHECK_TEXT("6|Module loading",
		   ask("SELECT overheadType||'|'||label FROM CUPTI_ACTIVITY_KIND_OVERHEAD JOIN "
		       "ENUM_CUPTI_OVERHEAD_TYPE e ON e.id=overheadType"));
	CHECK_TEXT("5", ask("SELECT graphId FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE"));
	CHECK_TEXT("launch|main", ask("SELECT group_concat(value,'|') FROM CUDA_CALLCHAINS JOIN "
				      "StringIds s ON s.id=symbol"));
	CHECK_TEXT("2",
		   ask("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE callchainId=1"));
	CHECK_TEXT("7 records lost: ring buffer full (raise --ring-size)",
		   ask("SELECT text FROM DIAGNOSTIC_EVENT"));
	CHECK_TEXT("61000|1677721600|cudaGetDevice: 5000 calls were counted in windows and have no "
		   "rows; beside them there were 240000 by estimate, 236000 to 243000 at 95 %, "
		   "since 60000 ns before",
		   ask("SELECT timestamp||'|'||globalPid||'|'||text FROM DIAGNOSTIC_EVENT WHERE "
		       "text LIKE 'cudaGetDevice%'"));
	CHECK_TEXT("1 device record without a valid time is left out",
		   ask("SELECT text FROM DIAGNOSTIC_EVENT ORDER BY rowid DESC"));
}

static void devices(void)
{
	CHECK_TEXT("0 H200 01010101-0101-0101-0101-010101010101,1 H100 "
		   "02020202-0202-0202-0202-020202020202",
		   ask("SELECT group_concat(id||' '||name||' '||uuid) FROM TARGET_INFO_GPU"));
	/* the second process numbers the other GPU 0 */
	CHECK_TEXT("100:0=0=0,100:1=1=1,200:0=1=1",
		   ask("SELECT group_concat(pid||':'||ordinal||'='||cudaId||'='||gpuId) FROM "
		       "TARGET_INFO_CUDA_DEVICE"));
	CHECK_TEXT("0,1",
		   ask("SELECT group_concat(DISTINCT deviceId) FROM CUPTI_ACTIVITY_KIND_KERNEL"));
	CHECK_TEXT("132|150754820096|1980000000|233472|65536|32|64|32|9|0",
		   ask("SELECT "
		       "smCount||'|'||totalMemory||'|'||clockRate||'|'||maxShmemPerSm||'|'||"
		       "maxRegistersPerSm||'|'||threadsPerWarp||'|'||maxWarpsPerSm||'|'||"
		       "maxBlocksPerSm||'|'||computeMajor||'|'||smMinor FROM TARGET_INFO_GPU"));
	CHECK_TEXT("100|7|0|0",
		   ask("SELECT processId||'|'||contextId||'|'||deviceId||'|'||isGreenContext FROM "
		       "TARGET_INFO_CUDA_CONTEXT_INFO"));
	CHECK_TEXT("13|7|2",
		   ask("SELECT streamId||'|'||contextId||'|'||flag FROM TARGET_INFO_CUDA_STREAM"));
	CHECK_TEXT("100 trainer,200 other",
		   ask("SELECT group_concat(pid||' '||name) FROM PROCESSES"));
}

/* Ranges and marks of a layer are rows of NVTX_EVENTS, with their payloads, and rows of domains. */
static void scopes(void)
{
	struct sink_opts opts = { .path = file(),
				  .start_ns = PLAY_START,
				  .realtime_offset_ns = 1700000000000000000ULL - PLAY_START };
	struct sink_end end = the_end();
	struct made_device m;
	struct play p;
	uint64_t t = PLAY_START;
	double half = 0.5;

	play_begin(&p, &sink_nsys, &opts);
	play_process(&p, CT_PROCESS, 100, "python3");
	make_scope(&m, 100, 101, t + 200, t + 300, CT_SCOPE_RANGE, 2, "it's");
	play_give(&p, (struct event){ .rec = &m.h });
	make_scope(&m, 100, 101, t + 100, t + 900, CT_SCOPE_RANGE, 1, "\xff\x01");
	m.scope.payload_type = CT_PAYLOAD_DOUBLE;
	memcpy(&m.scope.payload, &half, sizeof(half));
	play_give(&p, (struct event){ .rec = &m.h });
	make_scope(&m, 100, 101, t + 400, t + 400, CT_SCOPE_MARK, 3, "");
	m.scope.payload_type = CT_PAYLOAD_I32;
	m.scope.payload = (uint32_t)-3;
	m.scope.flags = CT_SCOPE_UNNAMED;
	play_give(&p, (struct event){ .rec = &m.h });
	make_scope(&m, 100, 101, t + 500, t + 700, CT_SCOPE_RANGE, 4, "load");
	m.scope.flags = CT_SCOPE_ANY_THREAD | CT_SCOPE_CUT;
	m.scope.payload_type = CT_PAYLOAD_NONE;
	play_give(&p, (struct event){ .rec = &m.h });
	m.h.flags = CT_F_HIDDEN;
	play_give(&p, (struct event){ .rec = &m.h });
	play_quiet(true);
	CHECK(!play_end(&p, &end));
	play_quiet(false);
	CHECK_TEXT("75 app 200 - - - - - - -,59 app:it's 200 300 - 4278255360 7 12345 - -,59 "
		   "app:\xef\xbf\xbd\x01 100 900 - 4278255360 7 - 0.5 -,34 app:? 400 - - "
		   "4278255360 7 - - -3,60 app:load... 500 700 4 4278255360 7 - - -",
		   ask("SELECT group_concat(n.eventType||' '||CASE n.eventType WHEN 75 THEN n.text "
		       "ELSE d.text||':'||n.text END||' '||n.start||' '||coalesce(n.end,'-')||' "
		       "'||coalesce(n.rangeId,'-')||' '||coalesce(n.color,'-')||' "
		       "'||coalesce(n.category,'-')||' '||coalesce(n.uint64Value,'-')||' "
		       "'||coalesce(n.doubleValue,'-')||' '||coalesce(n.int32Value,'-')) FROM "
		       "NVTX_EVENTS n CROSS JOIN NVTX_EVENTS d ON d.eventType=75 AND "
		       "d.domainId=n.domainId"));
	CHECK_TEXT("1677721701", ask("SELECT group_concat(DISTINCT globalTid) FROM NVTX_EVENTS"));
	/* some queries read `text`, others `textId` */
	CHECK_TEXT("4|4", ask("SELECT count(*)||'|'||sum(n.text=t.value) FROM NVTX_EVENTS n JOIN "
			      "StringIds t ON t.id=n.textId"));
	CHECK_TEXT("ok", ask("PRAGMA integrity_check"));
}

/* Tables without rows are there when they are asked for, and take rows as they do otherwise. */
static void all_tables(void)
{
#define COUNT_OF(names) \
	"SELECT count(*) FROM sqlite_master WHERE type='table' AND name IN (" names ")"
#define NO_ROWS \
	"'OSRT_API','CUDA_GRAPH_EVENTS','CUDA_GRAPH_NODE_EVENTS','CUPTI_ACTIVITY_KIND_CUDA_EVENT'"
	CHECK_TEXT("0", ask(COUNT_OF(NO_ROWS)));
	write_with(file(), true);
	CHECK_TEXT("4", ask(COUNT_OF(NO_ROWS)));
	CHECK_TEXT("4", ask(COUNT_OF("'NVTX_EVENTS','CUDA_CALLCHAINS','CUDA_UM_CPU_PAGE_FAULT_"
				     "EVENTS','CUDA_UM_GPU_PAGE_FAULT_EVENTS'")));
	CHECK_TEXT("0", ask("SELECT count(nestingLevel) FROM OSRT_API"));
	CHECK_TEXT("2", ask("SELECT count(*) FROM NVTX_EVENTS"));
	CHECK_TEXT("ok", ask("PRAGMA integrity_check"));
}

/* Each text has one id, whatever bytes it is made of; what is no UTF-8 does not get into the
 * database. */
static void strings(void)
{
	static const char *const texts[] = { "a", "", "a\xff", "a\xef\xbf\xbd",
					     "longer than eight bytes" };
	static char large[70000];
	struct nsys_db d = { 0 };
	struct nsys_strings *s;
	int64_t ids[5], big;

	CHECK(!sqlite3_open(":memory:", &d.db) && !nsys_schema(&d, false));
	s = nsys_strings_open(&d);
	memset(large, 'x', sizeof(large));
	for (int i = 0; i < 5; i++)
		ids[i] = nsys_string(s, texts[i], strlen(texts[i]));
	big = nsys_string(s, large, sizeof(large));
	for (int i = 0; i < 5; i++)
		CHECK(nsys_string(s, texts[i], strlen(texts[i])) == ids[i]);
	CHECK_EQ(ids[3], ids[2]);
	CHECK(ids[0] != ids[1]);
	CHECK(ids[1] != ids[4]);
	CHECK(nsys_string(s, large, sizeof(large)) == big &&
	      nsys_string(s, large, sizeof(large) - 1) == big + 1);
	/* more than the cache holds */
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 20000; i++) {
			char text[32];
			int n = snprintf(text, sizeof(text), "name %d", i);

			if (nsys_string(s, text, (size_t)n) != big + 2 + i) {
				CHECK(!"an id for each text");
				break;
			}
		}
	}
	nsys_strings_close(s);
	for (int t = 0; t < NSYS_TABLES; t++)
		sqlite3_finalize(d.insert[t]);
	CHECK(!d.error && !sqlite3_close(d.db));
}

/* CUPTI tells of a stream when it is used and when it is made, in either order: it is one stream. */
static void streams(void)
{
	struct sink_opts opts = { .path = file(), .version = "test" };
	struct sink_end end = the_end();
	struct made_device m;
	struct play p;

	play_begin(&p, &sink_nsys, &opts);
	play_process(&p, CT_PROCESS, 100, "train");
	play_process(&p, CT_PROCESS, 200, "other");
	for (uint32_t flags = 0; flags < 2; flags++)
		for (uint32_t pid = 100; pid <= 200; pid += 100)
			for (uint32_t context = 1; context < 3; context++) {
				make_stream(&m, pid, 7, context, 0, flags, PLAY_START);
				play_give(&p, (struct event){ .rec = &m.h });
			}
	make_stream(&m, 100, 7, 1, 0, 0, PLAY_START);
	play_give(&p, (struct event){ .rec = &m.h });
	play_quiet(true);
	CHECK(!play_end(&p, &end));
	play_quiet(false);
	CHECK_TEXT("100|1|7|1,100|2|7|1,200|1|7|1,200|2|7|1",
		   ask("SELECT group_concat(processId||'|'||contextId||'|'||streamId||'|'||flag) "
		       "FROM TARGET_INFO_CUDA_STREAM"));
}

static void names(void)
{
	static const struct {
		const char *full, *base;
	} kernels[] = {
		{ "vecAdd(float const*, int)", "vecAdd" },
		{ "void at::native::vectorized_elementwise_kernel<4, at::native::F<float>, "
		  "std::array<char*, 2ul> >(int, F)",
		  "vectorized_elementwise_kernel" },
		{ "void (anonymous namespace)::reduce<int>(int*)", "reduce" },
		{ "ns::C<int (*)(char)>::run(float*) const", "run" },
		{ "k(int) [clone .constprop.0]", "k" },
		{ "plain_c_name", "plain_c_name" },
		{ "bool C::operator()(int)", "bool C::operator()(int)" },
		{ "unclosed<(", "unclosed" },
		{ "", "" },
		{ "::", "::" },
		{ "(", "(" },
		{ ") > ] }", "}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(kernels); i++) {
		const char *from;
		char got[128];
		size_t n = nsys_base_name(kernels[i].full, &from);

		snprintf(got, sizeof(got), "%.*s", (int)n, from);
		CHECK_TEXT(kernels[i].base, got);
	}
	CHECK_TEXT("cudaGetDeviceProperties_v12000",
		   nsys_api_name(api_next("cudaGetDeviceProperties_v2", -1), false));
	CHECK_TEXT("cudaMemcpy_ptds_v7000", nsys_api_name(api_next("cudaMemcpy", -1), true));
	CHECK_TEXT("cudaMalloc_v3020", nsys_api_name(api_next("cudaMalloc", -1), true));
	CHECK_TEXT("cuMemAlloc_v2", nsys_api_name(api_next("cuMemAlloc_v2", -1), false));
	/* of a function whose signature changed, each row its own */
	CHECK_TEXT("cudaGraphInstantiate_v10000",
		   nsys_api_name(api_next("cudaGraphInstantiate", -1), false));
	CHECK_TEXT("cudaGraphInstantiate_v12000",
		   nsys_api_name(api_next("cudaGraphInstantiate",
					  api_next("cudaGraphInstantiate", -1)),
				 false));
	for (int i = 0; i < api_nfuncs; i++)
		CHECK(!strncmp(nsys_api_name(i, false), api_funcs[i].name, 4));
}

static int left_over(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "ls %s.*.tmp > /dev/null 2>&1", file());
	return !system(cmd);
}

/* What stood there is replaced when all is written, and stays when it cannot be. */
static void files(void)
{
	struct sink_opts opts = { .path = file(), .version = "test" };
	struct sink s = { .ops = &sink_nsys };
	struct sink_end end = the_end();
	struct stat before, after;
	char link[80];
	FILE *f;

	CHECK(!stat(file(), &before));
	CHECK(!sink_nsys.open(&s, &opts));
	CHECK(!stat(file(), &after) && before.st_ino == after.st_ino);
	CHECK(!sink_nsys.close(&s, &end));
	CHECK(!stat(file(), &after));
	CHECK(before.st_ino != after.st_ino);
	CHECK_EQ((before.st_mode & 0777), (after.st_mode & 0777));
	CHECK(!left_over());
	/* a link is followed */
	snprintf(link, sizeof(link), "%s.link", file());
	CHECK(!symlink(file(), link));
	opts.path = link;
	CHECK(!sink_nsys.open(&s, &opts) && !sink_nsys.close(&s, &end));
	CHECK(!lstat(link, &after));
	CHECK(S_ISLNK(after.st_mode));
	CHECK(!left_over());
	unlink(link);
	/* nothing but a file can be replaced */
	play_quiet(true);
	opts.path = "/dev/null";
	CHECK_EQ(-EINVAL, sink_nsys.open(&s, &opts));
	CHECK(!stat("/dev/null", &after));
	CHECK(S_ISCHR(after.st_mode));
	opts.path = NULL;
	CHECK(sink_nsys.open(&s, &opts) == -EINVAL);
	opts.path = "/proc/nonexistent/file";
	CHECK(sink_nsys.open(&s, &opts) == -EINVAL);
	/* a full disk: what stood there stays */
	f = fopen(file(), "we");
	if (CHECK(f)) {
		CHECK(fputs("mine", f) >= 0);
		CHECK(!fclose(f));
	}
	opts.path = file();
	CHECK(!sink_nsys.open(&s, &opts));
	nsys_fail(&((struct nsys *)s.priv)->d, SQLITE_FULL);
	CHECK(sink_nsys.close(&s, &end) == -ENOSPC && !left_over());
	CHECK(!stat(file(), &after) && after.st_size == 4);
	play_quiet(false);
}

/* Records that passed the check, with every field that may be anything set at random. */
static void rubbish(void)
{
	struct sink_opts opts = { .path = file(), .version = "test" };
	struct sink_end end = the_end();
	struct play p;
	unsigned int seed = 1;

	play_begin(&p, &sink_nsys, &opts);
	for (int i = 0; i < 20000; i++)
		play_rubbish(&p, &seed);
	CHECK(p.given > 1000);
	play_quiet(true);
	CHECK(!play_end(&p, &end));
	play_quiet(false);
	CHECK_TEXT("ok", ask("PRAGMA integrity_check"));
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		write_to(argv[1]);
		return unit_end();
	}
	RUN(rows);
	RUN(devices);
	RUN(all_tables);
	RUN(strings);
	RUN(names);
	RUN(streams);
	RUN(files);
	RUN(scopes);
	RUN(rubbish);
	unlink(file());
	return unit_end();
}
