/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * draw.h - the terminal: brings it into the state in which it is drawn on, draws, reads keys,
 * and gives it back as it was, whatever happens. Wraps ncurses. One at a time.
 */
#ifndef CT_TOP_DRAW_H
#define CT_TOP_DRAW_H

#include "keys.h"

/* What stands above the rows, beside the model's own. */
struct draw_head {
	const char *host; /* NULL: not known */
	int64_t realtime_s;
	double own_percent; /* what cudatrace itself takes, as a share of a core */
	double cost_percent; /* what it costs the programs at least, as a share of a core; below 0: not known */
	uint64_t probe_ns; /* of a call, at least */
	uint64_t lost;
	const struct holes *holes; /* what was not seen; NULL: nothing */
	/* no function of class query is probed: calls are those of the others */
	bool no_queries;
	bool color;
	struct probe_cost probes;
};

/* Whether there is a terminal that can be drawn on. Returns 0, or -EINVAL after one message.
 * Nothing is changed. */
int draw_check(void);
/* Returns 0, or -EINVAL after one message. *note gets a sentence for the user, or "". */
int draw_open(bool color, const char **note);
void draw_close(void); /* safe when it is not open */
void draw_screen(struct top_screen *, struct top_model *, const struct draw_head *);
/* The next key, TOP_KEY_* or a character; -1: none. */
int draw_key(void);
/* Call it when the terminal has another size. */
void draw_resize(void);
/* Gives the terminal back, stops this process as SIGTSTP does, and takes it again once it goes on. */
void draw_suspend(void);

#endif
