/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * draw.c - see draw.h.
 *
 * The whole screen is composed at each refresh and ncurses sends what differs: nothing flickers.
 * Names come safe to print; where the terminal's charset is not UTF-8, what is not ASCII becomes
 * '?'.
 */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "../util/msg.h"
#include "../util/utf8.h"
#include "columns.h"
#include "draw.h"
#include "terminfo.h"

#define GPUS_SHOWN 8
#define BAR 20

enum { PAIR_TITLE = 1, PAIR_BAD, PAIR_DIM };

static SCREEN *terminal;
static bool colors, utf8;
static struct top_screen *shown; /* what the mouse points at; NULL: nothing yet */
static int rows_at;		 /* the line of its first row */
static struct termios was;

/* ---- the terminal's state ---- */

/* What is written if cudatrace itself crashes: ncurses cannot be called then. */
static char restore[256];
static size_t restore_len;
static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

static void on_crash(int sig)
{
	ssize_t n = write(STDOUT_FILENO, restore, restore_len);

	(void)n;
	tcsetattr(STDIN_FILENO, TCSANOW, &was);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void add_restore(const char *cap)
{
	size_t n = cap && cap != (char *)-1 ? strlen(cap) : 0;

	if (!n || restore_len + n > sizeof(restore))
		return;
	memcpy(restore + restore_len, cap, n);
	restore_len += n;
}

static void catch_crashes(bool on)
{
	struct sigaction sa = { .sa_handler = on ? on_crash : SIG_DFL,
				.sa_flags = on ? (int)SA_RESETHAND : 0 };

	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(crashes); i++)
		sigaction(crashes[i], &sa, NULL);
}

int draw_check(void)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		msg_error("top draws on a terminal, and standard %s is none: give --batch for "
			  "blocks of text",
			  isatty(STDIN_FILENO) ? "output" : "input");
		return -EINVAL;
	}
	if (term && !strcmp(term, "dumb")) {
		msg_error("top cannot draw on a terminal of type 'dumb': set TERM to the "
			  "terminal's type, or give --batch");
		return -EINVAL;
	}
	return 0;
}

static void init_terminal(void)
{
	raw();
	noraw();
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	leaveok(stdscr, TRUE);
	mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
	mouseinterval(0);
	curs_set(0);
	if (!colors)
		return;
	start_color();
	use_default_colors();
	init_pair(PAIR_TITLE, COLOR_CYAN, -1);
	init_pair(PAIR_BAD, COLOR_RED, -1);
	init_pair(PAIR_DIM, COLOR_BLUE, -1);
}

int draw_open(bool color, const char **note)
{
	const char *term = getenv("TERM");

	*note = "";
	setlocale(LC_CTYPE, "");
	utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	tcgetattr(STDIN_FILENO, &was);
	terminal = term && *term ? newterm(term, stdout, stdin) : NULL;
	if (!terminal) {
		*note = "TERM names no terminal that is known here: it is taken for one that knows "
			"ANSI's sequences";
		terminal = terminfo_open();
	}
	if (!terminal) {
		msg_error("top cannot draw on a terminal of type '%s': set TERM to the terminal's "
			  "type, or give --batch",
			  term ? term : "");
		return -EINVAL;
	}
	set_term(terminal);
	if (!cursor_address || !clear_screen) {
		draw_close();
		msg_error("top cannot draw on a terminal of type '%s': set TERM to the terminal's "
			  "type, or give --batch",
			  term);
		return -EINVAL;
	}
	colors = color && has_colors();
	restore_len = 0;
	add_restore(exit_attribute_mode);
	add_restore(cursor_normal);
	add_restore(keypad_local);
	add_restore(exit_ca_mode);
	init_terminal();
	catch_crashes(true);
	return 0;
}

void draw_close(void)
{
	if (!terminal)
		return;
	catch_crashes(false);
	curs_set(1);
	endwin();
	delscreen(terminal);
	terminal = NULL;
}

void draw_resize(void)
{
	struct winsize size;

	if (terminal && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
}

void draw_suspend(void)
{
	if (!terminal)
		return;
	curs_set(1);
	endwin();
	raise(SIGSTOP);
	/* the process goes on: the terminal may have another size, and other text on it */
	draw_resize();
	curs_set(0);
	clearok(stdscr, TRUE);
}

/* The wheel moves; a click chooses the row below it, a second one on it opens it. */
static int mouse_key(void)
{
	MEVENT at;

	if (getmouse(&at) != OK)
		return 0;
	if (at.bstate & BUTTON4_PRESSED)
		return TOP_KEY_UP;
	if (at.bstate & BUTTON5_PRESSED)
		return TOP_KEY_DOWN;
	if (!shown || at.y < rows_at || at.y - rows_at >= shown->page ||
	    shown->first + at.y - rows_at >= shown->nrows)
		return 0;
	if (shown->at == shown->first + at.y - rows_at)
		return TOP_KEY_ENTER;
	shown->at = shown->first + at.y - rows_at;
	keys_settle(shown);
	return TOP_KEY_REDRAW;
}

int draw_key(void)
{
	int key = terminal ? getch() : ERR;

	switch (key) {
	case ERR: return -1;
	case KEY_UP: return TOP_KEY_UP;
	case KEY_DOWN: return TOP_KEY_DOWN;
	case KEY_LEFT: return TOP_KEY_LEFT;
	case KEY_RIGHT: return TOP_KEY_RIGHT;
	case KEY_PPAGE: return TOP_KEY_PAGE_UP;
	case KEY_NPAGE: return TOP_KEY_PAGE_DOWN;
	case KEY_HOME: return TOP_KEY_HOME;
	case KEY_END: return TOP_KEY_END;
	case KEY_ENTER:
	case '\r':
	case '\n': return TOP_KEY_ENTER;
	case KEY_BACKSPACE:
	case 0x7f:
	case '\b': return TOP_KEY_BACK;
	case KEY_F(1): return '?';
	case KEY_F(3):
	case KEY_F(4): return '/';
	case KEY_F(6): return '>';
	case KEY_F(10): return 'q';
	case KEY_MOUSE: return mouse_key();
	case 27: return TOP_KEY_ESCAPE;
	default: return key < 0x100 ? key : 0;
	}
}

/* ---- text ---- */

/* A character's cells, and the bytes that it is drawn by. */
static int cells_of(const char *s, size_t n, int *len, const char **bytes, int *nbytes)
{
	uint32_t code;
	int width;

	*len = utf8_next(s, n, &code);
	*bytes = s;
	*nbytes = *len;
	if (!*len || !utf8_is_safe(code) || (code >= 0x80 && !utf8)) {
		*len = *len ? *len : 1;
		*bytes = "?";
		*nbytes = 1;
		return 1;
	}
	width = code < 0x80 ? 1 : wcwidth((wchar_t)code);
	if (width >= 0)
		return width;
	*bytes = "?";
	*nbytes = 1;
	return 1;
}

/* Draws what fits into `width` cells from the cursor on; returns the cells taken. */
static int draw_put(const char *s, int width)
{
	size_t left = strlen(s);
	int cells = 0;

	while (left) {
		const char *bytes;
		int len, nbytes, w = cells_of(s, left, &len, &bytes, &nbytes);

		if (cells + w > width)
			break;
		addnstr(bytes, nbytes);
		cells += w;
		s += len;
		left -= (size_t)len;
	}
	return cells;
}

static void put_line(int y, attr_t attr, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void put_line(int y, attr_t attr, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (y >= LINES)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	move(y, 0);
	attrset(attr);
	draw_put(text, COLS);
	attrset(A_NORMAL);
}

static attr_t pair(int n, attr_t otherwise)
{
	return colors ? (attr_t)COLOR_PAIR(n) : otherwise;
}

/* ---- parts of the screen ---- */

/* "[|||||     ]", with a blank before it, where there is room; returns buf. */
static const char *bar(char *buf, double percent)
{
	int n = (int)(percent / 100 * BAR + 0.5);
	char *p = buf;

	*p = '\0';
	if (COLS < 120 || percent < 0)
		return buf;
	*p++ = ' ';
	*p++ = '[';
	for (int i = 0; i < BAR; i++)
		*p++ = i < n ? '|' : ' ';
	*p++ = ']';
	*p = '\0';
	return buf;
}

static int put_gpus(int y, const struct top_model *m, int most)
{
	for (unsigned int i = 0; i < m->ngpus && (int)i < most; i++) {
		const struct top_gpu *g = &m->gpus[i];
		char used[BAR + 4], held[BAR + 4];
		struct gpu_texts t;

		columns_gpu(&t, g);
		put_line(y++, A_NORMAL, "GPU %u  %5s %%%s%s  memory %s of %s%s  %s W  %s", g->index,
			 t.util, g->suspect ? "?" : "", bar(used, g->util), t.used, t.all,
			 bar(held, g->memory_bytes && g->memory >= 0
					   ? g->memory * 100 / (double)g->memory_bytes
					   : -1),
			 t.power, g->name);
	}
	if ((int)m->ngpus > most && most)
		put_line(y - 1, A_NORMAL, "and %u GPU%s more", m->ngpus - (unsigned int)most + 1,
			 m->ngpus == (unsigned int)most ? "" : "s");
	return y;
}

static void clock_text(char *buf, size_t size, int64_t realtime_s)
{
	time_t t = (time_t)realtime_s;
	struct tm tm;

	buf[0] = '\0';
	if (localtime_r(&t, &tm))
		strftime(buf, size, "%H:%M:%S", &tm);
}

/* Returns the first line below. */
static int draw_put_head(const struct top_screen *s, const struct top_model *m,
			 const struct draw_head *h)
{
	char now[16], calls[32], launches[32], htod[32], dtoh[32], failed[32], every[32];
	bool tall = LINES >= 12;
	int y = 0;

	clock_text(now, sizeof(now), h->realtime_s);
	columns_time(every, sizeof(every), (double)s->interval_ns);
	put_line(y++, A_BOLD, "cudatrace top  %s  %s  every %s%s", h->host ? h->host : "", now,
		 every, s->paused ? "  PAUSED (Space: go on)" : "");
	columns_count(calls, sizeof(calls), model_rate(m, m->period.calls));
	columns_count(launches, sizeof(launches), model_rate(m, m->period.launches));
	columns_bytes(htod, sizeof(htod), model_rate(m, m->period.htod));
	columns_bytes(dtoh, sizeof(dtoh), model_rate(m, m->period.dtoh));
	columns_count(failed, sizeof(failed), model_rate(m, m->period.failed));
	put_line(y++, A_NORMAL,
		 "%u process%s  %s calls/s  %s launches/s  HtoD %s/s  DtoH %s/s  API %.1f%%  sync "
		 "%.1f%%  %s failed/s",
		 m->nprocs, m->nprocs == 1 ? "" : "es", calls, launches, htod, dtoh,
		 model_percent(m, m->period.api_ns), model_percent(m, m->period.sync_ns), failed);
	if (tall) {
		const char *queries = h->no_queries ? "; queries are not counted (--queries)" : "";
		char cost[96] = "", duty[160];

		if (h->cost_percent >= 0)
			snprintf(cost, sizeof(cost),
				 ", costs the programs %.1f%% or more (%llu ns a call)",
				 h->cost_percent, (unsigned long long)h->probe_ns);
		columns_duty(duty, sizeof(duty), &h->probes);
		put_line(y++, A_NORMAL, "cudatrace itself: %.1f%% of a core%s%s", h->own_percent,
			 *duty ? duty : cost, queries);
		y = put_gpus(y, m, LINES >= 20 ? GPUS_SHOWN : 2);
	}
	if (h->lost || m->no_room) {
		put_line(y++, pair(PAIR_BAD, A_BOLD),
			 "%llu lost, %llu calls without a place in the tables",
			 (unsigned long long)h->lost, (unsigned long long)m->no_room);
	}
	if (s->view != TOP_PROCESSES) {
		static const char *const of[TOP_VIEW_END] = { NULL, "functions", "kernels",
							      "threads" };

		put_line(y++, A_BOLD, "%s of %s", of[s->view], s->whose);
	}
	return y;
}

static void put_titles(int y, const struct top_screen *s, const struct column *const *cols, int n)
{
	move(y, 0);
	attrset(A_REVERSE);
	for (int i = 0; i < n; i++) {
		attrset(cols[i]->sort == s->sort[s->view] ? A_REVERSE | A_BOLD : A_REVERSE);
		printw("%*s", (int)cols[i]->width, cols[i]->title);
	}
	attrset(s->sort[s->view] == TOP_BY_NAME ? A_REVERSE | A_BOLD : A_REVERSE);
	printw(" %-*s", COLS - getcurx(stdscr) - 1, columns_name(s->view));
	attrset(A_NORMAL);
}

static void put_row(int y, const struct top_model *m, const struct top_row *r,
		    const struct column *const *cols, int n, bool chosen)
{
	attr_t attr = r->ended ? pair(PAIR_DIM, A_DIM) : A_NORMAL;
	int used = 0;

	attr |= chosen ? A_STANDOUT : 0;
	move(y, 0);
	attrset(attr);
	for (int i = 0; i < n; i++) {
		char value[32];

		cols[i]->put(m, r, value, sizeof(value));
		attrset(cols[i]->sort == TOP_BY_FAILED && r->period.failed
				? attr | pair(PAIR_BAD, A_BOLD)
				: attr);
		printw("%*s", (int)cols[i]->width, value);
		used += (int)cols[i]->width;
	}
	attrset(attr);
	addch(' ');
	used++;
	/* the command line, where there is room for more than its beginning */
	used += draw_put(r->command && *r->command && COLS >= COLUMNS_WIDE ? r->command : r->label,
			 COLS - used - (r->ended ? 8 : 0));
	if (r->ended && COLS - used >= 8)
		used += draw_put(" (ended)", 8);
	for (; chosen && used < COLS; used++)
		addch(' ');
	attrset(A_NORMAL);
}

static void put_help(void)
{
	int y = 2, pages = 0;

	put_line(0, A_BOLD, "Keys of cudatrace top. Any key goes back.");
	for (; keys_help[pages]; pages++)
		;
	/* the help has two columns if one is too long */
	for (int i = 0; i < pages; i++) {
		int rows = LINES - 2 > 0 ? LINES - 2 : 1, x = i / rows * 40;

		if (y + i % rows >= LINES || x >= COLS)
			break;
		move(y + i % rows, x);
		draw_put(keys_help[i], x || COLS < 80 ? COLS - x : COLS);
	}
}

static void put_bottom(const struct top_screen *s, bool empty)
{
	int y = LINES - 1;

	if (s->editing)
		put_line(y, A_REVERSE, "names with: %s_", s->filter);
	else if (*s->note)
		put_line(y, A_REVERSE, "%s", s->note);
	else if (*s->filter)
		put_line(y, A_REVERSE, "only names with '%s' (Esc: all)", s->filter);
	else if (empty)
		put_line(y, A_NORMAL,
			 s->view == TOP_PROCESSES
				 ? "no process has made a call yet  ?: help  q: quit"
				 : "nothing counted yet  Esc: back  ?: help  q: quit");
	else
		put_line(y, A_NORMAL, "%s  ?: help  q: quit",
			 s->view == TOP_PROCESSES
				 ? "Enter: functions  k: kernels  t: threads  Space: pause"
				 : "Esc: back  Space: pause");
}

void draw_screen(struct top_screen *s, struct top_model *m, const struct draw_head *h)
{
	const struct column *cols[COLUMNS_MAX];
	int y, n;

	if (!terminal)
		return;
	erase();
	if (s->help) {
		put_help();
		refresh();
		return;
	}
	n = columns_pick(s->view, (unsigned int)COLS, m->device, cols);
	y = draw_put_head(s, m, h);
	if (y + 2 < LINES) {
		put_titles(y++, s, cols, n);
		s->page = LINES - 1 - y;
		shown = s;
		rows_at = y;
		keys_settle(s);
		for (long i = s->first; i < s->nrows && y < LINES - 1; i++)
			put_row(y++, m, &s->rows[i], cols, n, i == s->at);
	}
	put_bottom(s, !s->nrows && !*s->filter);
	refresh();
}
