/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_web.c - the file of --web-config: what is taken, what is refused and in which words, who
 * may own its files; and who is let in by name and password.
 */
#include <event2/event.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/serve/serve_auth.h"
#include "../../user/serve/serve_tls.h"
#include "../../user/serve/web_config.h"
#include "unit.h"

/* "secret", "another", "third" */
#define HASH "$2y$10$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u"
#define HASH2 "$2b$04$bbcdefghijklmnopqrstuuHxuMXRAXG6Lvy.NxFxpQtmBshlwqzfO"
#define HASH3 "$2a$05$cbcdefghijklmnopqrstuutSVpOEZrRr.cOF5n8F5uSoeng0ncuq."
#define FILES "tls_server_config:\n  cert_file: c\n  key_file: /k\n"

static char dir[] = "/tmp/cudatrace-web-XXXXXX", path[64];

static void put(const char *name, const char *text, size_t n, mode_t mode)
{
	char at[128];
	int fd;

	snprintf(at, sizeof(at), "%s/%s", dir, name);
	fd = open(at, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, text, n) == (ssize_t)n && !fchmod(fd, mode));
	close(fd);
}

static void write_config(const char *text)
{
	put("web.yml", text, strlen(text), 0644);
}

/* What it says of the text, without the folder; "": it is taken. */
static const char *said(const char *text)
{
	static char why[WEB_WHY_MAX];
	struct web_config c;

	write_config(text);
	if (!web_config_read(&c, path, why)) {
		web_config_close(&c);
		return "";
	}
	return !strncmp(why, path, strlen(path)) ? why + strlen(path) : why;
}

static void taken(void)
{
	char why[WEB_WHY_MAX], cert[100];
	struct web_config c;

	write_config("# a comment\n" FILES
		     "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: 'ca'\n"
		     "  min_version: \"TLS13\"\nbasic_auth_users:\n  a: " HASH "\n  \"b c\": " HASH2
		     "\n");
	snprintf(cert, sizeof(cert), "%s/c", dir);
	CHECK(!web_config_read(&c, path, why));
	CHECK(c.tls && c.tls13_only && c.client_auth == WEB_CLIENT_VERIFY && c.nusers == 2);
	CHECK_TEXT(cert, c.cert_file);
	CHECK_TEXT("/k", c.key_file);
	CHECK_TEXT("b c", c.users[1].name);
	CHECK(c.users[0].cost == 10 && c.users[1].cost == 4);
	web_config_close(&c);
	/* JSON is YAML */
	CHECK_TEXT("", said("{\"basic_auth_users\": {\"a\": \"" HASH3 "\"}}"));
	CHECK_TEXT("", said(FILES "  client_auth_type: RequestClientCert\n  min_version: TLS12\n"));
	CHECK_TEXT("", said(FILES
			    "  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: x\n"));
}

static void refused(void)
{
#define EMPTY ": is empty; it has to have tls_server_config, basic_auth_users, or both"
	CHECK_TEXT(EMPTY, said(""));
	CHECK_TEXT(EMPTY, said("# nothing\n"));
	CHECK_TEXT(EMPTY, said("{}\n"));
	CHECK_TEXT(
		":1: 'rate_limit' is not known; there are tls_server_config and basic_auth_users",
		said("rate_limit: 3\n"));
	CHECK_TEXT(":4: 'cipher_suites' is not known in tls_server_config; there are cert_file, "
		   "key_file, client_ca_file, client_auth_type and min_version",
		   said(FILES "  cipher_suites: x\n"));
	CHECK_TEXT(": tls_server_config needs cert_file and key_file",
		   said("tls_server_config:\n  cert_file: x\n"));
	CHECK_TEXT(":1: tls_server_config is empty", said("tls_server_config:\n"));
	CHECK_TEXT(":1: basic_auth_users is empty", said("basic_auth_users:\n"));
	CHECK_TEXT(": basic_auth_users is empty", said("basic_auth_users: {}\n"));
	CHECK_TEXT(":4: key_file is there twice", said(FILES "  key_file: k\n"));
	CHECK_TEXT(":2: cert_file has no value", said("tls_server_config:\n  cert_file:\n"));
	CHECK_TEXT(":2: cert_file has to be a text",
		   said("tls_server_config:\n  cert_file: [a, b]\n"));
	CHECK_TEXT(":4: tls_server_config is there twice", said(FILES FILES));
	CHECK_TEXT(": client_auth_type RequireAndVerifyClientCert needs a client_ca_file",
		   said(FILES "  client_auth_type: RequireAndVerifyClientCert\n"));
	CHECK_TEXT(": with a client_ca_file, give client_auth_type RequireAndVerifyClientCert or "
		   "VerifyClientCertIfGiven: else no certificate is verified",
		   said(FILES "  client_ca_file: x\n"));
	CHECK_TEXT(": client_auth_type 'Sometimes' is not known; give NoClientCert, "
		   "RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or "
		   "RequireAndVerifyClientCert",
		   said(FILES "  client_auth_type: Sometimes\n"));
	CHECK_TEXT(": min_version 'TLS10' is not served; give TLS12 or TLS13",
		   said(FILES "  min_version: TLS10\n"));
	CHECK_TEXT(":2: what user 'a' has is no bcrypt hash of a cost from 4 to 16; make one as by "
		   "htpasswd -nBC 10 NAME",
		   said("basic_auth_users:\n  a: secret\n"));
	CHECK(strstr(said("basic_auth_users:\n  a: "
			  "$2y$17$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u\n"),
		     "from 4 to 16"));
	/* of another kind of hash */
	CHECK(strstr(said("basic_auth_users:\n  a: "
			  "$1y$10$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u\n"),
		     "from 4 to 16"));
	/* a colon comes just behind the digits: this cost would be 10 */
	CHECK(strstr(said("basic_auth_users:\n  a: "
			  "$2y$0:$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u\n"),
		     "from 4 to 16"));
	CHECK(strstr(said("basic_auth_users:\n  a: "
			  "$2y$10.abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u\n"),
		     "from 4 to 16"));
	/* a slash comes just before the digits: this cost would be 9 */
	CHECK(strstr(said("basic_auth_users:\n  a: "
			  "$2y$1/$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u\n"),
		     "from 4 to 16"));
	CHECK_TEXT(":3: user 'a' is there twice",
		   said("basic_auth_users:\n  a: " HASH "\n  a: " HASH2 "\n"));
	CHECK_TEXT(":2: 'a:b' can be no user's name",
		   said("basic_auth_users:\n  'a:b': " HASH "\n"));
	CHECK_TEXT(":2: a key of basic_auth_users has to be a text",
		   said("basic_auth_users:\n  ? [a]\n  : " HASH "\n"));
	CHECK_TEXT(":2: cert_file has to be a text",
		   said("tls_server_config:\n  cert_file: &x y\n  key_file: *x\n"));
	CHECK_TEXT(":2: a second document", said("basic_auth_users: {a: " HASH "}\n---\n{}\n"));
	CHECK_TEXT(":1: the file has to have keys and values", said("- a\n"));
	CHECK(*said("basic_auth_users: {\n"));
	CHECK(*said("basic_auth_users: {a: b: c\n"));
	CHECK(*said("a: \"\\0\"\n"));
	CHECK(*said("\x80\xff\n"));
}

static void many_users(void)
{
	char *text = malloc(100000), *end = text;

	end += sprintf(end, "basic_auth_users:\n");
	for (int i = 0; i < WEB_USERS_MAX; i++)
		end += sprintf(end, "  u%d: " HASH "\n", i);
	CHECK_TEXT("", said(text));
	sprintf(end, "  one: " HASH "\n");
	CHECK_TEXT(":66: more than 64 users", said(text));
	free(text);
}

static const char *file_said(mode_t mode, mode_t refused)
{
	static char why[WEB_WHY_MAX];
	char at[100], *bytes;
	size_t len;

	*why = '\0';
	snprintf(at, sizeof(at), "%s/file", dir);
	put("file", "bytes", 5, mode);
	bytes = web_file_read(at, refused, &len, why);
	CHECK(!!bytes == !*why);
	CHECK(!bytes || (len == 5 && !memcmp(bytes, "bytes", 6)));
	free(bytes);
	return *why ? why + strlen(at) : "";
}

static void owners(void)
{
	char at[100], why[WEB_WHY_MAX], want[200];
	size_t len;

	CHECK_TEXT("", file_said(0600, 037));
	CHECK_TEXT("", file_said(0640, 037));
	CHECK_TEXT(" has mode 0644, so that others may read it; chmod 0640 it",
		   file_said(0644, 037));
	CHECK_TEXT(" has mode 0660, so that others may change it; chmod 0640 it",
		   file_said(0660, 037));
	CHECK_TEXT(" has mode 0666, so that others may change it; chmod 0644 it",
		   file_said(0666, 022));
	CHECK(!web_file_read(dir, 0, &len, why) && strstr(why, " is no regular file"));
	snprintf(at, sizeof(at), "%s/file", dir);
	if (!geteuid() && !chown(at, 12345, 0)) {
		CHECK(!web_file_read(at, 0, &len, why));
		snprintf(want, sizeof(want),
			 "%s belongs to user 12345; it has to belong to root, or to the user that "
			 "cudatrace runs as",
			 at);
		CHECK_TEXT(want, why);
	}
	unlink(at);
	CHECK(!mkfifo(at, 0600));
	CHECK(!web_file_read(at, 0, &len, why) && strstr(why, " is no regular file"));
	unlink(at);
	put("file", "", 0, 0600);
	CHECK(!truncate(at, WEB_FILE_MAX + 1));
	CHECK(!web_file_read(at, 0, &len, why) && strstr(why, "File too large"));
	snprintf(at, sizeof(at), "%s/nothing", dir);
	CHECK(!web_file_read(at, 0, &len, why) && strstr(why, "No such file"));
}

/* What is no certificate, and no key. */
/* The configuration itself: nothing of it is taken. */
static void unread(void)
{
	static const char good[] = "basic_auth_users: {a: " HASH "}\n";
	char why[WEB_WHY_MAX], want[200];
	struct web_config c;

	put("web.yml", good, strlen(good), 0666);
	CHECK_EQ(-EINVAL, web_config_read(&c, path, why));
	snprintf(want, sizeof(want),
		 "%s has mode 0666, so that others may change it; chmod 0644 it", path);
	CHECK_TEXT(want, why);
	CHECK(!c.nusers && !c.tls);
	unlink(path);
	CHECK_EQ(-EINVAL, web_config_read(&c, path, why));
	snprintf(want, sizeof(want), "cannot open %s: No such file or directory", path);
	CHECK_TEXT(want, why);
	CHECK(!c.nusers && !c.tls);
}

static void no_pem(void)
{
	char cert[64], key[64], why[WEB_WHY_MAX], want[200];
	struct web_config c = { .tls = true, .cert_file = cert, .key_file = key };

	snprintf(cert, sizeof(cert), "%s/cert", dir);
	snprintf(key, sizeof(key), "%s/key", dir);
	put("cert", "nothing\n", 8, 0644);
	put("key", "nothing\n", 8, 0600);
	CHECK(!serve_tls_open(&c, NULL, why));
	snprintf(want, sizeof(want), "%s: no certificate in PEM form: no start line", cert);
	CHECK_TEXT(want, why);
}

/* ---- who is let in ---- */

static struct event_base *base;
static int answers[4]; /* by verdict */

/* asked: where its verdict is to be written */
static void on_done(void *ctx, void *asked, enum auth_verdict verdict)
{
	(void)ctx;
	answers[verdict]++;
	*(int *)asked = verdict;
}

/* Waits for the verdict, if it is not known at once. */
static enum auth_verdict ask(struct serve_auth *a, const char *header)
{
	static const char peer[AUTH_PEER_BYTES] = "peer";
	int got = AUTH_LATER;
	enum auth_verdict v = serve_auth_ask(a, header, peer, &got);

	while (v == AUTH_LATER && got == AUTH_LATER)
		event_base_loop(base, EVLOOP_ONCE);
	return v == AUTH_LATER ? (enum auth_verdict)got : v;
}

#define BASIC(text) "Basic " text

static void passwords(void)
{
	static char a_name[] = "a", b_name[] = "b", hash2[] = HASH2, hash3[] = HASH3;
	static const char peer[AUTH_PEER_BYTES] = "peer", other[AUTH_PEER_BYTES] = "other";
	struct web_config c = { .users = { { a_name, hash2, 4 }, { b_name, hash3, 5 } },
				.nusers = 2 };
	struct serve_auth *a;
	char header[64];
	int me = 0, later = 0, busy = 0;

	base = event_base_new();
	a = serve_auth_open(base, on_done, NULL);
	CHECK(a && serve_auth_none(a) && serve_auth_ask(a, NULL, peer, &me) == AUTH_RIGHT);
	CHECK(serve_auth_users(a, &c) && !serve_auth_none(a));
	CHECK(ask(a, NULL) == AUTH_WRONG);
	CHECK(ask(a, "Bearer x") == AUTH_WRONG);
	CHECK(ask(a, "Bearer YTphbm90aGVy") == AUTH_WRONG); /* the right password, in another way */
	CHECK(ask(a, "Basic") == AUTH_WRONG);
	CHECK(ask(a, BASIC("!!!!")) == AUTH_WRONG);
	CHECK(ask(a, BASIC("YQ==")) == AUTH_WRONG); /* "a", without a colon */
	CHECK(!answers[AUTH_WRONG] && !answers[AUTH_RIGHT]);
	CHECK(ask(a, BASIC("YTphbm90aGVy")) == AUTH_RIGHT); /* a:another */
	CHECK(answers[AUTH_RIGHT] == 1);
	/* that is known now */
	CHECK(ask(a, BASIC("YTphbm90aGVy")) == AUTH_RIGHT && answers[AUTH_RIGHT] == 1);
	CHECK(ask(a, "basic   YTphbm90aGVy") == AUTH_RIGHT && answers[AUTH_RIGHT] == 1);
	CHECK(ask(a, BASIC("Yjp0aGlyZA==")) == AUTH_RIGHT &&
	      answers[AUTH_RIGHT] == 2); /* b:third */
	/* b:another, c:third (unknown, and the hash that it is compared with is of that
	 * password), a: (empty) */
	CHECK(ask(a, BASIC("Yjphbm90aGVy")) == AUTH_WRONG && answers[AUTH_WRONG] == 1);
	CHECK(ask(a, BASIC("Yjphbm90aGVy")) == AUTH_WRONG && answers[AUTH_WRONG] == 1);
	CHECK(ask(a, BASIC("Yzp0aGlyZA==")) == AUTH_WRONG && answers[AUTH_WRONG] == 2);
	CHECK(ask(a, BASIC("Yzp0aGlyZA==")) == AUTH_WRONG && answers[AUTH_WRONG] == 2);
	CHECK(ask(a, BASIC("YTo=")) == AUTH_WRONG && answers[AUTH_WRONG] == 3);
	/* "a:another\0x": a NUL would cut it */
	CHECK(ask(a, BASIC("YTphbm90aGVyAHg=")) == AUTH_WRONG && answers[AUTH_WRONG] == 3);
	/* at most so many of one peer wait, and others have room: nothing is taken in meanwhile */
	for (int i = 0; i < 26; i++) {
		snprintf(header, sizeof(header), "Basic YTpz%cA==", 'a' + i);
		switch (serve_auth_ask(a, header, peer, &me)) {
		case AUTH_LATER: later++; break;
		case AUTH_BUSY: busy++; break;
		default: CHECK(!"known already");
		}
	}
	CHECK(later == 8 && busy == 18);
	CHECK(serve_auth_ask(a, BASIC("YTp0dA=="), other, &me) == AUTH_LATER);
	/* and one that was right is let in at once */
	CHECK(serve_auth_ask(a, BASIC("YTphbm90aGVy"), peer, &me) == AUTH_RIGHT);
	while (answers[AUTH_WRONG] < 3 + 9)
		event_base_loop(base, EVLOOP_ONCE);
	/* other users: what was right is not any more, also if it was being checked */
	CHECK(serve_auth_ask(a, BASIC("YTphbm90aGVy"), peer, &me) == AUTH_RIGHT);
	c.users[0].hash = hash3;
	CHECK(serve_auth_ask(a, BASIC("YTp0aGlyZB=="), other, &me) == AUTH_LATER);
	CHECK(serve_auth_users(a, &c));
	CHECK(ask(a, BASIC("YTphbm90aGVy")) == AUTH_WRONG);
	CHECK(ask(a, BASIC("YTp0aGlyZA==")) == AUTH_RIGHT); /* a:third */
	/* the end: what is waited for is told so */
	later = serve_auth_ask(a, BASIC("YTp1dQ=="), other, &me) == AUTH_LATER;
	serve_auth_close(a);
	CHECK(later == 1 && answers[AUTH_BUSY] == 1);
	event_base_free(base);
}

int main(void)
{
	char command[64];

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/web.yml", dir);
	taken();
	refused();
	many_users();
	owners();
	unread();
	no_pem();
	passwords();
	snprintf(command, sizeof(command), "rm -r %s", dir);
	if (system(command))
		return 1;
	return unit_end();
}
