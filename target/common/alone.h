/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alone.h - finds out whether the program has ended, except for threads of ours. A program whose
 * main thread has called pthread_exit() ends when its last thread ends. A thread of ours would keep
 * the program running for ever, so our thread then ends itself, and libc ends the program.
 *
 * Several objects of ours may be in a program, each with threads. Each has a list of its threads, and says in
 * a note of its file where the list is. When an object is loaded, it finds the others' lists by these notes
 * and joins them: the lists are a ring. Objects of ours are never unloaded. A thread's name says nothing: the
 * program may name its threads as it likes.
 *
 * Our threads do not ask the loader. dl_iterate_phdr() may run while another thread is inside dlopen(), and
 * then glibc looks for the thread-local variables of an object that it has not put into its own list yet:
 * with some sixty such objects in the program it follows a null pointer.
 */
#ifndef CT_ALONE_H
#define CT_ALONE_H

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALONE_THREADS 4	 /* of an object: it has one, and for a moment the one before it */
#define ALONE_OBJECTS 64 /* more are not looked at */
#define ALONE_NOTE "cudatrace"
#define ALONE_NOTE_TYPE 2 /* of this layout; 1: the threads alone */

/* The threads of this object, in the process that has them: a forked child has a copy. One file of each
 * object includes this one, and calls alone_meet() in its constructor. */
struct alone_list {
	struct alone_list *next; /* of another object; this one if there is none */
	struct alone_thread {
		int pid, tid;
	} threads[ALONE_THREADS];
};
__attribute__((used, visibility("hidden"))) struct alone_list alone_mine = { .next = &alone_mine };
__asm__(".pushsection .note.cudatrace,\"a\",%note\n"
	".balign 8\n"
	".long 10, 8, 2\n"
	".asciz \"" ALONE_NOTE "\"\n"
	".balign 4\n"
	".quad alone_mine - .\n"
	".balign 8\n"
	".popsection\n");

/* The calling thread is one of ours, until it says that it ends. */
static inline void alone_begins(void)
{
	int pid = (int)syscall(SYS_getpid), tid = (int)syscall(SYS_gettid);

	for (int i = 0; i < ALONE_THREADS; i++) {
		struct alone_thread *t = &alone_mine.threads[i];
		int was = __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE);

		if ((was && t->pid == pid) ||
		    !__atomic_compare_exchange_n(&t->tid, &was, tid, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&t->pid, pid, __ATOMIC_RELEASE);
		return;
	}
}

/* The thread of this number ends. Makes no system call. */
static inline void alone_left(int tid)
{
	for (int i = 0; i < ALONE_THREADS; i++)
		if (__atomic_load_n(&alone_mine.threads[i].tid, __ATOMIC_ACQUIRE) == tid)
			__atomic_store_n(&alone_mine.threads[i].tid, 0, __ATOMIC_RELEASE);
}

static inline void alone_ends(void)
{
	alone_left((int)syscall(SYS_gettid));
}

/* ---- the objects ---- */

static inline struct alone_list *alone_next(const struct alone_list *l)
{
	return __atomic_load_n(&l->next, __ATOMIC_ACQUIRE);
}

/* Makes one ring of two. A thread that walks along one of them meanwhile does not stop at its end: the walk
 * has a limit. */
static inline void alone_join(struct alone_list *other)
{
	struct alone_list *mine = alone_next(&alone_mine), *l = mine;

	for (int i = 0; i < ALONE_OBJECTS && l != other && l != &alone_mine; i++)
		l = alone_next(l);
	if (l == other || other == &alone_mine)
		return; /* they are in one ring */
	__atomic_store_n(&alone_mine.next, alone_next(other), __ATOMIC_RELEASE);
	__atomic_store_n(&other->next, mine, __ATOMIC_RELEASE);
}

/* The list of which a note says where it is; NULL: it is not one of ours. */
static inline struct alone_list *alone_list(const Elf64_Nhdr *n)
{
	const char *desc = (const char *)(n + 1) + ((n->n_namesz + 3) & ~3u);
	int64_t away;

	if (n->n_namesz != sizeof(ALONE_NOTE) || n->n_descsz != sizeof(away) ||
	    n->n_type != ALONE_NOTE_TYPE || memcmp(n + 1, ALONE_NOTE, sizeof(ALONE_NOTE)))
		return NULL;
	memcpy(&away, desc, sizeof(away));
	return (struct alone_list *)(uintptr_t)(desc + away);
}

static inline int alone_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	(void)ctx;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *at = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		const char *end = at + info->dlpi_phdr[i].p_memsz;

		while (info->dlpi_phdr[i].p_type == PT_NOTE &&
		       (size_t)(end - at) > sizeof(Elf64_Nhdr)) {
			const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
			struct alone_list *l = alone_list(n);

			if (l)
				alone_join(l);
			at += sizeof(*n) + ((n->n_namesz + 3) & ~3u);
			at += (n->n_descsz + 3) & ~3u;
			if (info->dlpi_phdr[i].p_align == 8)
				at = (const char *)(((uintptr_t)at + 7) & ~(uintptr_t)7);
			if (at > end)
				break;
		}
	}
	return 0;
}

/* For this object's constructor, and nowhere else: the loader, which calls it, loads nothing in another thread
 * meanwhile, and all that is loaded is in its lists. */
static inline void alone_meet(void)
{
	dl_iterate_phdr(alone_object, NULL);
}

/* Is the list of one of our objects in this range, which is an object's? */
static inline bool alone_has_object(uint64_t lo, uint64_t hi)
{
	const struct alone_list *l = &alone_mine;

	for (int i = 0; i < ALONE_OBJECTS; i++) {
		if ((uintptr_t)l >= lo && (uintptr_t)l < hi)
			return true;
		l = alone_next(l);
		if (l == &alone_mine)
			break;
	}
	return false;
}

/* How many threads of the process with this number, or with any (0), are ours? */
static inline int alone_ours(int tid)
{
	const struct alone_list *l = &alone_mine;
	int pid = (int)syscall(SYS_getpid), found = 0;

	for (int i = 0; i < ALONE_OBJECTS; i++) {
		for (int k = 0; k < ALONE_THREADS; k++) {
			const struct alone_thread *t = &l->threads[k];
			int is = __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE);

			found += is && __atomic_load_n(&t->pid, __ATOMIC_ACQUIRE) == pid &&
				 (!tid || is == tid);
		}
		l = alone_next(l);
		if (l == &alone_mine)
			break;
	}
	return found;
}

/* ---- the threads ---- */

/* The stat of the main thread; -1: it is opened each time. */
static int alone_stat = -1;

/* Keeps it open: after chroot(2) there may be no /proc. The calling thread has a descriptor table of its
 * own. */
static inline void alone_keep(void)
{
	alone_stat = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
}

/* The first `size` - 1 bytes of a file. False: it cannot be read. */
static inline bool alone_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* "PID (NAME) STATE": a name may have brackets. Returns what begins at STATE; NULL: the text is another one. */
static inline const char *alone_state(const char *text)
{
	const char *end = strrchr(text, ')');

	return end && end[1] == ' ' ? end + 2 : NULL;
}

static inline bool alone_is_zombie(const char *text)
{
	const char *state = alone_state(text);

	return state && (*state == 'Z' || *state == 'X');
}

/* Returns whether it is a zombie or one of our threads. `path` is the folder of a task. */
static inline bool alone_counts_not(const char *task)
{
	char path[400], text[256];

	snprintf(path, sizeof(path), "%s/stat", task);
	if (!alone_read(path, text, sizeof(text)))
		return true; /* it has ended meanwhile */
	return alone_is_zombie(text) || alone_ours(atoi(text));
}

/* From the stat that is kept: has the main thread ended, and are as many threads left as are ours? */
static inline bool alone_by_number(void)
{
	char text[512];
	ssize_t n = pread(alone_stat, text, sizeof(text) - 1, 0);
	const char *at;

	text[n > 0 ? n : 0] = '\0';
	if (!alone_is_zombie(text))
		return false;
	at = alone_state(text);
	for (int field = 3; at && field < 20; field++)
		at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
	/* the main thread is one of them */
	return at && atoi(at) - 1 <= alone_ours(0);
}

/* While the main thread lives, which is nearly always, one file is read. In a sandbox, where a
 * system call may end the program, no file is read. */
static inline bool alone(void)
{
	char path[300];
	struct dirent *e;
	bool yes = true;
	DIR *tasks;

	if (prctl(PR_GET_SECCOMP))
		return false;
	if (alone_stat >= 0)
		return alone_by_number();
	snprintf(path, sizeof(path), "/proc/self/task/%d", (int)getpid());
	if (!alone_counts_not(path))
		return false;
	tasks = opendir("/proc/self/task");
	while (tasks && yes && (e = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s", e->d_name);
		yes = e->d_name[0] == '.' || alone_counts_not(path);
	}
	if (!tasks)
		return false;
	closedir(tasks);
	return yes;
}

#endif
