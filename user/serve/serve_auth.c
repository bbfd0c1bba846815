/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_auth.c - see serve_auth.h. Results are kept under a keyed hash of the credentials and of
 * what they were compared with; the password is never kept. Right and wrong ones are kept
 * separately: a client that tries many passwords cannot push out a right one. An unknown user's
 * password is compared with the hash of the highest cost among the users, so that it takes as long
 * as a known user's.
 */
#include <crypt.h>
#include <errno.h>
#include <event2/event.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../util/msg.h"
#include "../util/thread.h"
#include "../util/types.h"
#include "serve_auth.h"
#include "web_config.h"

#define WAITING_MAX 64
#define WAITING_OF_PEER 8
#define KEPT 128 /* number of right ones kept, and of wrong ones */
#define CREDENTIALS_MAX 512
#define KEY_BYTES 32
#define NICE 10

struct found {
	bool used;
	unsigned char key[KEY_BYTES];
};

struct ask {
	struct ask *next;
	void *asked;
	char peer[AUTH_PEER_BYTES];
	unsigned char key[KEY_BYTES];
	unsigned generation; /* of the users */
	char hash[64], password[CREDENTIALS_MAX];
	bool known, right;
};

struct serve_auth {
	void (*done)(void *ctx, void *asked, enum auth_verdict);
	void *ctx;
	struct web_user users[WEB_USERS_MAX];
	int nusers;
	unsigned generation;
	unsigned char secret[KEY_BYTES];
	struct found right[KEPT], wrong[KEPT];
	unsigned right_at, wrong_at;
	struct ask *asks[WAITING_MAX]; /* all questions without an answer */
	int nasks;
	struct event *came;
	int fd; /* written to when a password has been checked */
	/* protects what the thread and we share */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct ask *todo, **todo_end, *checked;
	pthread_t thread;
	bool running, end;
};

/* ---- the thread ---- */

static bool is_right(const struct ask *a, struct crypt_data *data)
{
	const char *got;

	memset(data, 0, sizeof(*data));
	got = crypt_r(a->password, a->hash, data);
	return got && strlen(got) == strlen(a->hash) &&
	       !CRYPTO_memcmp(got, a->hash, strlen(a->hash)) && a->known;
}

static void *serve_auth_check(void *arg)
{
	struct crypt_data *data = malloc(sizeof(*data));
	struct serve_auth *s = arg;
	uint64_t one = 1;

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
	pthread_mutex_lock(&s->lock);
	while (!s->end) {
		struct ask *a = s->todo;

		if (!a) {
			pthread_cond_wait(&s->wake, &s->lock);
			continue;
		}
		s->todo = a->next;
		if (!s->todo)
			s->todo_end = &s->todo;
		pthread_mutex_unlock(&s->lock);
		a->right = data && is_right(a, data);
		OPENSSL_cleanse(a->password, sizeof(a->password));
		pthread_mutex_lock(&s->lock);
		a->next = s->checked;
		s->checked = a;
		if (write(s->fd, &one, sizeof(one)) < 0) {
			/* the counter is full: it will be read anyway */
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (data)
		OPENSSL_cleanse(data, sizeof(*data));
	free(data);
	return NULL;
}

/* Starts the thread at the first password to be checked: by then privileges have been dropped. */
static bool serve_auth_start(struct serve_auth *s)
{
	s->running = s->running ||
		     !thread_start(&s->thread, "ct-passwords", 0, serve_auth_check, s);
	return s->running;
}

/* ---- results ---- */

static bool is_kept(const struct found *all, const unsigned char *key)
{
	bool any = false;

	for (int i = 0; i < KEPT; i++)
		any |= all[i].used && !CRYPTO_memcmp(all[i].key, key, KEY_BYTES);
	return any;
}

static void serve_auth_keep(struct found *all, unsigned *at, const unsigned char *key)
{
	if (is_kept(all, key))
		return;
	all[*at % KEPT].used = true;
	memcpy(all[*at % KEPT].key, key, KEY_BYTES);
	++*at;
}

static void on_came(evutil_socket_t fd, short what, void *ctx)
{
	struct serve_auth *s = ctx;
	struct ask *a, *next;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) < 0)
		return;
	pthread_mutex_lock(&s->lock);
	a = s->checked;
	s->checked = NULL;
	pthread_mutex_unlock(&s->lock);
	for (; a; a = next) {
		bool right = a->right && a->generation == s->generation;
		int i = 0;

		next = a->next;
		while (s->asks[i] != a)
			i++;
		s->asks[i] = s->asks[--s->nasks];
		if (right)
			serve_auth_keep(s->right, &s->right_at, a->key);
		else if (a->generation == s->generation)
			serve_auth_keep(s->wrong, &s->wrong_at, a->key);
		s->done(s->ctx, a->asked, right ? AUTH_RIGHT : AUTH_WRONG);
		free(a);
	}
}

/* ---- questions ---- */

/* "Basic dXNlcjpwYXNzd29yZA==": what it says, with a NUL behind it. False: it is none. */
static bool decode(const char *header, char *out, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = 0, have = 0;
	size_t n = 0;

	if (!header || strncasecmp(header, "Basic ", 6))
		return false;
	header += 6 + strspn(header + 6, " ");
	for (; *header && *header != '='; header++) {
		const char *d = strchr(digits, *header);

		if (!d)
			return false;
		bits = bits << 6 | (unsigned)(d - digits);
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		out[n] = (char)(bits >> have);
		/* a password with a NUL would be cut, and taken for a shorter one */
		if (!out[n] || ++n == size)
			return false;
	}
	out[n] = '\0';
	return !header[strspn(header, "=")];
}

/* The key is made of the secret, the hash and the given credentials; each ends with a NUL. */
static bool serve_auth_key_of(const struct serve_auth *s, const char *hash, const char *name,
			      const char *password, unsigned char *key)
{
	const char *parts[] = { hash, name, password };
	char text[CREDENTIALS_MAX + 80];
	unsigned int len = 0;
	size_t n = 0;
	bool ok;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		size_t size = strlen(parts[i]) + 1;

		memcpy(text + n, parts[i], size);
		n += size;
	}
	ok = HMAC(EVP_sha256(), s->secret, KEY_BYTES, (const unsigned char *)text, n, key, &len) &&
	     len == KEY_BYTES;
	OPENSSL_cleanse(text, sizeof(text));
	return ok;
}

/* The user; of an unknown one, the user with the highest cost. */
static const struct web_user *user_of(const struct serve_auth *s, const char *name, bool *known)
{
	const struct web_user *u = &s->users[0];

	*known = false;
	for (int i = 0; i < s->nusers; i++) {
		if (!strcmp(s->users[i].name, name)) {
			*known = true;
			return &s->users[i];
		}
		if (s->users[i].cost > u->cost)
			u = &s->users[i];
	}
	return u;
}

static bool has_room(const struct serve_auth *s, const void *peer)
{
	int n = 0;

	for (int i = 0; i < s->nasks; i++)
		n += !memcmp(s->asks[i]->peer, peer, AUTH_PEER_BYTES);
	return s->nasks < WAITING_MAX && n < WAITING_OF_PEER;
}

static enum auth_verdict serve_auth_put(struct serve_auth *s, struct ask *a)
{
	if (!serve_auth_start(s)) {
		free(a);
		return AUTH_BUSY;
	}
	s->asks[s->nasks++] = a;
	pthread_mutex_lock(&s->lock);
	*s->todo_end = a;
	s->todo_end = &a->next;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	return AUTH_LATER;
}

static enum auth_verdict ask(struct serve_auth *s, char *name, const void *peer, void *asked)
{
	char *password = strchr(name, ':');
	unsigned char key[KEY_BYTES];
	const struct web_user *u;
	struct ask *a;
	bool known;

	if (!password)
		return AUTH_WRONG;
	*password++ = '\0';
	u = user_of(s, name, &known);
	if (!serve_auth_key_of(s, u->hash, name, password, key))
		return AUTH_BUSY;
	if (known && is_kept(s->right, key))
		return AUTH_RIGHT;
	if (is_kept(s->wrong, key))
		return AUTH_WRONG;
	a = has_room(s, peer) ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return AUTH_BUSY;
	a->asked = asked;
	a->known = known;
	a->generation = s->generation;
	memcpy(a->peer, peer, AUTH_PEER_BYTES);
	memcpy(a->key, key, KEY_BYTES);
	memcpy(a->hash, u->hash, strlen(u->hash) + 1);
	memcpy(a->password, password, strlen(password) + 1);
	return serve_auth_put(s, a);
}

enum auth_verdict serve_auth_ask(struct serve_auth *s, const char *header, const void *peer,
				 void *asked)
{
	char text[CREDENTIALS_MAX];
	enum auth_verdict verdict;

	if (serve_auth_none(s))
		return AUTH_RIGHT;
	verdict = decode(header, text, sizeof(text)) ? ask(s, text, peer, asked) : AUTH_WRONG;
	OPENSSL_cleanse(text, sizeof(text));
	return verdict;
}

bool serve_auth_none(const struct serve_auth *s)
{
	return !s->nusers;
}

/* ---- beginning and end ---- */

static void serve_auth_forget(struct serve_auth *s)
{
	for (int i = 0; i < s->nusers; i++) {
		free(s->users[i].name);
		free(s->users[i].hash);
	}
	s->nusers = 0;
	memset(s->right, 0, sizeof(s->right));
	memset(s->wrong, 0, sizeof(s->wrong));
	s->generation++;
}

bool serve_auth_users(struct serve_auth *s, const struct web_config *c)
{
	struct web_user all[WEB_USERS_MAX];
	bool ok = true;

	for (int i = 0; i < c->nusers; i++) {
		all[i] = (struct web_user){ .name = strdup(c->users[i].name),
					    .hash = strdup(c->users[i].hash),
					    .cost = c->users[i].cost };
		ok &= all[i].name && all[i].hash;
	}
	if (ok)
		serve_auth_forget(s);
	for (int i = 0; i < c->nusers; i++) {
		if (ok) {
			s->users[s->nusers++] = all[i];
			continue;
		}
		free(all[i].name);
		free(all[i].hash);
	}
	return ok;
}

struct serve_auth *serve_auth_open(struct event_base *base,
				   void (*done)(void *ctx, void *asked, enum auth_verdict),
				   void *ctx)
{
	struct serve_auth *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->done = done;
	s->ctx = ctx;
	s->todo_end = &s->todo;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->came = s->fd < 0 ? NULL : event_new(base, s->fd, EV_READ | EV_PERSIST, on_came, s);
	if (!s->came || event_add(s->came, NULL) || RAND_bytes(s->secret, KEY_BYTES) != 1) {
		serve_auth_close(s);
		return NULL;
	}
	return s;
}

void serve_auth_close(struct serve_auth *s)
{
	if (!s)
		return;
	if (s->running) {
		pthread_mutex_lock(&s->lock);
		s->end = true;
		pthread_cond_signal(&s->wake);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	for (int i = 0; i < s->nasks; i++) {
		s->done(s->ctx, s->asks[i]->asked, AUTH_BUSY);
		OPENSSL_cleanse(s->asks[i]->password, sizeof(s->asks[i]->password));
		free(s->asks[i]);
	}
	if (s->came)
		event_free(s->came);
	if (s->fd >= 0)
		close(s->fd);
	serve_auth_forget(s);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	OPENSSL_cleanse(s->secret, sizeof(s->secret));
	free(s);
}
