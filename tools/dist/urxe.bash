# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# bash completion for urxe and urxed.

_urxe_interfaces() {
	local path
	for path in /sys/class/net/*; do
		[[ -e $path ]] && echo "${path##*/}"
	done
}

_urxe_words() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# Completes --uplink: a kind, then its interface. readline ends a word at ':'.
_urxe_uplink() {
	local word=$1
	case $word in
	af_packet:* | af_xdp:*)
		mapfile -t COMPREPLY < <(compgen -P "${word%%:*}:" -W "$(_urxe_interfaces)" -- "${word#*:}")
		;;
	*)
		_urxe_words 'af_packet: af_xdp: tap: pcap: qemu: vhost: dpdk:' "$word"
		compopt -o nospace 2>/dev/null
		;;
	esac
	[[ ${COMP_WORDBREAKS-} == *:* && $word == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%%:*}:"}")
	return 0
}

# Completes --hca: a mode, or an RDMA device.
_urxe_hca() {
	local path words='auto off'
	for path in /sys/class/infiniband/*; do
		[[ -e $path ]] && words+=" ${path##*/}"
	done
	_urxe_words "$words" "$1"
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

_urxe() {
	local word previous command=${COMP_WORDS[1]-} i
	word=$(_urxe_current)
	previous=$(_urxe_previous)
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_urxe_words 'run vm show doctor capture replay bench sim help --help --version' "$word"
		return
	fi
	if [[ $previous == --run-dir ]]; then
		mapfile -t COMPREPLY < <(compgen -d -- "$word")
		return
	fi
	if [[ $command == run && $previous == --transport ]]; then
		_urxe_words 'packet auto' "$word"
		return
	fi
	if [[ $command == run && $previous == --congestion ]]; then
		_urxe_words 'dcqcn none' "$word"
		return
	fi
	if [[ $command == run && $previous == --way ]]; then
		_urxe_words 'hca engine auto' "$word"
		return
	fi
	if [[ $command == run && $previous == --hca-gone ]]; then
		_urxe_words 'error engine' "$word"
		return
	fi
	if [[ $command == run && $previous == --hca ]]; then
		_urxe_hca "$word"
		return
	fi
	case $command in
	run)
		for ((i = 2; i < COMP_CWORD; i++)); do
			if [[ ${COMP_WORDS[i]} == -- ]]; then
				if declare -F _command_offset >/dev/null; then
					_command_offset $((i + 1))
				else
					mapfile -t COMPREPLY < <(compgen -c -- "$word")
				fi
				return
			fi
		done
		_urxe_words '--run-dir --transport --congestion --way --hca-gone --hca --device --help --' "$word"
		;;
	vm)
		case $previous in
		--socket) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
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
		-i) _urxe_words "$(urxe show port 2>/dev/null | awk 'NR > 1 { print $3 }')" "$word" ;;
		-w) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
		-c) ;;
		*) _urxe_words '-i -w -c --state --json --run-dir --help' "$word" ;;
		esac
		;;
	replay)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		[[ $word == -* ]] && _urxe_words '--engine --process --all --json --help' "$word"
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
	--run-dir) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
	--config) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
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
