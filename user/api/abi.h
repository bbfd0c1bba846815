/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * abi.h - inside the api room: where a row's arguments are in a call's record. A plan is made
 * once for each row and architecture; the capture spec of the kernel side and the decoder both
 * follow it, so they cannot disagree.
 */
#ifndef CT_ABI_H
#define CT_ABI_H

#include "api.h"
#include "../../wire/control.h"

#define ABI_NONE 0xff

struct abi_arg {
	uint8_t word;  /* index of its (first) word; ABI_NONE: passed where it is not captured */
	uint8_t read;  /* index of the read that holds what it points to; ABI_NONE: none */
	uint8_t read2; /* of the list or string that this read points to; ABI_NONE: none */
	uint8_t count; /* a list: index of the argument with its length; ABI_NONE: no list */
	uint8_t by;    /* a union: index of the argument that selects its member; ABI_NONE: none */
};

/* A place where a kernel's handle may be. */
struct abi_spot {
	uint8_t word; /* the handle itself; ABI_NONE: in a read */
	uint8_t read;
	uint16_t off; /* in the read, or in the words of an argument that is passed in memory */
	uint16_t selector; /* offset of the 32-bit selector of `cases` in the read */
	uint32_t cases;	   /* bit v: the handle is there when the selector is v; 0: always */
};
#define ABI_SPOTS 2

/* Indexes of the arguments that teach kernels' names; ABI_NONE: none. */
struct abi_name_event {
	uint8_t name, handle, of, owner, unloads;
};

struct abi_plan {
	bool known;
	int err;	     /* 0, or -E2BIG: needs more than a record may hold */
	struct ct_spec spec; /* its flags lack CT_S_SHOWN */
	struct abi_arg args[API_MAX_ARGS];
	uint8_t ret_read; /* index of the read of the text that it returns; ABI_NONE: none */
	uint8_t nspots;
	bool teaches, has_stream;
	struct abi_spot spots[ABI_SPOTS];
	struct abi_spot stream; /* with has_stream: where the stream's handle is */
	struct abi_name_event name_event;
	/* changes the current device or context: other calls need it, whether it is shown or not */
	bool places;
	/* index of the argument that says which device or context is current, and of the
	 * argument with its device; ABI_NONE: none */
	uint8_t place, place_of;
};

/* The plan of a row. func must be a row. The caller must be the only thread that uses the api room. */
const struct abi_plan *abi_plan(int func, enum api_arch arch);

/* The reads of a record. */
struct abi_reads {
	const uint8_t *at[CT_MAX_READS]; /* NULL: not there */
	uint32_t len[CT_MAX_READS];	 /* its length in bytes */
	bool cut[CT_MAX_READS];		 /* there was more than was read */
};

/* Finds the reads in a record. A record that passed record_check() has all reads that it
 * announces; for any other record only the reads within its size are found. */
void abi_reads_find(const struct ct_call *, const struct abi_plan *, struct abi_reads *);
/* The 8 bytes at a spot in a read; 0: not there. */
uint64_t abi_in_read(const struct abi_spot *, const struct abi_reads *);

#endif
