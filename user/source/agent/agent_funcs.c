/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_funcs.c - see agent_funcs.h.
 *
 * CUPTI numbers its callbacks anew in every version, so they go by their names. A driver
 * callback has the function's symbol as its name. A runtime callback's name is the symbol
 * followed by a version of CUDA. Where there are several, as cudaGraphInstantiate_v10000 and
 * _v12000, the later has the newest parameters and the others have those of their version; where
 * there is one its parameters are those of CUPTI's own CUDA, whatever it says
 * (cudaGraphExecUpdate_v10020 has the three of 12.0 there). tests/agent/params.py compares all
 * of that with CUDA's headers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../api/api.h"
#include "agent_funcs.h"

#define NAME_MAX_LEN 255

struct cupti_name {
	uint16_t cbid;
	uint8_t domain;
	char *name;
};
struct agent_funcs {
	struct cupti_name entries[AGENT_FUNCS_MAX];
	int n;
};

struct agent_funcs *agent_funcs_open(void)
{
	return calloc(1, sizeof(struct agent_funcs));
}

void agent_funcs_close(struct agent_funcs *f)
{
	if (!f)
		return;
	for (int i = 0; i < f->n; i++)
		free(f->entries[i].name);
	free(f);
}

int agent_funcs_names(struct agent_funcs *f, const void *msg, size_t n)
{
	struct agent_list l;
	size_t at = sizeof(l);

	memcpy(&l, msg, sizeof(l));
	for (uint32_t i = 0; i < l.n; i++) {
		const struct agent_name *e = agent_name_at(msg, n, &at);

		if (!e || f->n == AGENT_FUNCS_MAX ||
		    (e->domain != AGENT_DRIVER && e->domain != AGENT_RUNTIME))
			return -EBADMSG;
		f->entries[f->n].cbid = e->cbid;
		f->entries[f->n].domain = e->domain;
		f->entries[f->n].name = strndup(e->name, e->len);
		if (!f->entries[f->n].name)
			return -ENOMEM;
		f->n++;
	}
	return l.flags & AGENT_LAST ? 1 : 0;
}

/* The length of a runtime callback's name without its version, which goes to *version; 0 there:
 * it has none. */
static size_t without_version(const char *name, int *version)
{
	size_t len = strlen(name), at = len;

	*version = 0;
	while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	/* _v2 belongs to the symbol; versions are 3010 and on */
	if (len - at < 4 || len - at > 6 || at < 2 || name[at - 1] != 'v' || name[at - 2] != '_')
		return len;
	*version = atoi(name + at);
	return at - 2;
}

int agent_funcs_row(enum agent_domain domain, const char *name, int cuda,
		    enum agent_funcs_which which, bool *per_thread)
{
	char symbol[NAME_MAX_LEN + 1];
	size_t len = strlen(name);
	int version = cuda, own, row;

	*per_thread = false;
	if (domain == AGENT_RUNTIME) {
		len = without_version(name, &own);
		if (which != AGENT_FUNCS_ONLY)
			version = which == AGENT_FUNCS_LATEST ? 0 : own;
	}
	if (len > NAME_MAX_LEN)
		return -1;
	memcpy(symbol, name, len);
	symbol[len] = '\0';
	row = api_lookup(symbol, version, per_thread);
	if (row < 0 || api_domains[api_funcs[row].domain].cupti != (int)domain)
		return -1;
	return row;
}

static enum agent_funcs_which which(const struct agent_funcs *f, const struct cupti_name *e)
{
	int version, other, earlier = 0;
	size_t len = without_version(e->name, &version);

	if (e->domain != AGENT_RUNTIME || !version)
		return AGENT_FUNCS_ONLY;
	for (int i = 0; i < f->n; i++) {
		const struct cupti_name *x = &f->entries[i];

		if (x->domain != AGENT_RUNTIME || strncmp(x->name, e->name, len) ||
		    without_version(x->name, &other) != len)
			continue;
		if (other > version)
			return AGENT_FUNCS_EARLIER;
		earlier += other < version;
	}
	return earlier ? AGENT_FUNCS_LATEST : AGENT_FUNCS_ONLY;
}

/* CUDA's version, as CUDA writes it, of a CUPTI: cupti_version.h. */
static int cuda_of(uint32_t cupti)
{
	static const int by_number[] = {
		[18] = 11080, [19] = 12000, [20] = 12020, [21] = 12030, [22] = 12040, [23] = 12050,
		[24] = 12060, [25] = 12060, [26] = 12080, [27] = 12090, [28] = 12090
	};

	if (cupti < ARRAY_LEN(by_number))
		return by_number[cupti];
	return cupti >= 130000 && cupti < 1000000
		       ? (int)(cupti / 10000 * 1000 + cupti / 100 % 100 * 10)
		       : 12090;
}

/* May device work refer to calls of it? */
static bool causes(const struct capture_plan *plan, int row)
{
	switch (api_funcs[row].class) {
	case API_LAUNCH:
	case API_COPY:
	case API_SET:
	case API_GRAPH: return plan->device.kinds;
	case API_MEMORY: return plan->device.kinds & AGENT_MEMORY;
	case API_SYNC:
	case API_STREAM:
	case API_EVENT: return plan->device.kinds & AGENT_SYNC;
	default: return false;
	}
}

/* Does it take away names that records of kernels still point to? */
static bool unloads(const struct capture_plan *plan, int row)
{
	return plan->device.kinds & AGENT_KERNEL && api_forgets(row);
}

static size_t put_call(char *to, const struct capture_plan *plan, int row)
{
	struct api_param params[CT_MAX_WORDS];
	struct agent_call call = { .kernel = CT_COUNT_NONE };
	int kernel;

	if (api_spec(row, API_ARCH_HERE, plan_has(plan->shown, row), &call.spec) ||
	    api_params(row, API_ARCH_HERE, params, &kernel))
		return 0;
	for (int i = 0; i < CT_MAX_WORDS; i++)
		call.words[i] =
			(struct agent_word){ params[i].off, params[i].width, params[i].how };
	if (kernel >= 0)
		call.kernel = (uint32_t)kernel;
	memcpy(to, &call, sizeof(call));
	return sizeof(call);
}

int agent_funcs_send(const struct agent_funcs *f, const struct capture_plan *plan, bool calls,
		     uint32_t cupti, int (*send)(void *ctx, const void *msg, size_t n), void *ctx)
{
	struct agent_list l = { .h.type = AGENT_FUNCS };
	char *msg = malloc(MEET_MSG_MAX);
	size_t at = sizeof(l);
	int err = msg ? 0 : -ENOMEM;

	for (int i = 0; i < f->n && !err; i++) {
		const struct cupti_name *e = &f->entries[i];
		struct agent_func out = { .cbid = e->cbid, .domain = e->domain };
		bool per_thread;
		int row = agent_funcs_row(e->domain, e->name, cuda_of(cupti), which(f, e),
					  &per_thread);
		size_t more = 0;

		if (row < 0)
			continue;
		out.row = (uint16_t)row;
		out.flags = (uint8_t)((causes(plan, row) ? AGENT_F_CAUSE : 0) |
				      (unloads(plan, row) ? AGENT_F_UNLOADS : 0));
		if (calls && plan_has(plan->capture, row))
			more = put_call(msg + at + sizeof(out), plan, row);
		if (more)
			out.flags |= AGENT_F_CALL;
		if (!out.flags)
			continue;
		if (per_thread)
			out.flags |= AGENT_F_PER_THREAD;
		out.size = (uint16_t)(sizeof(out) + more);
		memcpy(msg + at, &out, sizeof(out));
		at += out.size;
		l.n++;
		if (at + sizeof(out) + sizeof(struct agent_call) <= MEET_MSG_MAX)
			continue;
		l.h.size = (uint32_t)at;
		memcpy(msg, &l, sizeof(l));
		err = send(ctx, msg, at);
		at = sizeof(l);
		l.n = 0;
	}
	l.h.size = (uint32_t)at;
	l.flags = AGENT_LAST;
	if (!err) {
		memcpy(msg, &l, sizeof(l));
		err = send(ctx, msg, at);
	}
	free(msg);
	return err;
}
