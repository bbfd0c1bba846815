/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_helper.c - the counters' helper: chooses for each device how its counters are had,
 * samples until cudatrace goes, and ends. The order: CUPTI PM sampling, NVML GPM, NVML's
 * utilisation; each with power, clocks and the like from NVML.
 *
 * It runs beside programs that matter, maybe as root, and loads libraries that are not ours: it
 * gives up every capability but CAP_SYS_ADMIN (which the driver asks for where only
 * administrators may profile) before it loads one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "helper.h"

#define GPM_PERIOD_MIN (10 * NS_PER_MS)
#define NVML_PERIOD_MIN (100 * NS_PER_MS)
#define DECODE_MIN_NS (10 * NS_PER_MS)
#define DECODE_MAX_NS (50 * NS_PER_MS)
#define GPM_FAILURES 5 /* in a row, then NVML's utilisation takes its place */
/* a library that does not come back gets so long once cudatrace is gone */
#define LAST_WORD_S 3

static struct device devices[COUNTERS_DEVICES];
static int ndevices, sock;
static uint64_t interval_ns;

/* ---- the process ---- */

static void drop_privileges(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &head, data))
		return;
	data[0].permitted &= 1u << CAP_SYS_ADMIN;
	data[0].effective &= 1u << CAP_SYS_ADMIN;
	data[0].inheritable = 0;
	memset(&data[1], 0, sizeof(data[1]));
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	syscall(SYS_capset, &head, data);
}

/* Ends the process a while after cudatrace has gone, whatever a library is doing. */
static void *watch_main(void *unused)
{
	struct pollfd p = { .fd = sock, .events = POLLRDHUP };

	(void)unused;
	while (poll(&p, 1, -1) <= 0 || !(p.revents & (POLLRDHUP | POLLHUP | POLLERR)))
		;
	nanosleep(&(struct timespec){ .tv_sec = LAST_WORD_S }, NULL);
	_exit(0);
}

static void counters_helper_prepare(void)
{
	static const char *const unwanted[] = { "CUDA_VISIBLE_DEVICES", "CUDA_INJECTION64_PATH",
						"NVTX_INJECTION64_PATH", "LD_PRELOAD" };
	struct rlimit none = { 0, 0 };
	pthread_t thread;

	prctl(PR_SET_NAME, "cudatrace-count");
	setrlimit(RLIMIT_CORE, &none);
	for (size_t i = 0; i < ARRAY_LEN(unwanted); i++)
		unsetenv(unwanted[i]);
	drop_privileges();
	/* Where the thread cannot be had, the loop notices just as well, unless a library hangs. */
	if (!pthread_create(&thread, NULL, watch_main, NULL))
		pthread_detach(thread);
}

/* True once cudatrace has shut its end, or is gone. Waits until then, or until `until_ns`. */
static bool reported_to_end(uint64_t until_ns)
{
	struct pollfd p = { .fd = sock, .events = POLLRDHUP };
	uint64_t now = clock_ns(CLOCK_MONOTONIC), left = until_ns > now ? until_ns - now : 0;
	struct timespec ts = { .tv_sec = (time_t)(left / NS_PER_S),
			       .tv_nsec = (long)(left % NS_PER_S) };

	return !send_alive() || (ppoll(&p, 1, &ts, NULL) > 0 && p.revents);
}

/* ---- how ---- */

static uint64_t at_least(uint64_t min, const struct device *d, const char *how)
{
	if (interval_ns >= min)
		return interval_ns;
	send_text(COUNTERS_NOTE,
		  "GPU %u: %s changes no faster than every %llu ms: sampled at that interval",
		  d->index, how, (unsigned long long)(min / NS_PER_MS));
	return min;
}

static bool wants_gpm(void)
{
	for (int i = 0; i < nwanted; i++)
		if (wanted[i].row && wanted[i].row->gpm)
			return true;
	return false;
}

/* Without PM sampling, because of `why` ("": nothing was its to give). */
static void fall_back(struct device *d, const char *why)
{
	const char *gpm_why = "it is in MIG mode";

	if (!d->mig && wants_gpm())
		d->gpm = gpm_open(d, &gpm_why);
	if (d->gpm)
		d->period_ns = at_least(GPM_PERIOD_MIN, d, "NVML GPM");
	else
		d->period_ns = at_least(NVML_PERIOD_MIN, d, "what NVML tells");
	send_text(COUNTERS_NOTE, "GPU %u (%s): %s%s%s", d->index, d->name,
		  d->gpm ? "NVML GPM"
		  : *why ? "NVML's utilisation, power and clocks alone"
			 : "NVML",
		  *why ? "; no CUPTI PM sampling: " : "", why);
	if (!d->gpm && *why)
		send_text(COUNTERS_VERBOSE, "GPU %u: no NVML GPM: %s", d->index, gpm_why);
	d->start_ns = clock_ns(CLOCK_MONOTONIC);
	d->due_ns = d->start_ns + d->period_ns;
}

static bool counters_helper_choose(struct device *d, const char *no_cupti)
{
	const char *why = no_cupti;

	if (!no_cupti && !pm_open(d, interval_ns, &why))
		return false;
	if (d->pm)
		send_text(COUNTERS_NOTE, "GPU %u (%s): CUPTI PM sampling", d->index, d->name);
	else
		fall_back(d, why);
	return true;
}

/* Whether anything of what was asked for is CUPTI's to give. */
static bool wants_pm(void)
{
	for (int i = 0; i < nwanted; i++)
		if (!wanted[i].row || wanted[i].row->pm)
			return true;
	return false;
}

static bool has_raw(void)
{
	for (int i = 0; i < nwanted; i++)
		if (!wanted[i].row)
			return true;
	return false;
}

/* ---- sampling ---- */

static void sample_nvml(struct device *d)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	union sample s;

	if (d->gpm && gpm_failed(d) >= GPM_FAILURES) {
		send_text(COUNTERS_WARN,
			  "GPU %u: NVML GPM gives no samples any more: NVML's utilisation takes "
			  "its place",
			  d->index);
		d->gpm = NULL; /* its memory stays: NVML may still be at it */
		d->given = 0;
		if (d->period_ns < NVML_PERIOD_MIN)
			d->period_ns = NVML_PERIOD_MIN;
	}
	if (!d->gpm || !gpm_add(d, &s))
		sample_begin(&s, d, d->start_ns, now);
	nvml_add(d, &s);
	sample_send(&s);
	d->start_ns = now;
	/* At the times that were set; what was missed (a stopped machine) is not made up for. */
	d->due_ns += d->period_ns;
	if (d->due_ns <= now)
		d->due_ns = now + d->period_ns;
}

static void sample_all(void)
{
	uint64_t tick = interval_ns / 2, decode_ns;

	tick = tick < DECODE_MIN_NS ? DECODE_MIN_NS : tick > DECODE_MAX_NS ? DECODE_MAX_NS : tick;
	if (interval_ns < DECODE_MIN_NS)
		tick = DECODE_MAX_NS;
	decode_ns = clock_ns(CLOCK_MONOTONIC) + tick;
	for (;;) {
		uint64_t until = UINT64_MAX, now;

		for (int i = 0; i < ndevices; i++) {
			uint64_t due = devices[i].pm ? decode_ns : devices[i].due_ns;

			until = due < until ? due : until;
		}
		if (reported_to_end(until))
			return;
		now = clock_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < ndevices; i++) {
			struct device *d = &devices[i];

			if (d->pm && now >= decode_ns) {
				pm_drain(d);
				if (!d->pm)
					fall_back(d, "");
			} else if (!d->pm && now >= d->due_ns) {
				sample_nvml(d);
			}
		}
		send_flush();
		if (now >= decode_ns)
			decode_ns = now + tick;
	}
}

/* Which metrics there will be, in the order in which they were asked for. */
static void announce(void)
{
	for (int i = 0; i < nwanted; i++)
		for (int k = 0; k < ndevices; k++) {
			struct device *d = &devices[k];

			if (!(d->given >> i & 1))
				nvml_announce(d, i);
			else if (d->pm)
				pm_announce(d, i);
			else
				metric_id(wanted[i].row->name, wanted[i].row->unit, CT_METRIC_GPM);
		}
}

/* Waits for the word; false: it is to end. */
static bool reported_to_begin(void)
{
	char go;

	for (;;) {
		ssize_t n = recv(sock, &go, 1, 0);

		if (n == 1)
			return true;
		if (n == 0 || errno != EINTR)
			return false;
	}
}

static int counters_helper_run(char **argv)
{
	const char *no_cupti = NULL;

	if (!metrics_parse(argv[COUNTERS_ARG_METRICS]) || !nvml_open())
		return 1;
	ndevices = nvml_devices(devices, COUNTERS_DEVICES);
	if (!ndevices)
		return 1;
	if (wants_pm()) {
		no_cupti = pm_load(argv[COUNTERS_ARG_CUPTI], nvml_cuda_version());
		if (no_cupti && (has_raw() || *argv[COUNTERS_ARG_CUPTI])) {
			send_text(COUNTERS_ERROR, "no counters: %s", no_cupti);
			return 1;
		}
		if (!no_cupti)
			pm_ordinals(devices, ndevices);
	} else {
		no_cupti = "";
	}
	for (int i = 0; i < ndevices; i++)
		if (!counters_helper_choose(&devices[i], no_cupti))
			return 1;
	announce();
	send_kind(COUNTERS_READY);
	if (!reported_to_begin())
		return 0;
	nvml_events(devices, ndevices);
	for (int i = 0; i < ndevices; i++) {
		if (devices[i].pm && !pm_start(&devices[i]))
			fall_back(&devices[i], "");
		devices[i].start_ns = clock_ns(CLOCK_MONOTONIC);
		devices[i].due_ns = devices[i].start_ns + devices[i].period_ns;
	}
	sample_all();
	for (int i = 0; i < ndevices; i++)
		pm_close(&devices[i]);
	send_kind(COUNTERS_BYE);
	return 0;
}

/* The names that cudatrace has, then those of the chip. */
static int help(char **argv)
{
	const char *err;

	send_text(COUNTERS_LINE, "%-14s %-8s %-15s %s", "METRIC", "UNIT", "FROM", "WHAT");
	for (int i = 0; i < metric_nrows; i++) {
		const struct metric_row *r = &metric_rows[i];

		send_text(COUNTERS_LINE, "%-14s %-8s %s%s%s%s%s%*s %s", r->name, r->unit,
			  r->pm ? "cupti" : "", r->pm && r->gpm ? "," : "", r->gpm ? "gpm" : "",
			  (r->pm || r->gpm) && r->nvml ? "," : "", r->nvml ? "nvml" : "",
			  15 - (r->pm ? 5 : 0) - (r->pm && r->gpm) - (r->gpm ? 3 : 0) -
				  ((r->pm || r->gpm) && r->nvml) - (r->nvml ? 4 : 0),
			  "", r->help);
	}
	if (!*argv[COUNTERS_ARG_CHIP]) {
		if (!nvml_open())
			return 1;
		ndevices = nvml_devices(devices, COUNTERS_DEVICES);
		if (!ndevices)
			return 1;
	}
	err = pm_load(argv[COUNTERS_ARG_CUPTI], ndevices ? nvml_cuda_version() : 0);
	if (err) {
		if (*argv[COUNTERS_ARG_CHIP]) {
			send_text(COUNTERS_ERROR, "the metrics of %s are not listed: %s",
				  argv[COUNTERS_ARG_CHIP], err);
			return 1;
		}
		send_text(COUNTERS_WARN, "CUPTI's own metrics are not listed: %s", err);
		send_kind(COUNTERS_BYE);
		return 0;
	}
	if (ndevices)
		pm_ordinals(devices, ndevices);
	if (!pm_help(argv[COUNTERS_ARG_CHIP], devices, ndevices))
		return 1;
	send_kind(COUNTERS_BYE);
	return 0;
}

static bool counters_helper_number(const char *text, uint64_t *out)
{
	uint64_t v = 0;

	for (const char *at = text; *at; at++) {
		if (*at < '0' || *at > '9' || v > UINT64_MAX / 10 - 9)
			return false;
		v = v * 10 + (uint64_t)(*at - '0');
	}
	*out = v;
	return *text;
}

int main(int argc, char **argv)
{
	uint64_t fd;

	if (argc != COUNTERS_ARGC || !counters_helper_number(argv[COUNTERS_ARG_FD], &fd) ||
	    fd > 1 << 20 || !counters_helper_number(argv[COUNTERS_ARG_INTERVAL], &interval_ns) ||
	    interval_ns < COUNTERS_INTERVAL_MIN_NS)
		return 2;
	sock = (int)fd;
	fcntl(sock, F_SETFD, FD_CLOEXEC);
	send_open(sock);
	counters_helper_prepare();
	/* The libraries' own clean-up at exit is not wanted: it may wait for threads that wait. */
	_exit(strcmp(argv[COUNTERS_ARG_MODE], "help") ? counters_helper_run(argv) : help(argv));
}
