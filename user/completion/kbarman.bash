# SPDX-License-Identifier: MIT
# Completion for bash. Verbs, options, events and formats come from the tool itself, so they
# always match its tables.

_kbarman_json() {	# KIND KEY: prints KEY of each object of KIND, one per line
	sed -n "s/^{\"kind\":\"$1\".*\"$2\":\"\([^\"]*\)\".*/\1/p"
}

_kbarman() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}
	local words

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		words=$(kbarman help 2>/dev/null | sed -n 's/^  \([a-z]*\)  *.*/\1/p')
		mapfile -t COMPREPLY < <(compgen -W "$words --help --version" -- "$cur")
		return
	fi
	case $verb,$prev,$cur in
	convert,-t,* | convert,--to,*)
		words=$(kbarman version -j 2>/dev/null | _kbarman_json export name)
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return ;;
	record,-e,* | record,--event,* | stat,-e,* | stat,--event,* | top,-e,* | top,--event,*)
		words=$(kbarman list -j 2>/dev/null | _kbarman_json event name)
		# completes the last word of a list and keeps the words before it
		local head=''
		case $cur in *,*) head=${cur%,*}, ;; esac
		mapfile -t COMPREPLY < <(compgen -P "$head" -W "$words" -- "${cur##*,}")
		compopt -o nospace 2>/dev/null
		return ;;
	stat,-M,* | stat,--metrics,* | report,-M,* | report,--metrics,*)
		words=$(kbarman list --metrics --all -j 2>/dev/null | sed -n 's/.*"name":"\([^"]*\)".*/\1/p')
		local head=''
		case $cur in *,*) head=${cur%,*}, ;; esac
		mapfile -t COMPREPLY < <(compgen -P "$head" -W "$words topdown" -- "${cur##*,}")
		compopt -o nospace 2>/dev/null
		return ;;
	record,--sources,* | top,--sources,* | flight,--sources,*)
		local head=''
		case $cur in *,*) head=${cur%,*}, ;; esac
		mapfile -t COMPREPLY < <(compgen -P "$head" -W 'wake migrate irq softirq freq syscalls faults block' -- "${cur##*,}")
		compopt -o nospace 2>/dev/null
		return ;;
	*,--color,*)
		mapfile -t COMPREPLY < <(compgen -W 'always never auto' -- "$cur")
		return ;;
	flight,flight,[!-]* | flight,flight,)
		mapfile -t COMPREPLY < <(compgen -W 'start status stop run --help' -- "$cur")
		return ;;
	esac
	case $cur in
	-*)
		words=$(kbarman "$verb" --list-options 2>/dev/null)
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		case ${COMPREPLY[0]-} in *=) compopt -o nospace 2>/dev/null ;; esac
		return ;;
	esac
	case $verb in
	record | stat) mapfile -t COMPREPLY < <(compgen -A command -A file -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -A file -- "$cur") ;;
	esac
}

complete -o filenames -F _kbarman kbarman
