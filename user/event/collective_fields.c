/* SPDX-License-Identifier: BSD-2-Clause */
/* collective_fields.c - the fields and the words of calls of a library for collectives (NCCL). */
#include "device.h"
#include "field_add.h"

#define WORDS(id, ...)                                              \
	static const char *id(uint32_t v)                           \
	{                                                           \
		static const char *const words[] = { __VA_ARGS__ }; \
		return v < ARRAY_LEN(words) ? words[v] : NULL;      \
	}

/* by NCCL's numbers */
WORDS(datatype_word, "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32",
      "float64", "bfloat16", "float8e4m3", "float8e5m2")
WORDS(op_word, "sum", "prod", "max", "min", "avg")

const struct ct_collective *scope_collective(const struct ct_scope *s)
{
	if (s->kind != CT_SCOPE_COLLECTIVE && s->kind != CT_SCOPE_COMMUNICATOR)
		return NULL;
	return (const struct ct_collective *)((const char *)s + s->h.size -
					      sizeof(struct ct_collective));
}

static const char *layer_of(const struct ct_scope *s)
{
	return s->text + s->text_len + s->domain_len + s->category_len;
}

const char *scope_error(const struct ct_scope *s, int32_t ret)
{
	enum api_domain d = api_domain_find(layer_of(s), s->layer_len);

	return d < API_DOMAIN_END && api_domains[d].errors ? xlat_name(api_domains[d].errors, ret)
							   : NULL;
}

bool scope_failed(const struct ct_scope *s)
{
	const struct ct_collective *c = scope_collective(s);
	const struct ct_gemm *g = scope_gemm(s);
	enum api_domain d = api_domain_find(layer_of(s), s->layer_len);

	if (g)
		return g->flags & CT_GEMM_RETURNED && g->ret;
	return c && c->flags & CT_COLLECTIVE_RETURNED && c->ret &&
	       !(d < API_DOMAIN_END && c->ret == api_domains[d].not_ready);
}

const char *scope_datatype(uint32_t v)
{
	return datatype_word(v);
}

const char *scope_op(uint32_t v)
{
	return op_word(v);
}

static void add_known(struct field **at, const char *name, uint32_t v)
{
	if (v != CT_UNKNOWN)
		field_add_u(at, name, FIELD_UINT, v);
}

void collective_fields(struct field **at, const struct ct_scope *s, const struct ct_collective *c)
{
	const char *error = scope_error(s, c->ret);

	if (c->flags & CT_COLLECTIVE_COUNT) {
		field_add_u(at, "count", FIELD_UINT, c->count);
		field_add_word(at, "datatype", c->datatype, scope_datatype(c->datatype));
		field_add_word(at, "op", c->op, scope_op(c->op));
		if (c->bytes)
			field_add_u(at, "size", FIELD_SIZE, c->bytes)->key = "size_bytes";
		add_known(at, "root", c->root);
		add_known(at, "peer", c->peer);
		field_add_u(at, "stream", FIELD_STREAM, c->stream);
	}
	if (c->members) {
		field_add_u(at, "members", FIELD_UINT, c->members);
		if (c->bytes)
			field_add_u(at, "size", FIELD_SIZE, c->bytes)->key = "size_bytes";
	}
	if (c->comm)
		field_add_u(at, "communicator", FIELD_PTR, c->comm);
	if (c->hash)
		field_add_u(at, "communicator_hash", FIELD_PTR, c->hash);
	add_known(at, "communicator_rank", c->rank);
	add_known(at, "communicator_ranks", c->ranks);
	if (c->sequence)
		field_add_u(at, "sequence", FIELD_UINT, c->sequence);
	if (c->flags & CT_COLLECTIVE_INNER)
		field_add_u(at, "inner", FIELD_BOOL, 1);
	if (!(c->flags & CT_COLLECTIVE_RETURNED))
		return;
	field_add(at, "ret", FIELD_INT)->i = c->ret;
	if (error)
		field_add_str(at, "ret_name", error, strlen(error))->key = "result";
}
