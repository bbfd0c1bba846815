/* SPDX-License-Identifier: BSD-2-Clause */
/* stub.c - see stub.h. All input is untrusted text; nothing here reads a file or a process. */
#include <string.h>

#include "stub.h"
#include "../../../wire/cudatrace.h"

#define STUB "__device_stub__"
#define STUB_LEN (sizeof(STUB) - 1)
#define HANDLE "E8__handle"
#define HANDLE_LEN (sizeof(HANDLE) - 1)

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       c == '$';
}

static bool has_prefix(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && !memcmp(s, prefix, n);
}

static size_t copy(char *out, size_t size, const char *s, size_t len)
{
	if (!len || len >= size)
		return 0;
	memcpy(out, s, len);
	out[len] = '\0';
	return len;
}

/* Reads a length and that many characters: "4name". Returns the identifier, with its length in *n,
 * or NULL. */
static const char *source_name(const char *s, const char *end, size_t *n)
{
	size_t v = 0;

	if (s == end || !is_digit(*s) || *s == '0')
		return NULL;
	for (; s < end && is_digit(*s); s++) {
		v = v * 10 + (size_t)(*s - '0');
		if (v > CT_NAME_MAX)
			return NULL;
	}
	if (v > (size_t)(end - s))
		return NULL;
	*n = v;
	return s;
}

/* Reads the identifier of nvcc's stub at `s`: "__device_stub_" and the kernel's mangled name. */
static size_t kernel_in(const char *s, const char *end, const char **rest, char *out, size_t size)
{
	size_t n;
	const char *id = source_name(s, end, &n);

	/* clang's stub has the kernel's C++ name after the prefix; it could be confused with nvcc's
	 * only if that name began like a mangled one */
	if (!id || n < STUB_LEN + 2 || memcmp(id, STUB, STUB_LEN) || id[STUB_LEN] != 'Z' ||
	    !(is_digit(id[STUB_LEN + 1]) || strchr("NLS", id[STUB_LEN + 1])))
		return 0;
	*rest = id + n;
	return copy(out, size, id + STUB_LEN - 1, n - (STUB_LEN - 1));
}

size_t stub_of_handle(const char *symbol, size_t len, char *out, size_t size)
{
	const char *end = symbol + len, *rest, *at;
	size_t n;

	if (!has_prefix(symbol, len, "_ZZ"))
		return 0;
	symbol += 3;
	symbol += symbol < end && *symbol == 'L';
	n = kernel_in(symbol, end, &rest, out, size);
	if (!n)
		return 0;
	/* What has a stub's name is longer than such an ending. The last one counts; only a suffix
	 * that compilers append to make a local symbol unique
	 * may follow it: ".lto_priv.0" */
	for (at = end - HANDLE_LEN; at >= rest; at--)
		if (!memcmp(at, HANDLE, HANDLE_LEN))
			return at + HANDLE_LEN == end || at[HANDLE_LEN] == '.' ? n : 0;
	return 0;
}

size_t stub_of_any(const char *symbol, size_t len, char *out, size_t size)
{
	const char *end = symbol + len, *rest;
	size_t at;

	if (has_prefix(symbol, len, "_ZGVZ"))
		at = 5;
	else if (has_prefix(symbol, len, "_ZZ"))
		at = 3;
	else if (has_prefix(symbol, len, "_Z"))
		at = 2;
	else
		return 0;
	at += at < len && symbol[at] == 'L';
	return kernel_in(symbol + at, end, &rest, out, size);
}

size_t stub_of_clang(const char *symbol, size_t len, char *out, size_t size)
{
	const char *end = symbol + len, *id = NULL;
	size_t n = 0, head, name, tail, digits = 0;
	char number[8];

	/* extern "C": no mangling */
	if (has_prefix(symbol, len, STUB))
		return copy(out, size, symbol + STUB_LEN, len - STUB_LEN);
	if (!has_prefix(symbol, len, "_Z"))
		return 0;
	for (const char *at = symbol + 2; at < end; at++) {
		if (!is_digit(*at) || (at > symbol && is_digit(at[-1])))
			continue;
		id = source_name(at, end, &n);
		if (id && n > STUB_LEN && !memcmp(id, STUB, STUB_LEN)) {
			head = (size_t)(at - symbol);
			break;
		}
		id = NULL;
	}
	if (!id || (id[STUB_LEN] == 'Z' && n > STUB_LEN + 1 && is_digit(id[STUB_LEN + 1])))
		return 0;
	name = n - STUB_LEN;
	tail = (size_t)(end - (id + n));
	for (size_t v = name; v; v /= 10)
		number[sizeof(number) - ++digits] = (char)('0' + v % 10);
	if (head + digits + name + tail >= size)
		return 0;
	memcpy(out, symbol, head);
	memcpy(out + head, number + sizeof(number) - digits, digits);
	memcpy(out + head + digits, id + STUB_LEN, name);
	memcpy(out + head + digits + name, id + n, tail);
	len = head + digits + name + tail;
	out[len] = '\0';
	return len;
}

size_t stub_plain(const char *symbol, size_t len, char *out, size_t size)
{
	const char *end = symbol + len, *at = symbol + 2, *id;
	size_t n, head;

	if (!has_prefix(symbol, len, "_Z") || len < 5)
		return copy(out, size, symbol, len);
	if (*at == 'N')
		for (at++; (id = source_name(at, end, &n)) != NULL; at = id + n)
			;
	if (end - at < 2 || *at != 'L' || !is_digit(at[1]))
		return copy(out, size, symbol, len);
	head = (size_t)(at - symbol);
	if (len - 1 >= size)
		return 0;
	memcpy(out, symbol, head);
	memcpy(out + head, at + 1, len - head - 1);
	out[len - 1] = '\0';
	return len - 1;
}

size_t stub_extern_c(const char *mangled, size_t len, char *out, size_t size)
{
	const char *end = mangled + len, *at = mangled + 2, *id, *last = NULL;
	bool nested;
	size_t n = 0, last_n = 0;

	if (!has_prefix(mangled, len, "_Z"))
		return 0;
	nested = at < end && *at == 'N';
	at += nested;
	while ((id = source_name(at, end, &n)) != NULL) {
		last = id;
		last_n = n;
		at = id + n;
		if (!nested)
			break;
	}
	/* a template is never extern "C"; and a function has parameters in its name, at least void */
	if (at == end || *at == 'I' || (nested && *at != 'E'))
		return 0;
	return copy(out, size, last, last_n);
}

enum stub_match stub_compare(const char *from_symbol, const char *device)
{
	static const char rdc[] = "__nv_static_", *const lambdas[] = { "Unvdl", "Unvhdl",
								       "Unvdtl" };
	size_t ls = strlen(from_symbol), ld = strlen(device), n;
	char c[CT_NAME_MAX];
	const char *lambda = NULL;

	if (ls == ld && !memcmp(from_symbol, device, ls))
		return STUB_SAME;
	/* in separately compiled device code, the names of static kernels have a prefix that
	 * identifies their file */
	if (has_prefix(device, ld, rdc) && ld > ls && !memcmp(device + ld - ls, from_symbol, ls))
		return STUB_SPELLING;
	/* extended lambdas have other names on the host, so only the part before the lambda can be
	 * compared */
	for (size_t i = 0; i < ARRAY_LEN(lambdas) && !lambda; i++)
		lambda = strstr(from_symbol, lambdas[i]);
	n = lambda ? (size_t)(lambda - from_symbol) : 0;
	if (n > 2 && ld > n && !memcmp(from_symbol, device, n))
		return STUB_SPELLING;
	n = stub_extern_c(from_symbol, ls, c, sizeof(c));
	return n && n == ld && !memcmp(c, device, n) ? STUB_SPELLING : STUB_OTHER;
}

bool stub_is_name(const char *s, size_t len)
{
	if (!len || len >= CT_NAME_MAX || is_digit(*s))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_word(s[i]) && s[i] != '.' && s[i] != '%')
			return false;
	return true;
}
