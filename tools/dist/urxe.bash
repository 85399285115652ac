# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# bash completion for urxe and urxed: commands, topics, options and values as --help prints them. Words of the command
# line are never executed, so --help is that of urxe and urxed in PATH, also if the user has typed another path.

# Prints the names of a folder's entries, one a line.
_urxe_entries() {
	local path
	for path in "$1"/*; do
		[[ -e $path ]] && echo "${path##*/}"
	done
}

# Completes a word from a list of this file's own. compgen executes $(...) in a list: names that others choose
# (programs, interfaces, devices) go to _urxe_names.
_urxe_words() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# Adds the names on standard input, one a line, that begin with a word; $2 stands before each. They are quoted: the
# shell would execute $(...) in a command line, too.
_urxe_names() {
	local name
	while IFS= read -r name; do
		[[ $name == "$1"* ]] && COMPREPLY+=("${2-}$(printf %q "$name")")
	done
}

# Completes files (-f) or directories (-d). readline quotes their names.
_urxe_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

# Prints the names of the ports that JSON need not escape.
_urxe_ports() {
	urxe show port --json 2>/dev/null | sed -n 's/^ *"name": "\([^"\\]*\)",\{0,1\}$/\1/p'
}

# Removes the part of the word up to its colon from the completions: readline ends a word at ':'.
_urxe_cut_colon() {
	[[ ${COMP_WORDBREAKS-} == *:* && $1 == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"${1%%:*}:"}")
	return 0
}

# Completes --uplink: a kind, then its interface.
_urxe_uplink() {
	local word=$1
	case $word in
	af_packet:* | af_xdp:*)
		_urxe_names "${word#*:}" "${word%%:*}:" < <(_urxe_entries /sys/class/net)
		;;
	*)
		_urxe_words 'af_packet: af_xdp: tap: pcap: qemu: vhost: dpdk:' "$word"
		compopt -o nospace 2>/dev/null
		;;
	esac
	_urxe_cut_colon "$word"
}

# Completes --hca: a mode, or an RDMA device.
_urxe_hca() {
	_urxe_words 'auto off' "$1"
	_urxe_names "$1" < <(_urxe_entries /sys/class/infiniband)
}

# Prints the word at the cursor, joined with the parts before its colons.
_urxe_current() {
	local word=${COMP_WORDS[COMP_CWORD]} i=$COMP_CWORD
	[[ $word == : ]] && word=
	if ((i > 1)) && [[ ${COMP_WORDS[i]} == : ]]; then
		word=${COMP_WORDS[i - 1]}:
	elif ((i > 2)) && [[ ${COMP_WORDS[i - 1]} == : ]]; then
		word=${COMP_WORDS[i - 2]}:$word
	fi
	echo "$word"
}

# Prints the option to whose value the cursor points, whether or not the value has a colon.
_urxe_previous() {
	local i=$COMP_CWORD
	[[ ${COMP_WORDS[i]} == : ]] && i=$((i - 1))
	((i > 2)) && [[ ${COMP_WORDS[i - 1]} == : ]] && i=$((i - 2))
	echo "${COMP_WORDS[i - 1]}"
}

# Prints the words in $help that match a regular expression.
_urxe_matches() {
	grep -oE -- "$1" <<<"$help" | tr -d ' [' | sort -u
}

# Prints what --help ($help) writes behind an option, as in "--run-dir DIR"; nothing: the option has no value.
_urxe_argument() {
	local line
	while IFS= read -r line; do
		[[ $line == "  $1 "[^\ ]* ]] || continue
		line=${line#"  $1 "}
		echo "${line%% *}"
		return
	done <<<"$help"
}

# Completes the value of an option. Fails if it has none.
_urxe_value() {
	local argument
	[[ $1 == -* ]] && argument=$(_urxe_argument "$1") && [[ $argument ]] || return
	case $1:$argument in
	--bond:*) _urxe_words 'active-backup balance' "$2" ;;
	--group:*) mapfile -t COMPREPLY < <(compgen -g -- "$2") ;;
	--hca:*) _urxe_hca "$2" ;;
	*:USER*) mapfile -t COMPREPLY < <(compgen -u -- "$2") ;;
	*:SPEC) _urxe_uplink "$2" ;;
	*:PORT)
		_urxe_names "$2" < <(_urxe_ports)
		_urxe_cut_colon "$2"
		;;
	*:DIR) _urxe_files -d "$2" ;;
	*:FILE | *:PATH* | *:STATE) _urxe_files -f "$2" ;;
	*:[a-z]*'|'*) _urxe_words "${argument//|/ }" "$2" ;;
	esac
	return 0
}

# Prints the position of the program that urxe run executes, or a later one than the cursor's. readline makes words of
# '=' and ':', too. An abbreviated option, which urxe run accepts, counts as one without a value.
_urxe_program() {
	local i=2
	while ((i < COMP_CWORD)); do
		case ${COMP_WORDS[i]} in
		--)
			((i++))
			break
			;;
		-*)
			if [[ $(_urxe_argument "${COMP_WORDS[i]}") ]]; then
				((i++))
				[[ ${COMP_WORDS[i]-} == = ]] && ((i++))
				while [[ ${COMP_WORDS[i + 1]-} == : ]]; do ((i += 2)); done
			fi
			((i++))
			;;
		*) break ;;
		esac
	done
	[[ ${COMP_WORDS[i - 1]} != -- ]] && ((i == COMP_CWORD)) && ((i++))
	echo "$i"
}

# Completes the program of urxe run and its arguments. Fails if the cursor is before it.
_urxe_command() {
	local first
	first=$(_urxe_program)
	((first <= COMP_CWORD)) || return
	if declare -F _command_offset >/dev/null; then
		_command_offset "$first"
	else
		mapfile -t COMPREPLY < <(compgen -c -- "$1")
	fi
	return 0
}

_urxe() {
	local word help words=--help command=${COMP_WORDS[1]-}
	word=$(_urxe_current)
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		help=$(urxe --help 2>/dev/null)
		_urxe_words "$(_urxe_matches '^  [a-z]+ ') help --help --version" "$word"
		return
	fi
	help=$(urxe "$command" --help 2>/dev/null) || return
	[[ $command == run ]] && _urxe_command "$word" && return
	_urxe_value "$(_urxe_previous)" "$word" && return
	case $command in
	run) words+=' --' ;;
	show) words+=" $(_urxe_matches '^  [a-z]+ ')" ;;
	replay) [[ $word != -* ]] && _urxe_files -f "$word" && return ;;
	esac
	_urxe_words "$(_urxe_matches '--[a-z][a-z-]*|^  -[a-z] ') $words" "$word"
}

_urxed() {
	local word help
	word=$(_urxe_current)
	COMPREPLY=()
	help=$(urxed --help 2>/dev/null)
	_urxe_value "$(_urxe_previous)" "$word" || _urxe_words "$(_urxe_matches '--[a-z][a-z-]*')" "$word"
	return 0
}

complete -F _urxe urxe
complete -F _urxed urxed
