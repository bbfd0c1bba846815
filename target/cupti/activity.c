/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * activity.c - calls CUPTI's activity functions: the old ones, which have one subscriber, or, if
 * CUPTI is shared with another profiler (from 13.3 on), the functions that name the subscriber.
 * Knows no record.
 */
#include "agent_state.h"
#include "watch_cupti.h"

static activity_request request;
static activity_complete complete;

bool activity_can_share(void)
{
	const struct cupti *c = &agent.cupti;

	return !(agent.faults & FAULT_ALONE) && c->cuptiSubscribe_v2 && c->cuptiActivityEnable_v2 &&
	       c->cuptiActivityEnableAndDump_v2 && c->cuptiActivityDisable_v2 &&
	       c->cuptiActivityRegisterCallbacks_v2 && c->cuptiActivitySetAttribute_v2 &&
	       c->cuptiActivityGetNextRecord_v2 && c->cuptiActivityGetNumDroppedRecords_v2 &&
	       c->cuptiGetTimestamp_v2 && c->cuptiActivityEnableRuntimeApi_v2 &&
	       c->cuptiActivityEnableDriverApi_v2;
}

static void request_alone(uint8_t **buffer, size_t *size, size_t *max_records)
{
	request(buffer, size, max_records);
}

static void request_shared(uint8_t **buffer, size_t *size, size_t *max_records, void *info)
{
	(void)info;
	request(buffer, size, max_records);
}

static void complete_alone(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			   size_t valid)
{
	complete(context, stream, buffer, size, valid);
}

static void complete_shared(uint8_t *buffer, size_t size, size_t valid, void *info)
{
	(void)info;
	complete(NULL, 0, buffer, size, valid);
}

int activity_callbacks(activity_request req, activity_complete com)
{
	request = req;
	complete = com;
	if (agent.shared)
		return agent.cupti.cuptiActivityRegisterCallbacks_v2(
			agent.subscriber, request_shared, complete_shared);
	return agent.cupti.cuptiActivityRegisterCallbacks(request_alone, complete_alone);
}

int activity_registered(void)
{
	return watch_registered((const void *)request_alone, (const void *)complete_alone);
}

int activity_enable(int kind, bool dump)
{
	const struct cupti *c = &agent.cupti;

	if (agent.shared)
		return (dump ? c->cuptiActivityEnableAndDump_v2
			     : c->cuptiActivityEnable_v2)(agent.subscriber, kind, NULL);
	return dump && c->cuptiActivityEnableAndDump ? c->cuptiActivityEnableAndDump(kind)
						     : c->cuptiActivityEnable(kind);
}

int activity_disable(int kind)
{
	return agent.shared ? agent.cupti.cuptiActivityDisable_v2(agent.subscriber, kind, NULL)
			    : agent.cupti.cuptiActivityDisable(kind);
}

int activity_api(int domain, uint32_t id, bool on)
{
	const struct cupti *c = &agent.cupti;
	bool driver = domain == AGENT_DRIVER;

	if (agent.shared)
		return (driver ? c->cuptiActivityEnableDriverApi_v2
			       : c->cuptiActivityEnableRuntimeApi_v2)(agent.subscriber, id, on);
	return (driver ? c->cuptiActivityEnableDriverApi : c->cuptiActivityEnableRuntimeApi)(id,
											     on);
}

bool activity_next(uint8_t *buffer, size_t valid, void **record)
{
	int r = agent.shared ? agent.cupti.cuptiActivityGetNextRecord_v2(agent.subscriber, buffer,
									 valid, record)
			     : agent.cupti.cuptiActivityGetNextRecord(buffer, valid, record);

	/* its word for the end */
	if (r != CUPTI_MAX_LIMIT_REACHED)
		refused(REFUSED_RECORDS, r);
	return !r;
}

size_t activity_dropped(void *context, uint32_t stream)
{
	size_t n = 0;
	int err = agent.shared
			  ? agent.cupti.cuptiActivityGetNumDroppedRecords_v2(agent.subscriber,
									     context, stream, &n)
			  : agent.cupti.cuptiActivityGetNumDroppedRecords(context, stream, &n);

	return refused(REFUSED_DROPPED, err) ? 0 : n;
}

int activity_system_tids(void)
{
	int type = CUPTI_THREAD_ID_SYSTEM;
	size_t size = sizeof(type);

	return agent.shared ? agent.cupti.cuptiActivitySetAttribute_v2(
				      agent.subscriber, CUPTI_ATTR_THREAD_ID_TYPE, &size, &type)
			    : agent.cupti.cuptiSetThreadIdType(type);
}

int activity_time(uint64_t *ns)
{
	return agent.shared ? agent.cupti.cuptiGetTimestamp_v2(agent.subscriber, ns)
			    : agent.cupti.cuptiGetTimestamp(ns);
}
