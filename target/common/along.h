/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * along.h - descriptors of ours in a process that is not ours: they go from one descriptor table to another
 * one over a socket, and to a thread of ours when it is started (fd_table.h). Each thread that wants a descriptor
 * of another table connects to an abstract address, which the kernel has chosen.
 */
#ifndef CT_ALONG_H
#define CT_ALONG_H

#include <stdbool.h>
#include <stdint.h>

/* ---- sockets ---- */

#define ALONG_ADDRESS 8
/* Returns a SOCK_SEQPACKET socket with an address, or -errno. It does not wait. */
int along_socket(uint8_t address[ALONG_ADDRESS]);
/* The same, and it listens: others on this machine may connect to it, too, and are to be turned away. */
int along_listen(uint8_t address[ALONG_ADDRESS]);
/* Accepts a connection, and says where it is from. Returns a socket, or -errno; -EAGAIN: nobody has come. */
int along_accept(int s, uint8_t address[ALONG_ADDRESS]);
int along_connect(int s, const uint8_t address[ALONG_ADDRESS]);
/* Is this process at the other end? An address may be another process's by now. */
bool along_is_own(int s);

/* Sends descriptors over a connected socket, and receives them (-1: none). 0 or -errno. */
#define ALONG_FDS 3
int along_send(int to, const int fds[ALONG_FDS]);
int along_receive(int from, int fds[ALONG_FDS], int wait_ms);

/* ---- a thread of ours ---- */

struct along {
	bool own; /* the thread has a descriptor table of its own: those of who started it are not used any more */
	bool gives; /* who starts it gives the descriptors at this address */
	uint8_t address[ALONG_ADDRESS];
	uint32_t taking; /* a futex: what has become of them */
};
/* Starts a thread (meet_thread()), and waits until it has these descriptors (-1: none). Returns 0, or -errno:
 * there is no thread. */
int along_begin(struct along *, void *(*run)(void *), void *arg, const int fds[ALONG_FDS]);
/* On the new thread, first: fds are those of who has started it, and become its own. Returns 0, also if they
 * stay where they are; or -errno: the thread has none, and must end. */
int along_take(struct along *, int fds[ALONG_FDS]);
/* On the new thread, when it has noted them: who has started it goes on. */
void along_taken(struct along *);

#endif
