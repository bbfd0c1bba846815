/* SPDX-License-Identifier: BSD-2-Clause */
/* test_known.c - names of programs that run already: on programs made by nvcc, on forged ones,
 * on damaged and hostile ones. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../user/proc/elf_read.h"
#include "../../user/resolve/names/known.h"
#include "../../user/resolve/names/known_driver.h"
#include "programs.h"

/* ---- forged programs ---- */

static char dir[] = "/tmp/test_known.XXXXXX";

/* What nvcc and the driver would make, with names of our own: variables that hold handles, and
 * blocks with a pointer to a name 8 bytes behind their beginning. Prints "HANDLE WHAT" lines,
 * then waits for its input to end. */
static const char forged[] =
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "
	"<sys/mman.h>\n#include <unistd.h>\n"
	"__asm__(\".pushsection .nv_fatbin,\\\"a\\\",@progbits\\n.quad 0\\n.popsection\\n\");\n"
	"struct desc { long other; const char *name; long more[4]; };\n"
	"#define VAR(id, symbol) static void *id __asm__(symbol) __attribute__((used))\n"
	"VAR(v_a, \"_ZZ20__device_stub__Z1aPiPiE8__handle\");\n"
	"VAR(v_b1, \"_ZZL20__device_stub__Z1bPiPiE8__handle\");\n" /* two kernels, one handle */
	"VAR(v_b2, \"_ZZL20__device_stub__Z1cPiPiE8__handle\");\n"
	"VAR(v_d, \"_ZZL20__device_stub__Z1dPiPiE8__handle\");\n"	 /* extern "C" d */
	"VAR(v_e, \"_ZZL20__device_stub__Z1ePiPiE8__handle\");\n"	 /* e, or extern "C" e */
	"VAR(v_bad, \"_ZZL25__device_stub__Z1QQQQQQPiPiE8__handle\");\n" /* hostile */
	"#define FN(id, symbol) void id(void) __asm__(symbol); __attribute__((used, noinline)) "
	"void id(void)\\\n"
	"{ __asm__ volatile(\"\" :: \"i\"(__LINE__)); }\n"
	"FN(f_a, \"_Z1aPi\") FN(f_d, \"d\") FN(f_e1, \"_ZL1ePi\") FN(f_e2, \"e\") FN(f_static, "
	"\"_ZL4statPi\")\n"
	"FN(f_stub, \"_ZL23__device_stub__Z4statPiPi\") FN(f_clang, \"_Z17__device_stub__clPi\")\n"
	"FN(f_bad, \"_Z1QQQQQQ\")\n"
	"FN(f_alias, \"_Z3onePi\")\n__asm__(\".globl _Z3twoPi\\n.set _Z3twoPi, _Z3onePi\\n.type "
	"_Z3twoPi, @function\\n\");\n"
	"FN(f_same, \"_ZL4samePi\")\n__asm__(\".globl _Z4samePi\\n.set _Z4samePi, "
	"_ZL4samePi\\n.type _Z4samePi, @function\\n\");\n"
	"static void *desc(const char *name) { struct desc *d = calloc(1, sizeof(*d)); d->name = "
	"name ? strdup(name) : 0; return d; }\n"
	"int main(int argc, char **argv) {\n"
	"	static struct desc in_file = { 0, \"_Z6staticPi\", { 0 } };\n"
	"	char *big = malloc(20000), c;\n"
	"	memset(big, 'x', 19999); big[19999] = 0;\n"
	"	v_a = desc(argc > 1 ? argv[1] : \"_Z1aPi\"); v_b1 = v_b2 = desc(\"_Z1bPi\"); v_d = "
	"desc(\"d\"); v_e = desc(\"e\");\n"
	"	v_bad = desc(\"bad\");\n"
	"	printf(\"%p a\\n%p b\\n%p d\\n%p e\\n%p bad\\n\", v_a, v_b1, v_d, v_e, v_bad);\n"
	"	printf(\"%p fa\\n%p fd\\n%p fstatic\\n%p fclang\\n%p falias\\n%p fsame\\n\", (void "
	"*)f_a, (void *)f_d, (void *)f_static,\n"
	"		(void *)f_clang, (void *)f_alias, (void *)f_same);\n"
	"	printf(\"%p driver\\n%p hostile\\n%p digit\\n%p big\\n%p none\\n\", "
	"desc(\"_Z6driverPi\"), desc(\"a\\033[2Jb\"),\n"
	"		desc(\"1abc\"), desc(big), desc(NULL));\n"
	"	printf(\"%p infile\\n%p odd\\n%p main\\n\", (void *)&in_file, (char "
	"*)desc(\"_Z3oddPi\") + 4, (void *)((char *)main + 1));\n"
	"	printf(\"%p other\\n\", desc(\"_Z5otherPi\"));\n"
	"	struct desc *nowhere = desc(NULL); nowhere->name = (char *)16; printf(\"%p "
	"nowhere\\n\", (void *)nowhere);\n"
	"	struct desc *ro = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | "
	"MAP_ANONYMOUS, -1, 0);\n"
	"	ro->name = strdup(\"_Z8readonlyPi\"); mprotect(ro, 4096, PROT_READ); printf(\"%p "
	"readonly\\n\", (void *)ro);\n"
	"	printf(\"%p fbad\\n\", (void *)f_bad);\n"
	"	puts(\"end\"); fflush(stdout);\n"
	"	while (read(0, &c, 1) > 0)\n"
	"		if (c == 'x') { strcpy((char *)((struct desc *)v_a)->name, \"_Z1zPi\"); "
	"v_a = 0; puts(\"ok\"); fflush(stdout); }\n"
	"	return 0;\n}\n";

struct child {
	pid_t pid;
	int in, out;
	char text[65536];
};

/* Starts a program with its input and output in our hands and the stand-in's libraries, and
 * reads what it says until a line that begins with `until`. */
static bool start(struct child *c, const char *until, const char *env, char *const argv[])
{
	int in[2], out[2];
	size_t have = 0;

	if (pipe(in) || pipe(out))
		return false;
	fflush(stdout);
	c->pid = fork();
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		if (env)
			putenv((char *)env);
		execv(argv[0], argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
	for (;;) {
		ssize_t n = read(c->out, c->text + have, sizeof(c->text) - 1 - have);

		if (n <= 0)
			return false;
		have += (size_t)n;
		c->text[have] = '\0';
		for (const char *line = c->text; line;
		     line = strchr(line, '\n'), line += line != NULL)
			if (!strncmp(line, until, strlen(until)))
				return true;
	}
}

static void end(struct child *c)
{
	close(c->in);
	close(c->out);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
}

/* The handle before a word in what the child said. */
static uint64_t handle_of(const struct child *c, const char *word)
{
	const char *at;
	char key[32];

	snprintf(key, sizeof(key), " %s\n", word);
	at = strstr(c->text, key);
	while (at && at > c->text && at[-1] != '\n')
		at--;
	return at ? strtoull(at, NULL, 16) : 0;
}

static uint64_t forgets;
static uint64_t forgets_change; /* is counted after so many looks */

static uint64_t count_forgets(void *ctx)
{
	(void)ctx;
	if (forgets_change && !--forgets_change)
		forgets++;
	return forgets;
}

static struct known *open_known(bool memory)
{
	forgets = 0;
	forgets_change = 0;
	return known_open(memory ? count_forgets : NULL, NULL);
}

static void check_find(struct known *k, struct target *t, uint64_t handle, bool driver,
		       const char *want, enum ct_name_source want_source, int line)
{
	enum ct_name_source source = 99;
	uint32_t len = 99;
	const char *got = known_find(k, t, (uint32_t)target_pid(t), handle, driver, &source, &len);

	unit_check(handle != 0, __FILE__, line, "a handle");
	unit_text(want ? want : "(none)", got ? got : "(none)", __FILE__, line);
	unit_check(source == (want ? want_source : CT_NAME_NONE), __FILE__, line, "source");
	unit_check(len == (got ? strlen(got) : 0), __FILE__, line, "length");
}
#define FIND(k, t, handle, driver, want, source) \
	check_find(k, t, handle, driver, want, source, __LINE__)

static bool build(void)
{
	FILE *f = fopen(text("%s/forged.c", dir), "we");
	char *cmd = text("cd %s && cc -O1 -w -o forged forged.c && sed -i "
			 "'s/Z1QQQQQQ/Z1\\x1b[2J~~/g' forged && "
			 "cp forged libcuda.so.580.1 && strip -o forged-stripped forged",
			 dir);

	if (!f)
		return false;
	fputs(forged, f);
	fclose(f);
	return !system(cmd);
}

static void test_forged(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/forged", dir), NULL };

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged program runs");
		return;
	}
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "b"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "e"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "bad"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "fa"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "fd"), false, "d", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "fstatic"), false, "_Z4statPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "fclang"), false, "_Z2clPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "falias"), false, NULL, 0);
	CHECK(handle_of(&c, "fbad"));
	FIND(k, t, handle_of(&c, "fbad"), false, NULL, 0);
	/* static or not: two spellings, no stub tells which */
	FIND(k, t, handle_of(&c, "fsame"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "main"), false, NULL, 0);
	/* a driver's call never passes the address of a host stub */
	FIND(k, t, handle_of(&c, "fa"), true, NULL, 0);
	/* no driver: its memory is not read */
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	FIND(k, t, 8, true, NULL, 0);
	FIND(k, t, UINT64_MAX - 7, true, NULL, 0);
	known_close(k);

	/* nothing that is being unloaded is believed, and it is asked for again afterwards */
	k = open_known(true);
	forgets = 5;
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	known_unloads(k, 5);
	forgets_change = 2; /* in the middle of it */
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "fa"), false, NULL, 0);
	known_unloads(k, 6);
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	/* the variable has another value after the unloading: the old one names nothing */
	CHECK(write(c.in, "x", 1) == 1 && read(c.out, c.text + 60000, 10) > 0);
	/* read before, and nothing was unloaded since */
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	forgets = 7;
	known_unloads(k, 7);
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	known_close(k);

	/* without a count of unloading calls only the files are looked at */
	k = open_known(false);
	FIND(k, t, handle_of(&c, "fa"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "d"), false, NULL, 0);
	known_close(k);
	target_close(t);
	end(&c);
}

/* The same program under a name that makes it "a driver" too. */
static void test_driver_memory(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.580.1", dir), NULL };

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "driver"), true, "_Z6driverPi", CT_NAME_DRIVER);
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
	/* what the symbols leave open */
	FIND(k, t, handle_of(&c, "e"), false, "e", CT_NAME_DRIVER);
	FIND(k, t, handle_of(&c, "hostile"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "digit"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "big"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "none"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "nowhere"), true, NULL, 0);
	FIND(k, t, 16, true, NULL, 0);
	FIND(k, t, handle_of(&c, "infile"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "odd"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "readonly"), true, NULL, 0);
	/* a handle that names another kernel than memory says: never again */
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5wrongPi", 10);
	FIND(k, t, handle_of(&c, "other"), true, NULL, 0);
	known_close(k);
	target_close(t);
	end(&c);
}

/* A driver that is believed contradicts a symbol: neither is believed then, and the driver never
 * again. */
static void test_contradiction(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.580.1", dir), "_Z1yPi", NULL };

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "driver"), true, "_Z6driverPi", CT_NAME_DRIVER);
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	known_forget(k, (uint32_t)c.pid);
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	known_close(k);
	target_close(t);
	end(&c);
}

/* A driver of a release on which nothing was measured is believed after a pair. */
static void test_calibration(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.1", dir), "_Z1yPi", NULL };

	if (system(text("cp %s/forged-stripped %s/libcuda.so.1", dir, dir)) ||
	    !start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	/* nothing like a name there: says nothing */
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "hostile"), "_Z1xPi", 6);
	/* cut: says nothing */
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5oth", 6);
	FIND(k, t, handle_of(&c, "other"), true, NULL, 0);
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5otherPi", 10);
	known_forget(k, (uint32_t)c.pid);
	FIND(k, t, handle_of(&c, "driver"), true, "_Z6driverPi", CT_NAME_DRIVER);
	known_close(k);
	target_close(t);
	end(&c);
	/* a symbol's variable is a pair as well: this one does not agree, so memory is not
	 * believed, then or later */
	k = open_known(true);
	if (system(text("cp %s/forged %s/libcuda.so.1", dir, dir)) ||
	    !start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "other"), true, NULL, 0);
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5otherPi", 10);
	known_forget(k, (uint32_t)c.pid);
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	known_close(k);
	target_close(t);
	end(&c);
}

/* A process that ends after its mappings were read again, and before its variables are: what they held before still counts. */
static void test_ended_between(void)
{
	struct known *k = open_known(true);
	struct timespec longer_than_values_are_kept = { 0, 60000000 };
	char *argv[] = { text("%s/libcuda.so.580.1", dir), NULL };
	struct target *t = NULL;
	struct child c;

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"a child");
		return;
	}
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	nanosleep(&longer_than_values_are_kept, NULL);
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "a"), "_Z1aPi", 6);
	end(&c);
	FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
	target_close(t);
	known_close(k);
}

/* Processes that end, or become another program, at any moment. */
static void test_vanishing(void)
{
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.580.1", dir), NULL };
	enum ct_name_source source;
	uint32_t len;

	for (int i = 0; i < 40; i++) {
		struct target *t = NULL;
		struct child c;
		uint64_t a, fa;
		pid_t killer;

		argv[0] = text("%s/libcuda.so.580.1", dir);
		if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
			CHECK(!"a child");
			return;
		}
		a = handle_of(&c, "a");
		fa = handle_of(&c, "fa");
		if (i % 2)
			known_find(k, t, (uint32_t)c.pid, a, false, &source, &len);
		fflush(stdout);
		killer = fork();
		if (!killer) {
			struct timespec ts = { 0, 50000 * i };

			nanosleep(&ts, NULL);
			kill(c.pid, SIGKILL);
			_exit(0);
		}
		for (int j = 0; j < 200; j++) {
			const char *name = known_find(k, t, (uint32_t)c.pid, j % 2 ? a : fa, false,
						      &source, &len);

			CHECK(!name || !strcmp(name, "_Z1aPi"));
		}
		waitpid(killer, NULL, 0);
		end(&c);
		/* what was read once is still true of its last calls; what was not is lost */
		if (i % 2)
			FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
		FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
		forgets++;
		known_unloads(k, forgets);
		FIND(k, t, a, false, NULL, 0);
		target_close(t);
	}
	known_close(k);
}

/* ---- damaged files ---- */

static int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	return fd;
}

static void look(int fd)
{
	struct known_elf_facts facts;
	static char name[CT_NAME_MAX];
	struct known_elf *e;
	bool sure;

	if (known_elf_open(&e, fd))
		return;
	known_elf_index(e);
	known_elf_facts(e, &facts);
	for (uint32_t i = 0; i < known_elf_handles(e) && i < 64; i++) {
		size_t n = known_elf_handle(e, i, name, sizeof(name), &sure);

		CHECK(!n || stub_is_name(name, n));
		n = known_elf_stub(e, known_elf_handle_addr(e, i), name, sizeof(name));
		CHECK(!n || stub_is_name(name, n));
	}
	known_elf_kernels(e, name, sizeof(name));
	known_elf_close(e);
}

static void test_damaged(const char *path, int rounds)
{
	size_t len = 0, n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	char *good = malloc((size_t)size + 1), *bad = malloc((size_t)size + 1);
	uint64_t shoff;

	while (fd >= 0 && len < (size_t)size) {
		ssize_t got = pread(fd, good + len, (size_t)size - len, (off_t)len);

		if (got <= 0)
			break;
		len += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	for (int i = 0; len && i < rounds; i++) {
		memcpy(bad, good, len);
		memcpy(&shoff, good + offsetof(Elf64_Ehdr, e_shoff), 8);
		n = i % 4 ? len : any(len);
		for (int flips = (int)any(6); n && flips >= 0; flips--) {
			/* anywhere, in the headers, and in the section headers */
			size_t at = i % 3 == 0	 ? any(n)
				    : i % 3 == 1 ? any(n < 1024 ? n : 1024)
						 : shoff + any(len - shoff);

			if (at < n)
				bad[at] ^= (char)(1 << any(8));
		}
		look(memory_file(bad, n));
	}
	free(good);
	free(bad);
}

/* Segments that wrap around, variables at addresses that do not exist, tens of thousands of
 * symbols at one address. */
static void test_hostile_elf(void)
{
	enum { NSYM = 20000 };
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr phdr;
		Elf64_Shdr shdr[4];
		Elf64_Sym sym[NSYM];
		char str[256];
	} *f = calloc(1, sizeof(*f));
	static const char str[] =
		"\0.nv_fatbin\0_ZZ20__device_stub__Z1aPiPiE8__handle\0_Z1aPi\0_Z1bPi\0"
		"_ZZ20__device_stub__Z1a i i E8__handle";
	struct target_map map = { .start = 0x1000, .end = 0x2000, .exec = true };
	struct known_elf *e;
	char name[CT_NAME_MAX];
	uint64_t bias;
	bool sure;

	memcpy(f->ehdr.e_ident, "\177ELF\2\1\1", 7);
	f->ehdr.e_type = ET_DYN;
#if defined(__aarch64__)
	f->ehdr.e_machine = EM_AARCH64;
#else
	f->ehdr.e_machine = EM_X86_64;
#endif
	f->ehdr.e_phoff = offsetof(__typeof__(*f), phdr);
	f->ehdr.e_phentsize = sizeof(Elf64_Phdr);
	f->ehdr.e_phnum = 1;
	f->ehdr.e_shoff = offsetof(__typeof__(*f), shdr);
	f->ehdr.e_shentsize = sizeof(Elf64_Shdr);
	f->ehdr.e_shnum = 4;
	f->ehdr.e_shstrndx = 2;
	f->phdr = (Elf64_Phdr){ .p_type = PT_LOAD,
				.p_flags = PF_X,
				.p_offset = UINT64_MAX - 10,
				.p_filesz = UINT64_MAX,
				.p_vaddr = UINT64_MAX };
	f->shdr[1] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
				   .sh_link = 2,
				   .sh_entsize = sizeof(Elf64_Sym),
				   .sh_offset = offsetof(__typeof__(*f), sym),
				   .sh_size = sizeof(f->sym) };
	f->shdr[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
				   .sh_offset = offsetof(__typeof__(*f), str),
				   .sh_size = sizeof(f->str) };
	f->shdr[3] = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = UINT64_MAX - 8, .sh_size = 100
	};
	memcpy(f->str, str, sizeof(str));
	for (int i = 0; i < NSYM; i++)
		f->sym[i] = (Elf64_Sym){ .st_name = 12,
					 .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
					 .st_shndx = 3,
					 .st_value = UINT64_MAX - 7 - 8 * (uint64_t)(i % 3) };
	f->sym[0] = (Elf64_Sym){ .st_name = 50,
				 .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
				 .st_shndx = 3,
				 .st_value = 64 };
	f->sym[1] = (Elf64_Sym){ .st_name = 57,
				 .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
				 .st_shndx = 3,
				 .st_value = 64 };
	/* a kernel's name with blanks in it is none */
	f->sym[2].st_name = 64;
	f->sym[2].st_value = 8;
	CHECK(!known_elf_open(&e, memory_file(f, sizeof(*f))));
	CHECK(known_elf_has_device_code(e));
	CHECK(!known_elf_index(e));
	CHECK_EQ(NSYM - 2, known_elf_handles(e));
	known_elf_bias(e, &map, &bias);
	CHECK_EQ(8, known_elf_handle_addr(e, 0));
	CHECK_EQ(0, known_elf_handle(e, 0, name, sizeof(name), &sure));
	CHECK_EQ(6, known_elf_handle(e, 1, name, sizeof(name), &sure));
	CHECK_TEXT("_Z1aPi", name);
	CHECK(sure);
	/* two functions there, but only one of them is a kernel's */
	CHECK(known_elf_stub(e, 64, name, sizeof(name)) == 6 && !strcmp(name, "_Z1aPi"));
	CHECK(known_elf_kernels(e, name, sizeof(name)) == -EBADMSG);
	known_elf_close(e);

	/* only a mapping of code tells where the file is */
	f->phdr.p_offset = f->phdr.p_vaddr = 0;
	f->phdr.p_filesz = 4096;
	CHECK(!known_elf_open(&e, memory_file(f, sizeof(*f))));
	CHECK(known_elf_bias(e, &map, &bias));
	CHECK_EQ(0x1000, bias);
	map.exec = false;
	CHECK(!known_elf_bias(e, &map, &bias));
	known_elf_close(e);

	/* a file that no loader maps */
	f->ehdr.e_phnum = 0;
	CHECK_EQ(-EBADMSG, known_elf_open(&e, memory_file(f, sizeof(*f))));
	f->ehdr.e_phnum = 1025;
	CHECK_EQ(-EBADMSG, known_elf_open(&e, memory_file(f, sizeof(*f))));
	free(f);
}

/* ---- programs made by nvcc ---- */

struct launched {
	uint64_t handle;
	char *name;
};

/* What the stand-in's driver launched: "PID HANDLE NAME" lines. */
static int read_log(const char *path, struct launched *out, int max)
{
	char *log = unit_read(path), *save = NULL;
	int n = 0;

	for (char *line = log ? strtok_r(log, "\n", &save) : NULL; line && n < max;
	     line = strtok_r(NULL, "\n", &save)) {
		char *name;

		strtoul(line, &line, 10);
		out[n].handle = strtoull(line, &name, 16);
		out[n++].name = strdup(name + 1);
	}
	free(log);
	return n;
}

/* The host has another name for a kernel over an extended lambda, and for a static one of
 * separately compiled code. */
static bool differs(const char *name)
{
	return strstr(name, "Ul") || strstr(name, "__nv_static_");
}

static void check_program(const char *program, bool legacy, bool measured,
			  enum ct_name_source source)
{
	char *argv[] = { text(PROGRAMS "/%s", program), "--wait", "--print", NULL },
	     *log = text("%s/%s.log", dir, program);
	struct known *k = open_known(true);
	struct launched made[64];
	struct target *t = NULL;
	struct child c;
	/* the first handle that a symbol and the memory agree on tells that the memory can be read */
	bool readable = measured || (!legacy && source == CT_NAME_SYMBOL);
	int n, named = 0;
	char *at;

	if (access(argv[0], X_OK)) {
		printf("skipped: no %s (make programs, with nvcc)\n", argv[0]);
		known_close(k);
		return;
	}
	unlink(log);
	setenv("STANDIN_LAUNCHES", log, 1);
	if (!start(&c, "ready", measured ? "LD_LIBRARY_PATH=" PROGRAMS "/580" : NULL, argv) ||
	    target_open(&t, c.pid, 0)) {
		CHECK(!"the program runs");
		return;
	}
	n = read_log(log, made, 64);
	CHECK(n == 14);
	at = c.text;
	for (int i = 0; i < n; i++) {
		uint64_t handle = made[i].handle;
		enum ct_name_source got_source;
		const char *got;
		uint32_t len;

		if (legacy) { /* the program says what it passed, of all but the last three */
			at = strstr(at, "launched ");
			if (!at)
				break;
			handle = strtoull(at += 9, NULL, 16);
		}
		got = known_find(k, t, (uint32_t)c.pid, handle, false, &got_source, &len);
		named += got != NULL;
		if (!source || !got) {
			CHECK(!source && !got);
			continue;
		}
		/* where the host spells a name in another way, the driver's memory is asked */
		CHECK(got_source == (readable && differs(made[i].name) ? CT_NAME_DRIVER : source));
		CHECK_TEXT(made[i].name, got);
	}
	CHECK(named == (!source ? 0 : legacy ? 11 : 14));
	known_close(k);
	target_close(t);
	end(&c);
	for (int i = 0; i < n; i++)
		free(made[i].name);
}

static void check_one(const char *program, const char *env, const char *want,
		      enum ct_name_source source)
{
	char *argv[] = { text(PROGRAMS "/%s", program), "--wait", NULL };
	struct known *k = open_known(true);
	struct target *t = NULL;
	struct child c;
	const struct target_map *maps;
	int n;
	bool found = false;

	if (access(argv[0], X_OK)) {
		printf("skipped: no %s (make programs, with nvcc)\n", argv[0]);
		known_close(k);
		return;
	}
	if (!start(&c, "ready", env, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the program runs");
		return;
	}
	/* any address of its code may be the host function; a stripped file cannot tell which */
	n = target_maps(t, &maps);
	for (int i = 0; i < n && !found; i++)
		if (maps[i].exec && strstr(maps[i].path, program)) {
			found = true;
			FIND(k, t, maps[i].start + 64, false, want, source);
		}
	CHECK(found);
	known_close(k);
	target_close(t);
	end(&c);
}

static void test_programs(void)
{
	check_program("kernels", false, false, CT_NAME_SYMBOL);
	check_program("kernels-static", false, false, CT_NAME_SYMBOL);
	check_program("kernels-rdc", false, false, CT_NAME_SYMBOL);
	check_program("kernels-legacy", true, false, CT_NAME_SYMBOL);
	check_program("kernels-legacy-static", true, false, CT_NAME_SYMBOL);
	check_program("kernels-stripped", false, false, CT_NAME_NONE);
	check_program("kernels-static-stripped", false, false, CT_NAME_NONE);
	check_program("kernels-legacy-stripped", true, false, CT_NAME_NONE);
	/* on a driver whose descriptions can be read */
	check_program("kernels", false, true, CT_NAME_SYMBOL);
	check_program("kernels-rdc", false, true, CT_NAME_SYMBOL);
	check_program("kernels-stripped", false, true, CT_NAME_DRIVER);
	check_program("kernels-static-stripped", false, true, CT_NAME_DRIVER);
	check_program("kernels-legacy-stripped", true, true, CT_NAME_NONE);
	check_one("one-legacy-stripped", NULL, "_Z4onlyPi", CT_NAME_FATBIN);
	check_one("one-legacy-nosections", NULL, "_Z4onlyPi", CT_NAME_FATBIN);
	check_one("kernels-legacy-stripped", NULL, NULL, 0);
	/* another file's kernel is no matter, unless the program has an entry of its own for the
	 * other's functions */
	check_one("one-legacy-stripped", "LD_PRELOAD=" PROGRAMS "/libalpha-legacy.so", "_Z4onlyPi",
		  CT_NAME_FATBIN);
	check_one("one-fixed-legacy-stripped", NULL, "_Z4onlyPi", CT_NAME_FATBIN);
	check_one("one-fixed-legacy-stripped", "LD_PRELOAD=" PROGRAMS "/libalpha-legacy.so", NULL,
		  0);
	unsetenv("STANDIN_LAUNCHES");
}

static void test_survey(void)
{
	char *argv[] = { text(PROGRAMS "/kernels"), "--wait", NULL };
	struct known_survey s = { 0 };
	struct target *t = NULL;
	struct child c;

	if (access(argv[0], X_OK))
		return;
	if (!start(&c, "ready", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the program runs");
		return;
	}
	CHECK(!known_survey(t, &s));
	if (CHECK_EQ(1, s.nfiles))
		CHECK(strstr(s.files[0].path, "programs/kernels"));
	CHECK(s.nfiles);
	CHECK_EQ(14, s.files[0].facts.nhandles);
	CHECK_EQ(13, s.files[0].facts.nstubs);
	CHECK(s.files[0].facts.symtab);
	CHECK(s.nfiles);
	CHECK_EQ(2, s.files[0].kernels);
	CHECK(!s.files[0].index_err);
	if (CHECK(s.driver)) {
		CHECK(strstr(s.driver, "libcuda.so.1"));
		CHECK(!s.measured);
	}
	known_survey_free(&s);
	target_close(t);
	end(&c);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	RUN(test_hostile_elf);
	if (mkdtemp(dir) && build()) {
		RUN(test_forged);
		RUN(test_driver_memory);
		RUN(test_contradiction);
		RUN(test_calibration);
		RUN(test_ended_between);
		RUN(test_vanishing);
		RUN(test_damaged, text("%s/forged", dir), 1500);
	} else {
		CHECK(!"the forged program can be built");
	}
	RUN(test_damaged, PROGRAMS "/kernels", 600);
	RUN(test_damaged, PROGRAMS "/one-legacy-nosections", 300);
	RUN(test_programs);
	RUN(test_survey);
	CHECK(!system(text("rm -rf %s", dir)));
	return unit_end();
}
