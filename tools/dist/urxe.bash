# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# bash completion for urxe and urxed.

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
		--run-dir | --transport | --congestion | --way | --hca-gone | --hca | --device)
			((i++))
			[[ ${COMP_WORDS[i]-} == = ]] && ((i++))
			((i++))
			while [[ ${COMP_WORDS[i]-} == : ]]; do ((i += 2)); done
			;;
		-*) ((i++)) ;;
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
	local word previous command=${COMP_WORDS[1]-}
	word=$(_urxe_current)
	previous=$(_urxe_previous)
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_urxe_words 'run vm show doctor capture replay bench sim help --help --version' "$word"
		return
	fi
	[[ $command == run ]] && _urxe_command "$word" && return
	if [[ $previous == --run-dir ]]; then
		_urxe_files -d "$word"
		return
	fi
	case $command in
	run)
		case $previous in
		--transport) _urxe_words 'packet auto' "$word" ;;
		--congestion) _urxe_words 'dcqcn none' "$word" ;;
		--way) _urxe_words 'hca engine auto' "$word" ;;
		--hca-gone) _urxe_words 'error engine' "$word" ;;
		--hca) _urxe_hca "$word" ;;
		*) _urxe_words '--run-dir --transport --congestion --way --hca-gone --hca --device --help --' "$word" ;;
		esac
		;;
	vm)
		case $previous in
		--socket) _urxe_files -f "$word" ;;
		--roce) _urxe_words 'v1 v2' "$word" ;;
		--doorbells) _urxe_words 'trapped mapped' "$word" ;;
		--way) _urxe_words 'hca engine auto' "$word" ;;
		--mac | --mtu | --name) ;;
		*) _urxe_words '--socket --mac --mtu --roce --doorbells --name --way --incoming --take-over --run-dir --help' "$word" ;;
		esac
		;;
	doctor) _urxe_words '--json --run-dir --help' "$word" ;;
	show) _urxe_words 'host device port qp mr counter lease id transport --json --long --wait --run-dir --help' "$word" ;;
	capture)
		case $previous in
		-i)
			_urxe_names "$word" < <(_urxe_ports)
			_urxe_cut_colon "$word"
			;;
		-w) _urxe_files -f "$word" ;;
		-c) ;;
		*) _urxe_words '-i -w -c --state --json --run-dir --help' "$word" ;;
		esac
		;;
	replay)
		if [[ $word == -* ]]; then
			_urxe_words '--engine --process --all --json --help' "$word"
		else
			_urxe_files -f "$word"
		fi
		;;
	bench)
		case $previous in
		--port) _urxe_uplink "$word" ;;
		--size | --seconds) ;;
		*) _urxe_words '--port --listen --bare --size --seconds --json --help' "$word" ;;
		esac
		;;
	sim) _urxe_words "$(urxe sim --help 2>/dev/null | grep -o -- '^ *--[a-z-]*' | tr -d ' ')" "$word" ;;
	esac
	return 0
}

_urxed() {
	local word previous
	word=$(_urxe_current)
	previous=$(_urxe_previous)
	COMPREPLY=()
	case $previous in
	--uplink) _urxe_uplink "$word" ;;
	--run-dir) _urxe_files -d "$word" ;;
	--config) _urxe_files -f "$word" ;;
	--direct-uplink | --vm-user) mapfile -t COMPREPLY < <(compgen -u -- "$word") ;;
	--group) mapfile -t COMPREPLY < <(compgen -g -- "$word") ;;
	--bond) _urxe_words 'active-backup balance' "$word" ;;
	--hca) _urxe_hca "$word" ;;
	--address | --pkey | --fdb | --fault | --mtu | --device) ;;
	*)
		_urxe_words '--uplink --bond --address --pkey --fdb --direct-uplink --vm-user --fault --hca --device --config --run-dir --mtu --group
			--private --foreground --help --version' "$word"
		;;
	esac
	return 0
}

complete -F _urxe urxe
complete -F _urxed urxed
