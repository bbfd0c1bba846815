/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * habits.h - words that fingers type because strace, perf or nsys have them. Some are ours under another name;
 * for those that mean nothing here, or something else: what to give instead. Knows no option's row.
 */
#ifndef CT_HABITS_H
#define CT_HABITS_H

/* One sentence about an option, as it was typed ("-T", "--stats=true"), for options that no row has; NULL:
 * nothing is known of it. */
const char *habits_option(const char *word);
/* One sentence about a word that is a command of another tool; NULL: nothing is known of it. */
const char *habits_command(const char *word);
/* One sentence about a value of -e with a '=' ("inject=..."); NULL: nothing is known of it. */
const char *habits_qualifier(const char *word);

struct habit_same {
	const char *theirs, *ours;
};
/* Names of long options that mean one of ours, without the dashes, in order; NULL after the last. */
const struct habit_same *habits_same(int i);
/* Returns our name of the format, or the word itself if it is not known. */
const char *habits_format(const char *word);

#endif
