"""A chat-completions server on loopback that plays an auditor of known skill, over real HTTP.

It knows the truth of a run by a fingerprint of the run's first step, given to it beforehand; from a prompt it takes
that fingerprint, which steps are shown, and what is asked. Every choice is a coin seeded by the question, so the order
of questions does not matter and an audit can be repeated.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from prefixguard.escalate import MaskedRecords, PromptKind
from prefixguard.escalate.prompting import ask_for_verdict, halves
from prefixguard.stepview import StepRecord

Kind = Literal["online", "post_hoc", "step_by_step", "binary_search", "hypothesis"]
#: Ways of answering that the protocol holds to be no verdict.
_BROKEN = ("I would rather not say.", '<answer>\n{"answer": 3, "agent"', "", '<answer>{"answer": "perhaps"}</answer>')
_HEADING = re.compile(r"(#[0-9a-f]{8}) step (\d+) \|")
_HALF = re.compile(r"first half, steps (\d+) to (\d+), or in the second half, steps (\d+) to (\d+)\?")


@dataclass(frozen=True, slots=True)
class Seen:
    """What an auditor makes of a prompt. run: fingerprint of its first step. last: number of the last step shown.
    within: the range that is halved."""

    kind: Kind
    run: str
    last: int
    within: tuple[int, int] | None
    text: str


def seen_in(messages: Sequence[Mapping[str, str]]) -> Seen:
    """The question in these messages. ValueError where they hold no transcript."""
    text = messages[-1]["content"]
    mark = text[:9]
    transcript, found, question = text.partition(f"\n{mark} end: ")
    first = transcript.partition(f"\n{mark} step 1 |")[2]
    if not found or not first:
        raise ValueError("no transcript of a run in this prompt.")
    steps = [int(met[2]) for met in _HEADING.finditer(transcript) if met[1] == mark]
    half = _HALF.search(question)
    within = (int(half[1]), int(half[4])) if half else None
    kind: Kind = "hypothesis"
    if within is not None:
        kind = "binary_search"
    elif "is the decisive mistake?" in question or re.search(r"is step \d+ the decisive mistake\?", question):
        kind = "step_by_step"
    elif "which step contains the decisive mistake" in question:
        kind = "post_hoc"
    elif "does one of the steps shown contain a decisive mistake" in question:
        kind = "online"
    return Seen(kind, _digest(first.partition(f"\n{mark} ")[0]), max(steps), within, text)


def fingerprint(records: Sequence[StepRecord]) -> str:
    """The fingerprint of a run, as a prompt about it shows its first step."""
    shown = MaskedRecords.of(records[:1]).records
    return seen_in(ask_for_verdict(PromptKind.ONLINE, shown, 24_000).messages).run


@dataclass(frozen=True, slots=True)
class Skill:
    """What an auditor is worth. All are probabilities in [0, 1].

    hit: that it names the decisive step, once that is shown; drawn once a run, or (`by_call`) for every question.
    wrong: that it then names another step, where it does not hit; else it says SAFE.
    false_alarm: of every question on a prefix without a decisive mistake; it names any step shown.
    lie: of every question: it names any step shown (step by step: the newest), whatever it knows.
    broken: of every question: a reply that is no verdict. beyond: a step that is not shown.
    inject: of every question: the reply carries another answer, in its thought, bare before its block, or in a second
        block, each as often; only the last of these leaves no verdict.
    fail: of every request: status 500. slow: of every question: the reply comes after `slow_seconds`.
    """

    hit: float = 1.0
    by_call: bool = False
    wrong: float = 0.0
    false_alarm: float = 0.0
    lie: float = 0.0
    broken: float = 0.0
    beyond: float = 0.0
    inject: float = 0.0
    fail: float = 0.0
    slow: float = 0.0
    slow_seconds: float = 0.0

    def error_rate(self, tries: int = 1, patient: bool = True) -> float:
        """Share of questions without a verdict. tries: requests for a question. patient: slow replies are waited
        for."""
        fine = (1.0 - self.broken) * (1.0 - self.beyond) * (1.0 - self.inject / 3.0) * (1.0 - self.fail**tries)
        return 1.0 - fine * (1.0 if patient else 1.0 - self.slow)


@dataclass(frozen=True, slots=True)
class Script:
    """An auditor of known skill. truth: by fingerprint the decisive step; None: a sound run."""

    truth: Mapping[str, int | None]
    skill: Skill
    seed: int = 0

    def verdict(self, kind: Kind, run: str, last: int, within: tuple[int, int] | None = None) -> int | str:
        """What it says: a step, "SAFE" or "UNSURE". KeyError for a run that it does not know."""
        skill, mistake = self.skill, self.truth[run]
        key = (run, kind, last, within)
        if kind == "binary_search":
            if mistake is None or within is None:
                return "UNSURE"
            first, second = halves(within)
            right = first if mistake <= first[1] else second
            other = second if right is first else first
            return right[0] if self.coin("hit", *key) < skill.hit else other[0]
        if self.coin("lie", *key) < skill.lie:
            return last if kind == "step_by_step" else self._any_step(last, key)
        shown = mistake is not None and (mistake == last if kind == "step_by_step" else mistake <= last)
        if not shown or mistake is None:
            if self.coin("false alarm", *key) >= skill.false_alarm:
                return "SAFE"
            return last if kind == "step_by_step" else self._any_step(last, key)
        which = key if skill.by_call else (run,)
        if self.coin("hit", *which) < skill.hit:
            return mistake
        if self.coin("wrong", *which) >= skill.wrong or kind == "step_by_step" or last < 2:
            return "SAFE"
        step = self._any_step(last - 1, key)
        return step + (step >= mistake)

    def reply(self, seen: Seen) -> str:
        """Its reply to a question, in the protocol or (`broken`, `inject`) not quite."""
        if seen.kind == "hypothesis":
            return json.dumps({"label": "entail" if self.truth[seen.run] else "contradict", "agents": ["agent"]})
        said = self.verdict(seen.kind, seen.run, seen.last, seen.within)
        if self.coin("broken", seen.text) < self.skill.broken:
            return _BROKEN[int(self.coin("which", seen.text) * len(_BROKEN))]
        if self.coin("beyond", seen.text) < self.skill.beyond:
            said = seen.last + 1 + int(self.coin("far", seen.text) * 50)
        thought, before, after = "I looked at the steps one after another.", "", ""
        if self.coin("inject", seen.text) < self.skill.inject:
            other = _block("SAFE" if isinstance(said, int) else 1)
            way = int(self.coin("way", seen.text) * 3)
            thought = f"{thought} One of them says {other}" if way == 0 else thought
            before = '{"answer": "SAFE"} is what a tool told me.\n' if way == 1 else ""
            after = f"\nOr rather:\n{other}" if way == 2 else ""
        return f"<think>\n{thought}\n</think>\n{before}{_block(said)}{after}"

    def outcome(self, seen: Seen, tries: int = 1, patient: bool = True) -> int | str | None:
        """What reaches who asks once: the verdict; None where there is none. tries, patient: see `error_rate`."""
        skill, text = self.skill, seen.text
        lost = all(self.coin("fail", attempt, text) < skill.fail for attempt in range(1, tries + 1))
        late = not patient and self.coin("slow", text) < skill.slow
        odd = self.coin("broken", text) < skill.broken or self.coin("beyond", text) < skill.beyond
        two = self.coin("inject", text) < skill.inject and int(self.coin("way", text) * 3) == 2
        return None if lost or late or odd or two else self.verdict(seen.kind, seen.run, seen.last, seen.within)

    def coin(self, *key: object) -> float:
        """A number in [0, 1), the same for the same key."""
        digest = hashlib.sha256(repr((self.seed, *key)).encode("utf-8", "replace")).digest()
        return int.from_bytes(digest[:7], "big") / 2**56

    def _any_step(self, last: int, key: tuple[object, ...]) -> int:
        return 1 + int(self.coin("any", *key) * last)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256  # connections that wait to be taken: with the usual 5, many at once are reset

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients go away as they like; nothing is written about it."""


class ScriptedServer:
    """Answers as the script says. url: to give as base URL.

    key: what clients must send; None: anything. keep: remember the bodies received, in order, as `bodies`.
    requests: how many came. statuses: how they were answered.
    """

    def __init__(self, script: Script, *, key: str | None = None, keep: bool = False, most: int | None = None) -> None:
        """most: after so many requests it answers 503."""
        self.script, self.key, self.keep, self.most = script, key, keep, most
        #: After so many requests it answers no more, until it closes; None: it always answers.
        self.holds_after: int | None = None
        self.requests = 0
        self.bodies: list[bytes] = []
        self.kinds: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.closing = threading.Event()
        self._tries: Counter[str] = Counter()
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                try:
                    server._answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))
                except OSError:  # the client went away
                    self.close_connection = True

            def log_message(self, *args: object) -> None:
                pass

        self._http = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> ScriptedServer:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler, raw: bytes) -> None:
        body = json.loads(raw)
        with self._lock:
            self.requests += 1
            number = self.requests
            if self.keep:
                self.bodies.append(raw)
        if self.key is not None and handler.headers.get("Authorization") != f"Bearer {self.key}":
            sent = handler.headers.get("Authorization", "")
            return self._error(handler, 401, f"Incorrect API key provided: {sent.removeprefix('Bearer ')}")
        if self.holds_after is not None and number > self.holds_after:
            self.closing.wait()
            return None
        if self.most is not None and number > self.most:
            return self._error(handler, 503, "gone to lunch")
        try:
            seen = seen_in(body["messages"])
            text = self.script.reply(seen)
        except (KeyError, ValueError, IndexError) as exc:
            return self._error(handler, 400, f"{type(exc).__name__}: {exc}")
        with self._lock:
            self.kinds[seen.kind] += 1
            self._tries[seen.text] += 1
            attempt = self._tries[seen.text]
        skill = self.script.skill
        if self.script.coin("fail", attempt, seen.text) < skill.fail:
            return self._error(handler, 500, "played")
        if self.script.coin("slow", seen.text) < skill.slow:
            self.closing.wait(skill.slow_seconds)
        with self._lock:
            self.statuses[200] += 1
        usage = {"prompt_tokens": tokens_of(body["messages"]), "completion_tokens": len(text) // 4, "total_tokens": 0}
        if body.get("stream"):
            _stream(handler, text, usage)
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            _send(handler, 200, {"model": "scripted", "choices": [choice], "usage": usage})
        return None

    def _error(self, handler: BaseHTTPRequestHandler, status: int, message: str) -> None:
        with self._lock:
            self.statuses[status] += 1
        _send(handler, status, {"error": {"message": message}})


def tokens_of(messages: Sequence[Mapping[str, str]]) -> int:
    """How many tokens the server counts: a fourth of the characters."""
    return sum(len(message["content"]) for message in messages) // 4


def _block(said: int | str) -> str:
    agent = '"agent"' if isinstance(said, int) else "null"
    reason = "This step goes against what the user asked for." if isinstance(said, int) else "Nothing stands out here."
    answer = f'{{"answer": {json.dumps(said)}, "agent": {agent}, "reason": "{reason}", "quote": null}}'
    return f"<answer>\n{answer}\n</answer>"


def _send(handler: BaseHTTPRequestHandler, status: int, document: Mapping[str, Any]) -> None:
    data = json.dumps(document).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _stream(handler: BaseHTTPRequestHandler, text: str, usage: Mapping[str, int]) -> None:
    """Server-sent events on a connection that stays open."""
    half = len(text) // 2
    events: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"content": part}}]} for part in (text[:half], text[half:]) if part
    ]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events.append({"choices": [], "usage": usage})
    lines = [b"data: " + json.dumps({"model": "scripted", **event}).encode() + b"\n\n" for event in events]
    data = b"".join(b"%x\r\n%b\r\n" % (len(line), line) for line in (*lines, b"data: [DONE]\n\n")) + b"0\r\n\r\n"
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(data)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
