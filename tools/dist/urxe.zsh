#compdef urxe urxed
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# zsh completion for urxe and urxed: commands, topics and options as --help prints them.

# Sets `options` to the options that a program's --help names.
_urxe_options() {
	options=(${(u)${(M)${=${"$("$@" --help 2>/dev/null)"//[^-a-zA-Z0-9]/ }}:#-[-a-zA-Z]*}})
	options=(${options:#-})
}

# Completes a word of `urxe run`: an option, or the command behind them and its arguments.
_urxe_run() {
	local -i at
	for ((at = 3; at < CURRENT; at++)); do
		case $words[at] in
		--) ((at++)) ;;
		--run-dir | --transport | --congestion | --way | --hca-gone | --hca | --device) ((at++)) && continue ;;
		--*) continue ;;
		esac
		break
	done
	if ((at < CURRENT)) || [[ $words[CURRENT] != -* && $words[CURRENT-1] != --* ]]; then
		shift $((at - 1)) words
		((CURRENT -= at - 1))
		_normal
		return
	fi
	_urxe_options urxe run
	compadd -a options
}

_urxe() {
	local -a options commands
	if [[ $service == urxed ]]; then
		[[ $words[CURRENT] == -* ]] && _urxe_options urxed && compadd -a options && return
		_files
		return
	fi
	if ((CURRENT == 2)); then
		commands=(${(f)"$(urxe --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')"})
		compadd -a commands
		compadd -- --help --version
		return
	fi
	case $words[2] in
	run)
		_urxe_run
		return
		;;
	show)
		[[ $words[CURRENT] == -* ]] || compadd host device port qp mr counter lease id transport
		;;
	esac
	if [[ $words[CURRENT] == -* ]]; then
		_urxe_options urxe $words[2]
		compadd -a options
	elif [[ $words[2] != show ]]; then
		_files
	fi
}

_urxe "$@"
