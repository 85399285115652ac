/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A firmware of 64 KiB for QEMU's machine `pc` (hypervisor.py). It fills the memory from 1 MiB on with numbers that do not
 * repeat for 16 GiB, then writes to each page from 2 to 10 MiB for ever. The word at 1 MiB is 0 before the fill, and
 * counts rounds after it; a number above 16 million means that the fill goes on.
 */
#define CODE      0xffff0000 /* where QEMU maps the end of the firmware */
#define ROUNDS    0x100000
#define DIRTIED   0x200000
#define DIRTY_END 0xa00000
#define PAGE      4096

#define CODE_SEGMENT 8
#define DATA_SEGMENT 16

#define CR4_PGE 0x80 /* a change flushes the TLB */

/* CMOS registers: memory above 16 MiB in units of 64 KiB. */
#define CMOS_INDEX  0x70
#define CMOS_DATA   0x71
#define MEMORY_LOW  0x34
#define MEMORY_HIGH 0x35

	.code16
	.globl _start
_start:
	cli
	lgdtl	%cs:(descriptors - _start)
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmpl	$CODE_SEGMENT, $CODE + (protected - _start)

	.code32
protected:
	movw	$DATA_SEGMENT, %ax
	movw	%ax, %ds
	xorl	%ebx, %ebx
	movb	$MEMORY_HIGH, %al
	outb	%al, $CMOS_INDEX
	inb	$CMOS_DATA, %al
	movb	%al, %bh
	movb	$MEMORY_LOW, %al
	outb	%al, $CMOS_INDEX
	inb	$CMOS_DATA, %al
	movb	%al, %bl
	shll	$16, %ebx
	addl	$0x1000000, %ebx	/* the end of memory */

	movl	$ROUNDS, %edi
	movl	$0x80000000, %eax
fill:
	movl	%eax, (%edi)
	imull	$1664525, %eax
	addl	$1013904223, %eax
	addl	$4, %edi
	cmpl	%ebx, %edi
	jb	fill

	movl	$0, ROUNDS
round:
	pause	/* QEMU's thread of the processor leaves its RCU read side; QEMU ends a connection only then */
	movl	%cr4, %eax
	xorl	$CR4_PGE, %eax
	movl	%eax, %cr4	/* QEMU looks anew whether a page's changes are to be noted */
	incl	ROUNDS
	movl	$DIRTIED, %edi
dirty:
	incl	(%edi)
	addl	$PAGE, %edi
	cmpl	$DIRTY_END, %edi
	jb	dirty
	jmp	round

	.balign 8
table:
	.quad	0
	.quad	0x00cf9a000000ffff	/* code: 4 GiB */
	.quad	0x00cf92000000ffff	/* data: 4 GiB */
descriptors:
	.word	descriptors - table - 1
	.long	CODE + (table - _start)

	.org	0xfff0	/* where the processor begins */
	.code16
	jmp	_start
	.org	0x10000
