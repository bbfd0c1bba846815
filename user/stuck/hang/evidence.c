/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evidence.c - see evidence.h. The verdict comes first, then what is read at once, and the stacks, which take
 * longest, last: they end by themselves some seconds after the first byte.
 */
#include "evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../source/host.h"
#include "../../trace/writer.h"
#include "../../util/io/json.h"
#include "../../util/io/safe_open.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "evidence_about.h"
#include "hang_stacks.h"

#define STACKS_NS 3000000000ULL /* for the stacks, from the first byte on */

struct evidence {
	struct safe_place folder; /* `dir`, by its descriptor; the name is that of the next */
	char *dir;
	unsigned int most, taken;
	char next[64];
	char path[4352];
};

static int refuse(const char *dir, int err, const char *why)
{
	msg_error("--dump: %s cannot be used: %s", dir, why ? why : strerror(-err));
	return err;
}

/* Ours, or that of the user who called sudo, who gets the files. */
static bool is_ours(const struct stat *st)
{
	const char *user = getenv("SUDO_UID");

	return st->st_uid == geteuid() ||
	       (!geteuid() && user && *user && st->st_uid == strtoul(user, NULL, 10));
}

/* The folder, made if it is not there: nobody else may put anything into it. */
static int open_folder(struct evidence *e)
{
	struct safe_place at;
	struct stat st;
	mode_t mask;
	int err = safe_place_find(&at, e->dir), fd;

	if (err)
		return refuse(e->dir, err, NULL);
	mask = umask(077);
	if (mkdirat(at.dir, at.name, 0700) && errno != EEXIST)
		err = -errno;
	umask(mask);
	fd = err ? -1 : openat(at.dir, at.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (!err && fd < 0)
		err = -errno;
	safe_place_close(&at);
	if (err)
		return refuse(e->dir, err, NULL);
	e->folder.dir = fd;
	if (fstat(fd, &st))
		return refuse(e->dir, -errno, NULL);
	if (!is_ours(&st) || st.st_mode & 022)
		return refuse(e->dir, -EPERM,
			      "others could put files into it: give a folder that is yours and "
			      "that nobody else can write to");
	return 0;
}

struct evidence *evidence_open(const char *dir, unsigned int most)
{
	struct evidence *e = calloc(1, sizeof(*e));
	size_t n = strlen(dir);

	if (!e) {
		msg_error("not enough memory to start");
		return NULL;
	}
	e->folder.dir = -1;
	e->most = most;
	while (n > 1 && dir[n - 1] == '/')
		n--;
	e->dir = strndup(dir, n);
	if (e->dir && n < sizeof(e->path) - sizeof(e->next) && !open_folder(e))
		return e;
	evidence_close(e);
	return NULL;
}

void evidence_close(struct evidence *e)
{
	if (!e)
		return;
	safe_place_close(&e->folder);
	free(e->dir);
	free(e);
}

/* ---- files ---- */

/* A new file of the folder. */
static int open_file(int dir, const char *name, struct out *o)
{
	struct safe_place at = { .dir = dir };
	int fd, err;

	snprintf(at.name, sizeof(at.name), "%s", name);
	fd = safe_place_open(&at, name, NULL, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fd;
	err = out_open_fd(o, fd, name);
	if (err)
		close(fd);
	else
		o->owned = true;
	return err;
}

static bool is_about(void *ctx, uint64_t hash)
{
	const struct nccl_job *j = ctx;

	for (size_t i = 0; i < j->n; i++)
		if (j->members[i].hash == hash)
			return true;
	return false;
}

static void put_signal(struct json *j, const struct ended_process *p)
{
	char room[16];

	json_put_str(j, "signal", hang_signal_word(p->signal, room));
	json_put_bool(j, "ended_by_it", ended_by_signal(p));
	json_put_str(j, "by", hang_sender_word(p->by));
	if (p->by == CT_SIGNAL_BY_PROCESS) {
		if (p->sender)
			json_put_u64(j, "sender_pid", p->sender);
		json_put_bytes(j, "sender", p->sender_name, strlen(p->sender_name));
	} else if (p->by == CT_SIGNAL_BY_KERNEL && p->address) {
		json_put_hex(j, "address", p->address);
	}
	json_put_u64(j, "sent_ns", p->sent_ns);
	if (p->status >= 0)
		json_put_u64(j, "wait_status", (uint64_t)p->status);
	if (p->hang)
		json_put_u64(j, "hang", p->hang);
	json_put_u64(j, "threads", p->nthreads);
}

static void put_culprits(struct json *j, const struct hang_incident *a, const struct hang_words *w)
{
	json_open_array(j, "who");
	for (size_t i = 0; i < a->nculprits; i++) {
		const struct hang_culprit *c = &a->culprits[i];

		json_open_object(j, NULL);
		json_put_u64(j, "pid", c->pid);
		json_put_bytes(j, "process", c->name, strnlen(c->name, sizeof(c->name)));
		if (c->rank >= 0)
			json_put_u64(j, "rank", (uint64_t)c->rank);
		json_put_str(j, "state", hang_doing_word(c->doing));
		if (c->tid)
			json_put_u64(j, "tid", c->tid);
		if (c->inside[0])
			json_put_bytes(j, "inside", c->inside,
				       strnlen(c->inside, sizeof(c->inside)));
		if (c->wait[0])
			json_put_bytes(j, "wait", c->wait, strnlen(c->wait, sizeof(c->wait)));
		if (i < w->nended)
			put_signal(j, &w->ended[i]);
		json_end(j);
	}
	json_end(j);
}

void evidence_incident(struct out *o, const struct evidence_of *of)
{
	const struct hang_incident *a = of->incident;
	struct text claim = { 0 }, room = { 0 };
	char host[NCCL_HOST_BYTES], boot[NCCL_HOST_BYTES];
	struct json j = json_to(o);
	struct finding f;

	hang_claim(&claim, a, of->words);
	text_mem(&claim, "", 1);
	hang_finding(&f, a, of->words, claim.bad ? "" : claim.s, &room);
	json_open_object(&j, NULL);
	json_put_str(&j, "type",
		     a->kind == HANG_RANK_ENDED ? "ended"
		     : a->at_work		? "wait"
						: "hang");
	json_put_u64(&j, "start_ns", a->since_ns);
	json_put_u64(&j, "end_ns", of->words->at_ns);
	json_put_str(&j, "host", host_name(host, sizeof(host)));
	json_put_str(&j, "boot", host_boot_id(boot, sizeof(boot)));
	json_put_u64(&j, "number", a->number);
	if (of->words->goes_on)
		json_put_bool(&j, "goes_on", true);
	if (a->hash)
		json_put_hex(&j, "communicator_hash", a->hash);
	finding_json(&j, &f);
	put_culprits(&j, a, of->words);
	json_open_array(&j, "pids");
	for (size_t i = 0; i < a->npids; i++)
		json_put_u64(&j, NULL, a->pids[i]);
	json_end(&j);
	json_end(&j);
	out_char(o, '\n');
	text_free(&claim);
	text_free(&room);
}

void evidence_verdict(struct out *o, const struct evidence_of *of)
{
	const struct asked_ear ear = { .only = is_about, .ctx = (void *)of->job };

	evidence_incident(o, of);
	nccl_job_json(of->job, o);
	asked_listen(of->asked, &ear);
	asked_print(of->asked, of->words->at_ns, of->over_ns, true, o);
	asked_listen(of->asked, &(struct asked_ear){ 0 });
}

static int put_verdict(int dir, const struct evidence_of *of)
{
	struct out o;
	int err = open_file(dir, "hang.json", &o);

	if (err)
		return err;
	evidence_verdict(&o, of);
	return out_close(&o);
}

/* The last seconds of the trace. */
static int put_flight(int dir, const struct evidence_of *of)
{
	struct writer *w = NULL;
	char path[64], end[64];
	int err, e;

	if (!of->ring)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/flight.ctrace", dir);
	err = ring_buf_flush(of->ring, 0);
	if (!err)
		err = writer_open(&w, path, of->opts->file->head);
	if (err)
		return err;
	if (of->clock->h.size)
		err = writer_record(w, &of->clock->h);
	if (!err)
		err = ring_buf_write(of->ring, w);
	/* that nothing came for so long is a part of what it shows */
	snprintf(end, sizeof(end), "reason %s\nuptime_ns %llu\n",
		 of->incident->kind == HANG_RANK_ENDED ? "rank ended" : "hang",
		 (unsigned long long)(of->words->at_ns - of->opts->start_ns));
	if (!err)
		err = writer_end(w, end);
	e = writer_close(w);
	return err ? err : e;
}

static size_t take_pids(const struct hang_incident *a, pid_t *pids)
{
	for (size_t i = 0; i < a->npids; i++)
		pids[i] = (pid_t)a->pids[i];
	return a->npids;
}

static int put_about(int dir, const struct evidence_of *of, const pid_t *pids, size_t n)
{
	struct out o;
	int err = open_file(dir, "processes.txt", &o);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		evidence_process(&o, pids[i]);
	err = out_close(&o);
	if (!err)
		err = open_file(dir, "machine.txt", &o);
	if (err)
		return err;
	evidence_machine(&o, of->opts->version);
	err = out_close(&o);
	if (!err)
		err = open_file(dir, "kernel.log", &o);
	if (err)
		return err;
	evidence_kernel_log(&o);
	return out_close(&o);
}

/* What was written when the signal came. */
static int copy_others(int fd, struct out *o)
{
	char buf[8192];
	off_t at = 0;
	ssize_t n = 0;

	while (fd >= 0 && (n = pread(fd, buf, sizeof(buf), at)) > 0) {
		out_mem(o, buf, (size_t)n);
		at += n;
	}
	if (fd < 0)
		out_str(o, "stacks of other processes were not read: the trace had ended\n");
	return n < 0 ? -errno : 0;
}

static int put_ended(int dir, const struct evidence_of *of)
{
	struct out o;
	int err = open_file(dir, "stacks.txt", &o), e;

	if (err)
		return err;
	for (size_t i = 0; i < of->words->nended; i++)
		hang_stacks_ended(of->kept, &of->words->ended[i], &o);
	err = copy_others(of->others_fd, &o);
	e = out_close(&o);
	return err ? err : e;
}

static int put_stacks(int dir, const struct evidence_of *of, const pid_t *pids, size_t n,
		      uint64_t until_ns)
{
	struct out o;
	int err = open_file(dir, "stacks.txt", &o), e;

	if (err)
		return err;
	err = hang_stacks(of->source, of->objects, pids, (int)n, of->rows, of->nrows, until_ns, &o);
	e = out_close(&o);
	return err ? err : e;
}

/* ---- folders ---- */

const char *evidence_next(struct evidence *e, const struct hang_incident *a, uint64_t realtime_ns)
{
	time_t at = (time_t)(realtime_ns / 1000000000);
	struct tm tm;
	char day[32];

	if (e->taken >= e->most)
		return NULL;
	gmtime_r(&at, &tm);
	strftime(day, sizeof(day), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(e->next, sizeof(e->next), "%s-%s-%d-%llu",
		 a->kind == HANG_RANK_ENDED ? "ended" : "hang", day, (int)getpid(),
		 (unsigned long long)a->number);
	snprintf(e->path, sizeof(e->path), "%s/%s", e->dir, e->next);
	return e->path;
}

int evidence_take(struct evidence *e, const struct evidence_of *of)
{
	uint64_t until_ns = now_ns() + STACKS_NS;
	struct safe_place made;
	pid_t pids[HANG_PIDS_MAX];
	size_t n = take_pids(of->incident, pids);
	mode_t mask;
	int dir, err;

	e->taken++;
	snprintf(e->folder.name, sizeof(e->folder.name), "%s", e->next);
	mask = umask(077);
	dir = safe_place_new(&e->folder, &made, true, e->path, NULL);
	err = dir < 0 ? dir : put_verdict(dir, of);
	if (!err)
		err = put_flight(dir, of);
	if (!err)
		err = put_about(dir, of, pids, n);
	if (!err)
		err = of->incident->kind == HANG_RANK_ENDED
			      ? put_ended(dir, of)
			      : put_stacks(dir, of, pids, n, until_ns);
	if (!err)
		err = safe_place_rename(&made, e->next);
	umask(mask);
	if (dir >= 0)
		close(dir);
	if (err)
		msg_error("the evidence cannot be written to %s: %s", e->path, writer_error(err));
	if (e->taken == e->most)
		msg_note("further hangs are reported without evidence: --max-dumps is %u", e->most);
	return err;
}
