"""Claude Code and the Claude Agent SDK, by their hooks: what a payload tells, and what is answered.

    options = ClaudeAgentOptions(hooks=guard.claude_agent())            # in the process of the SDK
    prefixguard hook claude-code --monitor monitors/mine --settings     # for Claude Code: a command a hook

A batch of calls is told when all of them have returned, with the results as the model reads them, which is before the
model is asked again. A nudge is additional context; a stop denies the next calls and ends the turn.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from prefixguard.errors import missing_extra
from prefixguard.integrations.conversation import tell_reply
from prefixguard.integrations.events import MAIN, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun

#: Hooks that the watcher reads. `SessionEnd` and `SessionStart` are told to command hooks alone.
EVENTS: Final = (
    "UserPromptSubmit", "MessageDisplay", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch",
    "SubagentStart", "SubagentStop", "Stop", "SessionEnd",
)  # fmt: skip
#: Those at which a nudge may be given, and those at which a stop may.
_NUDGED, _STOPPED = ("UserPromptSubmit", "PostToolBatch"), ("PreToolUse", "PostToolBatch", "Stop")
#: Tools that begin a sub-agent, by their names of today and before.
_DELEGATING = ("Agent", "Task")
#: How a prompt begins that Claude Code writes itself when a sub-agent in the background is done.
_NOTICE = "<task-notification>"
_MOST_SESSIONS, _MOST_KEPT = 10_000, 256


@dataclass(slots=True)
class ClaudeSession:
    """What is remembered of a session between its hooks; plain JSON values.

    run : its id in the guard. text : what the main agent said since its last calls. calls : that began and are not yet
    told, by agent id ("" is the main one) and call id: tool, arguments, result, is_error. asked : sub-agents that were
    asked for and have not begun: type, prompt, call id, agent id where it is known. agents : path and name by agent id.
    """

    run: str
    text: str = ""
    calls: dict[str, Any] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)
    agents: dict[str, Any] = field(default_factory=dict)

    def keep_few(self) -> None:
        """Payloads come from outside: what never ends does not grow."""
        self.text = self.text[-200_000:]
        many: list[dict[str, Any]] = [self.calls, self.agents, *self.calls.values()]
        for kept in many:
            while len(kept) > _MOST_KEPT:
                del kept[next(iter(kept))]
        del self.asked[:-_MOST_KEPT]


class ClaudeWatcher:
    """Tells a guard what the payloads of hooks say. Sessions are apart; calls for one session come one at a time."""

    def __init__(self, guard: RunKeeper, of_run: Mapping[str, Any]) -> None:
        """of_run : arguments of `Guard.run`; the id of a run is that of its session where none is given."""
        self._guard, self._of_run = guard, dict(of_run)
        self.sessions: OrderedDict[str, ClaudeSession] = OrderedDict()

    def answer(self, payload: Any) -> dict[str, Any]:
        """What the hook answers: {} where there is nothing to say. Raises nothing of its own."""
        return self.reply(payload, self.tell(payload))

    def tell(self, payload: Any) -> ClaudeSession | None:
        """Tell the guard what the payload says; None where it says nothing to act on. Raises nothing of its own."""
        try:
            name, session_id = payload["hook_event_name"], payload["session_id"]
            if not isinstance(session_id, str) or not session_id or not isinstance(name, str):
                raise TypeError("hook_event_name and session_id are no texts")
        except (TypeError, KeyError) as exc:
            self._guard.count("unread_events")
            self._guard.failed("a hook's payload that has no name or no session", exc)
            return None
        try:
            if name not in EVENTS:
                return None
            session = self._session(session_id, payload)
            self._take(session, session_id, name, payload)
            return session
        except Exception as exc:
            self._guard.failed(f"a {name[:40]} hook of Claude", exc)
            return None

    def _session(self, session_id: str, payload: Mapping[str, Any]) -> ClaudeSession:
        session = self.sessions.get(session_id)
        if session is None or not self._guard.is_open(session.run):
            agent = "" if payload.get("agent_id") else str(payload.get("agent_type") or "")
            run = self._guard.run(**{"run_id": session_id, "agent": agent, **self._of_run})
            session = self.sessions[session_id] = ClaudeSession(run.id)
            session.agents[""] = [MAIN, agent]
        self.sessions.move_to_end(session_id)
        while len(self.sessions) > _MOST_SESSIONS:
            self.sessions.popitem(last=False)
        return session

    # What happens

    def _take(self, session: ClaudeSession, session_id: str, name: str, payload: Mapping[str, Any]) -> None:
        agent_id = str(payload.get("agent_id") or "")
        calls = session.calls.setdefault(agent_id, {})
        call_id = str(payload.get("tool_use_id") or "")
        match name:
            case "UserPromptSubmit":
                run, prompt = self._agent(session, ""), text_of(payload.get("prompt"))
                self._flush(session, "", run)
                if not prompt.startswith(_NOTICE):
                    self._guard.go_on(session.run)  # a person speaks, who knows of the stop
                run.observed(prompt)
            case "MessageDisplay" if not agent_id:
                session.text += str(payload.get("delta") or "")
            case "PreToolUse":
                given = payload.get("tool_input")
                calls[call_id] = [str(payload.get("tool_name") or ""), given, None, None]
                if calls[call_id][0] in _DELEGATING and isinstance(given, Mapping):
                    kind = str(given.get("subagent_type") or "general-purpose")
                    session.asked.append([kind, text_of(given.get("prompt")), call_id, ""])
            case "PostToolUse" | "PostToolUseFailure":
                failed = name == "PostToolUseFailure"
                found = payload.get("error") if failed else payload.get("tool_response")
                before = calls.get(call_id) or [str(payload.get("tool_name") or ""), payload.get("tool_input")]
                calls[call_id] = [*before[:2], result_text(found), failed]
                for one in session.asked:
                    if one[2] == call_id and isinstance(found, Mapping):
                        one[3] = str(found.get("agentId") or "")
            case "SubagentStart":
                self._agent(session, agent_id, payload)
            case "PostToolBatch":
                run = self._agent(session, agent_id, payload)
                self._tell(session, agent_id, run, list(_batch(payload, calls)))
            case "SubagentStop":
                run = self._agent(session, agent_id, payload)
                self._flush(session, agent_id, run)
                run.said(payload.get("last_assistant_message") or "")
                run.end()
                session.calls.pop(agent_id, None)
            case "Stop" | "SessionEnd":
                run = self._agent(session, "")
                self._flush(session, "", run)
                if said := text_of(payload.get("last_assistant_message") or session.text):
                    run.said(said)
                session.text = ""
                if name == "SessionEnd":
                    run.end()
                    del self.sessions[session_id]
        session.keep_few()

    def _agent(self, session: ClaudeSession, agent_id: str, payload: Mapping[str, Any] | None = None) -> WatchedRun:
        """The agent of this id; one that is new, or goes on after its end, begins with what it was asked."""
        known = session.agents.get(agent_id)
        stream = None if known is None else self._guard.stream(session.run, known[0])
        if known is not None and not (agent_id and stream is not None and stream.is_over):
            return WatchedRun(self._guard, session.run, known[0], known[1])
        kind = str((payload or {}).get("agent_type") or "agent")
        n = 1 + int(known[0].rpartition("~")[2]) if known is not None and "~" in known[0] else 2
        main = WatchedRun(self._guard, session.run, MAIN)
        own = agent_id if known is None else f"{agent_id}~{n}"
        task = self._task(session, agent_id, kind) if known is None else ""
        run = main.delegate(kind, task=task, call_id=own, answers=False)
        session.agents[agent_id] = [run.agent_path, kind]
        return run

    @staticmethod
    def _task(session: ClaudeSession, agent_id: str, kind: str) -> str:
        """What a sub-agent was asked: no payload of its own says it. By its id where its call has said that, else that
        of the first of its type that was asked for."""
        free = [one for one in session.asked if one[3] in ("", agent_id) and one[0] == kind]
        found = next((one for one in free if one[3]), free[0] if free else None)
        if found is None:
            return ""
        session.asked.remove(found)
        return found[1]

    def _tell(self, session: ClaudeSession, agent_id: str, run: WatchedRun, batch: list[tuple[str, list[Any]]]) -> None:
        """One reply of the model: its calls in their order, then what came back."""
        if not batch:
            return
        text, session.text = ("", session.text) if agent_id else (session.text, "")
        tell_reply(run, text, [(call_id, call[0], call[1]) for call_id, call in batch], {})
        for call_id, (_, _, result, failed) in batch:
            if result is not None:
                run.returned(call_id, result, is_error=failed)
            session.calls.get(agent_id, {}).pop(call_id, None)

    def _flush(self, session: ClaudeSession, agent_id: str, run: WatchedRun) -> None:
        """Calls that no batch has told, since the release has no such hook or the calls were broken off."""
        self._tell(session, agent_id, run, list(session.calls.get(agent_id, {}).items()))

    # What is answered

    def reply(self, payload: Any, session: ClaudeSession | None) -> dict[str, Any]:
        """What is answered to a payload that was told. Raises nothing of its own."""
        try:
            return {} if session is None else self._reply(session, payload["hook_event_name"], payload)
        except Exception as exc:
            self._guard.failed("an answer to a hook of Claude", exc)
            return {}

    def _reply(self, session: ClaudeSession, name: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        why = self._guard.stopped(session.run)
        if why is not None and name in _STOPPED:
            why = f"This run was stopped by its monitor ({why})."
            deny = {"hookEventName": name, "permissionDecision": "deny", "permissionDecisionReason": why}
            denied = {"hookSpecificOutput": deny} if name == "PreToolUse" else {}
            return {"continue": False, "stopReason": why, **denied}
        known = session.agents.get(str(payload.get("agent_id") or ""))
        if name in _NUDGED and known is not None:
            text = self._guard.take_nudge(session.run, known[0])
            if text is not None:
                return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
        return {}


def _batch(payload: Mapping[str, Any], calls: Mapping[str, list[Any]]) -> Iterator[tuple[str, list[Any]]]:
    """The calls of a batch, in the order in which the model made them, with the results that it reads."""
    for one in payload.get("tool_calls") or ():
        call_id = str(one.get("tool_use_id") or "")
        before = calls.get(call_id) or [None, None, None, None]
        found = one.get("tool_response")
        result = before[2] if found is None else text_of(found)
        yield call_id, [str(one.get("tool_name") or ""), one.get("tool_input"), result, before[3]]


def result_text(found: Any) -> str:
    """What a tool returned, as text: of a command what it wrote, of a file what stands in it, else as JSON.

    >>> result_text({"stdout": "a", "stderr": "b", "interrupted": False}), result_text({"type": "text", "file": {}})
    ('a\\nb', '{"type":"text","file":{}}')
    """
    if isinstance(found, Mapping):
        if "stdout" in found:
            return "\n".join(part for part in (text_of(found["stdout"]), text_of(found.get("stderr"))) if part)
        if isinstance(found.get("content"), str | list):
            return text_of(found["content"])
    return text_of(found)


def sdk_hooks(guard: RunKeeper, of_run: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Hooks for `ClaudeAgentOptions(hooks=...)`, for any number of sessions. Raises MissingExtraError."""
    try:
        from claude_agent_sdk import HookMatcher
    except ImportError as exc:
        raise missing_extra("watching the Claude Agent SDK", "claude-agent-sdk", exc) from exc
    watcher = ClaudeWatcher(guard, of_run)

    async def hook(payload: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        session = watcher.tell(payload)
        if session is not None:
            await guard.answered(session.run)
        return watcher.reply(payload, session)

    return {name: [HookMatcher(hooks=[hook])] for name in EVENTS}
