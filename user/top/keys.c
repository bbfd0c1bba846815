/* SPDX-License-Identifier: BSD-2-Clause */
/* keys.c - see keys.h. */
#include <stdio.h>
#include <string.h>

#include "columns.h"
#include "keys.h"

#define INTERVAL_MIN_NS 100000000ULL
#define INTERVAL_MAX_NS 60000000000ULL
#define STEP_NS 500000000ULL /* of + and -; below one second 100 ms */

static const char keys_of_sorts[TOP_SORT_END] = {
	[TOP_BY_PID] = 'P',    [TOP_BY_NAME] = 'n',   [TOP_BY_CALLS] = 'c', [TOP_BY_LAUNCHES] = 'l',
	[TOP_BY_API] = 'a',    [TOP_BY_SYNC] = 's',   [TOP_BY_HTOD] = 'h',  [TOP_BY_DTOH] = 'd',
	[TOP_BY_MEMORY] = 'm', [TOP_BY_FAILED] = 'f', [TOP_BY_GPU] = 'g',   [TOP_BY_BUSY] = 'b',
};

const char *const keys_help[] = {
	"Enter      functions of the process",
	"k          its kernels, counted from now on",
	"t          its threads, counted from now on",
	"Esc        back to the processes",
	"Up Down PgUp PgDn Home End   move",
	"P n        sort by PID, by name",
	"c l f      by calls, launches, failures",
	"a s        by time in the API, in waits",
	"h d m      by bytes HtoD, DtoH, by memory",
	"g b        by GPU time, by time it is busy",
	"< >        sort by another column",
	"r          the other way round",
	"/          only names with a text",
	"Space      pause, and go on",
	"+ -        refresh less, more often",
	"? q        this text, quit (F1, F10)",
	"F3 F6      names with a text, sort",
	"mouse      choose, open, move",
	NULL,
};

void keys_open(struct top_screen *s, uint64_t interval_ns, enum top_sort sort)
{
	memset(s, 0, sizeof(*s));
	s->interval_ns = interval_ns;
	s->sort[TOP_PROCESSES] = sort;
	s->sort[TOP_FUNCTIONS] = TOP_BY_API;
	s->sort[TOP_KERNELS] = TOP_BY_CALLS;
	s->sort[TOP_THREADS] = TOP_BY_API;
	s->page = 1;
}

uint8_t keys_count_by(const struct top_screen *s)
{
	return s->view == TOP_KERNELS	? CT_BY_KERNEL
	       : s->view == TOP_THREADS ? CT_BY_THREAD
					: CT_BY_FUNCTION;
}

/* ---- rows ---- */

void keys_settle(struct top_screen *s)
{
	if (s->at >= s->nrows)
		s->at = s->nrows - 1;
	if (s->at < 0)
		s->at = 0;
	if (s->at < s->first)
		s->first = s->at;
	if (s->at >= s->first + s->page)
		s->first = s->at - s->page + 1;
	if (s->first > s->nrows - s->page)
		s->first = s->nrows - s->page;
	if (s->first < 0)
		s->first = 0;
	if (s->nrows) {
		s->at_pid = s->rows[s->at].pid;
		s->at_start = s->rows[s->at].start;
		s->at_id = s->rows[s->at].id;
	}
}

int keys_rows(struct top_screen *s, struct top_model *m)
{
	struct top_query q = { .view = s->view,
			       .pid = s->pid,
			       .start = s->start,
			       .sort = s->sort[s->view],
			       .reverse = s->reverse[s->view],
			       .filter = s->filter };
	long n = model_rows(m, &q, &s->rows);

	if (n < 0)
		return (int)n;
	s->nrows = n;
	/* the choice stays on the first row, because the largest rows come there */
	for (long i = 0; s->at && i < n && s->view != TOP_KERNELS; i++) {
		if (s->rows[i].pid == s->at_pid && s->rows[i].start == s->at_start &&
		    s->rows[i].id == s->at_id) {
			s->at = i;
			break;
		}
	}
	keys_settle(s);
	return 0;
}

/* ---- keys ---- */

static unsigned int open_view(struct top_screen *s, enum top_view view)
{
	if (s->view == TOP_PROCESSES) {
		const struct top_row *r = &s->rows[s->at];

		if (!s->nrows)
			return 0;
		s->pid = r->pid;
		s->start = r->start;
		s->whose_id = r->id;
		snprintf(s->whose, sizeof(s->whose), "%u %s", r->id, r->label);
		s->filter[0] = '\0';
	}
	s->view = view;
	s->at = s->first = 0;
	s->nrows = 0; /* of another view */
	return KEYS_DRAW | KEYS_VIEW;
}

static unsigned int back(struct top_screen *s)
{
	if (*s->filter) {
		s->filter[0] = '\0';
		return KEYS_DRAW;
	}
	if (s->view == TOP_PROCESSES)
		return 0;
	s->view = TOP_PROCESSES;
	s->first = 0;
	s->nrows = 0;
	s->at = 1; /* the chosen process is then looked for */
	s->at_pid = s->pid;
	s->at_start = s->start;
	s->at_id = s->whose_id;
	return KEYS_DRAW | KEYS_VIEW;
}

static unsigned int edit(struct top_screen *s, int key)
{
	size_t n = strlen(s->filter);

	switch (key) {
	case TOP_KEY_ENTER: s->editing = false; break;
	case TOP_KEY_ESCAPE:
		s->editing = false;
		memcpy(s->filter, s->before, sizeof(s->filter));
		break;
	case TOP_KEY_BACK:
		/* a whole character of UTF-8 */
		while (n && ((unsigned char)s->filter[n - 1] & 0xc0) == 0x80)
			n--;
		if (n)
			n--;
		s->filter[n] = '\0';
		break;
	default:
		if (key < ' ' || key > 0xff || key == 0x7f || n + 1 >= sizeof(s->filter))
			return 0;
		s->filter[n] = (char)key;
		s->filter[n + 1] = '\0';
	}
	return KEYS_DRAW;
}

static unsigned int move(struct top_screen *s, int key)
{
	switch (key) {
	case TOP_KEY_UP: s->at--; break;
	case TOP_KEY_DOWN: s->at++; break;
	case TOP_KEY_PAGE_UP: s->at -= s->page; break;
	case TOP_KEY_PAGE_DOWN: s->at += s->page; break;
	case TOP_KEY_HOME: s->at = 0; break;
	case TOP_KEY_END: s->at = s->nrows - 1; break;
	case TOP_KEY_REDRAW: break;
	default: return 0;
	}
	keys_settle(s);
	return KEYS_DRAW;
}

/* The next column in which the view can be sorted; the name's is the last. */
static unsigned int sort_beside(struct top_screen *s, int step)
{
	const struct column *cols[COLUMNS_MAX];
	enum top_sort sorts[COLUMNS_MAX + 1];
	int n = columns_pick(s->view, ~0u, true, cols), k = 0, at = 0;

	for (int i = 0; i < n; i++)
		if (cols[i]->sort != TOP_SORT_END)
			sorts[k++] = cols[i]->sort;
	sorts[k++] = TOP_BY_NAME;
	for (int i = 0; i < k; i++)
		if (sorts[i] == s->sort[s->view])
			at = i;
	at += step;
	s->sort[s->view] = sorts[at < 0 ? 0 : at >= k ? k - 1 : at];
	return KEYS_DRAW;
}

static unsigned int sort_by(struct top_screen *s, int key)
{
	for (int i = 0; i < TOP_SORT_END; i++) {
		if (keys_of_sorts[i] != key)
			continue;
		s->sort[s->view] = (enum top_sort)i;
		s->reverse[s->view] = false;
		s->at = s->first = 0;
		return KEYS_DRAW;
	}
	return 0;
}

static unsigned int slower(struct top_screen *s, bool slower)
{
	uint64_t step = s->interval_ns + (slower ? 1 : 0) > 2 * STEP_NS ? STEP_NS : STEP_NS / 5;

	if (slower)
		s->interval_ns = s->interval_ns + step > INTERVAL_MAX_NS ? INTERVAL_MAX_NS
									 : s->interval_ns + step;
	else
		s->interval_ns = s->interval_ns < INTERVAL_MIN_NS + step ? INTERVAL_MIN_NS
									 : s->interval_ns - step;
	return KEYS_DRAW | KEYS_INTERVAL;
}

static unsigned int command(struct top_screen *s, int key)
{
	switch (key) {
	case 'q': return KEYS_QUIT;
	case '?': s->help = true; return KEYS_DRAW;
	case ' ': s->paused = !s->paused; return s->paused ? KEYS_DRAW : KEYS_DRAW | KEYS_READ;
	case '/':
		s->editing = true;
		memcpy(s->before, s->filter, sizeof(s->before));
		return KEYS_DRAW;
	case 'r': s->reverse[s->view] = !s->reverse[s->view]; return KEYS_DRAW;
	case '+':
	case '=': return slower(s, true);
	case '-': return slower(s, false);
	case '<':
	case TOP_KEY_LEFT: return sort_beside(s, -1);
	case '>':
	case TOP_KEY_RIGHT: return sort_beside(s, 1);
	case TOP_KEY_ENTER: return s->view == TOP_PROCESSES ? open_view(s, TOP_FUNCTIONS) : 0;
	case 'k': return open_view(s, TOP_KERNELS);
	case 't': return open_view(s, TOP_THREADS);
	case TOP_KEY_ESCAPE:
	case TOP_KEY_BACK: return back(s);
	default: return move(s, key) | sort_by(s, key);
	}
}

unsigned int keys_press(struct top_screen *s, int key)
{
	s->note[0] = '\0';
	if (s->help) {
		s->help = false;
		return key == 'q' ? KEYS_QUIT : KEYS_DRAW;
	}
	return s->editing ? edit(s, key) : command(s, key);
}
