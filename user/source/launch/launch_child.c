/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch_child.c - see launch_child.h. Everything that needs memory or files is prepared before the
 * fork: we may have threads, so the child makes system calls only. It reports and waits on one
 * socket, which closes at its execve(2).
 *
 * Users are looked up in /etc/passwd and /etc/group themselves: a static build cannot load NSS
 * modules. Knows nothing of ptrace.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "launch_child.h"

#define DEFAULT_PATH "/bin:/usr/bin" /* execvp(3) without PATH */
#define GROUPS_MAX 65536	     /* NGROUPS_MAX of <linux/limits.h> */

struct user {
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int ngroups;
	char *vars[3]; /* HOME, USER, LOGNAME */
};

struct plan {
	char *path; /* the file */
	char *const *argv;
	char **sh_argv; /* for a script without #! */
	char **env;
	struct user user;
	bool change_user;
};

/* ---- the user ---- */

static int add_group(struct user *u, gid_t gid)
{
	gid_t *more;

	for (int i = 0; i < u->ngroups; i++)
		if (u->groups[i] == gid)
			return 0;
	if (u->ngroups == GROUPS_MAX)
		return 0;
	more = realloc(u->groups, (u->ngroups + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	u->groups = more;
	u->groups[u->ngroups++] = gid;
	return 0;
}

static int read_groups(struct user *u, const char *name)
{
	FILE *f = fopen("/etc/group", "re");
	int err = add_group(u, u->gid);
	struct group *g;

	if (!f)
		return err;
	while (!err && (g = fgetgrent(f)))
		for (char **m = g->gr_mem; *m && !err; m++)
			if (!strcmp(*m, name))
				err = add_group(u, g->gr_gid);
	fclose(f);
	return err;
}

static int fill_user(struct user *u, const struct passwd *pw)
{
	u->uid = pw->pw_uid;
	u->gid = pw->pw_gid;
	if (asprintf(&u->vars[0], "HOME=%s", pw->pw_dir) < 0 ||
	    asprintf(&u->vars[1], "USER=%s", pw->pw_name) < 0 ||
	    asprintf(&u->vars[2], "LOGNAME=%s", pw->pw_name) < 0)
		return -ENOMEM;
	return read_groups(u, pw->pw_name);
}

/* A name, or a uid in digits; a name of digits comes first, as for chown(1). */
static int find_user(struct user *u, const char *user)
{
	char *end;
	unsigned long long uid = strtoull(user, &end, 10);
	bool number = *user >= '0' && *user <= '9' && !*end;
	int err = -ENOENT;
	struct passwd *pw;
	FILE *f;

	for (int pass = 0; pass <= number && err == -ENOENT; pass++) {
		f = fopen("/etc/passwd", "re");
		if (!f)
			break;
		while (err == -ENOENT && (pw = fgetpwent(f)))
			if (pass ? pw->pw_uid == uid : !strcmp(pw->pw_name, user))
				err = fill_user(u, pw);
		fclose(f);
	}
	if (err == -ENOENT)
		msg_error(
			"there is no user '%s' in /etc/passwd: give a name or a uid that is there",
			user);
	else if (err)
		msg_error("user '%s' cannot be looked up: %s", user, strerror(-err));
	return err;
}

static void cannot_run(const char *name, int err)
{
	msg_error("cannot run '%s': %s%s", name, strerror(-err),
		  err == -EMFILE
			  ? ": more open files are needed than this shell allows; raise `ulimit -n`"
			  : "");
}

/* ---- the environment and the file ---- */

/* "VAR=VAL" replaces, "VAR" removes. vars has room. */
static void change_env(char **vars, int *n, char *change)
{
	size_t len = strcspn(change, "=");
	int kept = 0;

	for (int i = 0; i < *n; i++)
		if (strncmp(vars[i], change, len) || vars[i][len] != '=')
			vars[kept++] = vars[i];
	if (change[len])
		vars[kept++] = change;
	vars[kept] = NULL;
	*n = kept;
}

static int launch_child_make_env(struct plan *p, char *const env[])
{
	int have = 0, n = 0, changes = 0;

	while (environ && environ[have])
		have++;
	while (env && env[changes])
		changes++;
	p->env = calloc(have + changes + ARRAY_LEN(p->user.vars) + 1, sizeof(*p->env));
	if (!p->env)
		return -ENOMEM;
	for (; n < have; n++)
		p->env[n] = environ[n];
	for (size_t i = 0; i < ARRAY_LEN(p->user.vars); i++)
		if (p->user.vars[i])
			change_env(p->env, &n, p->user.vars[i]);
	for (int i = 0; i < changes; i++)
		change_env(p->env, &n, env[i]);
	return 0;
}

static int can_run(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

/* As execvp(3) with the new environment's PATH, but a folder that we may not search counts as
 * empty. */
static int find_file(struct plan *p, const char *name)
{
	const char *path = DEFAULT_PATH, *next;
	int err = -ENOENT, one;

	if (strchr(name, '/')) {
		p->path = strdup(name);
		return p->path ? can_run(name) : -ENOMEM;
	}
	for (char **v = p->env; *v; v++)
		if (!strncmp(*v, "PATH=", 5))
			path = *v + 5;
	for (; *name && path; path = next ? next + 1 : NULL) {
		next = strchrnul(path, ':');
		if (asprintf(&p->path, "%.*s%s%s", (int)(next - path), path,
			     next == path ? "" : "/", name) < 0) {
			p->path = NULL;
			return -ENOMEM;
		}
		one = can_run(p->path);
		if (!one)
			return 0;
		if (one == -EACCES && !faccessat(AT_FDCWD, p->path, F_OK, AT_EACCESS))
			err = one;
		free(p->path);
		p->path = NULL;
		if (!*next)
			break;
	}
	return err;
}

static void free_plan(struct plan *p)
{
	free(p->path);
	free(p->sh_argv);
	free(p->env);
	free(p->user.groups);
	for (size_t i = 0; i < ARRAY_LEN(p->user.vars); i++)
		free(p->user.vars[i]);
}

static int make_plan(struct plan *p, char *const cmd[], const char *user, char *const env[])
{
	int err = 0, n = 0;

	p->argv = cmd;
	if (user) {
		err = find_user(&p->user, user);
		if (err)
			return err;
		/* Who is that user already need not be root. */
		p->change_user = p->user.uid != geteuid() || p->user.uid != getuid() || !geteuid();
	}
	while (cmd[n])
		n++;
	p->sh_argv = calloc(n + 2, sizeof(*p->sh_argv));
	err = p->sh_argv ? launch_child_make_env(p, env) : -ENOMEM;
	if (!err)
		err = n ? find_file(p, cmd[0]) : -ENOENT;
	if (err) {
		cannot_run(n ? cmd[0] : "", err);
		return err;
	}
	p->sh_argv[0] = (char *)"/bin/sh";
	p->sh_argv[1] = p->path;
	for (int i = 1; i < n; i++)
		p->sh_argv[i + 1] = cmd[i];
	return 0;
}

/* ---- in the child ---- */

/* Handlers of ours must not run here, and what we ignore is not what the program shall ignore.
 * Only SIGHUP stays ignored: we never set that, nohup(1) did. */
static void reset_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL }, old;
	sigset_t none;

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sig != SIGHUP || (!sigaction(SIGHUP, NULL, &old) && old.sa_handler != SIG_IGN))
			sigaction(sig, &sa, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The bare system calls: the C library's would look for the threads of the process that forked. */
static int become(const struct user *u)
{
	if (syscall(SYS_setgroups, u->ngroups, u->groups) || syscall(SYS_setgid, u->gid) ||
	    syscall(SYS_setuid, u->uid))
		return errno;
	return 0;
}

static void launch_child_report(int fd, int err)
{
	if (write(fd, &err, sizeof(err)) < 0)
		_exit(127);
}

static void __attribute__((noreturn)) child(const struct plan *p, int fd)
{
	int err = p->change_user ? become(&p->user) : 0;
	ssize_t n;
	char go;

	launch_child_report(fd, err);
	if (err)
		_exit(127);
	do
		n = read(fd, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127);
	/* until here they are blocked: a Ctrl-C ends the program, not us half way to it */
	reset_signals();
	execve(p->path, p->argv, p->env);
	if (errno == ENOEXEC)
		execve(p->sh_argv[0], p->sh_argv, p->env);
	err = errno;
	launch_child_report(fd, err);
	_exit(err == ENOENT ? 127 : 126);
}

/* ---- the parent's side ---- */

/* The next errno that the child reports; EPIPE: it ended without a word. */
static int next_report(int fd)
{
	ssize_t n;
	int err;

	do
		n = read(fd, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? err : EPIPE;
}

static pid_t fork_blocked(const struct plan *p, const int fds[2])
{
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (!pid) {
		close(fds[0]);
		child(p, fds[1]);
	}
	if (pid < 0)
		pid = -errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid;
}

int launch_child_fork(struct launch_child *c, char *const cmd[], const char *user,
		      char *const env[])
{
	int fds[2] = { -1, -1 }, err;
	struct plan p = {};

	*c = (struct launch_child){ .fd = -1 };
	err = make_plan(&p, cmd, user, env);
	if (err)
		goto out;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		err = -errno;
	else if ((c->pid = fork_blocked(&p, fds)) < 0)
		err = c->pid;
	if (err) {
		cannot_run(cmd[0], err);
		goto out;
	}
	close(fds[1]);
	fds[1] = -1;
	err = -next_report(fds[0]);
	if (err) {
		waitpid(c->pid, NULL, 0);
		if (err == -EPIPE)
			msg_error("cannot run '%s': it was killed before it began", cmd[0]);
		else
			msg_error("cannot run '%s' as user %s (%s): run cudatrace as root", cmd[0],
				  user ? user : "", strerror(-err));
		goto out;
	}
	c->fd = fds[0];
	fds[0] = -1;
out:
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free_plan(&p);
	return err;
}

int launch_child_go(const struct launch_child *c)
{
	return send(c->fd, "", 1, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

int launch_child_exec_error(const struct launch_child *c)
{
	int err = next_report(c->fd);

	return err == EPIPE ? 0 : err;
}

void launch_child_close(struct launch_child *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
