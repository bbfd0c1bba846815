/* SPDX-License-Identifier: BSD-2-Clause */
/* muted.c - see muted.h. Knows records and the table of functions; no format. */
#include <stdio.h>
#include <string.h>

#include "muted.h"

/* a file may contain any number: with this limit sums do not overflow */
#define LIMIT ((int64_t)1 << 60)

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
	const char *domain = api_domain_name((enum api_domain)api_funcs[func].domain),
		   *name = api_funcs[func].name;
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

static uint64_t rise(uint64_t v, uint64_t before)
{
	return v > before ? v : before;
}

struct ct_sums muted_call_count(const struct ct_call_count *t, const struct ct_sums *before)
{
	uint64_t unseen = muted_unseen(&t->unseen);
	struct ct_sums all = t->sums;
	long double k;

	k = all.calls ? (long double)unseen / (long double)all.calls : 0;
	all.calls += unseen;
	all.timed += muted_whole((long double)all.timed * k);
	all.ns += muted_whole((long double)all.ns * k);
	all.bytes += muted_whole((long double)all.bytes * k);
	all.threads += muted_whole((long double)all.threads * k);
	all.shared += muted_whole((long double)all.shared * k);
	if (!before)
		return all;
	all.failed = rise(all.failed, before->failed);
	all.calls = rise(all.calls, before->calls);
	all.timed = rise(all.timed, before->timed);
	all.ns = rise(all.ns, before->ns);
	all.bytes = rise(all.bytes, before->bytes);
	all.threads = rise(all.threads, before->threads);
	all.shared = rise(all.shared, before->shared);
	return all;
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
	return muted_whole((long double)m->ns + (long double)m->ns / (long double)m->timed *
							(long double)muted_unseen(&m->unseen));
}

bool muted_is_floor(uint64_t number, const struct ct_estimated *e)
{
	uint64_t above = positive(e->above), below = positive(e->below);

	return muted_error(e) > number || (above > number / 2 && above > 2 * below);
}

uint64_t muted_at_least(uint64_t number, const struct ct_estimated *e)
{
	uint64_t below = positive(e->below);

	return below < number ? number - below : 0;
}

/* Calls may have been counted one by one although nothing else is known of them (hooks). */
static bool is_exact(const struct ct_estimated *e)
{
	return !muted_error(e);
}

const char *muted_number(char *buf, size_t size, uint64_t number, const struct ct_estimated *e)
{
	bool floor = !is_exact(e) && muted_is_floor(number, e);

	snprintf(buf, size, "%s%llu",
		 is_exact(e) ? ""
		 : floor     ? ">="
			     : "~",
		 (unsigned long long)(floor ? muted_at_least(number, e) : number));
	return buf;
}

const char *muted_failures(char *buf, size_t size, uint64_t failed, const struct ct_estimated *e)
{
	snprintf(buf, size, "%s%llu", failed && muted_unseen(e) ? ">=" : "",
		 (unsigned long long)failed);
	return buf;
}

const char *muted_margin(char *buf, size_t size, uint64_t number, const struct ct_estimated *e)
{
	double percent = number ? 100.0 * (double)muted_error(e) / (double)number : 0;

	buf[0] = '\0';
	if (is_exact(e))
		return buf;
	if (muted_is_floor(number, e))
		snprintf(buf, size, " (at most %llu)",
			 (unsigned long long)(number + positive(e->above)));
	else
		snprintf(buf, size, " ±%.*f %%", percent < 1 ? 1 : 0, percent);
	return buf;
}

const char *muted_clause(char *buf, size_t size, const struct muted_sum *m,
			 const char *const *names)
{
	uint64_t calls = muted_calls(m);
	char number[32], margin[96];
	size_t n;

	buf[0] = '\0';
	if (!calls && is_exact(&m->unseen))
		return buf;
	n = (size_t)snprintf(buf, size, "%s%s calls",
			     muted_number(number, sizeof(number), calls, &m->unseen),
			     muted_margin(margin, sizeof(margin), calls, &m->unseen));
	for (int i = 0; names && names[i] && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? ", " : " of ", names[i]);
	return buf;
}
