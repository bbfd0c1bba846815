/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * otlp_send.c - requests to a collector, from a separate thread, so that tracing never waits for a
 * network.
 *
 * Requests wait in a queue of bounded size; requests for which there is no room are dropped and
 * counted. One request is sent at a time, with libevent's HTTP client. After a failure that may be
 * temporary (no connection, no answer in time, 429, 502, 503, 504) the request is tried again,
 * after a time that doubles and is partly random, or after the time that the collector sets with
 * Retry-After. Any other refusal drops the request. At the end of a trace the queue has LAST_NS to
 * be sent, or only the time of struct otlp_wait once a try has failed. Data that is not live can
 * wait: a recording is sent as long as the collector accepts anything, and sending stops only if
 * the collector accepts nothing for the time of struct otlp_wait. A thread that is stuck in a name
 * lookup is abandoned.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "../../util/msg.h"
#include "../../util/now.h"
#include "../../util/thread.h"
#include "otlp.h"

#define QUEUE_BYTES (32u << 20)
#define REQUEST_MOST (1u << 20) /* bytes of one request, so that what there is room for fits */
#define FIRST_WAIT_MS 500
#define LONGEST_WAIT_MS 30000
#define LONGEST_RETRY_AFTER_S 300
#define LAST_NS 5000000000ULL
/* tries of one request: some minutes; for data that is not live only the time is limited */
#define TRIES 12
#define RESPONSE_BYTES 65536
/* a thread that does not end within this time after its limit is abandoned */
#define STUCK_NS 1000000000ULL

struct job {
	struct job *next;
	struct text body;
	uint64_t spans;
	unsigned int tries;
	bool zipped;
};

struct otlp_send {
	struct otlp_config config;
	struct otlp_wait patience;
	char agent[64];
	void (*flush)(void *ctx);
	void *ctx;

	pthread_t thread;
	int wake;	      /* eventfd: something is queued, or the end */
	pthread_mutex_t lock; /* protects all members below up to `done` */
	struct job *head, **tail;
	size_t bytes;
	struct otlp_totals totals;
	bool ending, done;
	/* CLOCK_MONOTONIC: when the end began; when the last request was finished; the first
	 * failed try since then, 0: none */
	uint64_t ending_ns, settled_ns, failing_ns;

	/* the thread's own */
	struct event_base *base;
	struct event *wake_event, *tick, *again, *deadline;
	struct evhttp_connection *conn;
	struct evhttp_request *request; /* under way */
	/* of it, or the one that waits for another try; not in the queue */
	struct job *job;
	bool waiting, asked; /* for the next try; as long as the collector wants */
	unsigned int seed;
};

static void free_job(struct job *j)
{
	if (j)
		text_free(&j->body);
	free(j);
}

/* ---- the queue ---- */

static bool is_stopped(const struct otlp_send *s)
{
	return s->patience.stop && *s->patience.stop;
}

/* Data that is not live waits for a collector that accepts nothing, within the time of struct
 * otlp_wait and until the end is requested. */
bool otlp_send_has_room(struct otlp_send *s)
{
	static const struct timespec moment = { .tv_nsec = 5000000 };
	bool room, over;

	for (;;) {
		pthread_mutex_lock(&s->lock);
		room = s->bytes < QUEUE_BYTES - REQUEST_MOST;
		over = s->failing_ns && now_ns() - s->failing_ns > s->patience.ns;
		pthread_mutex_unlock(&s->lock);
		if (room || !s->patience.stored || over || is_stopped(s))
			return room;
		nanosleep(&moment, NULL);
	}
}

/* The time until which the rest may be sent (CLOCK_MONOTONIC). The caller holds the lock. */
static uint64_t last_moment(const struct otlp_send *s)
{
	uint64_t failing_ns = s->failing_ns > s->ending_ns ? s->failing_ns : s->ending_ns;
	uint64_t last_ns = s->ending_ns + (s->patience.ns > LAST_NS ? s->patience.ns : LAST_NS);

	/* no more waiting; a collector that accepts requests still has its few seconds */
	if (s->patience.stored && is_stopped(s))
		return s->ending_ns + (s->failing_ns ? 0 : LAST_NS);
	if (s->patience.stored) {
		/* a request that is under way has its own time first */
		last_ns = (s->settled_ns > s->ending_ns ? s->settled_ns : s->ending_ns) +
			  s->patience.ns;
		return s->failing_ns ? last_ns : last_ns + s->config.timeout_ms * 1000000ULL;
	}
	return s->failing_ns && failing_ns + s->patience.ns < last_ns ? failing_ns + s->patience.ns
								      : last_ns;
}

void otlp_send_put(struct otlp_send *s, struct text *request, uint64_t n)
{
	struct job *j = calloc(1, sizeof(*j));
	uint64_t one = 1;

	pthread_mutex_lock(&s->lock);
	if (!j || s->bytes + request->len > QUEUE_BYTES) {
		s->totals.full += n;
		pthread_mutex_unlock(&s->lock);
		free(j);
		text_free(request);
		return;
	}
	j->body = *request;
	j->spans = n;
	*request = (struct text){ 0 };
	*s->tail = j;
	s->tail = &j->next;
	s->bytes += j->body.len;
	pthread_mutex_unlock(&s->lock);
	if (write(s->wake, &one, sizeof(one)) < 0)
		return; /* if it was full, the thread is awake already */
}

static struct job *take_job(struct otlp_send *s)
{
	struct job *j;

	pthread_mutex_lock(&s->lock);
	j = s->head;
	if (j) {
		s->head = j->next;
		if (!s->head)
			s->tail = &s->head;
		s->bytes -= j->body.len;
		j->next = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	return j;
}

/* ---- outcomes of a request ---- */

enum outcome { ACCEPTED, REFUSED, FAILED };

static void otlp_send_remember(struct otlp_send *s, const char *what)
{
	bool first = !*s->totals.last;

	snprintf(s->totals.last, sizeof(s->totals.last), "%s", what);
	if (first)
		msg_warn("--otlp: %s:%u: %s", s->config.host, s->config.port, what);
}

/* Counts the outcome of the request and frees it. */
static void otlp_send_settle(struct otlp_send *s, enum outcome outcome, uint64_t rejected,
			     const char *what)
{
	struct job *j = s->job;

	pthread_mutex_lock(&s->lock);
	s->failing_ns = 0;
	s->settled_ns = now_ns();
	if (outcome == ACCEPTED) {
		rejected = rejected < j->spans ? rejected : j->spans;
		s->totals.sent += j->spans - rejected;
		s->totals.rejected += rejected;
	} else if (outcome == REFUSED) {
		s->totals.refused += j->spans;
	} else {
		s->totals.failed += j->spans;
	}
	if (*what)
		otlp_send_remember(s, what);
	pthread_mutex_unlock(&s->lock);
	free_job(j);
	s->job = NULL;
}

static void set_timer(struct event *timer, uint64_t ms)
{
	struct timeval tv = { .tv_sec = (time_t)(ms / 1000),
			      .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	event_add(timer, &tv);
}

/* Plans another try, or none if there were enough. after_ms: the delay that the collector asks
 * for; 0: it asks for none. */
static void try_again(struct otlp_send *s, uint64_t after_ms, const char *what)
{
	uint64_t ms = FIRST_WAIT_MS;

	if (++s->job->tries >= TRIES && !s->patience.stored) {
		otlp_send_settle(s, FAILED, 0, what);
		return;
	}
	for (unsigned int i = 1; i < s->job->tries && ms < LONGEST_WAIT_MS; i++)
		ms *= 2;
	ms = ms < LONGEST_WAIT_MS ? ms : LONGEST_WAIT_MS;
	ms = ms / 2 + (uint64_t)rand_r(&s->seed) % ms; /* half as long to one and a half */
	/* timers are a few milliseconds early: libevent looks at a coarse clock */
	if (after_ms && after_ms + 50 > ms)
		ms = after_ms + 50;
	pthread_mutex_lock(&s->lock);
	otlp_send_remember(s, what);
	if (!s->failing_ns)
		s->failing_ns = now_ns();
	pthread_mutex_unlock(&s->lock);
	s->waiting = true;
	s->asked = after_ms > 0;
	set_timer(s->again, ms);
}

/* ---- one request ---- */

static void go_on(struct otlp_send *s);

static void drop_connection(struct otlp_send *s)
{
	if (s->conn)
		evhttp_connection_free(s->conn);
	s->conn = NULL;
}

static uint64_t retry_after_ms(struct evhttp_request *req)
{
	const char *v = evhttp_find_header(evhttp_request_get_input_headers(req), "Retry-After");
	long seconds = 0;
	struct tm tm = { 0 };
	time_t now;
	char *end;

	if (!v)
		return 0;
	seconds = strtol(v, &end, 10);
	if (end == v && strptime(v, "%a, %d %b %Y %H:%M:%S GMT", &tm)) {
		now = time(NULL);
		seconds = (long)(timegm(&tm) - now);
	}
	if (seconds <= 0)
		return 0;
	return (uint64_t)(seconds < LONGEST_RETRY_AFTER_S ? seconds : LONGEST_RETRY_AFTER_S) * 1000;
}

static void accepted(struct otlp_send *s, struct evhttp_request *req)
{
	struct evbuffer *body = evhttp_request_get_input_buffer(req);
	size_t len = evbuffer_get_length(body);
	uint64_t rejected;
	char words[120], what[160] = "";

	otlp_get_response(s->config.json, (const char *)evbuffer_pullup(body, -1), len, &rejected,
			  words, sizeof(words));
	if (rejected || *words)
		snprintf(what, sizeof(what), "%llu %s rejected by the collector%s%s",
			 (unsigned long long)rejected, s->config.things, *words ? ": " : "", words);
	otlp_send_settle(s, ACCEPTED, rejected, what);
}

static void on_answer(struct evhttp_request *req, void *ctx)
{
	struct otlp_send *s = ctx;
	int code = req ? evhttp_request_get_response_code(req) : 0;
	char what[160];

	s->request = NULL;
	event_del(s->deadline);
	if (!s->job)
		return;
	if (code >= 200 && code < 300) {
		accepted(s, req);
	} else if (!code) {
		try_again(s, 0, "no connection, or it was closed without an answer");
	} else {
		snprintf(what, sizeof(what), "answered with status %d", code);
		if (code == 429 || code == 502 || code == 503 || code == 504)
			try_again(s, retry_after_ms(req), what);
		else
			otlp_send_settle(s, REFUSED, 0, what);
	}
	go_on(s);
}

/* There was no answer in time. */
static void on_deadline(evutil_socket_t fd, short what, void *ctx)
{
	struct otlp_send *s = ctx;

	(void)fd, (void)what;
	if (!s->request)
		return;
	evhttp_cancel_request(s->request);
	s->request = NULL;
	drop_connection(s);
	try_again(s, 0, "no answer in time");
	go_on(s);
}

static bool zip(struct job *j)
{
	z_stream z = { 0 };
	struct text out = { 0 };
	size_t room;
	bool good;

	if (j->zipped)
		return true;
	if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY))
		return false;
	room = deflateBound(&z, j->body.len) + 64;
	z.next_in = (Bytef *)j->body.s;
	z.avail_in = (uInt)j->body.len;
	z.next_out = (Bytef *)text_room(&out, room);
	z.avail_out = (uInt)room;
	good = z.next_out && deflate(&z, Z_FINISH) == Z_STREAM_END;
	out.len = z.total_out;
	deflateEnd(&z);
	if (!good) {
		text_free(&out);
		return false;
	}
	text_free(&j->body);
	j->body = out;
	j->zipped = true;
	return true;
}

static bool connect_to(struct otlp_send *s)
{
	if (s->conn)
		return true;
	s->conn = evhttp_connection_base_new(s->base, NULL, s->config.host, s->config.port);
	if (!s->conn)
		return false;
	evhttp_connection_set_timeout(s->conn, (int)(s->config.timeout_ms / 1000) + 1);
	evhttp_connection_set_max_body_size(s->conn, RESPONSE_BYTES);
	evhttp_connection_set_max_headers_size(s->conn, RESPONSE_BYTES);
	return true;
}

static void post(struct otlp_send *s)
{
	struct evhttp_request *req;
	struct evkeyvalq *headers;

	if (s->config.gzip && !zip(s->job))
		msg_verb("--otlp: a request is sent uncompressed");
	req = connect_to(s) ? evhttp_request_new(on_answer, s) : NULL;
	if (!req) {
		try_again(s, 0, "no memory for a request");
		return;
	}
	headers = evhttp_request_get_output_headers(req);
	evhttp_add_header(headers, "Host", s->config.authority);
	evhttp_add_header(headers, "User-Agent", s->agent);
	evhttp_add_header(headers, "Content-Type",
			  s->config.json ? "application/json" : "application/x-protobuf");
	if (s->job->zipped)
		evhttp_add_header(headers, "Content-Encoding", "gzip");
	for (int i = 0; i < s->config.nheaders; i++)
		evhttp_add_header(headers, s->config.headers[i].name, s->config.headers[i].value);
	evbuffer_add(evhttp_request_get_output_buffer(req), s->job->body.s, s->job->body.len);
	s->request = req;
	set_timer(s->deadline, s->config.timeout_ms);
	/* when it fails the request is freed */
	if (evhttp_make_request(s->conn, req, EVHTTP_REQ_POST, s->config.path)) {
		s->request = NULL;
		event_del(s->deadline);
		drop_connection(s);
		try_again(s, 0, "no connection");
	}
}

/* ---- the thread ---- */

/* Starts the next request if none is under way; at the end, leaves the loop. */
static void go_on(struct otlp_send *s)
{
	bool over;

	while (!s->request && !s->waiting) {
		if (!s->job)
			s->job = take_job(s);
		if (!s->job)
			break;
		post(s);
	}
	pthread_mutex_lock(&s->lock);
	over = s->ending && ((!s->job && !s->head) || now_ns() >= last_moment(s));
	pthread_mutex_unlock(&s->lock);
	if (over)
		event_base_loopbreak(s->base);
}

static void on_again(evutil_socket_t fd, short what, void *ctx)
{
	struct otlp_send *s = ctx;

	(void)fd, (void)what;
	s->waiting = false;
	go_on(s);
}

static void on_wake(evutil_socket_t fd, short what, void *ctx)
{
	struct otlp_send *s = ctx;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) < 0)
		return;
	/* at the end of a live trace there is no time for a long wait that the user did not ask
	 * for */
	pthread_mutex_lock(&s->lock);
	if (s->ending && s->waiting && !s->asked && !s->patience.stored) {
		event_del(s->again);
		s->waiting = false;
	}
	pthread_mutex_unlock(&s->lock);
	go_on(s);
}

static void on_tick(evutil_socket_t fd, short what, void *ctx)
{
	struct otlp_send *s = ctx;
	bool ending;

	(void)fd, (void)what;
	pthread_mutex_lock(&s->lock);
	ending = s->ending;
	pthread_mutex_unlock(&s->lock);
	/* at the end the sink has flushed, and may no longer exist */
	if (!ending)
		s->flush(s->ctx);
	set_timer(s->tick, ending ? 100 : 1000);
	go_on(s);
}

static void *otlp_send_run(void *ctx)
{
	struct otlp_send *s = ctx;

	set_timer(s->tick, 1000);
	go_on(s);
	event_base_dispatch(s->base);
	pthread_mutex_lock(&s->lock);
	s->done = true;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void free_send(struct otlp_send *s)
{
	struct job *j;

	if (s->request)
		evhttp_cancel_request(s->request);
	drop_connection(s);
	free_job(s->job);
	while ((j = take_job(s)))
		free_job(j);
	if (s->wake_event)
		event_free(s->wake_event);
	if (s->tick)
		event_free(s->tick);
	if (s->again)
		event_free(s->again);
	if (s->deadline)
		event_free(s->deadline);
	if (s->base)
		event_base_free(s->base);
	if (s->wake >= 0)
		close(s->wake);
	pthread_mutex_destroy(&s->lock);
	otlp_config_close(&s->config);
	free(s);
}

static bool make_events(struct otlp_send *s)
{
	s->base = event_base_new();
	if (!s->base || s->wake < 0)
		return false;
	s->wake_event = event_new(s->base, s->wake, EV_READ | EV_PERSIST, on_wake, s);
	s->tick = evtimer_new(s->base, on_tick, s);
	s->again = evtimer_new(s->base, on_again, s);
	s->deadline = evtimer_new(s->base, on_deadline, s);
	return s->wake_event && s->tick && s->again && s->deadline &&
	       !event_add(s->wake_event, NULL);
}

struct otlp_send *otlp_send_open(struct otlp_config *config, const struct otlp_wait *patience,
				 const char *version, void (*flush)(void *ctx), void *ctx)
{
	struct otlp_send *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		otlp_config_close(config);
		msg_error("--otlp: no memory");
		return NULL;
	}
	s->config = *config;
	s->patience = *patience;
	memset(config, 0, sizeof(*config));
	snprintf(s->agent, sizeof(s->agent), "cudatrace/%s", version);
	s->flush = flush;
	s->ctx = ctx;
	s->tail = &s->head;
	s->seed = (unsigned int)now_ns();
	pthread_mutex_init(&s->lock, NULL);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = make_events(s) ? thread_start(&s->thread, "ct-otlp", 0, otlp_send_run, s) : -ENOMEM;
	if (!err)
		return s;
	msg_error("--otlp: cannot start sending: %s", strerror(-err));
	free_send(s);
	return NULL;
}

/* Counts what the queue still holds as not sent. */
static void count_rest(struct otlp_send *s)
{
	for (struct job *j = s->head; j; j = j->next)
		s->totals.failed += j->spans;
	if (s->job)
		s->totals.failed += s->job->spans;
}

/* Waits a moment for the end of the thread. */
static bool join_soon(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 100000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	return !pthread_timedjoin_np(thread, NULL, &until);
}

bool otlp_send_close(struct otlp_send *s, struct otlp_totals *totals)
{
	uint64_t one = 1;
	bool joined, late;

	pthread_mutex_lock(&s->lock);
	s->ending = true;
	s->ending_ns = now_ns();
	pthread_mutex_unlock(&s->lock);
	if (write(s->wake, &one, sizeof(one)) < 0)
		msg_verb("--otlp: the thread is awake");
	do {
		joined = join_soon(s->thread);
		pthread_mutex_lock(&s->lock);
		late = now_ns() > last_moment(s) + STUCK_NS;
		pthread_mutex_unlock(&s->lock);
	} while (!joined && !late);
	pthread_mutex_lock(&s->lock);
	count_rest(s);
	*totals = s->totals;
	pthread_mutex_unlock(&s->lock);
	/* a thread that is stuck keeps what it may still look at; the program ends soon */
	if (joined)
		free_send(s);
	return joined;
}
