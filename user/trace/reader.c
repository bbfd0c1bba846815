/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.c - see reader.h.
 *
 * The reader goes through the file by the heads of its blocks. Each head has its own checksum. So a
 * damaged body can be skipped, and the number of records in it is known. If a head is damaged, the
 * next one is searched for byte by byte. The index is used only when a time range is asked for: it
 * tells which blocks need not be read. It is trusted for nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "../util/msg.h"
#include "../util/utf8.h"
#include "decode.h"
#include "reader.h"

#define SEARCH 65536
#define TEXT_MAX (256u << 10) /* bytes of the head's and the end's text */

struct reader {
	int fd;
	uint64_t size, at; /* size of the file; place of the next block */
	uint64_t first_at; /* the place of the first block behind the head */
	uint64_t seq;	   /* the sequence number that the next block should have */
	char *head, *end;
	char *body;
	size_t body_cap;
	uint64_t from_ns, to_ns;
	struct funcs *funcs;
	struct decoder *decoder;
	/* place and number of the index's entries; 0: there is no index, or it must not be used */
	uint64_t index_at, index_n;
	uint64_t window_first; /* the first of the index entries that are in memory */
	uint32_t window_n;
	struct trace_index_entry window[256];
	bool head_damaged, in_block, done;
	bool span_unread; /* of the block at span_at, which reader_next_span() moved over */
	uint64_t span_at;
	uint64_t block_left; /* records of this block that have not been returned yet */
	uint64_t last_ns;    /* the latest end of the returned records */
	struct ct_lost lost; /* must be returned before any other record; count 0: nothing */
	struct reader_stats stats;
	union {
		struct ct_foreign foreign;
		char room[sizeof(struct ct_foreign) + CT_MAX_WORDS * 8 + 512];
	};
};

/* Reads exactly n bytes. Returns 0, -ENODATA if the file has fewer, or -errno. */
static int read_at(const struct reader *r, uint64_t at, void *to, size_t n)
{
	char *p = to;

	if (at > r->size)
		return -ENODATA;
	while (n) {
		ssize_t got = pread(r->fd, p, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -ENODATA; /* the file was made shorter meanwhile */
		p += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static bool good_head(const struct trace_block *b)
{
	return b->magic == TRACE_BLOCK_MAGIC && b->len <= TRACE_BODY_MAX &&
	       b->head_crc ==
		       (uint32_t)crc32(0, (const void *)b, offsetof(struct trace_block, head_crc));
}

/* Returns 0, -ENODATA if the file ends within the body, -EBADMSG if its checksum is wrong, or
 * -errno. */
static int read_body(struct reader *r, uint64_t at, const struct trace_block *b)
{
	int err;

	if (r->body_cap < b->len + 1u) {
		free(r->body);
		r->body_cap = 0;
		r->body = malloc(b->len + 1u);
		if (!r->body)
			return -ENOMEM;
		r->body_cap = b->len + 1u;
	}
	err = read_at(r, at + sizeof(*b), r->body, b->len);
	if (err)
		return err;
	r->body[b->len] = '\0';
	return b->body_crc == (uint32_t)crc32(0, (const void *)r->body, b->len) ? 0 : -EBADMSG;
}

static char *keep_text(const struct reader *r, uint32_t len)
{
	return len > TEXT_MAX ? NULL : strndup(r->body, len);
}

/* Reads the head. If the head is damaged, this is noted, and the records behind it are read all the
 * same. */
static int open_head(struct reader *r)
{
	char magic[TRACE_MAGIC_LEN];
	struct trace_block b;
	int err;

	err = read_at(r, 0, magic, sizeof(magic));
	if (err)
		return err;
	if (memcmp(magic, TRACE_MAGIC, sizeof(magic)))
		return -EBADMSG;
	r->first_at = sizeof(magic);
	err = read_at(r, sizeof(magic), &b, sizeof(b));
	if (!err && good_head(&b) && b.type == TRACE_HEAD) {
		r->first_at = sizeof(magic) + sizeof(b) + b.len;
		err = read_body(r, sizeof(magic), &b);
		if (!err)
			r->head = keep_text(r, b.len);
	}
	if (err && err != -EBADMSG)
		return err;
	if (r->head)
		return reader_number(r->head, "format") > TRACE_FORMAT ? -EPROTONOSUPPORT : 0;
	r->head_damaged = true;
	r->head = strdup("");
	return r->head ? 0 : -ENOMEM;
}

/* Looks for an index whose checksum is right at the end of the file. It may let us skip blocks. */
static void look_for_index(struct reader *r)
{
	static const char magic[8] = TRACE_TAIL_MAGIC;
	uint32_t crc = 0, left;
	struct trace_tail tail;
	struct trace_block b;
	char buf[4096];

	if (r->size < sizeof(tail) || read_at(r, r->size - sizeof(tail), &tail, sizeof(tail)) ||
	    memcmp(tail.magic, magic, sizeof(magic)) || read_at(r, tail.offset, &b, sizeof(b)) ||
	    !good_head(&b) || b.type != TRACE_INDEX || tail.offset + sizeof(b) + b.len != r->size ||
	    b.len < sizeof(tail) || (b.len - sizeof(tail)) % sizeof(struct trace_index_entry))
		return;
	for (left = b.len; left;) {
		uint32_t n = left < sizeof(buf) ? left : (uint32_t)sizeof(buf);

		if (read_at(r, r->size - left, buf, n))
			return;
		crc = (uint32_t)crc32(crc, (const void *)buf, n);
		left -= n;
	}
	if (crc != b.body_crc)
		return;
	r->stats.indexed = true;
	r->index_at = tail.offset + sizeof(b);
	r->index_n = (b.len - sizeof(tail)) / sizeof(struct trace_index_entry);
}

int reader_open(struct reader **out, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
	    err = fd < 0 ? -errno : 0;

	*out = NULL;
	if (err)
		return err;
	err = reader_open_fd(out, fd);
	close(fd);
	return err;
}

int reader_fd(const struct reader *r)
{
	return r->fd;
}

int reader_open_fd(struct reader **out, int fd)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct stat st = { 0 };
	int err = 0;

	*out = NULL;
	if (!r)
		return -ENOMEM;
	r->to_ns = UINT64_MAX;
	r->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (r->fd < 0 || fstat(r->fd, &st) < 0)
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -ESPIPE;
	if (!err) {
		r->size = r->stats.bytes = (uint64_t)st.st_size;
		r->funcs = funcs_open();
		r->decoder = r->funcs ? decode_open(r->funcs) : NULL;
		err = r->decoder ? open_head(r) : -ENOMEM;
	}
	if (err) {
		reader_close(r);
		return err;
	}
	look_for_index(r);
	reader_rewind(r);
	*out = r;
	return 0;
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	decode_close(r->decoder);
	funcs_close(r->funcs);
	free(r->head);
	free(r->end);
	free(r->body);
	free(r);
}

const char *reader_error(int err)
{
	switch (err) {
	case -ENODATA: return "it ends within its first block";
	case -EBADMSG: return "it is not a recording of cudatrace";
	case -EPROTONOSUPPORT:
		return "it was written by a newer cudatrace, in a format that this one does not "
		       "know";
	case -ESPIPE: return "it is not a regular file";
	default: return strerror(-err);
	}
}

uint64_t reader_at(const struct reader *r)
{
	return r->at;
}

void reader_rewind(struct reader *r)
{
	struct reader_stats stats = { .bytes = r->size,
				      .indexed = r->stats.indexed,
				      .damaged = r->head_damaged };

	r->at = r->first_at;
	r->seq = 1;
	r->in_block = r->done = false;
	r->lost.count = 0;
	r->last_ns = 0;
	r->stats = stats;
}

void reader_range(struct reader *r, uint64_t from_ns, uint64_t to_ns)
{
	r->from_ns = from_ns;
	r->to_ns = to_ns;
}

/* ---- texts ---- */

const char *reader_head(const struct reader *r)
{
	return r->head;
}

const char *reader_end(const struct reader *r)
{
	return r->end;
}

static const char *line_of(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, key, n) && line[n] == ' ')
			return line + n + 1;
	return NULL;
}

const char *reader_value(const char *text, const char *key, char *buf, size_t size)
{
	const char *v = line_of(text, key);
	size_t n = v ? strcspn(v, "\n") : 0;

	if (!v)
		return NULL;
	if (n >= size)
		n = size - 1;
	memcpy(buf, v, n);
	buf[n] = '\0';
	utf8_plain(buf);
	return buf;
}

uint64_t reader_number(const char *text, const char *key)
{
	const char *v = line_of(text, key);

	return v && *v >= '0' && *v <= '9' ? strtoull(v, NULL, 10) : 0;
}

/* ---- blocks ---- */

/* Reports that something is missing here: at least one record, or `count` if that is known. */
static void tell_lost(struct reader *r, uint64_t count, uint64_t until_ns)
{
	uint64_t before = r->lost.count;

	if (!count)
		count = 1;
	r->stats.lost_records += count;
	r->lost = (struct ct_lost){
		.h = { .size = sizeof(r->lost), .kind = CT_LOST, .start_ns = r->last_ns },
		.cause = CT_LOSS_FILE,
		.cpu = ~0u,
		.count = before + count,
	};
	r->lost.h.end_ns = until_ns > r->last_ns && until_ns != UINT64_MAX ? until_ns : r->last_ns;
}

/* Finds the next block's head at or after `at`. Returns its place, or the file's size if there is
 * none. */
static int reader_search(struct reader *r, uint64_t at, uint64_t *found)
{
	static const uint32_t magic = TRACE_BLOCK_MAGIC;
	char *buf = malloc(SEARCH + 3);
	int err = 0;

	*found = r->size;
	if (!buf)
		return -ENOMEM;
	while (at < r->size && *found == r->size) {
		size_t n = r->size - at < SEARCH + 3 ? (size_t)(r->size - at) : SEARCH + 3;
		const char *p;

		err = read_at(r, at, buf, n);
		if (err)
			break;
		for (p = buf; (p = memmem(p, n - (size_t)(p - buf), &magic, sizeof(magic))); p++) {
			struct trace_block b;

			if (!read_at(r, at + (uint64_t)(p - buf), &b, sizeof(b)) && good_head(&b) &&
			    b.seq >= r->seq) {
				*found = at + (uint64_t)(p - buf);
				break;
			}
		}
		at += n < SEARCH + 3 ? n : SEARCH;
	}
	free(buf);
	return err == -ENODATA ? 0 : err;
}

/* The file ends within the block at `at`. */
static int cut(struct reader *r, uint64_t at)
{
	r->stats.cut_bytes = r->size - at;
	r->done = true;
	return 0;
}

/* Skips a damaged head at r->at. The file may also end within that head. */
static int over_damage(struct reader *r)
{
	uint64_t next;
	int err = reader_search(r, r->at + 1, &next);

	if (err)
		return err;
	if (next == r->size)
		return cut(r, r->at);
	r->stats.damaged++;
	r->stats.damaged_bytes += next - r->at;
	r->at = next;
	return 0;
}

/* Whether a block can be skipped: it has nothing from the requested time, and nothing that other
 * blocks need. */
static bool passed_over(const struct reader *r, uint8_t type, uint8_t flags, uint64_t first_ns,
			uint64_t last_ns)
{
	return type == TRACE_DATA && !(flags & TRACE_F_DEFINITIONS) &&
	       (last_ns < r->from_ns || first_ns > r->to_ns);
}

/* Returns the index entry of the block with this number; NULL: there is none. */
static const struct trace_index_entry *entry_of(struct reader *r, uint64_t seq)
{
	if (seq >= r->index_n)
		return NULL;
	if (seq < r->window_first || seq - r->window_first >= r->window_n) {
		uint64_t n = r->index_n - seq < ARRAY_LEN(r->window) ? r->index_n - seq
								     : ARRAY_LEN(r->window);

		r->window_n = 0;
		if (read_at(r, r->index_at + seq * sizeof(r->window[0]), r->window,
			    (size_t)n * sizeof(r->window[0])))
			return NULL;
		r->window_first = seq;
		r->window_n = (uint32_t)n;
	}
	return &r->window[seq - r->window_first];
}

/* Skips blocks without reading them, as long as the index agrees with the current place. */
static void skip_by_index(struct reader *r)
{
	const struct trace_index_entry *e;

	while ((e = entry_of(r, r->seq)) && e->offset == r->at && e->len <= TRACE_BODY_MAX &&
	       passed_over(r, e->type, e->flags, e->first_ns, e->last_ns) &&
	       r->at + sizeof(struct trace_block) + e->len <= r->size) {
		r->at += sizeof(struct trace_block) + e->len;
		r->seq++;
		r->stats.blocks++;
	}
}

/* Moves behind the block whose head is at r->at. Returns false if the file ends within it. */
static bool pass_block(struct reader *r, const struct trace_block *b)
{
	r->span_at = r->at;
	r->at += sizeof(*b) + b->len;
	r->seq = b->seq + 1;
	if (b->type == TRACE_DATA)
		r->stats.blocks++;
	return r->at <= r->size;
}

/* Takes the block behind a valid head at r->at. Sets in_block if the block has records. */
static int take_block(struct reader *r, const struct trace_block *b)
{
	uint64_t at = r->at;
	int err;

	/* what lay between was skipped as damage; its number of records is not known */
	if (b->seq > r->seq)
		tell_lost(r, 0, b->first_ns);
	msg_debug(MSG_TRACE, "block %llu read: at byte %llu, type %u, %u records, %u bytes",
		  (unsigned long long)b->seq, (unsigned long long)at, (unsigned int)b->type,
		  (unsigned int)b->records, (unsigned int)b->len);
	if (!pass_block(r, b))
		return cut(r, at);
	if (passed_over(r, b->type, b->flags, b->first_ns, b->last_ns))
		return 0;
	if (b->type != TRACE_DATA && b->type != TRACE_END)
		return 0;
	err = read_body(r, at, b);
	if (err == -ENODATA) /* it was made shorter meanwhile */
		return cut(r, at);
	if (!err && b->type == TRACE_END) {
		free(r->end);
		r->end = keep_text(r, b->len);
		r->stats.ended = true;
		return 0;
	}
	if (!err)
		err = decode_block(r->decoder, r->body, b->len);
	if (err == -EBADMSG) {
		r->stats.damaged++;
		r->stats.damaged_bytes += sizeof(*b) + b->len;
		if (b->type == TRACE_DATA)
			tell_lost(r, b->records, b->last_ns);
		return 0;
	}
	r->in_block = !err;
	r->block_left = b->records;
	return err;
}

/* Reads the next head into b. Returns 1; 0: there is none here, because the file ends or is damaged;
 * or -errno. */
static int next_head(struct reader *r, struct trace_block *b)
{
	int err;

	if (r->from_ns || r->to_ns != UINT64_MAX)
		skip_by_index(r);
	if (r->at == r->size) {
		r->done = true;
		return 0;
	}
	err = read_at(r, r->at, b, sizeof(*b));
	if (err && err != -ENODATA)
		return err;
	/* a block that comes before its place was not written there */
	if (err || !good_head(b) || b->seq < r->seq)
		return over_damage(r);
	return 1;
}

static int next_block(struct reader *r)
{
	struct trace_block b;
	int n = next_head(r, &b);

	return n == 1 ? take_block(r, &b) : n;
}

int reader_next_span(struct reader *r, uint64_t *first_ns, uint64_t *last_ns)
{
	struct trace_block b;

	r->in_block = false;
	while (!r->done) {
		int n = next_head(r, &b);

		if (n < 0)
			return n;
		if (!n ||
		    (pass_block(r, &b) && (b.type != TRACE_DATA ||
					   passed_over(r, b.type, b.flags, b.first_ns, b.last_ns))))
			continue;
		if (r->at > r->size)
			return cut(r, r->span_at);
		*first_ns = b.first_ns;
		*last_ns = b.last_ns;
		r->span_unread = true;
		return 1;
	}
	return 0;
}

/* ---- records ---- */

/* Converts a call of a function that has no row in this version. */
static const struct ct_hdr *foreign(struct reader *r, const struct ct_call *c,
				    const struct trace_func *f)
{
	size_t name = strlen(f->name), domain = strlen(f->domain);
	struct ct_foreign *o = &r->foreign;
	char *at;

	if (c->nwords > CT_MAX_WORDS || c->h.size < sizeof(*c) + c->nwords * 8u)
		return NULL;
	memset(r->room, 0, sizeof(r->room));
	o->h = c->h;
	o->h.kind = CT_FOREIGN;
	o->ret = c->ret;
	o->kind = c->h.kind;
	o->nwords = c->nwords;
	o->depth = c->depth;
	o->name_len = (uint8_t)name;
	o->domain_len = (uint8_t)domain;
	o->why = f->fit == FUNCS_CHANGED ? CT_FOREIGN_CHANGED : CT_FOREIGN_UNKNOWN;
	memcpy(o->words, c->words, c->nwords * 8u);
	at = (char *)&o->words[c->nwords];
	memcpy(at, f->name, name);
	memcpy(at + name, f->domain, domain);
	o->h.size = (uint16_t)((sizeof(*o) + c->nwords * 8u + name + domain + 7) & ~(size_t)7);
	return &o->h;
}

/* Reads the next record of this block. Returns 1, or 0 if there are no more. */
static int from_block(struct reader *r, const struct ct_hdr **rec)
{
	struct trace_func *func;
	struct ct_hdr *h;

	for (;;) {
		int n = decode_next(r->decoder, &h, &func);

		if (n <= 0) {
			r->in_block = false;
			if (n < 0) {
				r->stats.damaged++;
				tell_lost(r, r->block_left, 0);
			}
			return 0;
		}
		if (r->block_left)
			r->block_left--;
		if (func)
			func->calls += h->kind == CT_CALL;
		*rec = func && func->row < 0 ? foreign(r, (const struct ct_call *)h, func) : h;
		if (*rec && !record_check(*rec, (*rec)->size))
			break;
		r->stats.malformed++;
		tell_lost(r, 1, 0);
	}
	if (h->end_ns > r->last_ns && h->pid)
		r->last_ns = h->end_ns;
	r->stats.records++;
	return 1;
}

int reader_span_record(struct reader *r, const struct ct_hdr **rec)
{
	if (r->span_unread) {
		struct trace_block b;
		int err = read_at(r, r->span_at, &b, sizeof(b));

		r->span_unread = false;
		if (!err && good_head(&b)) {
			r->at = r->span_at;
			r->seq = b.seq;
			r->stats.blocks--;
			err = take_block(r, &b);
		}
		if (err)
			return err;
	}
	return r->in_block && from_block(r, rec);
}

int reader_next(struct reader *r, const struct ct_hdr **rec)
{
	int err;

	for (;;) {
		if (r->in_block && from_block(r, rec))
			return 1;
		/* a loss within a block is reported after the current record, which must come
		 * first */
		if (r->lost.count && !r->in_block)
			break;
		if (r->done)
			return 0;
		err = next_block(r);
		if (err)
			return err;
		if (r->lost.count && r->in_block)
			break;
	}
	*rec = memcpy(r->room, &r->lost, sizeof(r->lost));
	r->lost.count = 0;
	return 1;
}

void reader_stats(const struct reader *r, struct reader_stats *stats)
{
	*stats = r->stats;
}

struct funcs *reader_funcs(struct reader *r)
{
	return r->funcs;
}
