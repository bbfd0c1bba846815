/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * format.h - the layout of a recording on disk. docs/trace-format.md describes it in words.
 *
 * A file has TRACE_MAGIC, then blocks up to its end. A block is a struct trace_block and `len`
 * bytes of body. All numbers are little-endian. New types, keys and columns get new numbers;
 * existing numbers never change. A reader must trust nothing in a file: it checks the checksums
 * before it uses anything, and checks the lengths too, because the author of a malicious file can also make correct checksums.
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
	TRACE_HEAD = 1, /* lines "key value" about the host and the time; the first block */
	TRACE_DATA = 2, /* records: see encode.h */
	TRACE_END = 3,	/* lines "key value": how it ended, what was lost */
	/* a struct trace_index_entry for each block before it, then struct trace_tail; the last
	 * block */
	TRACE_INDEX = 4,
};
/* the block has definitions, which later blocks may need: it is read whatever time range the user
 * asks for */
#define TRACE_F_DEFINITIONS 0x1

struct trace_block {
	__u32 magic;
	__u8 type;  /* enum trace_block_type */
	__u8 flags; /* TRACE_F_* */
	__u16 pad;
	__u32 len;	/* of the body */
	__u32 body_crc; /* CRC-32 (zlib's) of the body */
	__u64 seq;	/* 0 for the first block, 1 for the second, and so on */
	/* the earliest begin and the latest end of its records; first > last: its records have no
	 * times */
	__u64 first_ns, last_ns;
	__u32 records, calls; /* number of all records, and of those that are CT_CALL */
	__u32 pad2;
	__u32 head_crc; /* of all fields before this one */
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
 * The body of a TRACE_DATA block begins with one byte, the number of columns. Then come two __u32
 * for each column: its length, and the number of bytes that it is stored in. Then come the columns.
 * Each is one zstd frame, or is not compressed if both numbers are the same.
 *
 * COL_OP has one varint for each step: TRACE_OP_*, or TRACE_OP_PATTERN + the number of a pattern. A pattern
 * holds what the records of one kind in one lane have in common (a function's calls in a thread, a
 * kernel's runs on a stream). A record is stored as the difference from the record before it in its
 * pattern. Nothing refers to another block.
 */
enum trace_column {
	COL_OP,
	COL_TIMES, /* one byte for each record: bytes of the gap << 4 | bytes of the duration */
	/* the gap: begin minus the end of the lane's previous record, in zigzag form; its lowest
	 * byte */
	COL_GAP0,
	COL_GAP1, /* its second byte */
	COL_DUR0, /* the duration: end minus begin; its lowest byte */
	COL_DUR1,
	COL_TIMEX, /* the other bytes of gap and duration */
	COL_MASK,  /* one bit for each word behind the head; 1: the word differs */
	/* one byte for each word that differs: how many bytes it has in COL_DATA. Below 8, these
	 * are the difference in zigzag form; 8: they are the word itself. */
	COL_LEN,
	COL_DATA,
	COL_OTHER, /* whole records, lanes, functions and patterns, in the order of their steps */
	COL_END
};

enum trace_op {
	TRACE_OP_RECORD = 0, /* a whole record, which is in COL_OTHER */
	TRACE_OP_LANE = 1,   /* defines a lane (struct trace_lane); it gets the next number */
	/* defines a function (struct trace_func_def and its strings); it gets the next number */
	TRACE_OP_FUNC = 2,
	TRACE_OP_NEW = 3, /* defines a pattern (struct trace_pattern); it gets the next number */
	TRACE_OP_PATTERN = 4
};

/* Records that follow each other in time: those of a thread, or a stream's work that one thread
 * asked for. */
struct trace_lane {
	__u32 pid, tid;
};

/* A function as the file names it. The meaning of the words and reads of its calls depends on its
 * row; `layout` tells whether the reader's row has the same meaning. */
struct trace_func_def {
	__u64 layout; /* funcs_layout() */
	__u16 since;  /* `since` of the row: distinguishes two signatures of one name */
	__u8 domain_len, class_len;
	__u8 name_len, pad[3];
	/* the strings follow: domain, class, name */
};

#define TRACE_NO_FUNC 0xffff
struct trace_pattern {
	/* numbers within the block; func is TRACE_NO_FUNC if there is none */
	__u16 lane, func;
	__u16 kind, flags, size, pad; /* fields of the record's head; hdr.lost is 0 */
};
_Static_assert(sizeof(struct trace_func_def) == 16, "size of struct trace_func_def");
_Static_assert(sizeof(struct trace_lane) == 8, "size of struct trace_lane");
_Static_assert(sizeof(struct trace_pattern) == 12, "size of struct trace_pattern");

#define TRACE_LANES_MAX 4096 /* in one block */
#define TRACE_PATTERNS_MAX 8192
/* The largest size of a record that has a pattern; larger records are stored whole. */
#define TRACE_PATTERN_MAX (sizeof(struct ct_call) + CT_DATA_MAX + 8)
#define TRACE_WORDS_MAX ((TRACE_PATTERN_MAX - sizeof(struct ct_hdr)) / 8) /* behind the head */

/* How the words behind the head are stored. */
enum trace_shape {
	TRACE_SHAPE_OTHER, /* as they are in the record */
	/* the low half of word 0 is the row. It is 0 in the file, because the pattern has the
	 * function. */
	TRACE_SHAPE_CALL,
	/* The low half of word 5 is the row in the same way. The halves of word 1 are exchanged, so that
	 * the correlation id is in the low half. Words 1 and 2 (call_ns) are stored as differences
	 * from the lane's previous device work, not from the pattern's. */
	TRACE_SHAPE_WORK,
};

static inline enum trace_shape trace_shape(uint16_t kind)
{
	return kind_is(kind, KIND_CALL)	  ? TRACE_SHAPE_CALL
	       : kind_is(kind, KIND_WORK) ? TRACE_SHAPE_WORK
					  : TRACE_SHAPE_OTHER;
}

/* Whether later records may refer to a record of this kind. A record of an unknown kind may be such
 * a definition. */
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
