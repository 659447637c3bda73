"""Help of the command line: groups of commands and flags, short usage lines, examples."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DESCRIPTION: Final = (
    "Use any LLM client with any model. Xenoglot is a gateway and command line that translates between the OpenAI, "
    "Anthropic, Gemini and Ollama APIs. Without an upstream, a small embedded model answers."
)

COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "Use a model": ("ask", "chat", "agent", "embed", "batch"),
    "Connect programs": ("serve", "run", "init", "config", "health", "completion"),
    "Models and providers": ("models", "providers", "probe", "pull"),
    "Report": ("usage", "requests"),
    "Administer": ("console", "doctor", "keys", "budgets"),
    "Translate": ("translate", "parse"),
    "Test": ("mock", "record", "replay"),
}
"""Group -> its commands, in the order of the help."""

OTHERS: Final = "Other commands"

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "": (
        'xenoglot ask "What is the capital of France?"',
        "xenoglot serve --upstream groq",
        "xenoglot run claude --upstream http://127.0.0.1:8000 --model qwen3",
    ),
    "serve": (
        "xenoglot serve",
        "xenoglot serve --upstream http://127.0.0.1:8000 --port 9000",
        "xenoglot serve --config xenoglot.toml --workers 2",
    ),
    "usage": ("xenoglot usage --by tenant,model --since 7d",),
    "requests": ("xenoglot requests list --since 1h --failed", "xenoglot requests tail --tenant ada"),
    "keys": (
        "xenoglot keys create --tenant ada --name laptop --models 'claude-*' --expires 90d",
        "xenoglot keys rotate laptop --keep-old 24h",
    ),
    "console": ("xenoglot console", "xenoglot console https://llm.example --print"),
    "doctor": ("xenoglot doctor --config xenoglot.toml",),
    "budgets": (
        "xenoglot budgets set tenant:ada 50 --period month --warn-at 80",
        "xenoglot budgets list",
        "xenoglot budgets delete tenant:ada",
    ),
    "models": ("xenoglot models --upstream http://127.0.0.1:8000",),
    "ask": (
        "xenoglot ask What is the capital of France?",
        "xenoglot ask Summarise this text. --upstream groq --model openai/gpt-oss-20b < notes.txt",
        "xenoglot ask And of Italy? --continue",
    ),
    "chat": ("xenoglot chat", "xenoglot chat --upstream anthropic --model claude-sonnet-4-5 --mcp servers.json"),
    "embed": ("xenoglot embed a red fox", "xenoglot embed --lines < titles.txt > vectors.jsonl"),
    "agent": (
        'xenoglot agent "Why do the tests fail?" --read-only --upstream groq --model openai/gpt-oss-120b',
        'xenoglot agent "Now fix them." --continue --allow-write --upstream groq --model openai/gpt-oss-120b',
    ),
    "translate": (
        "xenoglot translate --from chat --to messages < request.json",
        "xenoglot translate --from messages --to chat --on-loss refuse < request.json",
    ),
    "parse": ("xenoglot parse --tools tools.json < answer.txt", "xenoglot parse --any-tool --model qwen3 < answer.txt"),
    "pull": ("xenoglot pull", "xenoglot pull --embedding"),
    "providers": ("xenoglot providers",),
    "probe": ("xenoglot probe http://127.0.0.1:8000", "xenoglot probe http://127.0.0.1:8000 --write server.toml"),
    "mock": ("xenoglot mock --port 9000", "xenoglot mock --dialect chat --fault rate-limit"),
    "record": ("xenoglot record --upstream http://127.0.0.1:8000 --out recording",),
    "replay": ("xenoglot replay recording --port 9000", "xenoglot replay recording --check"),
    "run": (
        "xenoglot run claude --upstream http://127.0.0.1:8000 --model qwen3",
        'xenoglot run codex --config xenoglot.toml -- exec "Explain this folder."',
    ),
    "init": ("xenoglot init", "xenoglot init --yes --upstream groq"),
    "config": ("xenoglot config show", "xenoglot config set upstreams.main.provider groq server.port 9000"),
    "health": ("xenoglot health", "xenoglot health http://127.0.0.1:9000 --live"),
    "completion": ("xenoglot completion bash > ~/.local/share/bash-completion/completions/xenoglot",),
    "batch": (
        "xenoglot batch questions.jsonl answers.jsonl --upstream groq --concurrency 16",
        "xenoglot batch questions.jsonl answers.jsonl --skip-invalid --errors errors.jsonl",
    ),
}
"""Command -> lines for a shell; those of no command are of the program."""

MODEL_FLAGS: Final = (
    "config",
    "upstream",
    "dialect",
    "also",
    "model",
    "key_env",
    "auth",
    "setting",
    "text_syntax",
    "preserve",
    "gguf",
    "python",
    "price",
)
"""Flags that select the model, by their names in the options."""

MODEL_GROUP: Final = "model"
MOST_CHOICES: Final = 4
"""Choices that are listed in place of a value's name."""

WIDTH_OF_FLAGS: Final = 30


class CommandParser(argparse.ArgumentParser):
    """Argument parser with grouped help and exact flags.

    Flags are not abbreviated: what a shell history holds must not change its meaning with a new flag.
    """

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401  those of its parent
        settings.setdefault("formatter_class", HelpFormatter)
        super().__init__(**settings, allow_abbrev=False)
        self._positionals.title = "arguments"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401  as its parent
        """Parse arguments; an unknown one is an error of the command that it was given to, not of the program."""
        found, rest = super().parse_known_args(args, namespace)
        words = getattr(found, "takes_words", None)
        if words is not None and not any(word.startswith("-") and word != "-" for word in rest):
            setattr(found, words, [*getattr(found, words), *rest])
            rest = []
        if rest:
            self.error(self._unrecognized(rest))
        return found, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401  as its parent
        """Raise `ArgumentError` for a value that is no choice, with the nearest one."""
        if action.choices is None or value in action.choices:
            return
        advice = nearest(str(value), [str(choice) for choice in action.choices])
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  argparse has no public name for it
            self.error(f"unknown command `{value}`; {advice}")
        raise argparse.ArgumentError(action, f"invalid choice: '{value}'; {advice}")

    def _unrecognized(self, rest: Sequence[str]) -> str:
        flag = next((text.partition("=")[0] for text in rest if text.startswith("-")), None)
        near = [] if flag is None else get_close_matches(flag, self._option_string_actions, n=1)
        advice = f"; did you mean `{near[0]}`?" if near else ""
        return f"unrecognized arguments: {' '.join(rest)}{advice}"

    @property
    def command(self) -> str:
        """The name of the command; empty for the program itself."""
        return self.prog.partition(" ")[2]

    def format_usage(self) -> str:
        """Return the usage in one line."""
        return f"usage: {self.short_usage()}\n"

    def short_usage(self) -> str:
        """Return the usage: required flags and arguments, other flags as `[options]`."""
        if self.usage is not None:
            return self.usage % {"prog": self.prog}
        if (commands := commands_of(self)) is not None:
            return f"{self.prog} {commands.metavar or 'COMMAND'} [options]"
        formatter = HelpFormatter(self.prog)
        shown = [formatter.format_argument(action) for action in self._actions if is_argument(action)]
        return " ".join([self.prog, *shown, "[options]"])

    def format_help(self) -> str:
        """Return the help: usage, description, arguments in groups, examples."""
        formatter = self._get_formatter()
        formatter.add_usage(self.short_usage(), [], [])
        formatter.add_text(self.description)
        for title, description, actions in sections(self):
            formatter.start_section(title)
            formatter.add_text(description)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        if lines := EXAMPLES.get(self.command):
            formatter.start_section("examples")
            formatter.add_text("\n".join(lines))
            formatter.end_section()
        if (commands := commands_of(self)) is not None:
            name = commands.metavar or "COMMAND"
            formatter.add_text(f"`{self.prog} {name} --help` describes each {str(name).lower()}.")
        return formatter.format_help()


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formatter that wraps paragraphs, keeps the lines of examples, and shortens long lists of choices."""

    def __init__(self, prog: str, **settings: Any) -> None:  # noqa: ANN401  those of its parent
        super().__init__(prog, max_help_position=WIDTH_OF_FLAGS, **settings)

    def format_argument(self, action: argparse.Action) -> str:
        """Return an argument as it stands in the usage."""
        if not action.option_strings:
            return self._format_args(action, self._get_default_metavar_for_positional(action))
        return f"{action.option_strings[0]} {self._format_args(action, metavar(action))}"

    def expanded_help(self, action: argparse.Action) -> str:
        """Return the help of an argument, with its defaults filled in."""
        return self._expand_help(action) if action.help else ""

    def _get_default_metavar_for_optional(self, action: argparse.Action) -> str:
        return metavar(action)

    def _get_default_metavar_for_positional(self, action: argparse.Action) -> str:
        return metavar(action)

    def _metavar_formatter(self, action: argparse.Action, default_metavar: str) -> Any:  # noqa: ANN401  as its parent
        choices = None if action.choices is None else list(action.choices)
        if action.metavar is None and choices is not None and len(choices) > MOST_CHOICES:
            return lambda size: (metavar(action),) * size
        return super()._metavar_formatter(action, default_metavar)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap a text of one line; keep the lines of others."""
        if "\n" in text or text.startswith("xenoglot "):
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)  # noqa: SLF001  that of the grandparent


def metavar(action: argparse.Action) -> str:
    """Return the name of a value: DIALECT for the long list of dialects, else that of the flag."""
    if action.metavar is not None:
        return action.metavar if isinstance(action.metavar, str) else action.metavar[0]
    if action.choices is not None and "messages" in action.choices:
        return "DIALECT"
    return action.dest.upper() if action.option_strings else action.dest


def nearest(word: str, known: Sequence[str]) -> str:
    """Return what to advise for a `word` that is none of those `known`."""
    near = get_close_matches(word, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"choose from {', '.join(known)}"


def commands_of(parser: argparse.ArgumentParser) -> argparse._SubParsersAction[Any] | None:
    """Return the action that holds the commands of a parser, if it has some."""
    return next((one for one in parser._actions if isinstance(one, argparse._SubParsersAction)), None)  # noqa: SLF001  argparse tells them in no other way


def is_argument(action: argparse.Action) -> bool:
    """Whether the usage shows an argument: it is required, or has no flag."""
    shown = action.required or not action.option_strings
    return shown and action.help is not argparse.SUPPRESS


def sections(parser: argparse.ArgumentParser) -> Iterator[tuple[str | None, str | None, Sequence[argparse.Action]]]:
    """Yield the sections of a help: title, description, arguments; model flags have one of their own."""
    commands = commands_of(parser)
    if commands is not None:
        yield from _command_groups(commands, COMMANDS if parser.prog.count(" ") == 0 else {})
    selecting: list[argparse.Action] = []
    for group in parser._action_groups:  # noqa: SLF001  as above
        actions = [one for one in group._group_actions if one is not commands]  # noqa: SLF001  as above
        if group is parser._optionals:  # noqa: SLF001  as above
            selecting = [one for one in actions if one.dest in MODEL_FLAGS]
        others = [one for one in actions if one not in selecting]
        if len(selecting) == 1:
            selecting, others = [], actions
        if others:
            yield group.title, group.description, others
    if selecting:
        yield MODEL_GROUP, dialects(selecting), selecting


def dialects(actions: Sequence[argparse.Action]) -> str | None:
    """Return the line that lists the dialects, if a flag takes one."""
    names = next((one.choices for one in actions if one.choices is not None and "messages" in one.choices), None)
    return None if names is None else f"DIALECT is one of {', '.join(names)}."


def _command_groups(
    commands: argparse._SubParsersAction[Any], groups: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str | None, Sequence[argparse.Action]]]:
    listed = {one.dest: one for one in commands._choices_actions}  # noqa: SLF001  as above
    for title, names in groups.items():
        yield title, None, [listed.pop(name) for name in names if name in listed]
    if listed:
        yield OTHERS if groups else "actions", None, list(listed.values())
