/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve_tls.c - see serve_tls.h. The files are read once, through a descriptor whose owner and mode
 * were checked, and given to OpenSSL as bytes. No session is resumed and nothing is renegotiated:
 * each connection shows its certificate.
 */
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve_peer.h"
#include "serve_tls.h"
#include "web_config.h"

/* Only the owner of a key may read and write it; its group may at most read it. */
#define KEY_REFUSED 037
#define PUBLIC_REFUSED 022

/* OpenSSL would ask at the terminal. */
static int no_password(char *buf, int size, int rwflag, void *ctx)
{
	(void)buf, (void)size, (void)rwflag, (void)ctx;
	return -1;
}

static int any_certificate(int ok, X509_STORE_CTX *ctx)
{
	(void)ok, (void)ctx;
	return 1;
}

/* OpenSSL's own reason, if it gave one. */
static int wrong(char *why, const char *path, const char *what)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	snprintf(why, WEB_WHY_MAX, "%s: %s%s%s", path, what, reason ? ": " : "",
		 reason ? reason : "");
	return -1;
}

static BIO *serve_tls_open_file(const char *path, mode_t refused, char **bytes, char *why)
{
	size_t len;
	BIO *bio;

	*bytes = web_file_read(path, refused, &len, why);
	if (!*bytes)
		return NULL;
	bio = BIO_new_mem_buf(*bytes, (int)len);
	if (!bio) {
		free(*bytes);
		*bytes = NULL;
		wrong(why, path, "no memory");
	}
	return bio;
}

/* The server's own certificate, and those between it and its authority. */
static int use_chain(SSL_CTX *ctx, const char *path, char *why)
{
	char *bytes;
	BIO *bio = serve_tls_open_file(path, PUBLIC_REFUSED, &bytes, why);
	X509 *cert;
	int n = 0, ok = 1;

	if (!bio)
		return -1;
	while (ok && (cert = PEM_read_bio_X509(bio, NULL, no_password, NULL))) {
		/* the context takes ownership of the chain's certificates, but not of the first
		 * one */
		ok = n++ ? (int)SSL_CTX_add_extra_chain_cert(ctx, cert)
			 : SSL_CTX_use_certificate(ctx, cert);
		if (n == 1 || !ok)
			X509_free(cert);
	}
	BIO_free(bio);
	free(bytes);
	/* the end of the file is an error of its own */
	if (n && ok) {
		ERR_clear_error();
		return 0;
	}
	return wrong(why, path, "no certificate in PEM form");
}

static int use_key(SSL_CTX *ctx, const struct web_config *c, char *why)
{
	char *bytes;
	BIO *bio = serve_tls_open_file(c->key_file, KEY_REFUSED, &bytes, why);
	EVP_PKEY *key;
	int err = 0;

	if (!bio)
		return -1;
	key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	if (!key)
		err = wrong(why, c->key_file, "no private key in PEM form without a password");
	else if (!SSL_CTX_use_PrivateKey(ctx, key) || !SSL_CTX_check_private_key(ctx))
		err = wrong(why, c->key_file, "is not the key of the certificate");
	EVP_PKEY_free(key);
	BIO_free(bio);
	OPENSSL_cleanse(bytes, strlen(bytes));
	free(bytes);
	return err;
}

/* Who may sign clients' certificates. */
static int use_ca(SSL_CTX *ctx, const char *path, char *why)
{
	char *bytes;
	BIO *bio = serve_tls_open_file(path, PUBLIC_REFUSED, &bytes, why);
	X509 *cert;
	int n = 0;

	if (!bio)
		return -1;
	while ((cert = PEM_read_bio_X509(bio, NULL, no_password, NULL))) {
		n += X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert) &&
		     SSL_CTX_add_client_CA(ctx, cert);
		X509_free(cert);
	}
	BIO_free(bio);
	free(bytes);
	if (!n)
		return wrong(why, path, "no certificate in PEM form");
	ERR_clear_error();
	return 0;
}

static void ask_clients(SSL_CTX *ctx, enum web_client_auth auth)
{
	static const int modes[] = {
		[WEB_CLIENT_NONE] = SSL_VERIFY_NONE,
		[WEB_CLIENT_REQUEST] = SSL_VERIFY_PEER,
		[WEB_CLIENT_REQUIRE_ANY] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
		[WEB_CLIENT_VERIFY_IF_GIVEN] = SSL_VERIFY_PEER,
		[WEB_CLIENT_VERIFY] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
	};
	int any = auth == WEB_CLIENT_REQUEST || auth == WEB_CLIENT_REQUIRE_ANY;

	SSL_CTX_set_verify(ctx, modes[auth], any ? any_certificate : NULL);
}

/* Called for a client's first message, before anything costly is done with it. A client may have to
 * send it again, which is the same handshake: the connection remembers that it was admitted. */
static int on_hello(SSL *ssl, int *alert, void *ctx)
{
	if (!SSL_get_app_data(ssl) && !handshakes_admit(ctx, SSL_get_fd(ssl))) {
		*alert = SSL_AD_INTERNAL_ERROR;
		return SSL_CLIENT_HELLO_ERROR;
	}
	SSL_set_app_data(ssl, ctx);
	return SSL_CLIENT_HELLO_SUCCESS;
}

struct ssl_ctx_st *serve_tls_open(const struct web_config *c, struct handshakes *handshakes,
				  char *why)
{
	SSL_CTX *ctx;

	/* the system's openssl.cnf may be of another version, and name modules */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx) {
		wrong(why, c->cert_file, "no memory");
		return NULL;
	}
	SSL_CTX_set_min_proto_version(ctx, c->tls13_only ? TLS1_3_VERSION : TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_client_hello_cb(ctx, on_hello, handshakes);
	ask_clients(ctx, c->client_auth);
	if (use_chain(ctx, c->cert_file, why) || use_key(ctx, c, why) ||
	    (c->client_ca_file && use_ca(ctx, c->client_ca_file, why))) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

void serve_tls_close(struct ssl_ctx_st *ctx)
{
	SSL_CTX_free(ctx);
}

struct bufferevent *serve_tls_accept(struct ssl_ctx_st *ctx, struct event_base *base)
{
	SSL *ssl = SSL_new(ctx);
	struct bufferevent *bev =
		ssl ? bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, 0)
		    : NULL;

	if (!bev)
		SSL_free(ssl);
	else
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev;
}

struct ssl_st *serve_tls_of(struct bufferevent *bev)
{
	return bufferevent_openssl_get_ssl(bev);
}

void serve_tls_free(struct ssl_st *ssl)
{
	SSL_free(ssl);
}

int serve_tls_ready(const struct ssl_st *ssl)
{
	return SSL_is_init_finished(ssl);
}
