/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * findings.h - the one form of what a command found: what it claims, of whom, which share of the time,
 * how sure that is, and which commands show the rows and go on from there. Knows no record, no rule
 * and no source. docs/findings.schema.json describes the JSON, docs/findings.md the words.
 */
#ifndef CT_FINDINGS_H
#define CT_FINDINGS_H

#include "../util/io/json.h"
#include "../util/io/out.h"

#define FINDINGS_VERSION 1

enum finding_confidence {
	FINDING_MEASURED,  /* each part of the number was seen */
	FINDING_ESTIMATED, /* from samples, or from what is known of a part */
	FINDING_INFERRED,  /* the time is measured, and its cause follows from other things */
};

#define FINDING_UNKNOWN (-1) /* of a rank, a device, an error */

/* Texts are owned by the one who makes it, and are untrusted bytes unless it says otherwise. */
struct finding {
	const char *id;	   /* a word of the command: "gpu-gaps"; what --fail-if asks for */
	const char *claim; /* a sentence or a clause */
	/* the subject */
	uint32_t pid; /* as users see it; 0: none */
	const char *process;
	size_t process_len;
	int64_t rank, device; /* or FINDING_UNKNOWN */
	const char *line;     /* "train.py:88 collate"; NULL: not known */
	size_t line_len;
	double share,
		share_error; /* of the time that was looked at; error in the same unit, or FINDING_UNKNOWN */
	uint8_t confidence;	/* enum finding_confidence */
	const char *evidence;	/* a command that prints the rows; NULL: there is none */
	const char *not_judged; /* a sentence; NULL or "": all was looked at */
	const char *next;	/* the command to type next; NULL: none */
};

/* The members of an object that is open. */
void finding_json(struct json *, const struct finding *);
/* Lines for people: how sure it is, and the commands. indent: before each. */
void finding_text(struct out *, const char *indent, const struct finding *);

/* A condition of --fail-if: "ID>5%" or "any>5%". Returns 0, or -EINVAL after a message. */
int finding_check_condition(const char *option, const char *text);
/* The same for a command whose findings have these names; name_at gives NULL behind the last one. */
int finding_check_named(const char *option, const char *text, const char *(*name_at)(unsigned int));
/* Does the finding fulfil one of the conditions, which were checked? NULL-terminated; NULL: none. */
bool finding_fails(const struct finding *, const char *const *conditions);

#endif
