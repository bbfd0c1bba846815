/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * field.h - one named, typed value of a record. Output formats need to know nothing else.
 */
#ifndef CT_FIELD_H
#define CT_FIELD_H

#include "../util/types.h"

enum field_type {
	FIELD_INT,     /* signed: i */
	FIELD_UINT,    /* unsigned: u */
	FIELD_SIZE,    /* bytes: u; the table adds " bytes" */
	FIELD_PTR,     /* an address or an opaque handle: u */
	FIELD_STREAM,  /* a stream handle: u; 0, 1, 2 are the default streams */
	FIELD_FUNC,    /* a kernel: host stub address or handle: u */
	FIELD_ENUM,    /* i, named by xlat */
	FIELD_FLAGS,   /* u, bits named by xlat */
	FIELD_BOOL,    /* u */
	FIELD_FLOAT,   /* f */
	FIELD_DIM3,    /* dim[3] */
	FIELD_STR,     /* str, str_len, cut */
	FIELD_BYTES,   /* str, str_len: raw bytes (uuid, ipc handle); printed as hex */
	FIELD_ERROR,   /* i, an error code; xlat names it */
	FIELD_UNKNOWN, /* a value that is not captured (a float argument): printed as ? */
	/* i, named by xlat with a word of this project; a number without a name is printed as a
	 * number */
	FIELD_WORD,
	FIELD_DURATION, /* nanoseconds: u */
	FIELD_RATE,	/* bytes a second: f */
	/* a struct or a list begins: its members follow up to FIELD_CLOSE; `is_list` */
	FIELD_OPEN,
	FIELD_CLOSE,
};

/* A name for a value. Tables end with a NULL name and are sorted by value. */
struct xlat_row {
	int64_t value;
	const char *name; /* in full, as in the header: "cudaMemcpyHostToDevice" */
};
struct xlat {
	const char *id;	    /* "memcpy_kind" */
	const char *prefix; /* "cudaMemcpy": what the table leaves out of a name */
	bool flags;	    /* bits, not values */
	const struct xlat_row *rows;
	int nrows;
};

/* The name of a value in full, or NULL. Binary search. */
const char *xlat_name(const struct xlat *, int64_t value);
/* The next row, from number *at on, whose bits are all set in `value`, and some of them in `left`: the
 * bits that have no name so far, from which the caller takes the row's. NULL: there is none, or x is
 * NULL. */
const struct xlat_row *xlat_flag(const struct xlat *x, uint64_t value, uint64_t left, int *at);
/* A full name without the prefix. */
const char *xlat_short(const struct xlat *, const char *name);

struct field {
	const char *name;  /* as CUDA's header names it; NULL for the elements of a list */
	const char *label; /* as the table prints it */
	const char *
		key; /* as outputs for programs have it: with the unit, or as a column; NULL: the name */
	uint8_t type; /* enum field_type */
	bool out;     /* an output, read at return */
	bool absent; /* could not be read, or was not because the call failed: no value. Inputs print the
			      pointer that is in u; outputs are left out of the table and null in JSON */
	bool is_list; /* FIELD_OPEN */
	bool cut;     /* there was more than was captured (strings, lists) */
	bool single;  /* FIELD_FLOAT: the value had 4 bytes */
	uint32_t str_len;
	const struct xlat *xlat;
	union {
		uint64_t u;
		int64_t i;
		double f;
		uint32_t dim[3];
		const char *str; /* not NUL-terminated; untrusted bytes */
	};
};

static inline const char *field_key(const struct field *f)
{
	return f->key ? f->key : f->name;
}

#endif
