/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * domain.h - the libraries that are traced: rows of domains.def. Who must know something about a
 * library asks its row; nobody else knows how many there are, or which.
 */
#ifndef CT_DOMAIN_H
#define CT_DOMAIN_H

#include "field.h"

enum api_domain {
#define DOMAIN(id, word, ...) API_##id,
#include "domains.def"
#undef DOMAIN
	API_DOMAIN_END
};

#define API_DOMAIN_FILES 4
#define API_DOMAIN_SYMBOLS 4
#define API_DOMAIN_SINCE 24

struct api_domain_row {
	/* "runtime": in --domain, -e, list, every output and recordings. Lower case, no class's name */
	const char *name;
	const char *title;   /* of its table in stat: "Runtime API calls" */
	const char *product; /* whose version its files have: "CUDA" */
	/* how doctor calls a file that is the library */
	const char *library;
	/* a file of any other name that defines functions of it: in messages, and in doctor.
	 * NULL: such a file counts as the library */
	const char *linked, *linked_title;
	/* what doctor says of a process that has a library of CUDA's and not this one; NULL: nothing */
	const char *missing;
	/* globs of file names; they are looked for where libraries are installed, and read first */
	const char *files[API_DOMAIN_FILES];
	/* all its symbols begin with one of these */
	const char *symbols[API_DOMAIN_SYMBOLS];
	/* behind this the soname has the version's first number, which counts as 1000; NULL: not so */
	const char *soname;
	/* the version that first defines a symbol, ascending */
	struct {
		const char *symbol;
		int version;
	} since[API_DOMAIN_SINCE];
	/* of what its functions return where their rows say STATUS: 0 is success */
	const struct xlat *errors;
	int not_ready; /* an answer and no failure in rows with NOT_READY; 0: none */
	/* One of CUDA's own libraries: what its functions call inside themselves, in it or in
	 * another one that folds, is a part of the call. Without, the calls inside stand for
	 * themselves. */
	bool folds;
	/* mostly called by the libraries above it, which launch kernels by it */
	bool below;
	bool last_error;   /* keeps the last error, which can be asked for */
	bool first_device; /* a thread that has chosen no device works on the first one */
	bool host_stubs;   /* its handles of kernels are addresses in the program */
	bool not_usual;	   /* traced only where -e or --domain names it */
	/* what others call its calls: Chrome's category (NULL: the name); nsys' event class; the
	 * callback domain of CUPTI (0: none) */
	const char *category;
	int nsys_class;
	int cupti;
};

extern const struct api_domain_row api_domains[API_DOMAIN_END];
/* their names, and NULL at the end */
extern const char *const api_domain_names[];

const char *api_domain_name(enum api_domain); /* "runtime" */
/* By name; API_DOMAIN_END: none is named so. */
enum api_domain api_domain_find(const char *name, size_t len);
/* The library whose file this may be, by the last part of the path; API_DOMAIN_END: none. */
enum api_domain api_domain_of_file(const char *path);
/* May a symbol be a function of a traced library, by its beginning? */
bool api_domain_symbol(const char *symbol);
/* All that symbols begin with, NULL at the end. */
const char *const *api_domain_symbols(void);
/* The version that first defines the symbol; 0: it says nothing. */
int api_domain_since(enum api_domain, const char *symbol);
/* The version that a soname says; 0: none. */
int api_domain_version(enum api_domain, const char *soname);

#endif
