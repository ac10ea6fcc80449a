"""``paceline chat``: a conversation in the terminal."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace

from rich.text import Text

from core.cancel import CancelToken
from core.cli import ask
from core.cli.commands import CAN_BE, COMMANDS, HELP_NOTES, Command, parse_line
from core.cli.context import Context, EngineLike
from core.cli.crash import explain
from core.cli.exits import EXIT_DONE
from core.cli.loading import load, progress_line
from core.cli.options import Choices, choices_of, load_request_of, require_unicode
from core.cli.parser import gamma_of
from core.cli.reply import (
    LiveReply,
    Outcome,
    PlainReply,
    ReplyView,
    TerminalReply,
    receive,
    say_notices,
)
from core.cli.style import (
    ORIGIN_MEANINGS,
    ORIGIN_STYLES,
    SEPARATOR,
    acceptance,
    can_redraw,
    drafted,
    ending,
    in_force,
    make_console,
    pace,
    rule,
    say,
    sentence,
    speed,
)
from core.errors import UserError
from core.events import Loaded
from core.metrics import GenerationMetrics, together
from core.requests import GenerateRequest, Rule, SpeculationParams

PROMPT = "> "
LEGEND_WIDTH = 14


def run(args: argparse.Namespace, context: Context) -> int:
    """Chat until the person leaves; without a terminal, answer standard input once."""
    if not context.stdin.isatty():
        return ask.answer(args, context, ask.read_prompt(context))
    choices = choices_of(args)
    with progress_line(make_console(context.stderr)) as on_progress:
        engine, loaded = load(context, load_request_of(args), on_progress)
    chat = Chat(context, engine, loaded, choices)
    chat.greet()
    while chat.turn():
        pass
    return EXIT_DONE


class Chat:
    """One conversation with its history, its choices and its numbers."""

    def __init__(
        self, context: Context, engine: EngineLike, loaded: Loaded, choices: Choices
    ) -> None:
        self._context = context
        self._engine = engine
        self._loaded = loaded
        self._choices = choices
        self._console = make_console(context.stdout)
        self._errors = make_console(context.stderr)
        self._history: list[tuple[str, str]] = []
        self._unanswered = ""
        self._colouring = True
        self._replies: list[GenerationMetrics] = []
        self._commands: Mapping[str, Callable[[str], None]] = {
            "help": self._help,
            "new": self._new,
            "regenerate": self._regenerate,
            "drafter": self._drafter,
            "gamma": self._gamma,
            "rule": self._rule,
            "temperature": self._temperature,
            "system": self._system,
            "colour": self._colour,
            "color": self._colour,
            "stats": self._stats,
        }

    def greet(self) -> None:
        """Say what is loaded and how to read the colours."""
        target, draft, head = self._loaded.target, self._loaded.draft, self._loaded.head
        self._console.print(sentence(target), style="bold")
        if draft:
            say(self._console, f"draft: {draft}")
        if head:
            say(self._console, f"head: {head.removesuffix(f' on {target}')}")
        say(self._console, in_force(self._choices.speculation, self._loaded))
        for notice in self._loaded.notices:
            say(self._console, notice)
        self._legend()
        say(self._console, "/help lists the commands, Ctrl+C stops a reply, Ctrl+D leaves.")

    def turn(self) -> bool:
        """Read one line and act on it; return False when the person leaves."""
        try:
            line = parse_line(self._read())
            if isinstance(line, Command):
                if line.name in ("quit", "exit"):
                    return False
                self._run_command(line)
            elif line:
                self._send(line)
        except EOFError:
            self._console.print()
            return False
        except KeyboardInterrupt:
            self._console.print()
            say(self._console, "Ctrl+D or /quit leaves.")
        except UnicodeDecodeError:
            self._complain("That was not UTF-8 text.")
        except UserError as error:
            self._complain(str(error))
        return True

    def _read(self) -> str:
        prompt = PROMPT if self._console.is_terminal else ""
        lines = [self._context.read_line(prompt)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self._context.read_line(prompt and "  "))
        return "\n".join(lines)

    def _run_command(self, command: Command) -> None:
        action = self._commands.get(command.name)
        if action is None:
            raise UserError(f"There is no command /{command.name}.", "/help lists the commands.")
        action(command.rest)

    def _send(self, text: str) -> None:
        """Answer a message. Without any reply the message does not stay in the history."""
        request = self._choices.request((*self._history, ("user", text)))
        self._unanswered = text
        outcome = self._receive(request)
        if outcome.text:
            self._history += [("user", text), ("assistant", outcome.text)]
            self._unanswered = ""
        if outcome.failure is not None:
            self._complain(explain(outcome.failure))
        elif not outcome.text:
            say(self._console, "There is no reply; /regenerate asks again.")

    def _receive(self, request: GenerateRequest) -> Outcome:
        outcome = receive(self._engine, request, self._view(), CancelToken())
        say_notices(self._console, outcome)
        if outcome.metrics.tokens:
            self._replies.append(outcome.metrics)
            say(self._console, self._summary(request, outcome))
        return outcome

    @staticmethod
    def _summary(request: GenerateRequest, outcome: Outcome) -> str:
        speculation, metrics = request.speculation, outcome.metrics
        lossy = metrics.proposed > 0 and Rule(speculation.rule).lossy
        by = SEPARATOR + rule(speculation) if lossy else ""
        return speed(metrics) + drafted(speculation, metrics) + by + ending(outcome.reason)

    def _view(self) -> ReplyView:
        if can_redraw(self._console):
            return LiveReply(self._console, colouring=self._colouring)
        if self._console.is_terminal:
            return TerminalReply(self._console, colouring=self._colouring)
        return PlainReply(self._context.stdout)

    def _help(self, _: str) -> None:
        width = max(map(len, COMMANDS))
        for name, meaning in COMMANDS.items():
            self._console.print(f"  {name:<{width}}  {meaning}")
        for note in HELP_NOTES:
            say(self._console, note)
        self._legend()

    def _legend(self) -> None:
        for origin, meaning in ORIGIN_MEANINGS.items():
            line = Text("  ").append(origin, style=ORIGIN_STYLES[origin] if self._colouring else "")
            line.pad_right(LEGEND_WIDTH - len(line))
            self._console.print(line.append(meaning, style="dim"))

    def _new(self, _: str) -> None:
        self._history.clear()
        self._unanswered = ""
        say(self._console, "A new conversation.")

    def _regenerate(self, _: str) -> None:
        kept = [] if self._unanswered else self._history[-2:]
        if not kept and not self._unanswered:
            raise UserError("There is no message to answer again.", "Write one first.")
        length = len(self._history) - len(kept)
        del self._history[length:]
        try:
            self._send(self._unanswered or kept[0][1])
        finally:
            if kept and len(self._history) == length:  # nothing came: the old reply stays
                self._history += kept
                self._unanswered = ""

    def _drafter(self, kind: str) -> None:
        width = max((len(option.kind) for option in self._loaded.drafters), default=0)
        for option in self._loaded.drafters:
            if not kind:
                state = "available" if option.available else f"not available: {option.reason}"
                if option.available and option.kind == self._choices.speculation.drafter:
                    state += ", in use"
                self._console.print(f"  {option.kind:<{width}}  {sentence(state)}")
            elif option.kind == kind and not option.available:
                raise UserError(f"The drafter {kind} is not available: {option.reason}.")
        if kind:
            self._speculate(replace(self._choices.speculation, drafter=kind))

    def _gamma(self, text: str) -> None:
        if not text:
            self._show("gamma", self._choices.speculation.gamma)
            return
        try:
            gamma = gamma_of(text)
        except argparse.ArgumentTypeError:
            raise UserError(
                "gamma needs auto or a whole number.", "For example: /gamma auto or /gamma 4"
            ) from None
        self._speculate(replace(self._choices.speculation, gamma=gamma))

    def _rule(self, name: str) -> None:
        if not name:
            self._show("rule", self._choices.speculation.rule)
            return
        self._speculate(replace(self._choices.speculation, rule=name))

    def _speculate(self, speculation: SpeculationParams) -> None:
        self._choices = replace(self._choices, speculation=speculation)
        say(self._console, in_force(speculation, self._loaded))

    def _temperature(self, text: str) -> None:
        if not text:
            self._show("temperature", f"{self._choices.sampling.temperature:g}")
            return
        try:
            temperature = float(text)
        except ValueError:
            raise UserError("temperature needs a number.", "For example: /temperature 0") from None
        sampling = replace(self._choices.sampling, temperature=temperature)
        self._choices = replace(self._choices, sampling=sampling)
        say(self._console, f"temperature {temperature:g}")

    def _show(self, name: str, value: object) -> None:
        say(self._console, f"{name} is {value}; it can be {CAN_BE[name]}")

    def _system(self, text: str) -> None:
        require_unicode(text)
        if text:
            self._choices = replace(self._choices, system="" if text == "-" else text)
        shown = self._choices.system
        say(self._console, f"system prompt: {shown}" if shown else "there is no system prompt")

    def _colour(self, text: str) -> None:
        if not text:
            self._show("colour", "on" if self._colouring else "off")
            return
        if text not in ("on", "off"):
            raise UserError("colour is on or off.", "For example: /colour off")
        self._colouring = text == "on"
        say(self._console, f"colours are {text}")

    def _stats(self, _: str) -> None:
        total = together(self._replies)
        replies = len(self._replies)
        counted = f"{replies} repl{'y' if replies == 1 else 'ies'}"
        say(self._console, f"{counted}{SEPARATOR}{pace(total)}")
        if accepted := acceptance(total):
            say(self._console, accepted)
        say(self._console, f"from now on: {in_force(self._choices.speculation, self._loaded)}")

    def _complain(self, text: str) -> None:
        self._errors.print(sentence(text), style="red")
