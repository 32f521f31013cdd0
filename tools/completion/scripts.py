"""The script of each shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tools.completion.words import Kind, Option, Program, Value

HEAD = "# Completion of {name} for {shell}, generated from its options (make docs)."


def bash(program: Program) -> str:
    """Render the function that bash calls, with what the command line has so far in COMP_WORDS."""
    name = f"_{program.name.replace('-', '_')}"
    return f"""\
{HEAD.format(name=program.name, shell="bash")}
{name}() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} command='' i
    COMPREPLY=()
    # bash splits --option=value into three words
    if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${{COMP_WORDS[i]}} != -* ]]; then command=${{COMP_WORDS[i]}}; break; fi
    done
    local options='{_names(program.options)}' kind=words words='{_commands(program)}'
    case $command in
{_lines(8, (f"{x.name}) options='{_names(x.options)}' {_of_bash(_any(x.values))} ;;" for x in program.commands))}
    esac
    case "$command $prev" in
{_lines(8, _values_of_bash(program))}
        *) if [[ $cur == -* ]]; then kind=words words=$options; fi ;;
    esac
    case $kind in
        words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur") ;;
        files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    esac
}}
complete -F {name} {program.name}
"""


def zsh(program: Program) -> str:
    """Render the function that zsh loads from a directory of `fpath`."""
    name = f"_{program.name}"
    cases = []
    for command in program.commands:
        specs = [_option_of_zsh(x) for x in command.options]
        specs += [f"{n}:{_plain(x.name)}:{_of_zsh(x)}" for n, x in enumerate(command.values, start=1)]
        cases += [f"{command.name})", "    _arguments \\", *_continued(specs, 8), "    ;;"]
    return f"""\
#compdef {program.name}
{HEAD.format(name=program.name, shell="zsh")}
{name}() {{
    local context state line
    local -a commands=(
{_lines(8, (_quoted(f"{x.name}:{_plain(x.line)}") for x in program.commands))}
    )
    typeset -A opt_args
    _arguments -C \\
{_lines(8, _continued([*map(_option_of_zsh, program.options), "1:command:->command", "*::argument:->argument"], 0))}
    case $state in
        command) _describe -t commands command commands ;;
        argument)
            case $words[1] in
{_lines(16, cases)}
            esac
            ;;
    esac
}}
if [[ $funcstack[1] == {name} ]]; then {name} "$@"; else compdef {name} {program.name}; fi
"""


def fish(program: Program) -> str:
    """Render the lines that fish reads."""
    start = f"complete -c {program.name}"
    lines = [HEAD.format(name=program.name, shell="fish"), f"{start} -f"]
    lines += [f"{start} -n __fish_use_subcommand {_option_of_fish(x)}" for x in program.options]
    for command in program.commands:
        lines.append(f"{start} -n __fish_use_subcommand -a {command.name} -d {_escaped(command.line)}")
    for command in program.commands:
        seen = f"{start} -n '__fish_seen_subcommand_from {command.name}'"
        lines += [f"{seen} {_option_of_fish(x)}" for x in command.options]
        value = _any(command.values)
        if value is not None and value.kind is not Kind.OTHER:
            lines.append(f"{seen} {_of_fish(value)}")
    return "\n".join(lines) + "\n"


SCRIPTS: Mapping[str, Callable[[Program], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def _any(values: Sequence[Value]) -> Value | None:
    """Give what fits every place of a command: a file where one is a file, because files are found in directories."""
    return next((x for x in values if x.kind is Kind.FILE), values[0] if values else None)


def _names(options: Sequence[Option]) -> str:
    return " ".join(x.name for x in options)


def _commands(program: Program) -> str:
    return " ".join(x.name for x in program.commands)


def _lines(indent: int, lines: Iterable[str]) -> str:
    return "\n".join(" " * indent + x for x in lines)


def _values_of_bash(program: Program) -> list[str]:
    """List the cases of an option's value: what the word before says of this one."""
    found: dict[str, list[str]] = {}
    for command in program.commands:
        for option in command.options:
            if option.value is not None:
                found.setdefault(_of_bash(option.value), []).append(f"'{command.name} {option.name}'")
    return [f"{' | '.join(places)}) {then} ;;" for then, places in found.items()]


def _of_bash(value: Value | None) -> str:
    if value is None or value.kind is Kind.OTHER:
        return "kind=nothing"
    if value.kind is Kind.WORD:
        return f"kind=words words='{' '.join(value.words)}'"
    return "kind=files" if value.kind is Kind.FILE else "kind=directories"


def _continued(specs: Sequence[str], indent: int) -> list[str]:
    """Put each argument on one line, continued but for the last."""
    quoted = [" " * indent + _quoted(x) for x in specs]
    return [f"{x} \\" for x in quoted[:-1]] + quoted[-1:]


def _option_of_zsh(option: Option) -> str:
    spec = f"{'*' if option.is_repeated else ''}{option.name}[{_plain(option.text)}]"
    return f"{spec}:{_plain(option.value.name)}:{_of_zsh(option.value)}" if option.value else spec


def _of_zsh(value: Value) -> str:
    if value.kind is Kind.WORD:
        return f"({' '.join(value.words)})"
    return {Kind.FILE: "_files", Kind.DIRECTORY: "_files -/"}.get(value.kind, " ")


def _plain(text: str) -> str:
    """Escape what has a meaning in a specification of zsh."""
    return "".join(f"\\{x}" if x in "\\:[]" else x for x in text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _option_of_fish(option: Option) -> str:
    value = "" if option.value is None else f" {_of_fish(option.value, is_option=True)}"
    return f"-l {option.name.removeprefix('--')}{value} -d {_escaped(option.text)}"


def _of_fish(value: Value, *, is_option: bool = False) -> str:
    if value.kind is Kind.FILE:
        return "-r -F" if is_option else "-F"
    words = {Kind.WORD: " ".join(value.words), Kind.DIRECTORY: "(__fish_complete_directories)"}
    found = [f"-a {_escaped(words[value.kind])}"] if value.kind in words else []
    return " ".join([*(["-x"] if is_option else []), *found])


def _escaped(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
