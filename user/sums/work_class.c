/* SPDX-License-Identifier: BSD-2-Clause */
/* work_class.c - see work_class.h. */
#include <fnmatch.h>

#include "../event/scopes/lineage.h"
#include "work_class.h"

enum class {
	CLASS_GEMM,
	CLASS_ATTENTION,
	CLASS_CONVOLUTION,
	CLASS_COLLECTIVE,
	CLASS_ELEMENTWISE,
	CLASS_REDUCTION,
	CLASS_OPTIMIZER,
	CLASS_COPY,
	CLASS_SET,
	CLASS_OTHER,
	CLASS_GRAPH,
};
static const char *const words[] = {
	[CLASS_GEMM] = "gemm",
	[CLASS_ATTENTION] = "attention",
	[CLASS_CONVOLUTION] = "convolution",
	[CLASS_COLLECTIVE] = "collective",
	[CLASS_ELEMENTWISE] = "elementwise",
	[CLASS_REDUCTION] = "reduction",
	[CLASS_OPTIMIZER] = "optimizer",
	[CLASS_COPY] = "copy",
	[CLASS_SET] = "memset",
	[CLASS_OTHER] = "other",
	[CLASS_GRAPH] = "graph as a whole",
};

static const char *work_class_by_name(const char *name)
{
	static const struct {
		const char *pattern;
		enum class class;
	} rows[] = {
#define PATTERN(pattern, class) { pattern, CLASS_##class },
#include "work_classes.def"
#undef PATTERN
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!fnmatch(rows[i].pattern, name, 0))
			return words[rows[i].class];
	return words[CLASS_OTHER];
}

/* A kernel inside a call for a convolution that its name does not tell is the convolution. */
static const char *by_network(const struct event *ev, const struct ct_gemm *g)
{
	const char *word = ev->kernel ? work_class_by_name(ev->kernel->full) : NULL;

	if (g->flags & CT_GEMM_CONVOLUTION &&
	    (!word || word == words[CLASS_OTHER] || word == words[CLASS_GEMM]))
		return words[CLASS_CONVOLUTION];
	return word;
}

const char *work_class(const struct event *ev)
{
	const uint32_t kinds = 1u << CT_SCOPE_GEMM | 1u << CT_SCOPE_COLLECTIVE;
	const struct scope_line *line;

	switch (ev->rec->kind) {
	case CT_COPY: return words[CLASS_COPY];
	case CT_SET: return words[CLASS_SET];
	case CT_GRAPH: return words[CLASS_GRAPH];
	}
	line = lineage_of_kind(ev->lineage, ev->rec->pid, lineage_from(ev, kinds), kinds,
			       &(bool){ false });
	/* some libraries compute other things than products too, and several at a time */
	if (line && line->gemm && line->gemm->flags & CT_GEMM_NETWORK)
		return by_network(ev, line->gemm);
	if (line)
		return words[line->kind == CT_SCOPE_GEMM ? CLASS_GEMM : CLASS_COLLECTIVE];
	return ev->kernel ? work_class_by_name(ev->kernel->full) : NULL;
}
