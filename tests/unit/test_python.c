/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_python.c - the frames of Python from outside: offsets against the interpreters' own
 * headers, live walks of every interpreter that is installed against what the program says of
 * itself, and hostile processes and records.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/proc/elf_read.h"
#include "../../user/proc/python.h"
#include "../../user/resolve/stacks/python_stack.h"
#include "make_python.h"
#include "random.h"
#include "unit.h"

#define SCRIPT "tests/unit/python_stacks.py"
#define MAX_FRAMES 1100
#define ROUNDS 35 /* times that the script waits; once with five threads */

static bool tested[5]; /* versions 3.10 to 3.14 */
static char dir[] = "/tmp/ct-python-XXXXXX";

/* ---- interpreters ---- */

struct child {
	pid_t pid;
	FILE *out;
	int in;
};

static bool child_start(struct child *c, const char *const *argv, const char *home)
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
		if (home)
			setenv("PYTHONHOME", home, 1);
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
	bool good = child_start(&c, argv, NULL) && fgets(buf, (int)size, c.out);

	if (good)
		buf[strcspn(buf, "\n")] = '\0';
	child_end(&c);
	return good;
}

/* ---- offsets ---- */

/* What the headers say, by the name of the field in struct ct_python. */
static const char OFFSETS[] =
	"#define Py_BUILD_CORE 1\n"
	"#include <Python.h>\n#include <frameobject.h>\n#include <stddef.h>\n#include <stdio.h>\n"
	"#include \"internal/pycore_runtime.h\"\n#include \"internal/pycore_interp.h\"\n"
	"#if PY_VERSION_HEX >= 0x030e0000\n#include \"internal/pycore_interpframe.h\"\n"
	"#elif PY_VERSION_HEX >= 0x030b0000\n#include \"internal/pycore_frame.h\"\n#endif\n"
	"#define P(name, value) printf(#name \" %zu\\n\", (size_t)(value))\n"
	"#define O offsetof\n"
	"int main(void) {\n"
	"PyASCIIObject a = { 0 };\n"
	"P(version, PY_VERSION_HEX >= 0x030b0000 ? PY_VERSION_HEX : 0x030a00f0);\n"
	"P(runtime_interpreters_head, O(_PyRuntimeState, interpreters.head));\n"
	"P(interp_next, O(PyInterpreterState, next));\n"
	"P(thread_prev, O(PyThreadState, prev));\nP(thread_next, O(PyThreadState, next));\n"
	"P(thread_interp, O(PyThreadState, interp));\n"
	"#if PY_VERSION_HEX < 0x030b0000\n"
	"P(interp_threads_head, O(PyInterpreterState, tstate_head));\n"
	"P(thread_native_id, O(PyThreadState, thread_id));\n"
	"P(thread_frame, O(PyThreadState, frame));\nP(cframe_frame, 65535);\n"
	"P(frame_at, O(PyFrameObject, f_back));\n"
	"P(frame_code, O(PyFrameObject, f_code) - 24);\nP(frame_instr, O(PyFrameObject, f_lasti) - "
	"24);\n"
	"P(frame_previous, 0);\nP(frame_owner, 0);\n"
	"P(frame_entry, 65534);\nP(owner_shim, 65535);\nP(code_check, O(PyCodeObject, "
	"co_consts));\n"
	"P(code_qualname, O(PyCodeObject, co_name));\nP(code_instrs, 65535);\n"
	"P(frame_size, 80);\n"
	"#else\n"
	"P(frame_at, 0);\n"
	"P(interp_threads_head, O(PyInterpreterState, threads.head));\n"
	"P(thread_native_id, O(PyThreadState, native_thread_id));\n"
	"#if PY_VERSION_HEX < 0x030d0000\n"
	"P(thread_frame, O(PyThreadState, cframe));\nP(cframe_frame, O(_PyCFrame, "
	"current_frame));\n"
	"P(frame_code, O(_PyInterpreterFrame, f_code));\nP(frame_instr, O(_PyInterpreterFrame, "
	"prev_instr));\n"
	"#else\n"
	"P(thread_frame, O(PyThreadState, current_frame));\nP(cframe_frame, 65535);\n"
	"P(frame_code, O(_PyInterpreterFrame, f_executable));\nP(frame_instr, "
	"O(_PyInterpreterFrame, instr_ptr));\n"
	"#endif\n"
	"#if PY_VERSION_HEX < 0x030c0000\n"
	"P(frame_entry, O(_PyInterpreterFrame, is_entry));\nP(owner_shim, 65535);\n"
	"P(code_check, O(PyCodeObject, co_firstlineno));\n"
	"#else\n"
	"P(frame_entry, 65535);\nP(owner_shim, 3);\n"
	"#if PY_VERSION_HEX >= 0x030e0000\n"
	"if (FRAME_OWNED_BY_INTERPRETER != 3) return 1;\n"
	"#else\n"
	"if (FRAME_OWNED_BY_CSTACK != 3) return 1;\n"
	"#endif\n"
	"P(code_check, O(PyCodeObject, co_nlocalsplus));\n"
	"if (O(PyCodeObject, co_version) < O(PyCodeObject, co_nlocalsplus)) return 1;\n"
	"#endif\n"
	"P(frame_previous, O(_PyInterpreterFrame, previous));\nP(frame_owner, "
	"O(_PyInterpreterFrame, owner));\n"
	"P(code_qualname, O(PyCodeObject, co_qualname));\n"
	"P(code_instrs, O(PyCodeObject, co_code_adaptive));\n"
	"P(frame_size, sizeof(_PyInterpreterFrame) > 80 ? 80 : sizeof(_PyInterpreterFrame));\n"
	"#endif\n"
	"P(code_filename, O(PyCodeObject, co_filename));\n"
	"P(code_first_line, O(PyCodeObject, co_firstlineno));\nP(code_linetable, O(PyCodeObject, "
	"co_linetable));\n"
	"P(str_state, O(PyASCIIObject, state));\nP(str_length, O(PyASCIIObject, length));\n"
	"P(str_ascii_data, sizeof(PyASCIIObject));\nP(str_compact_data, "
	"sizeof(PyCompactUnicodeObject));\n"
	"P(bytes_size, O(PyVarObject, ob_size));\nP(bytes_data, O(PyBytesObject, ob_sval));\n"
	"a.state.kind = 7; P(kind, *(unsigned *)&a.state);\na.state.kind = 0;\n"
	"a.state.compact = 1; P(compact, *(unsigned *)&a.state);\na.state.compact = 0;\n"
	"a.state.ascii = 1; P(ascii, *(unsigned *)&a.state);\n"
	"return 0; }\n";

static int field(const struct ct_python *p, const char *name)
{
/* clang-format off */
#define F(f) if (!strcmp(name, #f)) return (int)p->f;
	F(version) F(runtime_interpreters_head) F(interp_next) F(interp_threads_head) F(thread_prev) F(thread_next)
	F(thread_interp) F(thread_native_id) F(thread_frame) F(cframe_frame) F(frame_at) F(frame_code) F(frame_instr) F(frame_entry)
	F(owner_shim) F(code_check) F(frame_previous) F(frame_owner) F(code_qualname) F(code_filename) F(code_first_line)
	F(code_linetable) F(code_instrs) F(str_state) F(str_length) F(str_ascii_data) F(str_compact_data) F(bytes_size)
	F(bytes_data)
/* clang-format on */
#undef F
					if (!strcmp(name, "frame_size")) return CT_PY_FRAME_BYTES;
	return !strcmp(name, "kind")	  ? 7 << 2
	       : !strcmp(name, "compact") ? 1 << 5
	       : !strcmp(name, "ascii")	  ? 1 << 6
					  : -1;
}

static void test_offsets(const char *python, const struct ct_python *p)
{
	const char *where[] = { python, "-c",
				"import sysconfig; print(sysconfig.get_paths()['include'])", NULL };
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
	snprintf(command, sizeof(command),
		 "test -d '%s/internal' && cc -w -I'%s' -I'%s/internal' -o %s/offsets %s/offsets.c "
		 "&& %s/offsets",
		 include, include, include, dir, dir, dir);
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
		CHECK(n == 33);
}

/* ---- live walks ---- */

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
static char *seen(struct target *t, const struct ct_python *p, struct python *known, pid_t tid,
		  int *entries)
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
			if (err ||
			    !python_frame(known, (uint32_t)target_pid(t), &frames[i], &place)) {
				fprintf(f, "no code: %d\n", err);
				continue;
			}
		}
		fprintf(f, "%s\t%s\t%u\n", place.function, place.file, place.line);
	}
	fclose(f);
	return text;
}

/* Asks until the thread is where it said it would be, as it runs on for a moment after having
 * said so. */
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
	if (p->version >> 16 == 0x030a) { /* C calls each frame */
		CHECK(entries == s->frames);
		free(got);
		free(want);
		return;
	}
	/* sorted() calls the key function from C: its loop and the module's */
	if (strstr(want, "from_c.<locals>.<lambda>"))
		CHECK(entries == 2);
	if (!strncmp(want, "plain\t", 6))
		CHECK(entries == 1);
	/* the frame that Dying.__del__ interrupts is gone, but its loop is not: from 3.12 on a
	 * shim of its own */
	if (!strncmp(want, "Dying.__del__\t", 14) && strstr(want, "dies\t") &&
	    !strstr(want, "holds\t"))
		CHECK(entries >= 2);
	free(got);
	free(want);
}

static void test_live(const char *python, const char *const *argv, const char *home)
{
	const char *why = "";
	struct ct_python p;
	struct python *known = python_open();
	struct target *t;
	struct child c;
	int rounds = 0, threads = 0, deepest = 0, err;

	printf("  %s\n", python);
	if (!child_start(&c, argv, home) || !listen(&c) || target_open(&t, c.pid, 0)) {
		CHECK(!"started");
		return;
	}
	err = python_find(t, &p, &why);
	CHECK(!err);
	if (!err && (p.version >> 16 & 0xff) - 10 < ARRAY_LEN(tested))
		tested[(p.version >> 16 & 0xff) - 10] = true;
	if (err)
		printf("  %s: %d %s\n", python, err, why);
	else if (!home)
		test_offsets(python, &p);
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
	CHECK(rounds == ROUNDS);
	CHECK(threads == ROUNDS + 4);
	CHECK(deepest > 900);
	/* gone, it has no frames */
	kill(c.pid, SIGKILL);
	waitpid(c.pid, NULL, 0);
	CHECK(err || python_read_code(t, &p, p.runtime, record, sizeof(record)) < 0);
	target_close(t);
	python_close(known);
	child_end(&c);
}

/* The tracer's and the program's numbers differ in a pid namespace of its own. */
static void test_namespace(const char *python, const char *script)
{
	const char *argv[] = { "unshare", "--pid", "--fork", "--kill-child", python, script, NULL };
	struct python *known = python_open();
	struct target *t = NULL;
	struct ct_python p;
	char path[128];
	struct child c;
	int pid = 0;
	FILE *f;

	if (!child_start(&c, argv, NULL) || !listen(&c)) {
		printf("  no pid namespaces here: not tested\n");
		child_end(&c);
		python_close(known);
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)c.pid, (int)c.pid);
	f = fopen(path, "re");
	CHECK(f && fscanf(f, "%d", &pid) == 1);
	if (f)
		fclose(f);
	CHECK(said[0].tid == 1 && pid != 1);
	said[0].tid = pid;
	CHECK(!target_open(&t, pid, 0) && !python_find(t, &p, NULL));
	compare(&p, known, &said[0]);
	free(said[0].text);
	target_close(t);
	python_close(known);
	child_end(&c);
}

/* ---- Python in other shapes ---- */

/* What python_find() says of a program that runs `code`, which says "go". */
static int find_in(const char *program, const char *home, struct ct_python *p, char *why,
		   size_t size)
{
	const char *argv[] = { program, "-S", "-c", "print('go', flush=True); input()", NULL },
		   *reason = "";
	struct target *t;
	struct child c;
	int err = -EIO;

	if (child_start(&c, argv, home) && listen(&c) && !target_open(&t, c.pid, 0)) {
		err = python_find(t, p, &reason);
		target_close(t);
	}
	snprintf(why, size, "%s", reason);
	child_end(&c);
	return err;
}

/* A copy of a file with 8 bytes at `at` after its debug offsets' beginning replaced. */
static void patched(const char *from, const char *to, size_t at, uint64_t value)
{
	char command[700];
	char *all;
	FILE *f;
	size_t n;
	char *found;

	snprintf(command, sizeof(command), "cp %s %s", from, to);
	if (system(command))
		abort();
	f = fopen(to, "r+e");
	all = malloc(64 << 20);
	if (!f || !all)
		abort();
	n = fread(all, 1, 64 << 20, f);
	/* not the string that the code compares with: the version follows */
	for (found = all; (found = memmem(found, n - (size_t)(found - all), "xdebugpy", 8));
	     found++)
		if (found[8 + 3] == 3 && !found[8 + 4])
			break;
	CHECK(found != NULL);
	if (found) {
		fseek(f, (found - all) + (long)at, SEEK_SET);
		fwrite(&value, sizeof(value), 1, f);
	}
	fclose(f);
	free(all);
}

static void refused(const char *program, const char *home, const char *want)
{
	struct ct_python p;
	char why[128];

	CHECK(find_in(program, home, &p, why, sizeof(why)) == -ENOTSUP);
	CHECK_TEXT(want, why);
}

/* A program with Python linked into it, whose name does not say so. */
static void test_embedded(const char *python, const char *script)
{
	const char *where[] = { python, "-c",
				"import sysconfig as s, sys, os; g = s.get_config_var; a = "
				"os.path.join(g('LIBPL'), g('LIBRARY'));print(int(sys.version_info "
				">= (3, 13)), sys.prefix, '-I' + g('INCLUDEPY'), a if "
				"os.path.exists(a) else '', g('LIBS') or '', g('SYSLIBS') or '')",
				NULL };
	char line[1024], home[256], program[128], strange[128], why[128], command[2048];
	const char *argv[] = { program, script, NULL };
	struct ct_python p;
	int at;

	if (!ask(line, sizeof(line), where) || sscanf(line, "%*d %255s %n", home, &at) != 1)
		return;
	snprintf(program, sizeof(program), "%s/embeds", dir);
	snprintf(strange, sizeof(strange), "%s/strange", dir);
	snprintf(command, sizeof(command),
		 "echo 'int Py_BytesMain(int, char **); int main(int c, char **v) { return "
		 "Py_BytesMain(c, v); }' >%s/main.c && cc -rdynamic -o %s %s/main.c %s 2>%s/log",
		 dir, program, dir, line + at, dir);
	if (!strstr(line, ".a ") || system(command)) {
		printf("  %s: no static library\n", python);
		return;
	}
	test_live(program, argv, home);
	/* stripped, it still exports the variables */
	snprintf(command, sizeof(command), "strip -o %s %s", strange, program);
	CHECK(!system(command) && !find_in(strange, home, &p, why, sizeof(why)));
	if (line[0] != '1')
		return;
	/* 3.13: exports nothing and is stripped, but has a section */
	snprintf(command, sizeof(command), "cc -s -o %s %s/main.c %s 2>%s/log", strange, dir,
		 line + at, dir);
	CHECK(!system(command));
	CHECK(!find_in(strange, home, &p, why, sizeof(why)));
	CHECK(p.version >> 16 == 0x030d && p.code_linetable == 136);
	patched(strange, program, 16, 1);
	refused(program, home, "Python 3.13 is the free-threaded build");
	patched(strange, program, 33 * 8, 1 << 20); /* interpreter_frame.owner */
	refused(program, home, "Python 3.13 has debug offsets that cannot be");
	patched(strange, program, 38 * 8, 32); /* code_object.linetable */
	refused(program, home, "Python 3.13 has debug offsets that cannot be");
	patched(strange, program, 8, 0x030f00f0);
	refused(program, home,
		"Python 3.15 is newer than 3.14, the last one whose frames this program knows");
	patched(strange, program, 8, 0x030d00a1);
	refused(program, home, "Python 3.13 is an alpha or beta, whose layout no release has");
	patched(strange, program, 22 * 8, 24); /* thread_state.interp */
	refused(program, home, "Python 3.13 keeps its threads in a way of its own");
	patched(strange, program, 0, 0); /* no cookie: nothing says what it is */
	refused(program, home,
		"its Python has no Py_Version and no PyExc_EncodingWarning: it is older than 3.10");
}

/* A program that has Python's variables, and no Python. */
static void test_claims(void)
{
	static const struct {
		const char *label, *declared, *want;
	} rows[] = {
		{ "3.9", "unsigned long Py_Version = 0x030900f0; long _PyRuntime[99] = { 1 };",
		  "Python 3.9 is older than 3.10" },
		{ "4.0", "unsigned long Py_Version = 0x040000f0; long _PyRuntime[99] = { 1 };",
		  "Python 4.0 is newer than 3.14, the last one whose frames this program knows" },
		{ "beta", "unsigned long Py_Version = 0x030b00b1; long _PyRuntime[99] = { 1 };",
		  "Python 3.11 is an alpha or beta, whose layout no release has" },
		/* its value is not in the file */
		{ "unread",
		  "unsigned long Py_Version; int PyExc_EncodingWarning = 1; long _PyRuntime[99] = "
		  "{ 1 };",
		  "its Python has no Py_Version and no PyExc_EncodingWarning: it is older than "
		  "3.10" },
		{ "offsets", "unsigned long Py_Version = 0x030d00f0; long _PyRuntime[99] = { 1 };",
		  "Python 3.13 does not begin _PyRuntime with its debug offsets" },
	};
	char program[128], command[1024];

	snprintf(program, sizeof(program), "%s/python3-claims", dir);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("%s", rows[i].label);
		snprintf(command, sizeof(command),
			 "echo '#include <stdio.h>' >%s/claims.c && echo '%s int main(void) { "
			 "puts(\"go\"); fflush(stdout); getchar(); return 0; }' >>%s/claims.c && "
			 "cc -rdynamic -o %s %s/claims.c",
			 dir, rows[i].declared, dir, program, dir);
		CHECK(!system(command));
		refused(program, NULL, rows[i].want);
	}
}

static void test_others(void)
{
	const char *argv[] = { "cat", NULL };
	struct ct_python p;
	struct target *t;
	struct child c;
	char why[128];
	glob_t g = { 0 };

	glob("~/.pyenv/versions/3.[89].*/bin/python3", GLOB_TILDE, NULL, &g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		CHECK(find_in(g.gl_pathv[i], NULL, &p, why, sizeof(why)) == -ENOTSUP);
		CHECK_TEXT("its Python has no Py_Version and no PyExc_EncodingWarning: it is older "
			   "than 3.10",
			   why);
	}
	globfree(&g);
	if (!child_start(&c, argv, NULL) || target_open(&t, c.pid, 0))
		abort();
	usleep(50000);
	CHECK(python_find(t, &p, NULL) == -ENOENT);
	target_close(t);
	child_end(&c);
	CHECK(!target_open(&t, getpid(), 0));
	CHECK(python_find(t, &p, NULL) == -ENOENT);
	target_close(t);
}

/* ---- records and tables ---- */

static union {
	struct ct_py_code c;
	char all[65536];
} made;
#define MADE (made.all + sizeof(struct ct_py_code))

static void make(uint64_t code, const void *name, size_t name_len, int kind, const void *file,
		 size_t file_len, int file_kind, const void *table, size_t table_len)
{
	size_t at = 0;

	memset(&made, 0, sizeof(made));
	made.c.h.kind = CT_PY_CODE;
	made.c.h.pid = 7;
	made.c.code = code;
	made.c.check = 5;
	made.c.first_line = 100;
	made.c.name_len = (uint16_t)name_len;
	made.c.name_kind = (uint8_t)kind;
	made.c.file_len = (uint16_t)file_len;
	made.c.file_kind = (uint8_t)file_kind;
	made.c.table_len = (uint16_t)table_len;
	memcpy(MADE + at, name, name_len);
	at += (name_len + 7) & ~(size_t)7;
	memcpy(MADE + at, file, file_len);
	at += (file_len + 7) & ~(size_t)7;
	memcpy(MADE + at, table, table_len);
	at += (table_len + 7) & ~(size_t)7;
	made.c.h.size = (uint16_t)(sizeof(made.c) + at);
}

static int line_of(struct python *known, uint64_t code, uint32_t instr)
{
	struct ct_py_frame f = { .code = code, .check = 5, .instr = instr };
	struct python_place place;

	return python_frame(known, 7, &f, &place) ? (int)place.line : -1;
}

/* The pairs of bytes of 3.10. */
static void test_tables_310(void)
{
	/* 4 bytes of line +0; 2 of +3; 300 of +0, in two pairs; 2 without a line; 2 of -5 */
	static const uint8_t table[] = { 4, 0, 2, 3, 254, 1, 46, 0, 2, 0x80, 2, 0xfb };
	static const struct {
		uint32_t instr;
		int line;
	} want[] = { { 0, 100 },	   { 2, 100 },
		     { 4, 103 },	   { 6, 104 },
		     { 304, 104 },	   { 306, 0 },
		     { 308, 99 },	   { 310, 100 } /* beyond its end */,
		     { (uint32_t)-2, 100 } };
	struct python *known = python_open();

	make(7, "f", 1, 0, "x.py", 4, 0, table, sizeof(table));
	made.c.version = 0x030a00f0;
	CHECK(!python_code(known, &made.c));
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		CHECK_EQ(want[i].line, line_of(known, 7, want[i].instr));
	/* half a pair is none */
	make(8, "f", 1, 0, "x.py", 4, 0, table, 3);
	made.c.version = 0x030a00f0;
	CHECK(!python_code(known, &made.c));
	CHECK_EQ(100, line_of(known, 8, 4));
	python_close(known);
}

static void test_tables(void)
{
	/* two instructions of line +1 (no columns), one of line +0 (short), one of none, one of
	 * -2 (long), a line +70 */
	static const uint8_t table[] = { 0x80 | 13 << 3 | 1,
					 2,
					 0x80,
					 0x12,
					 0x80 | 15 << 3,
					 0x80 | 14 << 3,
					 5,
					 0,
					 1,
					 1,
					 0x80 | 13 << 3,
					 0x40 | (140 & 63),
					 140 >> 6,
					 0x80 | 12 << 3,
					 1,
					 2 };
	static const uint8_t no_start[] = { 0x12, 0x80 },
			     no_end[] = { 0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f },
			     ends[] = { 0x80 | 14 << 3 };
	static const int want[] = { 101, 101, 101, 101, 101, 101, 0, 0, 99, 99, 169, 169, 171, 171 };
	struct ct_py_frame f = { .code = 1, .check = 5 };
	struct python *known = python_open();
	struct python_place place;

	make(1, "f", 1, 0, "a.py", 4, 0, table, sizeof(table));
	CHECK(!python_code(known, &made.c));
	for (int i = 0; i < (int)ARRAY_LEN(want); i++)
		CHECK(line_of(known, 1, (uint32_t)i) == want[i]);
	CHECK(line_of(known, 1, 14) == 100);	       /* beyond the end */
	CHECK(line_of(known, 1, (uint32_t)-2) == 100); /* before the first */
	CHECK(python_frame(known, 7, &f, &place));
	CHECK_TEXT("f", place.function);
	CHECK_TEXT("a.py", place.file);
	f.flags = CT_PY_SHIM;
	CHECK(!python_frame(known, 7, &f, &place));
	f.flags = 0;
	CHECK(!python_frame(known, 8, &f, &place)); /* of another process */
	f.check = 6;
	CHECK(!python_frame(known, 7, &f, &place)); /* another code object at the same address */
	f.check = 5;
	make(2, "f", 1, 0, "a.py", 4, 0, no_start, sizeof(no_start));
	CHECK(!python_code(known, &made.c) && line_of(known, 2, 0) == 100);
	make(2, "f", 1, 0, "a.py", 4, 0, no_end, sizeof(no_end));
	CHECK(!python_code(known, &made.c) && line_of(known, 2, 0) == 100);
	make(2, "f", 1, 0, "a.py", 4, 0, ends, sizeof(ends));
	CHECK(!python_code(known, &made.c) && line_of(known, 2, 0) == 100);
	make(2, "f", 1, 0, "a.py", 4, 0, "", 0);
	CHECK(!python_code(known, &made.c) && line_of(known, 2, 0) == 100);
	/* a table that was cut says nothing of what comes after */
	memset(MADE + 16, 0x80 | 10 << 3, CT_PY_TABLE);
	made.c.table_len = CT_PY_TABLE;
	made.c.h.size = (uint16_t)(sizeof(made.c) + 16 + CT_PY_TABLE);
	CHECK(!python_code(known, &made.c));
	CHECK(line_of(known, 2, 2 * CT_PY_TABLE - 1) == 100 &&
	      line_of(known, 2, 2 * CT_PY_TABLE) == 0);
	/* what ended is forgotten, and nothing else */
	made.c.h.pid = 7 + 1024;
	CHECK(!python_code(known, &made.c));
	python_drop(known, 7);
	CHECK(line_of(known, 1, 0) == -1 && line_of(known, 2, 0) == -1);
	f.code = 2;
	CHECK(python_frame(known, 7 + 1024, &f, &place));
	python_close(known);
	python_close(NULL);
}

static void test_strings(void)
{
	static const uint16_t two[] = { 'a', 0xe4, 0x65e5, 0xdc80, 0, 0xffff };
	static const uint32_t four[] = { 0x1d11e, 0x110000, 0x10ffff, 'z' };
	struct ct_py_frame f = { .code = 1, .check = 5 };
	struct python *known = python_open();
	struct python_place place;

	make(1, two, sizeof(two), 2, four, sizeof(four), 4, "", 0);
	CHECK(!python_code(known, &made.c) && python_frame(known, 7, &f, &place));
	CHECK_TEXT("a\xc3\xa4\xe6\x97\xa5\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbf", place.function);
	CHECK_TEXT("\xf0\x9d\x84\x9e\xef\xbf\xbd\xf4\x8f\xbf\xbfz", place.file);
	make(1,
	     "m\xe4"
	     "d",
	     3, 1, two, 5, 2, "", 0); /* half a character at the end */
	CHECK(!python_code(known, &made.c) && python_frame(known, 7, &f, &place));
	CHECK_TEXT("m\xc3\xa4"
		   "d",
		   place.function);
	CHECK_TEXT("a\xc3\xa4", place.file);
	/* the last one counts */
	make(1, "", 0, 0, "", 0, 0, "", 0);
	CHECK(!python_code(known, &made.c) && python_frame(known, 7, &f, &place));
	CHECK_TEXT("", place.function);
	CHECK_TEXT("", place.file);
	made.c.name_kind = 3;
	CHECK(python_code(known, &made.c) == -EBADMSG);
	made.c.name_kind = 0;
	made.c.file_kind = 3;
	CHECK(python_code(known, &made.c) == -EBADMSG);
	made.c.file_kind = 0;
	made.c.name_len = 1;
	CHECK(python_code(known, &made.c) == -EBADMSG);
	made.c.h.size = 32;
	CHECK(python_code(known, &made.c) == -EBADMSG);
	python_close(known);
}

/* More than it keeps: the oldest go. */
static void test_bounds(void)
{
	struct python *known = python_open();
	bool good = true;

	make(0, "f", 1, 0, "a.py", 4, 0, "", 0);
	for (uint64_t i = 1; i <= 100000; i++) {
		made.c.code = i;
		good &= !python_code(known, &made.c);
	}
	CHECK(good);
	CHECK(line_of(known, 100000, 0) == 100 && line_of(known, 100000 - 65535, 0) == 100);
	CHECK(line_of(known, 100000 - 65536, 0) == -1 && line_of(known, 1, 0) == -1);
	/* by size: 64 MiB */
	made.c.table_len = CT_PY_TABLE;
	made.c.h.size = (uint16_t)(sizeof(made.c) + 16 + CT_PY_TABLE);
	for (uint64_t i = 200001; i <= 203000; i++) {
		made.c.code = i;
		good &= !python_code(known, &made.c);
	}
	CHECK(good);
	CHECK(line_of(known, 203000, 0) >= 0);
	CHECK(line_of(known, 201100, 0) >= 0);
	CHECK_EQ(-1, line_of(known, 200900, 0));
	python_close(known);
}

static uint64_t dice(void)
{
	static uint64_t x = RANDOM_SEED;

	return random_next(&x);
}

static void test_random_records(void)
{
	struct python *known = python_open();
	struct python_place place;
	size_t bytes = 0;

	for (int i = 0; i < 20000; i++) {
		size_t size = sizeof(struct ct_py_code) + dice() % 600 / 8 * 8;
		/* of that very size: what reads beyond is found out */
		struct ct_py_code *c = malloc(size);
		struct ct_py_frame f = { .code = dice() % 64, .check = 5 };

		for (size_t k = 0; k < size; k++)
			((uint8_t *)c)[k] = (uint8_t)(dice() >> 8);
		c->h.size = (uint16_t)size;
		c->h.pid = 7;
		c->code = f.code;
		c->check = 5;
		if (dice() % 8) {
			c->name_kind = 1 << dice() % 3 & 7;
			c->file_kind = 0;
			c->name_len = dice() % 64;
			c->file_len = dice() % 64;
			c->table_len = dice() % 512;
		}
		python_code(known, c);
		free(c);
		for (int k = 0; k < 20; k++) {
			f.instr = (uint32_t)dice() >> dice() % 32;
			if (python_frame(known, 7, &f, &place))
				bytes += strlen(place.function) + strlen(place.file) +
					 (place.line & 1);
		}
	}
	CHECK(bytes > 0);
	python_close(known);
}

/* ---- hostile memory: this program, whose memory is made to look like a Python's ---- */

static struct python_memory fake;

static uint64_t at(const void *p)
{
	return (uintptr_t)p;
}

static struct ct_python fake_python(void)
{
	return make_python(&fake, at(&fake), (uint64_t)getpid());
}

/* A code object of it, as it is read and kept. */
static void test_fake_code(struct target *t, const struct ct_python *p)
{
	struct python *known = python_open();
	struct ct_py_frame f = { .code = at(fake.code[1]) };
	static const uint64_t wrong[] = { 0x44, 0x2c, 0x20 };
	struct python_place place = { 0 };
	struct ct_python q;

	CHECK(python_read_code(t, p, f.code, record, sizeof(record)) > 0);
	CHECK(!python_code(known, (struct ct_py_code *)record));
	f.check = ((struct ct_py_code *)record)->check;
	CHECK(python_frame(known, ((struct ct_py_code *)record)->h.pid, &f, &place));
	CHECK_TEXT("main", place.function);
	CHECK_TEXT("a.p", place.file);
	/* a string that is not compact, of three bytes a character, of none */
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		fake.name[4] = wrong[i];
		CHECK_EQ(-EINVAL, python_read_code(t, p, f.code, record, sizeof(record)));
		fake_python();
		fake.file[4] = wrong[i];
		CHECK_EQ(-EINVAL, python_read_code(t, p, f.code, record, sizeof(record)));
		fake_python();
	}
	fake_python();
	/* pointers that are not among the words of which the check is made */
	for (int i = 0; i < 3; i++) {
		uint16_t *offset = i == 0   ? &q.code_qualname
				   : i == 1 ? &q.code_filename
					    : &q.code_linetable;

		CASE_ROW("pointer %d", i);
		q = *p;
		*offset = (uint16_t)(p->code_check + 8 * CT_PY_CHECK_WORDS);
		CHECK_EQ(-EINVAL, python_read_code(t, &q, f.code, record, sizeof(record)));
		*offset = (uint16_t)(p->code_check - 8);
		CHECK_EQ(-EINVAL, python_read_code(t, &q, f.code, record, sizeof(record)));
	}
	python_close(known);
}

static void test_fake(void)
{
	struct ct_python p = fake_python(), q;
	static struct ct_py_frame out[MAX_FRAMES];
	struct target *t;
	bool cut;

	CHECK(!target_open(&t, getpid(), 0));
	test_fake_code(t, &p);
	CHECK(python_walk(t, &p, getpid(), out, MAX_FRAMES, &cut) == 3 && !cut);
	CHECK_EQ(0, out[0].instr);
	CHECK_EQ(2, out[1].instr);
	CHECK_EQ(4, out[2].instr);
	CHECK(!out[0].flags);
	CHECK(!out[1].flags);
	CHECK_EQ(CT_PY_ENTRY, out[2].flags);
	CHECK(python_walk(t, &p, getpid(), out, 2, &cut) == 2 && cut);
	/* a thread that is not there has no frames */
	CHECK(python_walk(t, &p, 1, out, 2, &cut) == 0 && !cut);
	/* an evaluation loop that has left its last frame */
	fake.thread[1][4] = at(fake.frame[3]);
	if (CHECK_EQ(1, python_walk(t, &p, getpid(), out, 2, &cut))) {
		CHECK(!cut);
		CHECK_EQ((CT_PY_SHIM | CT_PY_ENTRY), out[0].flags);
	}
	/* loops end */
	p = fake_python();
	fake.frame[2][1] = at(fake.frame[0]);
	CHECK(python_walk(t, &p, getpid(), out, MAX_FRAMES, &cut) == MAX_FRAMES && cut);
	fake.thread[1][3] = 2;
	fake.thread[1][1] = at(fake.thread[0]);
	CHECK(python_walk(t, &p, getpid(), out, MAX_FRAMES, &cut) == 0);
	fake.interp[0][0] = at(fake.interp[0]);
	CHECK(python_walk(t, &p, getpid(), out, MAX_FRAMES, &cut) == 0);
	/* pointers to nowhere */
	p = fake_python();
	fake.frame[1][1] = 8;
	CHECK(python_walk(t, &p, getpid(), out, MAX_FRAMES, &cut) == 2 && cut);
	fake.frame[0][0] = ~0ULL;
	CHECK(python_walk(t, &p, getpid(), out, MAX_FRAMES, &cut) == 0 && cut);
	fake.interp[0][1] = 16;
	CHECK(python_walk(t, &p, getpid(), out, MAX_FRAMES, &cut) == -EFAULT);
	CHECK(python_read_code(t, &p, at(fake.code[0]), record, sizeof(record) - 1) == -ENOBUFS);
	fake.code[0][16] = 8;
	CHECK(python_read_code(t, &p, at(fake.code[0]), record, sizeof(record)) < 0);
	/* offsets and memory by chance */
	for (int i = 0; i < 400; i++) {
		p = q = fake_python();
		for (int k = 0; k < 3; k++)
			((uint16_t *)&p)[8 + dice() % 27] = (uint16_t)(dice() >> dice() % 16);
		if (dice() % 2)
			p = q;
		for (int k = 0; k < 5; k++)
			((uint64_t *)&fake)[dice() % (sizeof(fake) / 8)] =
				dice() % 3 ? at(&fake) + dice() % sizeof(fake) : dice();
		if (python_walk(t, &p, getpid(), out, MAX_FRAMES, &cut) > MAX_FRAMES)
			CHECK(!"more frames than asked for");
		python_read_code(t, &p, at(fake.code[dice() % 3]), record, sizeof(record));
	}
	target_close(t);
}

/* A file that is called python and is not, or not quite. */
static void test_files(const char *python)
{
	char path[128], command[512];
	struct ct_python p;
	struct target *t;
	uint8_t *map;
	int fd, found = 0;

	snprintf(path, sizeof(path), "%s/python3", dir);
	snprintf(command, sizeof(command), "head -c 300000 %s >%s", python, path);
	if (system(command))
		abort();
	fd = open(path, O_RDWR | O_CLOEXEC);
	map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(map != MAP_FAILED);
	CHECK(!target_open(&t, getpid(), 0));
	for (int i = 0; i < 300; i++) {
		uint8_t old[8], now[8];
		off_t where = (off_t)(dice() % (i < 200 ? 1024 : 300000 - 8));

		for (int k = 0; k < 8; k++)
			now[k] = (uint8_t)(dice() >> 16);
		if (pread(fd, old, 8, where) != 8 || pwrite(fd, now, 1 + dice() % 8, where) < 1)
			abort();
		found += !python_find(t, &p, NULL);
		if (pwrite(fd, old, 8, where) != 8)
			abort();
	}
	CHECK(!found); /* its symbols lie beyond the end */
	target_close(t);
	munmap(map, 4096);
	close(fd);
}

int main(void)
{
	static const char *const patterns[] = { "/usr/bin/python3", "/usr/local/bin/python3",
						"~/.pyenv/versions/3.1[01234].*/bin/python3" };
	const char *more = getenv("CT_PYTHONS"); /* one of another place */
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
	if (more)
		glob(more, flags, NULL, &g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		const char *argv[] = { g.gl_pathv[i], script, NULL };

		RUN(test_live, g.gl_pathv[i], argv, NULL);
		RUN(test_embedded, g.gl_pathv[i], script);
	}
	for (size_t i = 0; i < ARRAY_LEN(tested); i++)
		if (!tested[i])
			printf("skip python-3.%zu: no such interpreter here; CT_PYTHONS may name "
			       "one\n",
			       10 + i);
	if (g.gl_pathc)
		RUN(test_namespace, g.gl_pathv[0], script);
	if (g.gl_pathc)
		RUN(test_files, g.gl_pathv[0]);
	RUN(test_claims);
	RUN(test_others);
	RUN(test_tables);
	RUN(test_tables_310);
	RUN(test_strings);
	RUN(test_bounds);
	RUN(test_random_records);
	RUN(test_fake);
	globfree(&g);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) ? 1 : unit_end();
}
