/* SPDX-License-Identifier: BSD-2-Clause */
/* work_text.c - see work_text.h. The words are Kineto's if it has one for the case, because
 * programs that read its traces depend on them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "work_text.h"

#define METRICS_MAX 4096

const char *work_kernel(const struct sink_opts *o, const struct kernel_name *k)
{
	if (!k)
		return "kernel";
	return o->look.mangled ? k->mangled : o->look.full_names ? k->full : k->brief;
}

/* enum ct_memory_kind */
const char *work_memory_kind(uint8_t memory)
{
	static const char *const names[] = { "Unknown",	      "Pageable",      "Pinned",
					     "Device",	      "Array",	       "Managed",
					     "Device Static", "Managed Static" };

	return memory < ARRAY_LEN(names) ? names[memory] : "Unknown";
}

const char *work_copy_kind(uint8_t kind)
{
	static const char *const names[] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					     "AtoD",	"DtoA", "DtoD", "HtoH", "PtoP" };

	return kind < ARRAY_LEN(names) ? names[kind] : "Unknown";
}

const char *work_sync_type(uint32_t type)
{
	static const char *const names[] = { "Unknown", "Event Sync", "Stream Wait Event",
					     "Stream Sync", "Context Sync" };

	return type < ARRAY_LEN(names) ? names[type] : "Unknown";
}

/* CUpti_ActivityOverheadKind */
static const char *overhead_name(uint32_t type)
{
	switch (type) {
	case 1: /* CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER */ return "Driver Compiler";
	case 1 << 16: /* CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH */ return "Buffer Flush";
	case 2 << 16: /* CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION */ return "Instrumentation";
	case 3 << 16: /* CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE */ return "Resource";
	case 4 << 16: /* CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING */
		return "Runtime Triggered Module Loading";
	case 5 << 16: /* CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING */
		return "Lazy Function Loading";
	case 6 << 16: /* CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL */
		return "Command Buffer Full";
	case 7 << 16: /* CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST */
		return "Activity Buffer Request";
	default: return "Overhead";
	}
}

/* CUpti_ActivityUnifiedMemoryCounterKind */
static const char *managed_name(uint32_t kind)
{
	static const char *const names[] = { "Managed memory", "Bytes HtoD",	 "Bytes DtoH",
					     "CPU page fault", "GPU page fault", "Thrashing",
					     "Throttling",     "Remote map",	 "Bytes DtoD" };

	return kind < ARRAY_LEN(names) ? names[kind] : names[0];
}

const char *work_event(uint32_t type)
{
	static const char *const names[] = {
		"event", "XID", "ECC error", "clocks changed", "device records end", "undecided"
	};

	return type < ARRAY_LEN(names) ? names[type] : names[0];
}

const char *work_text(const struct ct_hdr *h, char buf[WORK_TEXT_MAX])
{
	const struct ct_copy *c = (const struct ct_copy *)h;

	switch (h->kind) {
	case CT_KERNEL: return "kernel";
	case CT_COPY:
		snprintf(buf, WORK_TEXT_MAX, "Memcpy %s (%s -> %s)", work_copy_kind(c->kind),
			 work_memory_kind(c->src), work_memory_kind(c->dst));
		return buf;
	case CT_SET:
		snprintf(buf, WORK_TEXT_MAX, "Memset (%s)",
			 work_memory_kind(((const struct ct_set *)h)->memory));
		return buf;
	case CT_SYNC: return work_sync_type(((const struct ct_sync *)h)->type);
	case CT_GRAPH:
		snprintf(buf, WORK_TEXT_MAX, "graph %u", ((const struct ct_work *)h)->graph);
		return buf;
	case CT_OVERHEAD: return overhead_name(((const struct ct_overhead *)h)->type);
	case CT_MEMORY:
		return ((const struct ct_memory *)h)->op == CT_MEMORY_FREE ? "free" : "allocate";
	case CT_MANAGED: return managed_name(((const struct ct_managed *)h)->kind);
	case CT_EVENT: return work_event(((const struct ct_event *)h)->type);
	default: return NULL;
	}
}

/* ---- metrics ---- */

struct work_metrics {
	struct work_metric *metrics;
	uint32_t n;
};

struct work_metrics *work_metrics_open(void)
{
	return calloc(1, sizeof(struct work_metrics));
}

void work_metrics_close(struct work_metrics *t)
{
	if (!t)
		return;
	free(t->metrics);
	free(t);
}

static void copy_text(char *to, size_t size, const char *s, size_t n)
{
	if (n >= size)
		n = size - 1;
	memcpy(to, s, n);
	to[n] = '\0';
}

void work_metrics_record(struct work_metrics *t, const struct ct_metric *m)
{
	struct work_metric *metrics;

	if (m->id >= METRICS_MAX)
		return;
	if (m->id >= t->n) {
		metrics = realloc(t->metrics, (m->id + 1) * sizeof(*metrics));
		if (!metrics)
			return;
		memset(metrics + t->n, 0, (m->id + 1 - t->n) * sizeof(*metrics));
		t->metrics = metrics;
		t->n = m->id + 1;
	}
	copy_text(t->metrics[m->id].name, sizeof(t->metrics->name), m->text, m->name_len);
	copy_text(t->metrics[m->id].unit, sizeof(t->metrics->unit), m->text + m->name_len,
		  m->unit_len);
	t->metrics[m->id].known = true;
}

const struct work_metric *work_metrics_find(const struct work_metrics *t, uint32_t id)
{
	return id < t->n && t->metrics[id].known ? &t->metrics[id] : NULL;
}
