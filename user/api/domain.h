/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * domain.h - the libraries that are traced: rows of domains.def. Code that needs to know something
 * about a library asks its row; no other code knows how many libraries there are, or which.
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
/* The first row of layers.def. The rows from here on are layers, and no others. */
#define API_FIRST_LAYER API_NVTX

#define API_DOMAIN_FILES 4
#define API_DOMAIN_SYMBOLS 4
#define API_DOMAIN_SINCE 24

struct api_domain_row {
	/* "runtime": in --domain, -e, list, every output and recordings. Lower case, and not the
	 * name of a class */
	const char *name;
	const char *title;   /* title of its table in stat: "Runtime API calls" */
	const char *product; /* the product whose version its files have: "CUDA" */
	/* what doctor calls a file that is the library */
	const char *library;
	/* a file with any other name that defines functions of the library: its name in
	 * messages, and in doctor. NULL: such a file counts as the library */
	const char *linked, *linked_title;
	/* what doctor says about a process that has one of CUDA's libraries but not this one;
	 * NULL: nothing */
	const char *missing;
	/* globs of file names; such files are searched for where libraries are installed, and
	 * read first */
	const char *files[API_DOMAIN_FILES];
	/* all its symbols begin with one of these */
	const char *symbols[API_DOMAIN_SYMBOLS];
	/* in the soname, the version's first number follows this text and counts as 1000; NULL:
	 * the soname has none */
	const char *soname;
	/* the version that first defines a symbol, ascending */
	struct {
		const char *symbol;
		int version;
	} since[API_DOMAIN_SINCE];
	/* names of the errors that its functions return if their rows say STATUS; 0 is success */
	const struct xlat *errors;
	/* in rows with NOT_READY this value is an answer and not a failure; 0: none */
	int not_ready;
	/* One of CUDA's own libraries: nested calls that its functions make, in it or in another
	 * library that folds, are part of the outer call. If false, nested calls count
	 * separately. */
	bool folds;
	/* mostly called by the libraries above it, which launch kernels through it */
	bool below;
	bool last_error;   /* keeps the last error, which a function returns */
	bool first_device; /* a thread that has chosen no device works on the first one */
	bool host_stubs;   /* its handles of kernels are addresses in the program */
	bool not_usual;	   /* traced only where -e or --domain names it */
	/* a row of layers.def: its calls say what a program's work is for. They are scopes and
	 * no calls, and recorded only where --layers names it (docs/internals/scopes.md) */
	bool layer;
	/* a function that is in every file of which the layer is a part, by its header: such a file's
	 * own functions of the layer call those of a tool, and the tool's are probed. NULL: the layer
	 * is not of that kind */
	const char *inlined;
	bool own_ranges; /* of a layer: its ranges are apart from those of the others */
	/* names and numbers of its calls elsewhere: Chrome's category (NULL: the name); nsys'
	 * event class; CUPTI's callback domain (0: none) */
	const char *category;
	int nsys_class;
	int cupti;
};

extern const struct api_domain_row api_domains[API_DOMAIN_END];
/* their names, and NULL at the end */
extern const char *const api_domain_names[];
/* those of layers, and NULL at the end */
extern const char *const api_layer_names[];

/* Returns the bit of a layer in a set of layers. */
static inline uint32_t api_layer(int domain)
{
	return 1u << (domain - API_FIRST_LAYER);
}
/* Whether one of these layers (bits of api_layer()) is a part of programs' own code. */
bool api_layers_inlined(uint32_t layers);

const char *api_domain_name(enum api_domain); /* "runtime" */
/* Finds a library by name; API_DOMAIN_END: none has this name. */
enum api_domain api_domain_find(const char *name, size_t len);
/* Finds the library to which this file may belong, by the last part of the path; API_DOMAIN_END:
 * none. */
enum api_domain api_domain_of_file(const char *path);
/* True if the symbol, by its beginning, may be a function of a traced library. */
bool api_domain_symbol(const char *symbol);
/* All beginnings of symbols, NULL at the end. */
const char *const *api_domain_symbols(void);
/* The version that first defines the symbol; 0: the symbol does not show the version. */
int api_domain_since(enum api_domain, const char *symbol);
/* The version in a soname; 0: none. */
int api_domain_version(enum api_domain, const char *soname);

#endif
