/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * frames.bpf.h - what can be told of a frame of the in-flight stack: whether its call is still
 * under way, on which stack it lies, and who may send its record. Sends nothing and changes no
 * stack.
 *
 * A call that has a return probe returns to the trampoline: the kernel wrote the trampoline's
 * address over the return address (prepare_uretprobe() in kernel/events/uprobes.c). A call that
 * was left by longjmp keeps its frame here, because nobody is told. Its return address then lies
 * in a part of the stack that the program uses again, and is soon overwritten.
 */
#ifndef CT_FRAMES_BPF_H
#define CT_FRAMES_BPF_H

/* Will the user see the call? */
static __always_inline bool is_shown(const struct frame *f)
{
	return f->spec_flags & CT_S_SHOWN && !(f->rec.h.flags & CT_F_HIDDEN);
}

/* The address that calls with a return probe return to in this process: the first instruction
 * of the kernel's own mapping for uprobes. 0: nothing in this process has had a return probe.
 * Not static, so that the verifier checks it once: for each load of a pointer of a task it searches
 * all types of the kernel by name, which took a quarter of the time in which the programs are loaded. */
__noinline __u64 trampoline(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct xol_area *area;

	if (!task->mm)
		return 0;
	area = task->mm->uprobes_state.xol_area;
	return area ? area->vaddr : 0;
}

/*
 * Is the call of the frame still under way, as seen from an entry at sp? The word on the
 * stack where its return address was says so. A word that cannot be read without waiting is believed. On aarch64 the return
 * address is in a register at the entry, and the function stores it where it likes: there only
 * an entry at the same sp, a tail call, can be judged.
 */
static __always_inline bool is_under_way(struct pt_regs *ctx, const struct frame *f, __u64 sp)
{
	__u64 word = 0, expected;

#if defined(__TARGET_ARCH_x86)
	if (bpf_probe_read_user(&word, sizeof(word), (void *)f->sp))
		return true;
#else
	if (f->sp != sp)
		return true;
	word = PT_REGS_RET(ctx);
#endif
	if (!f->returns_to) {
		expected = trampoline();
		/* a load through one pointer is not merged with one through another */
		barrier_var(expected);
		if (f->in_trampoline)
			expected = f->in_place;
		return word == expected;
	}
	/* without a return probe, a second call from the same place looks like the first one */
	return word == f->returns_to && !(f->sp == sp && f->ip == PT_REGS_IP(ctx));
}

#if defined(__TARGET_ARCH_x86)
#define TRAMPOLINE_BYTES 128 /* UPROBE_XOL_SLOT_BYTES in arch/x86/include/asm/uprobes.h */

/* Called when a signal is delivered. The thread may be interrupted inside the trampoline: then the
 * function has returned, but the kernel has not seen the return yet, because the trampoline first
 * saves registers in the place of the return address. For the signal's handler the call is still
 * under way. */
static __always_inline void note_trampoline(struct task_struct *task, struct frame *f)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 at = BPF_CORE_READ(regs, ip) - trampoline();

	f->in_trampoline = at < TRAMPOLINE_BYTES &&
			   !bpf_probe_read_user(&f->in_place, sizeof(f->in_place), (void *)f->sp);
}
#else
/* on aarch64 the return address is in a register, and no entry looks for it on the stack */
static __always_inline void note_trampoline(struct task_struct *task, struct frame *f)
{
}
#endif

/* Does each system call of the task become SIGSYS, except those from a range of its choice
 * (PR_SET_SYSCALL_USER_DISPATCH)? A return probe on x86-64 is a system call, since Linux 6.11, which is in
 * no such range. */
static __always_inline bool is_dispatched(struct task_struct *task)
{
	return bpf_core_field_exists(task->thread_info.syscall_work) &&
	       task->thread_info.syscall_work &
		       1UL << bpf_core_enum_value(enum syscall_work_bit,
						  SYSCALL_WORK_BIT_SYSCALL_USER_DISPATCH);
}

/* Is this address on the thread's alternate signal stack? The same condition as __on_sig_stack()
 * in include/linux/sched/signal.h. */
static __always_inline bool on_signal_stack(__u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return sp - task->sas_ss_sp - 1 < task->sas_ss_size;
}

static long find_mapping(struct task_struct *task, struct vm_area_struct *vma,
			 struct stack_range *r)
{
	r->start = vma->vm_start;
	r->end = vma->vm_end;
	return 0;
}

/* Returns true if the two addresses lie in different mappings and so on different stacks, and also
 * if the mappings cannot be read because they are being changed. */
static __noinline int on_two_stacks(__u64 a, __u64 b)
{
	struct stack_range r = {};

	bpf_find_vma(bpf_get_current_task_btf(), a, find_mapping, &r, 0);
	return b < r.start || b >= r.end;
}

/* Returns the return address that a return probe replaced at sp. 0: no return probe has replaced
 * it, or not yet, because the kernel does that after the programs at the entry have run. */
static __noinline __u64 replaced_at(__u64 sp)
{
	struct return_instance *ri =
		BPF_CORE_READ(bpf_get_current_task_btf(), utask, return_instances);

	for (__u32 i = 0; i < CT_MAX_FRAMES && ri; i++) {
		if (BPF_CORE_READ(ri, stack) == sp)
			return BPF_CORE_READ(ri, orig_ret_vaddr);
		ri = BPF_CORE_READ(ri, next);
	}
	return 0;
}

static long find_inode(struct task_struct *task, struct vm_area_struct *vma, __u64 *inode)
{
	*inode = (__u64)BPF_CORE_READ(vma, vm_file, f_inode);
	return 0;
}

/*
 * Returns whether the program itself made a call that lies inside the frame's call by its place on the stack.
 * A program can: in the handler of a signal, or after siglongjmp out of one, in functions whose frames lie over
 * the word of the return address and did not write to it. The call is the program's own if the code that makes it
 * is in the file that made the frame's call, and not in the file of the frame's function.
 */
static __noinline int is_programs_own(struct pt_regs *ctx, const struct frame *f)
{
	__u64 by = 0, of_frame = 0, frame_by = 0, address = 0;

	if (!ctx || !f)
		return 0;
	RETURN_ADDRESS(ctx, ENTRY_SP(ctx), &address);
	bpf_find_vma(bpf_get_current_task_btf(), address, find_inode, &by, 0);
	bpf_find_vma(bpf_get_current_task_btf(), f->ip, find_inode, &of_frame, 0);
	bpf_find_vma(bpf_get_current_task_btf(), replaced_at(f->sp), find_inode, &frame_by, 0);
	return by && of_frame && by == frame_by && by != of_frame;
}

/* The record of a frame is sent by whoever takes it first: the return of the call, an entry that
 * finds that the call was left, the end of the thread, or the last look at the calls under way.
 * Each of these may run at the same time as another one. */
static __always_inline bool take(struct frame *f)
{
	return __sync_val_compare_and_swap(&f->owed, OWED, OWED_NOT) == OWED;
}

/* The last look visits a thread again if its records did not fit into the buffer of the read(2):
 * the frames that it took then still belong to it. */
static __always_inline bool take_last(struct frame *f)
{
	__u32 was = __sync_val_compare_and_swap(&f->owed, OWED, OWED_BY_LAST_LOOK);

	if (was == OWED && is_shown(f))
		COUNT(unfinished);
	return was != OWED_NOT;
}

/* The end time that is recorded for a call that has not returned: now, or the time when tracing was
 * stopped. */
static __always_inline __u64 unfinished_end(const struct frame *f, __u64 now)
{
	if (phase >= CT_PHASE_CLOSING && now > stopped_ns)
		now = stopped_ns;
	return now > f->rec.h.start_ns ? now : f->rec.h.start_ns;
}

#endif
