/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults.h - the known faults of CUPTI's versions, by cuptiGetVersion(). They decide which of
 * CUPTI's functions the agent may call, and how. From NVIDIA's release notes unless another source
 * is named. To add one: a bit, a row.
 */
#ifndef CT_FAULTS_H
#define CT_FAULTS_H

#include <stdint.h>

/* Numbers of cuptiGetVersion(): one for each release up to 12.9, from 13.0 on major * 10000 +
 * minor * 100 + update. */
#define CUPTI_11_8 18
#define CUPTI_12_0 19
#define CUPTI_12_2 20
#define CUPTI_12_5 23
#define CUPTI_12_6 24
#define CUPTI_12_8 26
#define CUPTI_12_9 27
#define CUPTI_13_0 130000
#define CUPTI_13_0_U1 130001
#define CUPTI_13_1 130100
#define CUPTI_13_1_U1 130101
#define CUPTI_13_3 130300

enum fault {
	/* cuptiFinalize crashes with graphs (until 12.4U1), so it is not called */
	FAULT_FINALIZE = 1 << 0,
	FAULT_API = 1 << 1,   /* no selective API records: callbacks give correlation ids */
	FAULT_CLOCK = 1 << 2, /* kernels' times may be zero while a clock is registered */
	/* correlation of graph launches is wrong from the second attach on */
	FAULT_GRAPH_IDS = 1 << 3,
	/* disabling kernel records can deadlock with the program: cuptiFinalize does it instead */
	FAULT_DISABLE = 1 << 4,
	FAULT_NULL_BUFFER = 1 << 5, /* an answer without a buffer crashes */
	/* one subscriber at a time (13.2 has a part of what sharing needs, as a beta) */
	FAULT_ALONE = 1 << 6,
};

static const struct {
	uint32_t from, until; /* first version with it, first without; until 0: none is known */
	uint32_t fault;
} faults[] = {
	{ 0, CUPTI_12_5, FAULT_FINALIZE },	 { 0, CUPTI_12_5, FAULT_API },
	{ CUPTI_12_6, CUPTI_13_1, FAULT_CLOCK }, /* from 12.6U2, which has no number of its own */
	{ 0, CUPTI_13_1_U1, FAULT_GRAPH_IDS },	 { 0, CUPTI_13_0_U1, FAULT_DISABLE },
	{ 0, CUPTI_12_9, FAULT_NULL_BUFFER },	 { 0, CUPTI_13_3, FAULT_ALONE },
};

static inline uint32_t faults_of(uint32_t version)
{
	uint32_t found = 0;

	for (unsigned int i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (version >= faults[i].from && (!faults[i].until || version < faults[i].until))
			found |= faults[i].fault;
	return found;
}

/* The major version of CUDA that a CUPTI belongs to. */
static inline uint32_t cupti_major(uint32_t version)
{
	return version >= CUPTI_13_0   ? version / 10000
	       : version >= CUPTI_12_0 ? 12
	       : version >= 13	       ? 11
				       : 10;
}

#endif
