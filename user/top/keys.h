/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keys.h - what keys do to what is shown. Knows no terminal: keys are characters, and TOP_KEY_*
 * for the others.
 */
#ifndef CT_TOP_KEYS_H
#define CT_TOP_KEYS_H

#include "model.h"

enum {
	TOP_KEY_UP = 0x1000,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_BACK,
	TOP_KEY_ESCAPE,
	TOP_KEY_REDRAW, /* the mouse chose a row */
};

/* What is shown, and where the user is in it. */
struct top_screen {
	enum top_view view;
	uint32_t pid, start; /* whose functions, kernels or threads */
	uint32_t whose_id;   /* as top_row.id has it */
	char whose[96];	     /* in words */
	enum top_sort sort[TOP_VIEW_END];
	bool reverse[TOP_VIEW_END];
	bool paused, help;
	bool editing;		     /* the filter is being typed */
	char filter[64], before[64]; /* before: what Escape gives back */
	uint64_t interval_ns;
	char note[256]; /* one line for the user; "": none */
	/* the rows, made by the part that draws */
	struct top_row *rows;
	long nrows, first, at; /* first: the uppermost shown; at: the one that Enter opens */
	long page;	       /* rows that the terminal shows */
	/* which row `at` is, so that it stays on it when others move */
	uint32_t at_pid, at_start, at_id;
};

#define KEYS_DRAW 0x1 /* something is to be drawn anew */
#define KEYS_QUIT 0x2
#define KEYS_READ 0x4	  /* a refresh now */
#define KEYS_INTERVAL 0x8 /* the interval has changed */
#define KEYS_VIEW 0x10	  /* the view has changed: calls must be counted by keys_count_by() */

void keys_open(struct top_screen *, uint64_t interval_ns, enum top_sort);
unsigned int keys_press(struct top_screen *, int key);
/* Returns by what the kernel side must count calls for this view: enum ct_by. */
uint8_t keys_count_by(const struct top_screen *);
/* Makes the rows anew and finds the chosen one among them. Returns 0 or -ENOMEM. */
int keys_rows(struct top_screen *, struct top_model *);
/* Remembers which row `at` is, and keeps it on the page. */
void keys_settle(struct top_screen *);
/* Lines of help, NULL-terminated. */
extern const char *const keys_help[];

#endif
