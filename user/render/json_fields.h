/* SPDX-License-Identifier: BSD-2-Clause */
/* json_fields.h - fields as JSON writes them, for every format that has JSON in it. 64-bit
 * integers stay integers. */
#ifndef CT_JSON_FIELDS_H
#define CT_JSON_FIELDS_H

#include "../event/event.h"
#include "../flow/row.h"

#define JSON_ROOM 512 /* anything but strings and flags: a name, a value, punctuation */

/* A string of n untrusted bytes, with its quotes. */
void json_string(struct row *, const char *s, size_t n);
/* A word of our own in quotes, where there is room for it. Returns the end. */
char *json_word(char *p, const char *name);
/* The next member of an object that has some already: the comma and the key, a word of our own in a
 * literal. Its value follows; of numbers and words it is written too. Return the end. */
#define json_next(p, key) put_lit(p, ",\"" key "\":")
#define json_next_u64(p, key, v) put_u64(json_next(p, key), v)
#define json_next_word(p, key, word) json_word(json_next(p, key), word)
/* The value of one field that is no struct and no list. */
void json_value(struct row *, const struct field *);
/* The members of an object, without its braces. */
void json_fields(struct row *, const struct field *, int n);

#endif
