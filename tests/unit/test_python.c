/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_python.c - the frames of Python from outside: offsets against the interpreters' own headers, live walks of every
 * interpreter that is installed against what the program says of itself, and hostile processes and records.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/proc/elf_read.h"
#include "../../user/proc/python.h"
#include "../../user/resolve/python.h"
#include "unit.h"

#define SCRIPT "tests/unit/python_stacks.py"
#define MAX_FRAMES 1100

static char dir[] = "/tmp/ct-python-XXXXXX";

/* ---- interpreters ----------------------------------------------------------------------------------------- */

struct child {
	pid_t pid;
	FILE *out;
	int in;
};

static bool child_start(struct child *c, const char *const *argv)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return false;
	c->pid = fork();
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
		setenv("PYTHONUTF8", "1", 1);
		unsetenv("LD_PRELOAD");
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = fdopen(out[0], "r");
	return c->pid > 0 && c->out;
}

static void child_end(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->in);
	fclose(c->out);
}

/* The first line that a command writes. */
static bool ask(char *buf, size_t size, const char *const *argv)
{
	struct child c;
	bool good = child_start(&c, argv) && fgets(buf, (int)size, c.out);

	if (good)
		buf[strcspn(buf, "\n")] = '\0';
	child_end(&c);
	return good;
}

/* ---- offsets ---------------------------------------------------------------------------------------------- */

/* What the headers say, by the name of the field in struct ct_python. */
static const char OFFSETS[] =
	"#define Py_BUILD_CORE 1\n"
	"#include <Python.h>\n#include <stddef.h>\n#include <stdio.h>\n"
	"#include \"internal/pycore_runtime.h\"\n#include \"internal/pycore_interp.h\"\n#include \"internal/pycore_frame.h\"\n"
	"#define P(name, value) printf(#name \" %zu\\n\", (size_t)(value))\n"
	"#define O offsetof\n"
	"int main(void) {\n"
	"PyASCIIObject a = { 0 };\n"
	"P(version, PY_VERSION_HEX);\n"
	"P(runtime_interpreters_head, O(_PyRuntimeState, interpreters.head));\n"
	"P(interp_next, O(PyInterpreterState, next));\n"
	"P(interp_threads_head, O(PyInterpreterState, threads.head));\n"
	"P(thread_prev, O(PyThreadState, prev));\nP(thread_next, O(PyThreadState, next));\n"
	"P(thread_interp, O(PyThreadState, interp));\nP(thread_native_id, O(PyThreadState, native_thread_id));\n"
	"#if PY_VERSION_HEX < 0x030d0000\n"
	"P(thread_frame, O(PyThreadState, cframe));\nP(cframe_frame, O(_PyCFrame, current_frame));\n"
	"P(frame_code, O(_PyInterpreterFrame, f_code));\nP(frame_instr, O(_PyInterpreterFrame, prev_instr));\n"
	"#else\n"
	"P(thread_frame, O(PyThreadState, current_frame));\nP(cframe_frame, 65535);\n"
	"P(frame_code, O(_PyInterpreterFrame, f_executable));\nP(frame_instr, O(_PyInterpreterFrame, instr_ptr));\n"
	"#endif\n"
	"#if PY_VERSION_HEX < 0x030c0000\n"
	"P(frame_entry, O(_PyInterpreterFrame, is_entry));\nP(owner_shim, 65535);\n"
	"P(code_check, O(PyCodeObject, co_firstlineno));\n"
	"#else\n"
	"P(frame_entry, 65535);\nP(owner_shim, FRAME_OWNED_BY_CSTACK);\n"
	"P(code_check, O(PyCodeObject, co_nlocalsplus));\n"
	"if (O(PyCodeObject, co_version) < O(PyCodeObject, co_nlocalsplus)) return 1;\n"
	"#endif\n"
	"P(frame_previous, O(_PyInterpreterFrame, previous));\nP(frame_owner, O(_PyInterpreterFrame, owner));\n"
	"P(code_qualname, O(PyCodeObject, co_qualname));\nP(code_filename, O(PyCodeObject, co_filename));\n"
	"P(code_first_line, O(PyCodeObject, co_firstlineno));\nP(code_linetable, O(PyCodeObject, co_linetable));\n"
	"P(code_instrs, O(PyCodeObject, co_code_adaptive));\n"
	"P(str_state, O(PyASCIIObject, state));\nP(str_length, O(PyASCIIObject, length));\n"
	"P(str_ascii_data, sizeof(PyASCIIObject));\nP(str_compact_data, sizeof(PyCompactUnicodeObject));\n"
	"P(bytes_size, O(PyVarObject, ob_size));\nP(bytes_data, O(PyBytesObject, ob_sval));\n"
	"P(frame_size, sizeof(_PyInterpreterFrame));\n"
	"a.state.kind = 7; P(kind, *(unsigned *)&a.state);\na.state.kind = 0;\n"
	"a.state.compact = 1; P(compact, *(unsigned *)&a.state);\na.state.compact = 0;\n"
	"a.state.ascii = 1; P(ascii, *(unsigned *)&a.state);\n"
	"return 0; }\n";

static int field(const struct ct_python *p, const char *name)
{
#define F(f) if (!strcmp(name, #f)) return (int)p->f;
	F(version) F(runtime_interpreters_head) F(interp_next) F(interp_threads_head) F(thread_prev) F(thread_next)
	F(thread_interp) F(thread_native_id) F(thread_frame) F(cframe_frame) F(frame_code) F(frame_instr) F(frame_entry)
	F(owner_shim) F(code_check) F(frame_previous) F(frame_owner) F(code_qualname) F(code_filename) F(code_first_line)
	F(code_linetable) F(code_instrs) F(str_state) F(str_length) F(str_ascii_data) F(str_compact_data) F(bytes_size)
	F(bytes_data)
#undef F
	if (!strcmp(name, "frame_size"))
		return CT_PY_FRAME_BYTES;
	return !strcmp(name, "kind") ? 7 << 2 : !strcmp(name, "compact") ? 1 << 5 : !strcmp(name, "ascii") ? 1 << 6 : -1;
}

static void test_offsets(const char *python, const struct ct_python *p)
{
	const char *where[] = { python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])", NULL };
	char include[512], command[2048], path[128], line[128], name[64];
	unsigned long value;
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/offsets.c", dir);
	f = fopen(path, "we");
	if (!f || fputs(OFFSETS, f) < 0 || fclose(f))
		abort();
	if (!ask(include, sizeof(include), where))
		include[0] = '\0';
	snprintf(command, sizeof(command), "test -d '%s/internal' && cc -w -I'%s' -I'%s/internal' -o %s/offsets %s/offsets.c && "
		 "%s/offsets", include, include, include, dir, dir, dir);
	f = popen(command, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %lu", name, &value) != 2)
			continue;
		n++;
		if (field(p, name) != (int)value)
			printf("  %s: %s is %lu, not %d\n", python, name, value, field(p, name));
		CHECK(field(p, name) == (int)value);
	}
	if (f)
		pclose(f);
	if (!n)
		printf("  %s: no headers, offsets not compared\n", python);
	else
		CHECK(n == 32);
}

/* ---- live walks ------------------------------------------------------------------------------------------- */

/* What the program says: one text of lines for each thread that waits. */
struct said {
	pid_t tid;
	char *text;
	int frames;
};

static struct said said[16];
static int nsaid;

/* Reads until "go"; false at the end. */
static bool listen(struct child *c)
{
	char *line = NULL;
	size_t cap = 0;
	FILE *text = NULL;
	bool go = false;
	size_t len;

	for (nsaid = 0; !go && getline(&line, &cap, c->out) > 0;) {
		if (!strcmp(line, "go\n")) {
			go = true;
		} else if (!strncmp(line, "tid ", 4) && nsaid < (int)ARRAY_LEN(said)) {
			said[nsaid] = (struct said){ .tid = atoi(line + 4) };
			text = open_memstream(&said[nsaid].text, &len);
		} else if (!strcmp(line, "end\n") && text) {
			fclose(text);
			text = NULL;
			nsaid++;
		} else if (text) {
			fputs(line, text);
			said[nsaid].frames++;
		}
	}
	free(line);
	return go;
}

static uint8_t record[PYTHON_CODE_BYTES] __attribute__((aligned(8)));

/* The process of a thread: after a fork it is not the child. */
static pid_t process_of(pid_t tid)
{
	char path[64], line[256];
	pid_t pid = tid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Tgid:", 5))
			pid = atoi(line + 5);
	if (f)
		fclose(f);
	return pid;
}

/* The same text from outside; the caller frees. */
static char *seen(struct target *t, const struct ct_python *p, struct python *known, pid_t tid, int *entries)
{
	struct ct_py_frame frames[MAX_FRAMES];
	int n = python_walk(t, p, tid, frames, MAX_FRAMES, NULL);
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	*entries = 0;
	if (n < 0)
		fprintf(f, "error %d\n", n);
	for (int i = 0; i < n; i++) {
		struct python_place place;

		*entries += frames[i].flags & CT_PY_ENTRY ? 1 : 0;
		if (frames[i].flags & CT_PY_SHIM)
			continue;
		if (!python_frame(known, (uint32_t)target_pid(t), &frames[i], &place)) {
			int err = python_read_code(t, p, frames[i].code, record, sizeof(record));

			if (err > 0)
				err = python_code(known, (struct ct_py_code *)record);
			if (err || !python_frame(known, (uint32_t)target_pid(t), &frames[i], &place)) {
				fprintf(f, "no code: %d\n", err);
				continue;
			}
		}
		fprintf(f, "%s\t%s\t%u\n", place.function, place.file, place.line);
	}
	fclose(f);
	return text;
}

/* Asks until the thread is where it said it would be, as it runs on for a moment after having said so. */
static void compare(const struct ct_python *p, struct python *known, const struct said *s)
{
	struct target *t;
	char *got = NULL, *want = strdup(s->text), *cut;
	int entries = 0;

	/* names are cut: the test has one of 400 and a file of 600 characters */
	cut = strstr(want, "nnnnnnnnn");
	if (cut) {
		memmove(cut + CT_PY_NAME, cut + 400, strlen(cut + 400) + 1);
		for (cut = want; (cut = strstr(cut, "xxxxxxxxx")); cut += CT_PY_FILE)
			memmove(cut + CT_PY_FILE, cut + 600, strlen(cut + 600) + 1);
	}
	for (int i = 0; i < 200; i++) {
		if (i)
			usleep(10000);
		free(got);
		got = NULL;
		if (target_open(&t, process_of(s->tid), 0))
			continue;
		got = seen(t, p, known, s->tid, &entries);
		target_close(t);
		if (!strcmp(got, want))
			break;
	}
	CHECK_TEXT(want, got ? got : "no process");
	CHECK(entries >= 1);
	/* sorted() calls the key function from C: its loop and the module's */
	if (strstr(want, "from_c.<locals>.<lambda>"))
		CHECK(entries == 2);
	if (!strncmp(want, "plain\t", 6))
		CHECK(entries == 1);
	/* the frame that Dying.__del__ interrupts is gone, but its loop is not: from 3.12 on a shim of its own */
	if (!strncmp(want, "Dying.__del__\t", 14) && strstr(want, "dies\t") && !strstr(want, "holds\t"))
		CHECK(entries >= 2);
	free(got);
	free(want);
}

static void test_live(const char *python, const char *const *argv, bool static_form)
{
	const char *why = "";
	struct ct_python p;
	struct python *known = python_open();
	struct target *t;
	struct child c;
	int rounds = 0, threads = 0, deepest = 0, err;

	printf("  %s\n", python);
	if (!child_start(&c, argv) || !listen(&c) || target_open(&t, c.pid, 0)) {
		CHECK(!"started");
		return;
	}
	err = python_find(t, &p, &why);
	CHECK(!err);
	if (err)
		printf("  %s: %d %s\n", python, err, why);
	else
		test_offsets(python, &p);
	(void)static_form;
	do {
		for (int i = 0; i < nsaid; i++) {
			if (!err)
				compare(&p, known, &said[i]);
			threads++;
			deepest = said[i].frames > deepest ? said[i].frames : deepest;
			free(said[i].text);
		}
		for (int i = 0; i < nsaid; i++)
			if (write(c.in, "x", 1) != 1)
				break;
		rounds++;
	} while (nsaid && listen(&c));
	CHECK(rounds == 33);
	CHECK(threads == 37);
	CHECK(deepest > 900);
	/* gone, it has no frames */
	kill(c.pid, SIGKILL);
	waitpid(c.pid, NULL, 0);
	CHECK(err || python_read_code(t, &p, p.runtime, record, sizeof(record)) < 0);
	target_close(t);
	python_close(known);
	child_end(&c);
}

int main(void)
{
	static const char *const patterns[] = { "/usr/bin/python3", "/usr/local/bin/python3", "~/.pyenv/versions/3.1[123].*/bin/python3" };
	glob_t g = { 0 };
	char script[256], command[512];
	int flags = GLOB_TILDE;

	if (!mkdtemp(dir))
		abort();
	snprintf(script, sizeof(script), "%s/mädchen_日本_\xf0\x9d\x84\x9e.py", dir);
	snprintf(command, sizeof(command), "cp %s %s", SCRIPT, script);
	if (system(command))
		abort();
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++, flags |= GLOB_APPEND)
		glob(patterns[i], flags, NULL, &g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		const char *argv[] = { g.gl_pathv[i], script, NULL };

		test_live(g.gl_pathv[i], argv, false);
	}
	globfree(&g);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) ? 1 : unit_end();
}
