/* SPDX-License-Identifier: BSD-2-Clause */
/* muted.c - see muted.h. Knows records and the table of functions; no format. */
#include <stdio.h>
#include <string.h>

#include "muted.h"

#define LIMIT ((int64_t)1 << 60) /* a file may claim any number: sums stay within a word */

int muted_func(const struct ct_muted *m)
{
	char domain[256], name[256];

	memcpy(domain, m->text, m->domain_len);
	domain[m->domain_len] = '\0';
	memcpy(name, m->text + m->domain_len, m->name_len);
	name[m->name_len] = '\0';
	for (int f = api_next(name, -1); f >= 0; f = api_next(name, f))
		if (!strcmp(api_domain_name((enum api_domain)api_funcs[f].domain), domain))
			return f;
	return -1;
}

void muted_name(struct ct_muted *m, int func)
{
	const char *domain = api_domain_name((enum api_domain)api_funcs[func].domain), *name = api_funcs[func].name;
	size_t n;

	m->domain_len = (uint8_t)strlen(domain);
	m->name_len = (uint8_t)strlen(name);
	memcpy(m->text, domain, m->domain_len);
	memcpy(m->text + m->domain_len, name, m->name_len);
	n = sizeof(*m) + m->domain_len + m->name_len;
	m->h.size = (uint16_t)((n + 7) & ~(size_t)7);
	m->h.kind = CT_MUTED;
}

static int64_t add(int64_t a, int64_t b)
{
	b = b > LIMIT ? LIMIT : b < -LIMIT ? -LIMIT : b;
	a += b;
	return a > LIMIT ? LIMIT : a < -LIMIT ? -LIMIT : a;
}

static uint64_t add_count(uint64_t a, uint64_t b)
{
	return (uint64_t)add((int64_t)a, b > LIMIT ? LIMIT : (int64_t)b);
}

void muted_add_unseen(struct ct_estimated *a, const struct ct_estimated *b)
{
	a->calls = add(a->calls, b->calls);
	a->below = add(a->below, b->below);
	a->above = add(a->above, b->above);
}

void muted_add_sum(struct muted_sum *a, const struct muted_sum *b)
{
	a->counted = add_count(a->counted, b->counted);
	a->failed = add_count(a->failed, b->failed);
	a->timed = add_count(a->timed, b->timed);
	a->ns = add_count(a->ns, b->ns);
	muted_add_unseen(&a->unseen, &b->unseen);
}

void muted_add(struct muted_sum *a, const struct ct_muted *m)
{
	struct muted_sum one = { m->counted, m->unseen, m->failed, m->timed, m->ns };

	muted_add_sum(a, &one);
}

static uint64_t positive(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

uint64_t muted_unseen(const struct ct_estimated *e)
{
	return positive(e->calls);
}

uint64_t muted_error(const struct ct_estimated *e)
{
	return positive(e->below > e->above ? e->below : e->above);
}

uint64_t muted_calls(const struct muted_sum *m)
{
	return m->counted + muted_unseen(&m->unseen);
}

uint64_t muted_whole(long double v)
{
	return !(v > 0) ? 0 : v < (long double)LIMIT ? (uint64_t)v : (uint64_t)LIMIT;
}

uint64_t muted_ns(const struct muted_sum *m)
{
	if (!m->timed)
		return 0;
	return muted_whole((long double)m->ns + (long double)m->ns / (long double)m->timed * (long double)muted_unseen(&m->unseen));
}

const char *muted_margin(char *buf, size_t size, uint64_t number, const struct ct_estimated *e)
{
	uint64_t error = muted_error(e), below = positive(e->below) < number ? positive(e->below) : number;
	double percent = number ? 100.0 * (double)error / (double)number : 0;

	buf[0] = '\0';
	if (!error && !muted_unseen(e))
		return buf;
	if (number && error <= number)
		snprintf(buf, size, " ±%.*f %%", percent < 1 ? 1 : 0, percent);
	else
		snprintf(buf, size, " (%llu to %llu)", (unsigned long long)(number - below),
			 (unsigned long long)(number + positive(e->above)));
	return buf;
}
