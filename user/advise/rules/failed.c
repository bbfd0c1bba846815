/* SPDX-License-Identifier: BSD-2-Clause */
/* failed.c - calls that failed. */
#include "../rule.h"

#define FAILED_LEAST 3
/* cudaErrorCudartUnloading, CUDA_ERROR_DEINITIALIZED: what the program's end answers */
#define DEINITIALIZED 4

struct failed {
	struct hits hits;
	uint64_t went_on, checks;
};

/* What a program does with a result cannot be seen. What it does next can be. */
static int failed_event(void *state, const struct seen *s)
{
	struct failed *f = state;
	struct thread *t = s->t;
	struct site one;

	if (s->traits & TR_ERROR) {
		f->checks++;
		t->failed = false;
		return 0;
	}
	if (t->failed && s->traits & TR_WORK) {
		f->went_on++;
		t->failed = false;
	}
	if (!s->failed || !(s->traits & TR_CHECKED) || (int32_t)s->call->ret == DEINITIALIZED)
		return 0;
	t->failed = api_domains[api_funcs[s->call->func].domain].last_error;
	one = rule_site(s, (uint32_t)s->call->ret);
	one.ns = s->ns;
	return hits_add(&f->hits, &one, NULL);
}

static const struct site *most_failed(const struct hits *h)
{
	const struct site *most = &h->others;

	for (uint32_t i = 0; i < h->nsites; i++)
		if (h->sites[i].n > most->n)
			most = &h->sites[i];
	return most;
}

static void failed_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct failed *d = state;
	const struct site *most = most_failed(&d->hits);
	struct advise_finding *f;
	const char *error;

	/* whether it was asked for the error is not known then */
	if (advise_errors_muted(a))
		d->went_on = 0;
	if (most->n < FAILED_LEAST && !d->went_on)
		return;
	f = rule_finding_of(a, &rule_failed, proc, &d->hits);
	if (!f)
		return;
	rule_say(&f->evidence, "%llu %s failed", (unsigned long long)d->hits.n,
		 d->hits.n == 1 ? "call" : "calls");
	if (most->func < api_nfuncs) {
		error = api_error_name(most->func, (int32_t)most->handle);
		rule_say(&f->evidence, ", most often %s with %s (%llu), %llu %s",
			 api_funcs[most->func].name, error ? error : "an error of no known name",
			 (unsigned long long)most->handle, (unsigned long long)most->n,
			 most->n == 1 ? "time" : "times");
	}
	rule_say(&f->evidence, ".");
	if (d->went_on)
		rule_say(&f->evidence,
			 " After %llu of them the same thread gave the device more work, and no "
			 "cudaGetLastError was seen before.",
			 (unsigned long long)d->went_on);
}

/* clang-format off */
const struct rule rule_failed = {
	{ "failed-calls", "Calls that failed", ADVISE_CALLS,
	  "the time in the failed calls",
	  "Look at the result of each call. What the program did with these results cannot be seen, only what "
	  "it called next." },
	.kinds = KIND(CT_CALL), .traits = ~(uint32_t)TR_REPORT, .least = ADVISE_WARNING, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct failed), .event = failed_event, .end = failed_end, .free = rule_free_hits
};
/* clang-format on */
