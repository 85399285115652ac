/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rseq.h"

#if defined(__x86_64__) && __has_include(<sys/rseq.h>)

#include <stddef.h>
#include <sys/rseq.h>

bool rseq_usable(void)
{
	return __rseq_size > 0;
}

/*
 * A sequence is between SEQUENCE and COMMITTED, whose operands END_SEQUENCE are: interrupted in it,
 * the thread goes on at the abort handler, whose signature stands before it. After the one
 * instruction that nothing comes behind, be it `syscall`, it is done.
 */
#define SEQUENCE                                        \
	".pushsection .data.rel.ro.rseq_cs, \"aw\"\n\t" \
	".balign 32\n"                                  \
	"1:\n\t"                                        \
	".long 0, 0\n\t"                                \
	".quad 2f, 3f - 2f, 4f\n\t"                     \
	".popsection\n\t"                               \
	"leaq 1b(%%rip), %%rcx\n\t"                     \
	"movq %%rcx, %[section]\n"                      \
	"2:\n\t"                                        \
	"cmpq %[expected], %[word]\n\t"                 \
	"jne 5f\n\t"
#define COMMITTED                        \
	"3:\n\t"                         \
	"jmp 6f\n\t"                     \
	".byte 0x0f, 0xb9, 0x3d\n\t"     \
	".long %c[signature]\n"          \
	"4:\n\t"                         \
	"movq %[interrupted], %[rc]\n\t" \
	"jmp 6f\n"                       \
	"5:\n\t"                         \
	"movq %[changed], %[rc]\n"       \
	"6:\n\t"                         \
	"movq $0, %[section]\n"
#define END_SEQUENCE                                                            \
	[word] "m"(*word), [expected] "r"(expected), [signature] "i"(RSEQ_SIG), \
		[interrupted] "i"(RSEQ_INTERRUPTED), [changed] "i"(RSEQ_CHANGED)

static inline struct rseq *of_thread(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

long rseq_call(const struct rseq_call *call, const uint64_t *word, uint64_t expected)
{
	struct rseq *rseq = of_thread();
	register const struct iovec *remote __asm__("r10") = call->remote;
	register unsigned long n_remote __asm__("r8") = call->n_remote;
	register unsigned long flags __asm__("r9") = 0;
	long rc;

	__asm__ volatile(SEQUENCE "syscall\n" COMMITTED
			 : [rc] "=a"(rc), [section] "=m"(rseq->rseq_cs)
			 : "a"(call->number), "D"((long)call->pid), "S"(call->local),
			   "d"(call->n_local), "r"(remote), "r"(n_remote), "r"(flags), END_SEQUENCE
			 : "rcx", "r11", "cc", "memory");
	return rc;
}

#else

bool rseq_usable(void)
{
	return false;
}

long rseq_call(const struct rseq_call *call, const uint64_t *word, uint64_t expected)
{
	(void)call;
	(void)word;
	(void)expected;
	return RSEQ_CHANGED;
}

#endif
