/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_metrics.c - the metrics that cudatrace has names for: what each is called by CUPTI,
 * GPM and NVML. To add one is to add a row. Which of CUPTI's names a chip has differs, so a row
 * lists several; offline, `cudatrace counters --metrics help --chip NAME` says what a chip has.
 */
#include <pthread.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>

#include "helper.h"

#define PM(...)                   \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}
#define ELAPSED ".avg.pct_of_peak_sustained_elapsed"
#define MIB 1048576.0

const struct metric_row metric_rows[] = {
	{ "gpu", "%", "time with any work on the graphics and compute engine",
	  PM("gr__cycles_active" ELAPSED), 0, 1, 1, NVML_GPU },
	{ "sm", "%", "time that multiprocessors had a warp, their average",
	  PM("sm__cycles_active" ELAPSED), 0, 2, 1, 0 },
	{ "occupancy", "%", "warps resident, of all that the multiprocessors can hold",
	  PM("TPC.TriageCompute.tpc__warps_active_realtime" ELAPSED,
	     "TriageAC.tpc__warps_active_realtime" ELAPSED,
	     "TPC.TriageA.tpc__warps_active_realtime" ELAPSED, "tpc__warps_active_realtime" ELAPSED,
	     "sm__warps_active_realtime" ELAPSED),
	  0, 3, 1, 0 },
	{ "tensor", "%", "time that tensor cores were busy",
	  PM("TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime" ELAPSED,
	     "sm__pipe_tensor_cycles_active_realtime" ELAPSED,
	     "sm__pipe_tensor_cycles_active" ELAPSED),
	  0, 5, 1, 0 },
	{ "dram", "%", "device memory bandwidth, of the most that it can",
	  PM("dram__throughput" ELAPSED), 0, 10, 1, 0 },
	{ "dram_read", "B/s", "read from device memory",
	  PM("dram__bytes_read.sum", "dram__bytes_op_read.sum"), SCALE_PER_SECOND, 0, 0, 0 },
	{ "dram_write", "B/s", "written to device memory",
	  PM("dram__bytes_write.sum", "dram__bytes_op_write.sum"), SCALE_PER_SECOND, 0, 0, 0 },
	{ "l2_hit", "%", "sectors found in the L2 cache, of those looked up",
	  PM("LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.pct",
	     "LTS.TriageAC.lts__average_t_sector_hit_rate_realtime.pct",
	     "lts__average_t_sector_hit_rate_realtime.pct", "lts__t_sector_hit_rate.pct"),
	  0, 0, 0, 0 },
	{ "pcie_rx", "B/s", "over PCIe to the GPU",
	  PM("pcie__read_bytes.sum", "PCI.TriageCompute.pcie__read_bytes.sum"), SCALE_PER_SECOND,
	  21, MIB, NVML_PCIE_RX },
	{ "pcie_tx", "B/s", "over PCIe from the GPU",
	  PM("pcie__write_bytes.sum", "PCI.TriageCompute.pcie__write_bytes.sum"), SCALE_PER_SECOND,
	  20, MIB, NVML_PCIE_TX },
	{ "nvlink_rx", "B/s", "over NVLink to the GPU", PM("nvlrx__bytes.sum"), SCALE_PER_SECOND,
	  60, MIB, 0 },
	{ "nvlink_tx", "B/s", "over NVLink from the GPU", PM("nvltx__bytes.sum"), SCALE_PER_SECOND,
	  61, MIB, 0 },
	{ "power", "W", "drawn by the board", NULL, 0, 0, 0, NVML_POWER },
	{ "sm_clock", "MHz", "clock of the multiprocessors", NULL, 0, 0, 0, NVML_SM_CLOCK },
	{ "mem_clock", "MHz", "clock of the memory", NULL, 0, 0, 0, NVML_MEM_CLOCK },
	{ "temp", "C", "temperature of the GPU", NULL, 0, 0, 0, NVML_TEMPERATURE },
	{ "mem_used", "B", "device memory taken", NULL, 0, 0, 0, NVML_MEM_USED },
	{ "throttle", "reasons", "why the clocks are not higher: a bitmap, as NVML has it", NULL, 0,
	  0, 0, NVML_REASONS },
	/* not among the usual ones */
	{ "sm_throughput", "%", "of the multiprocessors' busiest unit, of the most that it can",
	  PM("TriageCompute.sm__throughput" ELAPSED, "TriageAC.sm__throughput" ELAPSED,
	     "SM.TriageA.sm__throughput" ELAPSED, "sm__throughput" ELAPSED),
	  0, 0, 0, 0 },
	{ "integer", "%", "time that integer units were busy", NULL, 0, 4, 1, 0 },
	{ "fp64", "%", "time that double precision units were busy", NULL, 0, 11, 1, 0 },
	{ "fp32", "%", "time that single precision units were busy", NULL, 0, 12, 1, 0 },
	{ "fp16", "%", "time that half precision units were busy", NULL, 0, 13, 1, 0 },
	{ "mem_process", "B",
	  "device memory taken, of each process: for recordings and 'cudatrace mem'", NULL, 0, 0, 0,
	  NVML_MEM_PROCESS },
	{ "mem_busy", "%", "time that device memory was read or written, as NVML samples it", NULL,
	  0, 0, 0, NVML_MEMORY_BUSY },
};
const int metric_nrows = ARRAY_LEN(metric_rows);
#define USUAL 18 /* the first rows */

struct wanted wanted[COUNTERS_METRICS];
int nwanted;

static bool want(const struct metric_row *row, const char *name, bool asked)
{
	for (int i = 0; i < nwanted; i++)
		if (!strcmp(wanted[i].name, name)) {
			wanted[i].asked |= asked;
			return true;
		}
	if (nwanted == COUNTERS_METRICS) {
		send_text(COUNTERS_ERROR, "--metrics: more than %d metrics at once",
			  COUNTERS_METRICS);
		return false;
	}
	wanted[nwanted++] = (struct wanted){ row, name, asked };
	return true;
}

static bool want_usual(void)
{
	for (int i = 0; i < USUAL; i++)
		if (!want(&metric_rows[i], metric_rows[i].name, false))
			return false;
	return true;
}

static bool want_word(const char *word)
{
	if (!strcmp(word, "default"))
		return want_usual();
	for (int i = 0; i < metric_nrows; i++)
		if (!strcmp(metric_rows[i].name, word))
			return want(&metric_rows[i], metric_rows[i].name, true);
	/* CUPTI's own names have two underscores between unit and counter, and a roll-up behind
	 * a point. */
	if (strstr(word, "__"))
		return want(NULL, word, true);
	send_text(COUNTERS_ERROR,
		  "--metrics: there is no metric '%s'; 'cudatrace counters --metrics help' lists "
		  "them",
		  word);
	return false;
}

bool metrics_parse(const char *list)
{
	static char *copy; /* kept: the names point into it */
	char *at;

	if (!*list)
		return want_usual();
	copy = strdup(list);
	at = copy;
	while (at && *at) {
		char *end = strchr(at, ',');

		if (end)
			*end = '\0';
		if (*at && !want_word(at))
			return false;
		at = end ? end + 1 : NULL;
	}
	if (!nwanted)
		send_text(COUNTERS_ERROR, "--metrics: an empty list");
	return nwanted != 0;
}

/* ---- numbers of metrics ---- */

static struct known {
	const char *name;
	enum ct_metric_source source;
} known[COUNTERS_METRICS * 3];
static uint32_t nknown;

/* Only the thread that samples comes here. */
uint32_t metric_id(const char *name, const char *unit, enum ct_metric_source source)
{
	union {
		struct ct_metric m;
		char room[sizeof(struct ct_metric) + 512];
	} r;
	size_t name_len = strnlen(name, 400), unit_len = strnlen(unit, 64);

	for (uint32_t i = 0; i < nknown; i++)
		if (known[i].source == source && !strcmp(known[i].name, name))
			return i + 1;
	if (nknown == ARRAY_LEN(known))
		return 0;
	known[nknown++] = (struct known){ name, source };
	memset(&r, 0, sizeof(r));
	r.m.h.kind = CT_METRIC;
	r.m.h.size = (__u16)((sizeof(r.m) + name_len + unit_len + 7) & ~(size_t)7);
	r.m.h.start_ns = r.m.h.end_ns = clock_ns(CLOCK_MONOTONIC);
	r.m.id = nknown;
	r.m.name_len = (__u16)name_len;
	r.m.unit_len = (__u16)unit_len;
	r.m.source = source;
	memcpy(r.m.text, name, name_len);
	memcpy(r.m.text + name_len, unit, unit_len);
	send_definition(&r.m);
	return nknown;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

const char *metric_unit(const char *pm_name, const char *dimension, char *buf, size_t size)
{
	const char *unit = "";

	if (strstr(pm_name, ".pct"))
		return "%";
	if (ends_with(pm_name, ".ratio"))
		return "";
	if (dimension)
		unit = !strcmp(dimension, "byte")      ? "B"
		       : !strcmp(dimension, "percent") ? "%"
						       : dimension;
	if (strstr(pm_name, ".per_second"))
		snprintf(buf, size, "%s/s", unit);
	else if (strstr(pm_name, ".per_cycle"))
		snprintf(buf, size, "%s/cycle", unit);
	else
		snprintf(buf, size, "%s", unit);
	return buf;
}

/* A little over 100 % comes of clocks that are not read at one instant. */
uint32_t metric_doubt(const char *unit, double value, double most)
{
	if (value < 0 || (!strcmp(unit, "%") && value > 100.5) || (most > 0 && value > most * 1.05))
		return CT_VALUE_SUSPECT;
	return 0;
}
