/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nsys_schema.c - the tables of an nsys export (schema 3.24.14), the rows of the enums, and the
 * writing of rows with prepared statements.
 *
 * Both the columns that only newer readers know and those that only older readers know are written.
 * As in nsys's own exports, there are no indexes. Knows no event.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../util/msg.h"
#include "nsys.h"
#include "../../util/text.h"

#define DEVICE_WORK                                                                            \
	"start I!,end I!,deviceId I!,contextId I!,greenContextId I,streamId I!,correlationId " \
	"I,globalPid I"

/* I: INTEGER, T: TEXT, !: NOT NULL, *: the primary key. A lazy table is made with its first row. */
/* clang-format off */
static const struct {
	const char *name, *columns;
	bool lazy;
} tables[NSYS_TABLES] = {
	[NSYS_STRINGS] = { "StringIds", "id I*,value T!" },
	[NSYS_THREADS] = { "ThreadNames", "nameId I!,priority I,globalTid I" },
	[NSYS_PROCESSES] = { "PROCESSES", "globalPid I,pid I,name T,shownPid I,host T,bootId T,rank I,hostPid I" },
	[NSYS_DETAILS] = { "ANALYSIS_DETAILS", "globalVid I!,duration I!,startTime I!,stopTime I!" },
	[NSYS_START_TIME] = { "TARGET_INFO_SESSION_START_TIME", "utcEpochNs I,utcTime T,localTime T,systemClockNs I" },
	[NSYS_GPU] = { "TARGET_INFO_GPU",
		       "vmId I!,id I!,name T,busLocation T,isDiscrete I,l2CacheSize I,totalMemory I,memoryBandwidth I,"
		       "clockRate I,smCount I,pwGpuId I,uuid T,luid I,chipName T,cuDevice I,ctxswDevPath T,ctrlDevPath T,"
		       "revision I,nodeMask I,constantMemory I,maxIPC I,maxRegistersPerBlock I,maxShmemPerBlock I,"
		       "maxShmemPerBlockOptin I,maxShmemPerSm I,maxRegistersPerSm I,threadsPerWarp I,asyncEngines I,"
		       "maxWarpsPerSm I,maxBlocksPerSm I,maxThreadsPerBlock I,maxBlockDimX I,maxBlockDimY I,maxBlockDimZ I,"
		       "maxGridDimX I,maxGridDimY I,maxGridDimZ I,computeMajor I,computeMinor I,smMajor I,smMinor I" },
	[NSYS_DEVICE] = { "TARGET_INFO_CUDA_DEVICE", "gpuId I!,cudaId I!,pid I!,uuid T,numMultiprocessors I,ordinal I" },
	[NSYS_CONTEXT] = { "TARGET_INFO_CUDA_CONTEXT_INFO",
			   "nullStreamId I!,hwId I!,vmId I!,processId I!,deviceId I!,contextId I!,parentContextId I,"
			   "isGreenContext I,numMultiprocessors I" },
	[NSYS_STREAM] = { "TARGET_INFO_CUDA_STREAM",
			  "streamId I!,hwId I!,vmId I!,processId I!,contextId I!,priority I!,flag I!" },
	[NSYS_ENV] = { "TARGET_INFO_SYSTEM_ENV", "globalVid I,devStateName T,name T,nameEnum I,value T" },
	[NSYS_CAPTURE] = { "META_DATA_CAPTURE", "name T!,value T" },
	[NSYS_EXPORT] = { "META_DATA_EXPORT", "name T!,value T" },
	[NSYS_DIAGNOSTIC] = { "DIAGNOSTIC_EVENT",
			      "timestamp I!,timestampType I!,source I!,severity I!,text T!,globalPid I" },
	[NSYS_RUNTIME] = { "CUPTI_ACTIVITY_KIND_RUNTIME",
			   "start I!,end I!,eventClass I!,globalTid I,correlationId I,nameId I!,returnValue I!,callchainId I" },
	[NSYS_KERNEL] = { "CUPTI_ACTIVITY_KIND_KERNEL",
			  DEVICE_WORK ",demangledName I!,shortName I!,mangledName I,launchType I,cacheConfig I,"
			  "registersPerThread I!,gridX I!,gridY I!,gridZ I!,blockX I!,blockY I!,blockZ I!,"
			  "staticSharedMemory I!,dynamicSharedMemory I!,localMemoryPerThread I!,localMemoryTotal I!,gridId I!,"
			  "sharedMemoryExecuted I,graphNodeId I,sharedMemoryLimitConfig I,qmdBulkReleaseDone I,"
			  "qmdPreexitDone I,qmdLastCtaDone I,graphId I,clusterX I,clusterY I,clusterZ I,"
			  "clusterSchedulingPolicy I,maxPotentialClusterSize I,maxActiveClusters I,"
			  "sharedMemoryRequestedPercentage I" },
	[NSYS_MEMCPY] = { "CUPTI_ACTIVITY_KIND_MEMCPY",
			  DEVICE_WORK ",bytes I!,copyKind I!,deprecatedSrcId I,srcKind I,dstKind I,srcDeviceId I,"
			  "srcContextId I,dstDeviceId I,dstContextId I,migrationCause I,graphNodeId I,virtualAddress I,"
			  "copyCount I" },
	[NSYS_MEMSET] = { "CUPTI_ACTIVITY_KIND_MEMSET", DEVICE_WORK ",value I!,bytes I!,graphNodeId I,memKind I" },
	[NSYS_SYNC] = { "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
			DEVICE_WORK ",deprecatedSyncType I,syncType I!,eventId I!,eventSyncId I" },
	[NSYS_GRAPH] = { "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", DEVICE_WORK ",graphId I!,graphExecId I" },
	[NSYS_OVERHEAD] = { "CUPTI_ACTIVITY_KIND_OVERHEAD",
			    "start I!,end I!,eventClass I,globalTid I,correlationId I,nameId I!,overheadType I!" },
	[NSYS_MEMORY] = { "CUDA_GPU_MEMORY_USAGE_EVENTS",
			  "start I!,globalPid I!,deviceId I!,contextId I!,address I!,pc I!,bytes I!,memKind I!,"
			  "memoryOperationType I!,name T,correlationId I,streamId I,localMemoryPoolAddress I,"
			  "localMemoryPoolReleaseThreshold I,localMemoryPoolSize I,localMemoryPoolUtilizedSize I,"
			  "importedMemoryPoolAddress I,importedMemoryPoolProcessId I" },
	[NSYS_CALLCHAINS] = { "CUDA_CALLCHAINS",
			      "id I!,symbol I,module I,unresolved I,originalIP I,stackDepth I!,PRIMARY KEY(id;stackDepth)", true },
	[NSYS_NVTX] = { "NVTX_EVENTS",
			"start I!,end I,eventType I!,rangeId I,category I,color I,text T,globalTid I,endGlobalTid I,textId I,"
			"domainId I,uint64Value I,int64Value I,doubleValue REAL,uint32Value I,int32Value I,floatValue REAL,"
			"jsonTextId I,jsonText T,binaryData T", true },
	[NSYS_CPU_FAULT] = { "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
			     "start I!,globalPid I!,address I!,originalFaultPc I,CpuInstruction I,module I,unresolvedFaultPc I",
			     true },
	[NSYS_GPU_FAULT] = { "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
			     "start I!,end I!,globalPid I!,deviceId I!,address I!,numberOfPageFaults I!,faultAccessType I", true },
	/* these never have rows: for events and graphs there is only the call */
	[NSYS_CUDA_EVENT] = { "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
			      "timestamp I,deviceId I!,contextId I!,streamId I!,correlationId I,globalPid I,eventId I!,eventSyncId I",
			      true },
	[NSYS_GRAPH_EVENTS] = { "CUDA_GRAPH_EVENTS",
				"start I!,end I,eventClass I!,globalTid I,nameId I!,graphId I,originalGraphId I,graphExecId I", true },
	[NSYS_GRAPH_NODES] = { "CUDA_GRAPH_NODE_EVENTS",
			       "start I!,end I,eventClass I!,globalTid I,nameId I!,graphNodeId I!,originalGraphNodeId I", true },
	[NSYS_OSRT] = { "OSRT_API",
			"start I!,end I!,eventClass I!,globalTid I,correlationId I,nameId I!,returnValue I!,nestingLevel I,"
			"callchainId I!", true },
};
/* clang-format on */

/* ---- the enums ---- */

static const char *const enums[] = {
	"ENUM_CUDA_MEMCPY_OPER",
	"0|CUDA_MEMCPY_KIND_UNKNOWN|Unknown",
	"1|CUDA_MEMCPY_KIND_HTOD|Host-to-Device",
	"2|CUDA_MEMCPY_KIND_DTOH|Device-to-Host",
	"3|CUDA_MEMCPY_KIND_HTOA|Host-to-Array",
	"4|CUDA_MEMCPY_KIND_ATOH|Array-to-Host",
	"5|CUDA_MEMCPY_KIND_ATOA|Array-to-Array",
	"6|CUDA_MEMCPY_KIND_ATOD|Array-to-Device",
	"7|CUDA_MEMCPY_KIND_DTOA|Device-to-Array",
	"8|CUDA_MEMCPY_KIND_DTOD|Device-to-Device",
	"9|CUDA_MEMCPY_KIND_HTOH|Host-to-Host",
	"10|CUDA_MEMCPY_KIND_PTOP|Peer-to-Peer",
	"11|CUDA_MEMCPY_KIND_UVM_HTOD|Unified Host-to-Device",
	"12|CUDA_MEMCPY_KIND_UVM_DTOH|Unified Device-to-Host",
	"13|CUDA_MEMCPY_KIND_UVM_DTOD|Unified Device-to-Device",
	"ENUM_CUDA_MEM_KIND",
	"0|CUDA_MEMOPR_MEMORY_KIND_PAGEABLE|Pageable",
	"1|CUDA_MEMOPR_MEMORY_KIND_PINNED|Pinned",
	"2|CUDA_MEMOPR_MEMORY_KIND_DEVICE|Device",
	"3|CUDA_MEMOPR_MEMORY_KIND_ARRAY|Array",
	"4|CUDA_MEMOPR_MEMORY_KIND_MANAGED|Managed",
	"5|CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC|Device Static",
	"6|CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC|Managed Static",
	"7|CUDA_MEMOPR_MEMORY_KIND_UNKNOWN|Unknown",
	"ENUM_CUPTI_SYNC_TYPE",
	"0|CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN|Unknown",
	"1|CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE|Event sync",
	"2|CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT|Stream wait event",
	"3|CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE|Stream sync",
	"4|CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE|Context sync",
	"ENUM_CUDA_DEV_MEM_EVENT_OPER",
	"0|CUDA_DEV_MEM_EVENT_OPR_ALLOCATION|Allocation",
	"1|CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION|Deallocation",
	"ENUM_CUDA_KERNEL_LAUNCH_TYPE",
	"0|CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN|Unknown",
	"1|CUDA_KERNEL_LAUNCH_TYPE_REGULAR|Regular",
	"2|CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE|Cooperative",
	"ENUM_CUPTI_OVERHEAD_TYPE",
	"1|CUPTI_ACTIVITY_OVERHEAD_UNKNOWN|Unknown",
	"2|CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER|JIT compilation",
	"3|CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH|Buffer flush",
	"4|CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION|Instrumentation",
	"5|CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE|Resource creation and destruction",
	"6|CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING|Module loading",
	"7|CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING|Lazy function loading",
	"8|CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL|Command buffer full",
	"9|CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST|Activity buffer request",
	"10|CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT|Unified memory activity setup",
	"ENUM_CUPTI_STREAM_TYPE",
	"0|CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN|Unknown",
	"1|CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT|Default",
	"2|CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING|Non-blocking",
	"3|CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL|Null",
	"ENUM_NSYS_EVENT_TYPE",
	"34|NvtxMark|NVTX mark",
	"59|NvtxPushPopRange|NVTX push/pop range",
	"60|NvtxStartEndRange|NVTX start/end range",
	"75|NvtxDomainCreate|NVTX domain create",
	"ENUM_DIAGNOSTIC_SEVERITY_LEVEL",
	"1|DIAGNOSTIC_SEVERITY_INFORMATION|Information",
	"2|DIAGNOSTIC_SEVERITY_WARNING|Warning",
	"3|DIAGNOSTIC_SEVERITY_ERROR|Error",
};

int nsys_fail(struct nsys_db *d, int rc)
{
	if (!d->error) {
		bool full = rc == SQLITE_FULL;

		d->error = rc == SQLITE_NOMEM ? -ENOMEM : full ? -ENOSPC : -EIO;
		msg_error("writing the nsys database failed: %s", rc == SQLITE_NOMEM ? "no memory"
								  : d->db ? sqlite3_errmsg(d->db)
									  : sqlite3_errstr(rc));
	}
	return d->error;
}

static int nsys_schema_run(struct nsys_db *d, const char *sql)
{
	int rc = sqlite3_exec(d->db, sql, NULL, NULL, NULL);

	return rc ? nsys_fail(d, rc) : 0;
}

static int create(struct nsys_db *d, enum nsys_table t)
{
	char sql[4096];
	size_t n = (size_t)snprintf(sql, sizeof(sql), "CREATE TABLE %s(", tables[t].name);

	for (const char *c = tables[t].columns; *c && n < sizeof(sql) - 32; c++) {
		const char *word = NULL;

		if (*c == ' ' && (c[1] == 'I' || c[1] == 'T') && strchr(",!*", c[2])) {
			word = c[1] == 'I' ? " INTEGER" : " TEXT";
			c++;
		} else if (*c == '!' || *c == '*') {
			word = *c == '!' ? " NOT NULL" : " NOT NULL PRIMARY KEY";
		}
		if (word)
			n += (size_t)snprintf(sql + n, sizeof(sql) - n, "%s", word);
		else
			sql[n++] = *c == ';' ? ',' : *c;
	}
	snprintf(sql + n, sizeof(sql) - n, ")");
	return nsys_schema_run(d, sql);
}

static int nsys_schema_prepare(struct nsys_db *d, enum nsys_table t)
{
	char sql[512];
	size_t n;
	int rc;

	if (tables[t].lazy && !d->all_tables && create(d, t))
		return d->error;
	n = (size_t)snprintf(sql, sizeof(sql), "INSERT %sINTO %s VALUES(?",
			     t == NSYS_CALLCHAINS ? "OR IGNORE " : "", tables[t].name);
	for (const char *c = tables[t].columns; (c = strchr(c, ',')); c++)
		if (strncmp(c, ",PRIMARY", 8))
			n += (size_t)snprintf(sql + n, sizeof(sql) - n, ",?");
	snprintf(sql + n, sizeof(sql) - n, ")");
	rc = sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &d->insert[t], NULL);
	return rc ? nsys_fail(d, rc) : 0;
}

int nsys_schema(struct nsys_db *d, bool all_tables)
{
	char sql[512], name[64] = "";

	d->all_tables = all_tables;
	for (int t = 0; t < NSYS_TABLES; t++)
		if ((all_tables || !tables[t].lazy) && create(d, (enum nsys_table)t))
			return d->error;
	for (size_t i = 0; i < ARRAY_LEN(enums); i++) {
		const char *bar = strchr(enums[i], '|'), *bar2 = bar ? strchr(bar + 1, '|') : NULL;

		if (!bar2) {
			snprintf(name, sizeof(name), "%s", enums[i]);
			snprintf(sql, sizeof(sql),
				 "CREATE TABLE %s(id INTEGER NOT NULL PRIMARY KEY,name TEXT,label "
				 "TEXT)",
				 name);
		} else {
			snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES(%.*s,'%.*s','%s')", name,
				 (int)(bar - enums[i]), enums[i], (int)(bar2 - bar - 1), bar + 1,
				 bar2 + 1);
		}
		if (nsys_schema_run(d, sql))
			return d->error;
	}
	return 0;
}

/* ---- rows ---- */

struct nsys_row nsys_begin(struct nsys_db *d, enum nsys_table t)
{
	struct nsys_row r = { .d = d };

	if (!d->error && (d->insert[t] || !nsys_schema_prepare(d, t)))
		r.stmt = d->insert[t];
	return r;
}

int nsys_end(struct nsys_row *r)
{
	int rc;

	if (!r->stmt)
		return r->d->error;
	rc = sqlite3_step(r->stmt);
	if (rc != SQLITE_DONE)
		nsys_fail(r->d, rc);
	sqlite3_reset(r->stmt);
	sqlite3_clear_bindings(r->stmt);
	return r->d->error ? r->d->error : 1;
}

void nsys_text(struct nsys_row *r, const char *s, size_t n)
{
	struct text clean = { 0 };

	r->at++;
	if (text_is_utf8(s, n)) {
		sqlite3_bind_text(r->stmt, r->at, s, (int)n, SQLITE_STATIC);
		return;
	}
	text_utf8(&clean, s, n);
	if (clean.bad)
		nsys_fail(r->d, SQLITE_NOMEM);
	else
		sqlite3_bind_text(r->stmt, r->at, clean.s, (int)clean.len, SQLITE_TRANSIENT);
	text_free(&clean);
}
