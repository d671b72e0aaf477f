/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Kernel stacks in a hash of our own. A stack map of the kernel's loses entries without a word when
 * two stacks share a bucket; here the key is the whole 64-bit hash and a full map is counted.
 */
#pragma once

#define STACK_FRAMES 48

struct kernel_stack {
	u64 ip[STACK_FRAMES]; /* leaf first, 0 after the last */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	/* Preallocated: entries as large as these run out where many are made at once with interrupts off. */
	__type(key, u64);
	__type(value, struct kernel_stack);
} stacks SEC(".maps");

/* Who takes a stack. A hook can come in between where an iterator is at it, so each has a place of its own. */
enum taker { OF_HOOK, OF_ITERATOR, TAKERS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TAKERS);
	__type(key, u32); /* enum taker */
	__type(value, struct kernel_stack);
} scratch SEC(".maps");

/*
 * The loops below have no branches, and always go over all frames: each branch in them would double the ways that the
 * kernel's verifier has to follow, and that is time before every capture.
 */

/* A stack to fill, all zero; NULL = there is none. */
static __always_inline struct kernel_stack *empty_stack(u32 taker)
{
	struct kernel_stack *stack = bpf_map_lookup_elem(&scratch, &taker);

	if (stack)
		__builtin_memset(stack, 0, sizeof(*stack));
	return stack;
}

/* Key of a stack; never 0. */
static __always_inline u64 stack_key(const struct kernel_stack *stack)
{
	u64 key = 0xcbf29ce484222325ULL;

	for (u32 i = 0; i < STACK_FRAMES; i++)
		key = (key ^ stack->ip[i]) * 0x100000001b3ULL;
	return key ?: 1;
}

/*
 * Keeps the stack that this taker has filled on this CPU; returns its key, 0 = the map is full. A global function:
 * checked once, and not wherever a stack is taken.
 */
__noinline u64 keep_stack(u32 taker)
{
	struct kernel_stack *stack = bpf_map_lookup_elem(&scratch, &taker);
	u64 key;

	if (!stack)
		return 0;
	key = stack_key(stack);
	if (bpf_map_lookup_elem(&stacks, &key))
		return key;
	return bpf_map_update_elem(&stacks, &key, stack, BPF_ANY) ? 0 : key;
}

/* The same, counted: `taken` counts stacks, `lost` those that found the map full. */
static __always_inline u64 count_stack(u32 taker, u64 *taken, u64 *lost)
{
	u64 key = keep_stack(taker);

	(*taken)++;
	if (!key)
		(*lost)++;
	return key;
}

/*
 * Takes the kernel stack of a thread that is not running; 0 = could not.
 * `taken` counts stacks, `lost` those that found the map full.
 */
static __always_inline u64 take_stack(u32 taker, struct task_struct *task, u64 *taken, u64 *lost)
{
	struct kernel_stack *stack = empty_stack(taker);

	if (!stack || bpf_get_task_stack(task, stack, sizeof(*stack), 0) <= 0)
		return 0;
	return count_stack(taker, taken, lost);
}

/*
 * Takes the stack of the thread that is leaving its CPU, down to where it does. Of a thread that sleeps already the
 * kernel does not show the functions in which it gave its CPU away, and locks are taken in those. 0 = could not.
 */
static __always_inline u64 take_leaving_stack(void *ctx, u64 *taken, u64 *lost)
{
	struct kernel_stack *stack = empty_stack(OF_HOOK);

	if (!stack || bpf_get_stack(ctx, stack, sizeof(*stack), 0) <= 0)
		return 0;
	return count_stack(OF_HOOK, taken, lost);
}
