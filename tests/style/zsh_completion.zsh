# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# usage: zsh -f zsh_completion.zsh TOOLS FILE
# Completes command lines with the functions of FILE, for the programs in the folder TOOLS. zsh's own functions are
# replaced by some that print what they would offer.
path=($1 $path)
file=$2
failed=0

compadd() {
	local -a names
	if [[ $1 == -a ]]; then
		names=(${(P)2})
	else
		[[ $1 == -- ]] && shift
		names=("$@")
	fi
	print -l -- ${(M)names:#$words[CURRENT]*}
}
_normal() {
	print -- "command ${words[*]}, word $CURRENT"
}
_files() {
	print files
}

# Completes the last word in `words`.
complete_line() {
	CURRENT=$#words
	service=$words[1]
	source $file "$@"
}

# expect OFFERS WORD...: the completion of the last word offers these.
expect() {
	local wanted=$1 offers
	shift
	words=("$@")
	offers=${(j: :)${(f)"$(complete_line)"}}
	[[ $offers == ${~wanted} ]] && return
	print "'$*' offers '$offers', not '$wanted'"
	failed=1
}

expect 'run vm show doctor capture replay bench sim --help --version' urxe ''
expect 'run replay' urxe r
expect '--run-dir' urxe run --ru
expect 'command ib_write_bw -d, word 2' urxe run --way hca -- ib_write_bw -d
expect 'command ib_write, word 1' urxe run ib_write
expect 'command ib_write_bw , word 2' urxe run -- ib_write_bw ''
expect 'qp' urxe show q
expect '*--json*' urxe show --
expect '*-w *--state*' urxe capture -
expect 'files' urxe replay x
expect '--bond' urxed --b
exit $failed
