/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * format.h - what a recording looks like on disk; docs/trace-format.md says it in words.
 *
 * TRACE_MAGIC, then blocks to the end of the file, each a struct trace_block and `len` bytes of
 * body. Little-endian. Numbers of types, keys and columns are append-only. Nothing in a file may
 * be trusted: sums are checked before anything is used, and lengths all the same, since whoever
 * made the file can make its sums.
 */
#ifndef CT_TRACE_FORMAT_H
#define CT_TRACE_FORMAT_H

#include "../event/event.h"

#define TRACE_FORMAT 1
#define TRACE_MAGIC \
	"\x89"      \
	"CTRACE\n"
#define TRACE_MAGIC_LEN 8
#define TRACE_BLOCK_MAGIC 0x4b427463u /* "ctBK" */
#define TRACE_BODY_MAX (8u << 20)

enum trace_block_type {
	TRACE_HEAD = 1, /* lines "key value": where and when; the first block */
	TRACE_DATA = 2, /* records: see encode.h */
	TRACE_END = 3,	/* lines "key value": how it ended, what was lost */
	/* struct trace_index_entry for each block before it, then struct trace_tail; the last
	 * block */
	TRACE_INDEX = 4,
};
/* holds definitions, which later blocks may need: read whatever time is asked for */
#define TRACE_F_DEFINITIONS 0x1

struct trace_block {
	__u32 magic;
	__u8 type;  /* enum trace_block_type */
	__u8 flags; /* TRACE_F_* */
	__u16 pad;
	__u32 len;	/* of the body */
	__u32 body_crc; /* CRC-32 (zlib's) of the body */
	__u64 seq;	/* 0 for the first block, then one more each */
	/* of its records, the earliest begin and the latest end; first > last: it has no times */
	__u64 first_ns, last_ns;
	__u32 records, calls; /* all records; of these CT_CALL */
	__u32 pad2;
	__u32 head_crc; /* of all that is before this */
};

struct trace_index_entry {
	__u64 offset; /* of the block in the file */
	__u64 first_ns, last_ns;
	__u32 len, records, calls;
	__u8 type, flags;
	__u16 pad;
};

struct trace_tail {
	__u64 offset; /* of the index block */
	char magic[8];
};
#define TRACE_TAIL_MAGIC                                \
	{                                               \
		'c', 't', 'I', 'N', 'D', 'E', 'X', '\n' \
	}

_Static_assert(sizeof(struct trace_block) == 56, "size of struct trace_block");
_Static_assert(sizeof(struct trace_index_entry) == 40, "size of struct trace_index_entry");
_Static_assert(sizeof(struct trace_tail) == 16, "size of struct trace_tail");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a recording is little-endian");

/*
 * The body of a TRACE_DATA block: one byte, the number of columns; for each two __u32, its length
 * and the number of bytes that it is stored in; then the columns, each one zstd frame, or as it is
 * where both numbers are the same.
 *
 * COL_OP has one varint for each step: TRACE_OP_* or TRACE_OP_SLOT + the number of a slot. A
 * slot is what records of one kind in one lane have in common (a function's calls in a thread, a
 * kernel's runs on a stream); a record is told as what differs from the one before in its slot.
 * Nothing refers to another block.
 */
enum trace_column {
	COL_OP,
	COL_TIMES, /* a byte for each: bytes of the gap << 4 | bytes of the duration */
	COL_GAP0,  /* begin minus the end of the lane's record before, zigzag: its lowest byte */
	COL_GAP1,  /* the next */
	COL_DUR0,  /* end minus begin: its lowest byte */
	COL_DUR1,
	COL_TIMEX, /* the rest of both */
	COL_MASK,  /* a bit for each word behind the head: it differs */
	/* a byte for each that does: bytes in COL_DATA; below 8: of the zigzag difference, 8:
	 * the word */
	COL_LEN,
	COL_DATA,
	COL_OTHER, /* whole records, lanes, functions, slots, in the order of their steps */
	COL_END
};

enum trace_op {
	TRACE_OP_RECORD = 0, /* a record as it is in COL_OTHER */
	TRACE_OP_LANE = 1,   /* struct trace_lane: the next number */
	TRACE_OP_FUNC = 2,   /* struct trace_func_def and its strings: the next number */
	TRACE_OP_NEW = 3,    /* struct trace_slot: the next number */
	TRACE_OP_SLOT = 4
};

/* What follows each other in time: a thread, or a stream's work that one thread asked for. */
struct trace_lane {
	__u32 pid, tid;
};

/* A function as the file knows it: what its calls' words and reads mean follows from its row,
 * and `layout` tells whether the reader's row reads the same. */
struct trace_func_def {
	__u64 layout; /* funcs_layout() */
	__u16 since;  /* of the row: tells two signatures of one name apart */
	__u8 domain_len, class_len;
	__u8 name_len, pad[3];
	/* then the strings: domain, class, name */
};

#define TRACE_NO_FUNC 0xffff
struct trace_slot {
	__u16 lane, func;	      /* numbers within the block; func TRACE_NO_FUNC: none */
	__u16 kind, flags, size, pad; /* of hdr; hdr.lost is 0 */
};
_Static_assert(sizeof(struct trace_func_def) == 16, "size of struct trace_func_def");
_Static_assert(sizeof(struct trace_lane) == 8, "size of struct trace_lane");
_Static_assert(sizeof(struct trace_slot) == 12, "size of struct trace_slot");

#define TRACE_LANES_MAX 4096 /* in one block */
#define TRACE_SLOTS_MAX 8192
/* Bytes of a record that has a slot; larger ones are whole. */
#define TRACE_SLOT_MAX (sizeof(struct ct_call) + CT_DATA_MAX + 8)
#define TRACE_WORDS_MAX ((TRACE_SLOT_MAX - sizeof(struct ct_hdr)) / 8) /* behind the head */

/* How the words behind the head are told. */
enum trace_shape {
	TRACE_SHAPE_OTHER, /* as they are */
	/* word 0 has the row in its low half: 0 in the file, the slot's func says it */
	TRACE_SHAPE_CALL,
	/* Word 5 likewise. Word 1 has its halves exchanged, so that the correlation is low, and
	 * differs, as word 2 (call_ns) does, from that of the lane's record before, not of the
	 * slot's. */
	TRACE_SHAPE_WORK,
};

static inline enum trace_shape trace_shape(uint16_t kind)
{
	return kind_is(kind, KIND_CALL)	  ? TRACE_SHAPE_CALL
	       : kind_is(kind, KIND_WORK) ? TRACE_SHAPE_WORK
					  : TRACE_SHAPE_OTHER;
}

/* Records without which later ones cannot be understood. One of a kind that is not known may be
 * one. */
static inline bool trace_is_definition(uint16_t kind)
{
	return kind >= CT_KIND_END || kind_is(kind, KIND_DEFINITION);
}

static inline uint64_t trace_zigzag(uint64_t v)
{
	return v << 1 ^ (uint64_t)((int64_t)v >> 63);
}

static inline uint64_t trace_unzigzag(uint64_t v)
{
	return v >> 1 ^ -(v & 1);
}

static inline uint64_t trace_swap(uint64_t v)
{
	return v << 32 | v >> 32;
}

#endif
