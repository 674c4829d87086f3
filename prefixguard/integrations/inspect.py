"""Inspect (inspect-ai), by its hooks: a run for each sample and epoch, sub-agents apart, the score as the outcome.

    guard.inspect()  # once, in the file of the task; then inspect_ai.eval(...) or `inspect eval`

Hooks of Inspect serve every sample of the process. What has happened is read from the sample's transcript, before each
model call and at each event. A nudge is put behind the messages of the next model call, and of every later one, since
the sample's own messages do not keep it. A stop raises Inspect's LimitExceededError: the sample ends and is scored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from prefixguard.errors import UsageError, missing_extra
from prefixguard.integrations.conversation import result_of, tell_reply, tokens_of
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun
from prefixguard.stepview import AgentSpans, SpanAgent

#: The sample that this task works on: Inspect has an id for it that differs between hooks.
_WITHIN: ContextVar[str] = ContextVar("prefixguard_inspect", default="")
#: Values of a score, as text, that are a success and a failure.
_SUCCESS, _FAILURE = ("C", "1", "1.0", "true"), ("I", "N", "0", "0.0", "false")


def outcome_of(scores: Any, scorer: str | None = None) -> bool | None:
    """The outcome that the scores of a sample agree on: C, 1 and true are success, I, N, 0 and false failure. None
    where there is no score, where it is anything else, or where scorers are of two minds.

    scores : by the scorer's name. scorer : the only one that counts.

    >>> outcome_of({"match": {"value": "C"}, "rubric": {"value": 1.0}}), outcome_of({"rubric": {"value": 0.4}})
    (True, None)
    """
    found = set()
    for name, score in scores.items() if isinstance(scores, Mapping) else ():
        if scorer in (None, name):
            value = field_of(score, "value")
            word = str(value).lower() if isinstance(value, bool) else str(value)
            found.add(True if word in _SUCCESS else False if word in _FAILURE else None)
    return found.pop() if len(found) == 1 else None


@dataclass(slots=True, eq=False)
class _AgentPath:
    """One agent of a sample. told : ids of messages and calls that were told, or are not to be.

    nudges : each with the id of the message that it stands behind.
    """

    run: WatchedRun
    agent: SpanAgent
    told: set[str] = field(default_factory=set)
    nudges: list[tuple[str, Any]] = field(default_factory=list)

    def hears(self, messages: Any) -> None:
        """What a model is asked with: messages of the user, and results that no event tells. What the agent says is
        told by events of models; other agents' words stand in the messages too."""
        for message in messages:
            key, role = _id(message), field_of(message, "role")
            if key in self.told:
                continue
            self.told.add(key)
            if role == "user":
                self.run.observed(text_of(field_of(message, "content")), agent=self.agent.name)
            elif role == "tool" and self.run.is_open(call_id := _id(message, "tool_call_id")):
                self.gets(call_id, field_of(message, "content"), field_of(message, "error"))

    def says(self, event: Any) -> None:
        """A model has answered."""
        output = field_of(event, "output")
        choices = field_of(output, "choices")
        if field_of(event, "error") or not choices:
            return
        message = field_of(choices[0], "message")
        content, calls = field_of(message, "content"), field_of(message, "tool_calls") or ()
        if isinstance(content, list):  # of which reasoning is no part
            content = text_of([block for block in content if field_of(block, "type") == "text"])
        wanted = [(_id(c), field_of(c, "function"), field_of(c, "arguments")) for c in calls]
        self.told.update(call_id for call_id, _, _ in wanted)
        fields = {"agent": self.agent.name, **tokens_of(field_of(output, "usage"))}
        tell_reply(self.run, text_of(content), wanted, fields)

    def gets(self, call_id: Any, content: Any, error: Any) -> None:
        """A tool has returned."""
        result_of(self.run, call_id, text_of(content) or text_of(field_of(error, "message")), error is not None)

    def nudged(self, messages: list[Any], make: Callable[..., Any]) -> None:
        """Put all nudges of this agent into the messages that are not there."""
        if (text := self.run.nudge()) is not None:
            self.nudges.append((_id(messages[-1]), make(content=text)))
            self.told.add(_id(self.nudges[-1][1]))
        for behind, nudge in self.nudges:
            ids = [_id(message) for message in messages]
            if behind in ids and _id(nudge) not in ids:
                messages.insert(ids.index(behind) + 1, nudge)


class WatchedSample:
    """One attempt at one sample: what its transcript tells."""

    def __init__(self, guard: RunKeeper, run: WatchedRun, transcript: Any) -> None:
        self.run, self._guard, self._transcript = run, guard, transcript
        self._spans = AgentSpans()
        self._paths = {self._spans.main: _AgentPath(run, self._spans.main)}
        self._seen = 0
        self._waiting: list[Any] = []

    def advance(self) -> None:
        """Tell what is new. Events that are pending are told once they are not."""
        fresh, waiting = self._transcript.events[self._seen :], self._waiting
        self._seen += len(fresh)
        self._waiting = []
        for n, event in enumerate((*waiting, *fresh)):
            try:
                if n >= len(waiting):
                    self._meet(event)
                if field_of(event, "pending"):
                    self._waiting.append(event)
                else:
                    self._tell(event)
            except Exception as exc:
                self._guard.failed("an event of Inspect", exc)

    def path(self, span_id: str) -> _AgentPath | None:
        """The agent that works within a span; None of a scorer."""
        agent = self._spans.agent(span_id)
        return None if agent is None else self._path(agent)

    def _path(self, agent: SpanAgent) -> _AgentPath:
        found = self._paths.get(agent)
        if found is None:
            above = self.run if agent.above is None else self._path(agent.above).run
            run = above.delegate(agent.name, call_id=agent.call_id, answers=False)
            found = self._paths[agent] = _AgentPath(run, agent)
        return found

    def _meet(self, event: Any) -> None:
        """An event is seen for the first time."""
        kind = field_of(event, "event")
        if kind == "span_begin":
            name = text_of(field_of(event, "name"))
            self._spans.begins(_id(event), _id(event, "parent_id"), _id(event, "type"), name)
        elif kind == "tool":
            self._spans.calls(_id(event))

    def _tell(self, event: Any) -> None:
        kind = field_of(event, "event")
        if kind == "span_end":
            over = self._spans.ends(_id(event))
            if over is not None and over in self._paths:
                self._paths[over].run.end()
        elif kind in ("model", "tool") and (path := self.path(_id(event, "span_id"))) is not None:
            if kind == "model":
                path.says(event)
            else:
                path.told.add(_id(event, "message_id"))
                if _id(event) not in path.told:  # no model's event has told the call
                    tool, arguments = text_of(field_of(event, "function")), field_of(event, "arguments")
                    path.run.called(tool, arguments, call_id=_id(event))
                path.gets(_id(event), field_of(event, "result"), field_of(event, "error"))


def _id(value: Any, name: str = "id") -> str:
    return str(field_of(value, name) or "")


class InspectHooks:
    """What `Guard.inspect` gives: watches until it is closed. A context manager."""

    def __init__(self, guard: RunKeeper, scorer: str | None, of_run: dict[str, Any]) -> None:
        self.is_on = True
        self._guard, self._scorer, self._of_run = guard, scorer, of_run
        self._samples: dict[str, WatchedSample] = {}
        self._tasks: dict[str, str] = {}

    def close(self) -> None:
        """Watch no more."""
        self.is_on = False

    def __enter__(self) -> InspectHooks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def told(self, what: Callable[..., Any], *given: Any) -> Any:
        """What a method gives; None where it fails, which is counted."""
        try:
            return what(*given)
        except Exception as exc:
            self._guard.failed("a hook of Inspect", exc)
            return None

    def task_begins(self, data: Any) -> None:
        self._tasks[data.eval_id] = text_of(field_of(data.spec, "task"))

    def task_ends(self, data: Any) -> None:
        self._tasks.pop(data.eval_id, None)

    def begins(self, data: Any, transcript: Any) -> None:
        """A sample is tried, for the first time or again. Its epochs are runs of one task."""
        task_id = f"{self._tasks.get(data.eval_id, '')}/{field_of(data.summary, 'id')}"
        run = self._guard.run(**{"run_id": data.sample_id, "task_id": task_id, **self._of_run})
        self._samples[data.sample_id] = WatchedSample(self._guard, run, transcript)
        _WITHIN.set(data.sample_id)

    def happens(self, data: Any) -> None:
        """There is something new in the transcript."""
        if (sample := self._samples.get(data.sample_id)) is not None:
            sample.advance()

    def asks(self, data: Any, span_id: str) -> _AgentPath | None:
        """A model is about to be asked by an agent."""
        sample = self._samples.get(_WITHIN.get())
        if sample is None:
            return None
        sample.advance()
        path = sample.path(span_id)
        if path is not None:
            path.hears(data.input)
        return path

    def is_scored(self, data: Any) -> None:
        """The agents are done: what models are asked from here on is the scorers' affair."""
        self.happens(data)
        _WITHIN.set("")

    def ends(self, data: Any) -> None:
        """A sample has ended, or is to be tried again."""
        sample = self._samples.pop(data.sample_id, None)
        if sample is None:
            return
        sample.advance()
        run, found = sample.run, field_of(data, "sample")
        run.end()
        success = outcome_of(field_of(found, "scores"), self._scorer)
        if success is not None and not field_of(found, "error"):
            with suppress(UsageError):  # a guard that does not record
                run.outcome(success)


def sample_hooks(guard: RunKeeper, scorer: str | None, of_run: dict[str, Any]) -> InspectHooks:
    """Hooks for all samples of this process, which Inspect knows from here on. of_run : arguments of `Guard.run`.

    Raises MissingExtraError.
    """
    try:
        from inspect_ai.hooks import Hooks, hooks
        from inspect_ai.log import transcript
        from inspect_ai.model import ChatMessageUser
        from inspect_ai.util import LimitExceededError, current_span_id
    except ImportError as exc:
        raise missing_extra("watching Inspect", "inspect", exc) from exc

    watcher = InspectHooks(guard, scorer, of_run)
    told = watcher.told

    class WatchedHooks(Hooks):  # type: ignore[misc]
        def enabled(self) -> bool:
            return watcher.is_on

        async def on_task_start(self, data: Any) -> None:
            told(watcher.task_begins, data)

        async def on_task_end(self, data: Any) -> None:
            told(watcher.task_ends, data)

        async def on_sample_attempt_start(self, data: Any) -> None:
            told(watcher.begins, data, transcript())

        async def on_sample_event(self, data: Any) -> None:
            told(watcher.happens, data)

        async def on_before_model_generate(self, data: Any) -> None:
            path = told(watcher.asks, data, current_span_id() or "")
            if path is None:
                return
            await path.run.answered()
            if (why := path.run.stopped) is not None:
                raise LimitExceededError("custom", value=1, limit=0, message=why)
            told(path.nudged, data.input, ChatMessageUser)

        async def on_sample_scoring(self, data: Any) -> None:
            told(watcher.is_scored, data)

        async def on_sample_attempt_end(self, data: Any) -> None:
            if field_of(data, "will_retry"):
                told(watcher.ends, data)

        async def on_sample_end(self, data: Any) -> None:
            told(watcher.ends, data)

    hooks(name=f"prefixguard-{uuid4().hex[:8]}", description="A failure monitor that watches samples.")(WatchedHooks)
    return watcher
