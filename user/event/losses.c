/* SPDX-License-Identifier: BSD-2-Clause */
/* losses.c - what is missing from a trace and why, in the words of the formats and of people. */
#include <stdio.h>

#include "event.h"

static const struct {
	const char *name, *text;
	/* this loss does not affect sums: no call or device record is lost, or none that was
	 * ours to see */
	bool spares_sums;
} causes[CT_LOSS_END] = {
	[CT_LOSS_RING] = { "ring_full", "ring buffer full (raise --ring-size)" },
	[CT_LOSS_DEPTH] = { "too_deep", "calls nested too deeply" },
	[CT_LOSS_STORAGE] = { "no_memory", "no kernel memory for a thread's calls in flight" },
	[CT_LOSS_FUNCTION] = { "unknown_function", "address not attributed to a function" },
	[CT_LOSS_READ] = { "malformed", "record arrived malformed" },
	[CT_LOSS_ORPHAN] = { "orphan_return", "call began before the trace, or before a fork",
			     true },
	[CT_LOSS_STACK] = { "no_stack",
			    "stacks that found no room in the ring buffer: their calls were shown "
			    "without (raise --ring-size)",
			    true },
	[CT_LOSS_DEVICE] = { "device_dropped",
			     "device records that CUPTI had no buffer for (raise --gpu-buffer)" },
	[CT_LOSS_AGENT] = { "agent_full", "device records that came faster than they were taken" },
	[CT_LOSS_TIME] = { "device_time", "device records without a time that can be true", true },
	[CT_LOSS_FILE] = { "file_damaged", "records that could not be read from the recording" },
	[CT_LOSS_TAIL] = { "device_tail",
			   "launches, copies and sets whose device record had not come by the end",
			   true },
	[CT_LOSS_COUNTS] = { "tally_full", "calls that found no room among the counts" },
	[CT_LOSS_LEFT] = { "left_by_signal", "calls that a signal handler left by siglongjmp() "
					     "while they were recorded" },
};

const char *loss_name(enum ct_loss cause)
{
	return (unsigned int)cause < CT_LOSS_END ? causes[cause].name : "unknown";
}

const char *loss_text(enum ct_loss cause)
{
	return (unsigned int)cause < CT_LOSS_END ? causes[cause].text : "unknown cause";
}

uint64_t losses_total(const struct losses *l)
{
	uint64_t n = 0;

	/* An orphan return is the end of a call that was never traced. */
	for (int i = 0; i < CT_LOSS_END; i++)
		if (i != CT_LOSS_ORPHAN)
			losses_add(&n, l->lost[i]);
	return n;
}

uint64_t losses_of_sums(const struct losses *l)
{
	uint64_t n = 0;

	for (int i = 0; i < CT_LOSS_END; i++)
		if (!causes[i].spares_sums)
			losses_add(&n, l->lost[i]);
	return n;
}

void unprobed_add(struct unprobed_sum *sum, const struct ct_unprobed *u)
{
	losses_add(&sum->processes, u->processes);
	losses_add(&sum->ended, u->ended);
	sum->more |= u->more != 0;
	/* when a process that ended did so is not known */
	if ((u->ended < u->processes || !u->processes) &&
	    u->h.end_ns - u->h.start_ns > sum->longest_ns)
		sum->longest_ns = u->h.end_ns - u->h.start_ns;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "es";
}

size_t unprobed_text(char *text, size_t size, const struct unprobed_sum *u)
{
	uint64_t ran = u->processes - (u->ended < u->processes ? u->ended : u->processes);
	const char *least = u->more ? "at least " : "";
	size_t n = 0;

	*text = 0;
	if (ran)
		n = (size_t)snprintf(text, size,
				     "%s%llu process%s ran up to %.1f ms before %s calls were seen",
				     least, (unsigned long long)ran, plural(ran),
				     (double)u->longest_ns / 1e6, ran == 1 ? "its" : "their");
	if (u->ended && ran && n < size)
		n += (size_t)snprintf(text + n, size - n, ", %s%llu ended before that", least,
				      (unsigned long long)u->ended);
	else if (u->ended && n < size)
		n += (size_t)snprintf(text + n, size - n,
				      "%s%llu process%s ended before %s calls were seen", least,
				      (unsigned long long)u->ended, plural(u->ended),
				      u->ended == 1 ? "its" : "their");
	else if (!u->processes && u->more)
		n = (size_t)snprintf(
			text, size,
			"an unknown number of processes ran before their calls were seen");
	return n < size ? n : size - 1;
}
