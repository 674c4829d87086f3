"""What a run really was (Truth), the made-up world that runs are drawn from, and the self-check.

A step is a NamedTuple (kind, tool, arguments, text, is_error, said, actor). Kinds, with the product's StepView words:

- "observe": text that arrived (actor user or environment). The task's own text, where it stands among the events, is
  the first observe step; where the task stands only beside the events, there is none. System prompts are no steps.
- "say": speech of the agent without a call (tool "respond" in StepView); `text` is what it said.
- "call": one call with its result in `text` ("" where none was recorded); `said` is the agent's own text beside the
  call (of parallel calls on the first only). `arguments` is the object of arguments; None where there are none; where the
  format holds them as a bare string they are {"": that string}.

A thought in an event of its own right before its call is `said` of that call: a reader may as well make a record of it.
`is_error` is True or False where the format itself says whether the call failed (a flag, a status, another field), and
None where it does not. Where a format holds a result as an object, `text` is its JSON with sorted keys: compare it as a
value. Outcome is success, failure or unknown (no verdict, or the machinery broke); it is never in a step.
Standard library only; everything follows from (seed, runs).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple


class Step(NamedTuple):
    kind: str
    tool: str
    arguments: dict | None
    text: str
    is_error: bool | None = None
    said: str = ""
    actor: str = "agent"


@dataclass
class Truth:
    """run: the run's id as the files have it, or the file's stem. file: where its events are, below the folder."""

    run: str
    file: str
    task: str
    outcome: str
    steps: list[Step]
    task_id: str = ""


@dataclass
class Format:
    """hints: (words, path) pairs that a user could give in a minute."""

    name: str
    group: str
    write: Callable[[Path, int, int], list[Truth]]
    hints: tuple[tuple[str, str], ...]


FORMATS: dict[str, Format] = {}


def unseen(group: str, *hints: tuple[str, str]) -> Callable:
    """Registers a writer under its own name."""

    def register(write: Callable[[Path, int, int], list[Truth]]) -> Callable:
        FORMATS[write.__name__] = Format(write.__name__, group, write, hints)
        return write

    return register


@dataclass
class Call:
    tool: str
    args: dict
    result: str
    error: bool


@dataclass
class Turn:
    """who: user or agent. An agent's turn with calls has its thought in `text` (may be empty)."""

    who: str
    text: str
    calls: list[Call] = field(default_factory=list)


@dataclass
class Episode:
    number: int
    task_id: str
    task: str
    system: str
    turns: list[Turn]
    outcome: str
    score: float  # from 0 to 1, at least 0.7 exactly for success

    @property
    def ok(self) -> bool:
        return self.outcome == "success"


def steps_of(episode: Episode, *, task: bool = True, thoughts: bool = True, errors: bool = True) -> list[Step]:
    """The usual truth. task: does it stand among the events? errors: does the format say which calls failed?"""
    out = [Step("observe", "", None, episode.task, actor="user")] if task else []
    for turn in episode.turns:
        if turn.who == "user":
            out.append(Step("observe", "", None, turn.text, actor="user"))
        elif not turn.calls:
            out.append(Step("say", "respond", None, turn.text))
        for number, call in enumerate(turn.calls):
            said = turn.text if thoughts and number == 0 else ""
            out.append(Step("call", call.tool, call.args, call.result, call.error if errors else None, said))
    return out


# The world: domain -> (language hints aside) system, tasks, thoughts, says, replies, good and bad ends, tools.
# A tool is (name, arguments, results, errors). {o}rder and other one-letter slots keep their value within an episode,
# slots that begin with x are drawn anew each time. An argument that begins with "int:" etc. is of that type.
WORLD: dict[str, dict[str, Any]] = {
    "retail": {
        "system": "You help customers of an online shop. Confirm before you change an order.",
        "tasks": ["I want to return the {p} from order {o}, it arrived broken.", "Where is my order {o}? It should have come on {d}.", "Please change the address of {o} to {xnum} {n} Street, {c}."],
        "thoughts": ["First I look up order {o}.", "The customer seems to be {n}; let me verify that.", "I need the price of the {p} before I go on.", "The policy allows this within {xnum} days."],
        "says": ["Could you tell me your e-mail address, please?", "I can refund {xamt} dollars to your card. Shall I go ahead?", "The {p} is out of stock in {c}; would another colour do?"],
        "replies": ["Yes, it is {e}.", "Yes please, go ahead.", "No, I would rather have my {xamt} dollars back.", "I am not sure, I am {n} from {c}."],
        "good": ["Done: your refund of {xamt} dollars for {o} is on its way."], "bad": ["I am sorry, I could not change order {o} today.", "Please call our hotline about {o}."],
        "tools": [("find_customer", {"email": "{e}"}, ['{{"customer": "{xid}", "name": "{n}", "city": "{c}"}}'], ["no customer with e-mail {e}"]),
                  ("order_details", {"order": "{o}", "with_items": "bool:1"}, ['{{"order": "{o}", "state": "{xst}", "items": [{{"sku": "{xid}", "name": "{p}", "price": {xamt}}}]}}'], ["order {xid} does not exist", "upstream timed out after {xnum} ms"]),
                  ("refund", {"order": "{o}", "amount": "float:{xamt}", "reason": "damaged {p}"}, ["refund {xid} booked: {xamt} USD"], ["refund refused: amount above the paid price of {xamt}"]),
                  ("set_address", {"order": "{o}", "address": {"street": "{xnum} {n} Street", "city": "{c}"}}, ["address of {o} saved as version {xnum}"], ["order {o} has left the warehouse already"])],
    },
    "coding": {
        "system": "You are a software engineer. Fix the issue in the repository.",
        "tasks": ["parse_{w}() in src/{w}.py drops the last line of files without a newline. Please fix it.", "Calling {w}.load() twice leaks file handles; the test test_{w}_{xnum} shows it.", "The --{w} flag is ignored when a config file is present."],
        "thoughts": ["Let me see how {w} is used.", "The bug is probably around line {xnum} of src/{w}.py.", "I will run the tests of {w} before I edit anything.", "This edit should handle the empty case too."],
        "says": ["The loop in {w} stops one element early.", "I have a patch of {xnum} lines ready."], "replies": ["Go on, but keep the public names.", "Please add a test as well for {w}."],
        "good": ["Fixed {w}: all {xnum} tests pass now."], "bad": ["I could not make test_{w} pass within the budget.", "I stopped: the build of {w} is broken."],
        "tools": [("read_lines", {"path": "src/{w}.py", "start": "int:{xnum}", "count": "int:40"}, ["{xnum}: def parse_{w}(text):\n{xnum}:     for line in text.split('\\n')[:-{xnum}]:\n{xnum}:         yield {xw}(line)"], ["FileNotFoundError: src/{xw}.py"]),
                  ("run_tests", {"selector": "tests/test_{w}.py", "options": ["-q", "--maxfail={xnum}"]}, ["{xnum} passed in {xamt}s"], ["FAILED tests/test_{w}.py::test_{xw} - AssertionError: {xnum} != {xnum}\n1 failed, {xnum} passed"]),
                  ("replace_text", {"path": "src/{w}.py", "old": "[:-{xnum}]", "new": "if line: # {xw}"}, ["1 replacement in src/{w}.py (line {xnum})"], ["old text occurs {xnum} times; be more specific about {xw}"]),
                  ("grep", {"pattern": "{w}\\(", "glob": "**/*.py"}, ["src/{w}.py:{xnum}: parse_{w}(text)\nsrc/{xw}.py:{xnum}: {w}.load({xw})"], ["grep: invalid regex near {xw}"])],
    },
    "browser": {
        "system": "You control a web browser. Finish the user's task on the given site.",
        "tasks": ["Find the cheapest {p} in {c} and tell me its price.", "Book a table for {xnum} at a restaurant in {c} on {d}.", "Subscribe {e} to the newsletter of {w}.example."],
        "thoughts": ["The search box should be at the top of {w}.example.", "A cookie banner hides the list; I dismiss it.", "There are {xnum} results, I sort them by price.", "The button says {xw}; that should lead on."],
        "says": ["I see {xnum} offers for {p}.", "Which of the {xnum} branches in {c} do you mean?"], "replies": ["The one near the station of {c}.", "Any, as long as it is below {xamt}."],
        "good": ["The cheapest {p} costs {xamt} euros."], "bad": ["The site asks for a login, so I give up at {w}.example.", "I could not find the page for {c}."],
        "tools": [("open_url", {"url": "https://{w}.example/{xw}?page={xnum}"}, ["Title: {w} - {p} in {c} ({xnum} links)"], ["net::ERR_CONNECTION_RESET at https://{w}.example/{xw}"]),
                  ("press", {"element": "#{xw}-{xnum}", "button": "left"}, ["pressed; page changed to /{xw}/{xnum}"], ["element #{xw} is not visible"]),
                  ("fill_in", {"element": "input[name={xw}]", "value": "{p} {c}", "submit": "bool:1"}, ["filled; {xnum} suggestions: {xw}, {xw}"], ["field {xw} is read-only"]),
                  ("scroll", {"dy": "int:{xnum}"}, ["now showing entries {xnum} to {xnum}: {p}, {xw}"], ["already at the end of {xw}"])],
    },
    "ops": {
        "system": "You are the on-call agent. Resolve the alert; restart nothing without a reason.",
        "tasks": ["Alert: disk of {h} is {xpct} % full.", "Alert: latency of service {w} on {h} above {xnum} ms since {d}.", "Alert: job nightly-{w} failed with exit code {xnum}."],
        "thoughts": ["Check the state of {w} on {h} first.", "The log shows {xnum} retries, so the queue may be stuck.", "Old archives below /var/{w} can go.", "A restart of {w} is the last resort."],
        "says": ["{w} is degraded since {d}.", "I propose to roll {w} back to build {xnum}."], "replies": ["Approved by {n}.", "Wait until {d}, then go on."],
        "good": ["Alert closed: {w} answers within {xnum} ms again."], "bad": ["Escalated {w} to {n}: the cause is not clear.", "No change after the restart of {h}."],
        "tools": [("shell", {"host": "{h}", "command": "systemctl status {w}"}, ["{w}.service - active (running) since {d}; pid {xnum}"], ["ssh: connect to host {h} port 22: Connection timed out after {xnum}s"]),
                  ("metrics", {"query": "rate({w}_requests[{xnum}m])", "host": "{h}"}, ["{h} {w}: p50 {xnum} p99 {xnum} errors {xamt}"], ["query {xid} failed: series {w} not found"]),
                  ("tail_log", {"unit": "{w}", "lines": "int:{xnum}"}, ["{d} {w}[{xnum}]: retry {xnum} of job {xid}\n{d} {w}[{xnum}]: queue depth {xnum}"], ["permission denied: /var/log/{w}.{xnum}.log"]),
                  ("restart_unit", {"unit": "{w}", "hosts": ["{h}", "{h}-b"], "force": "bool:0"}, ["{w} restarted on {h} in {xamt} s"], ["{w} refused to stop (pid {xnum})"])],
    },
    "data": {
        "system": "You answer questions about the warehouse with SQL and charts.",
        "tasks": ["How many {p}s did we sell in {c} before {d}?", "Which region lost most customers since {d}?", "Compare revenue of {p} and {w} per month."],
        "thoughts": ["I need the schema of {w}_sales.", "The join on customer_id may double rows of {c}.", "Let me count the {xnum} nulls first.", "The total should be near {xamt}."],
        "says": ["By region or by shop?", "The table {w}_sales has {xnum} rows."], "replies": ["By region, please.", "Only {c} and {xw}."],
        "good": ["The answer is {xamt} ({xnum} rows of {w}_sales)."], "bad": ["I cannot say: the table for {c} is empty.", "My figures for {w} contradict each other."],
        "tools": [("sql", {"statement": "SELECT region, sum(amount) FROM {w}_sales WHERE day < '{d}' GROUP BY 1 LIMIT {xnum}"}, ['[{{"region": "{c}", "sum": {xamt}}}, {{"region": "{xw}", "sum": {xamt}}}]'], ['ERROR: relation "{xw}_sales" does not exist at character {xnum}']),
                  ("describe_table", {"table": "{w}_sales", "sample": "int:{xnum}"}, ['{{"columns": ["day", "region", "amount", "{xw}"], "rows": {xnum}}}'], ["table {xw} is not in the catalogue"]),
                  ("plot", {"kind": "bar", "x": "region", "y": ["amount", "{xw}"]}, ["chart {xid} saved ({xnum} x {xnum})"], ["cannot plot column {xw} of type text"]),
                  ("python", {"code": "df = load('{w}_sales')\nprint(df.{xw}.mean())"}, ["{xamt}"], ["KeyError: '{xw}' (line {xnum})"])],
    },
    "travel_zh": {
        "system": "你是旅行助理。修改预订之前请先确认。",
        "tasks": ["请帮我查一下{d}从{c}出发的航班，订单号{o}。", "我想取消订单{o}，退款到原来的卡。", "帮我在{c}订一家{xnum}元以下的酒店。"],
        "thoughts": ["先查询订单{o}的信息。", "需要确认乘客{n}的身份。", "价格是{xamt}元，看看有没有更便宜的。", "按照规定要提前{xnum}天。"],
        "says": ["请问您的邮箱是什么？", "退款金额是{xamt}元，可以吗？", "{c}有{xnum}家酒店符合要求，您想要哪一家？"], "replies": ["邮箱是{e}。", "可以，请继续。", "离车站近一点的，谢谢。"],
        "good": ["已经办好了，订单{o}退款{xamt}元。"], "bad": ["很抱歉，订单{o}今天无法修改。", "请联系人工客服，编号{xnum}。"],
        "tools": [("query_booking", {"订单": "{o}", "乘客": "{n}"}, ['{{"订单": "{o}", "状态": "已出票", "金额": {xamt}}}'], ["错误：找不到订单{xid}"]),
                  ("search_flights", {"from": "{c}", "date": "{d}", "max_price": "int:{xnum}"}, ['[{{"航班": "CA{xnum}", "价格": {xamt}}}, {{"航班": "MU{xnum}", "价格": {xamt}}}]'], ["错误：日期{d}无效"]),
                  ("cancel_booking", {"订单": "{o}", "refund": "bool:1"}, ["订单{o}已取消，退款编号{xid}"], ["错误：超过{xnum}天不能取消"]),
                  ("hotel_search", {"city": "{c}", "stars": ["3", "4"], "keyword": "{xw}"}, ["找到{xnum}家酒店：{xw}大酒店，{xw}宾馆"], ["错误：服务暂时不可用（{xnum}）"])],
    },
    "telco_de": {
        "system": "Du bist der Kundendienst eines Telefonanbieters. Prüfe die Kundennummer.",
        "tasks": ["Mein Anschluss in {c} ist seit {d} gestört, Kundennummer {o}.", "Ich möchte den Vertrag {o} kündigen.", "Warum ist meine Rechnung über {xamt} Euro so hoch?"],
        "thoughts": ["Zuerst prüfe ich die Störung in {c}.", "Für {n} gibt es offenbar zwei Verträge.", "Die Gutschrift darf höchstens {xamt} Euro betragen.", "Der Router könnte veraltet sein (Version {xnum})."],
        "says": ["Wie lautet bitte Ihre E-Mail-Adresse?", "Ich kann Ihnen {xamt} Euro gutschreiben. Einverstanden?", "Leuchtet am Gerät die Lampe Nummer {xnum}?"], "replies": ["Ja, sie lautet {e}.", "Nein, das genügt mir nicht, ich warte seit {xnum} Tagen.", "Einverstanden, danke schön."],
        "good": ["Erledigt: die Gutschrift über {xamt} Euro ist gebucht."], "bad": ["Leider kann ich den Vertrag {o} nicht ändern.", "Ich verbinde Sie mit dem Kollegen {n}."],
        "tools": [("kunde_suchen", {"nummer": "{o}", "ort": "{c}"}, ['{{"name": "{n}", "tarif": "Flat {xnum}", "offen": {xamt}}}'], ["Fehler: Kundennummer {xid} unbekannt"]),
                  ("leitung_messen", {"anschluss": "{xid}", "sekunden": "int:{xnum}"}, ["Messung: {xnum} Mbit/s, Dämpfung {xamt} dB"], ["Fehler: Gerät antwortet nicht (Code {xnum})"]),
                  ("gutschrift", {"nummer": "{o}", "betrag": "float:{xamt}", "grund": "Störung in {c}"}, ["Gutschrift {xid} angelegt"], ["Fehler: Betrag überschreitet {xamt} Euro"]),
                  ("techniker", {"tag": "{d}", "fenster": {"von": "int:8", "bis": "int:12"}, "notiz": "{xw}"}, ["Termin {xid} am {d} bestätigt"], ["Fehler: kein Termin am {d} frei"])],
    },
    "hr_es": {
        "system": "Eres el asistente de recursos humanos. No cambies nada sin permiso.",
        "tasks": ["¿Cuántos días de vacaciones le quedan a {n}?", "Quiero pedir vacaciones a partir del {d}.", "Cambia la oficina de {n} a {c}, expediente {o}."],
        "thoughts": ["Primero busco el expediente de {n}.", "El saldo debería ser de {xnum} días.", "Hace falta la aprobación de la jefa de {c}.", "Compruebo el calendario de {d}."],
        "says": ["¿Me confirma su correo, por favor?", "Quedan {xnum} días, ¿los solicito?"], "replies": ["Sí, es {e}.", "De acuerdo, adelante.", "Mejor solo {xnum} días."],
        "good": ["Listo: la solicitud {o} está aprobada."], "bad": ["Lo siento, no pude cambiar el expediente {o}.", "Falta la firma de {n}."],
        "tools": [("buscar_empleado", {"nombre": "{n}", "oficina": "{c}"}, ['{{"expediente": "{o}", "días": {xnum}, "correo": "{e}"}}'], ["no existe ningún empleado {xw}"]),
                  ("solicitar_vacaciones", {"expediente": "{o}", "desde": "{d}", "días": "int:{xnum}"}, ["solicitud {xid} registrada"], ["saldo insuficiente: quedan {xnum} días"]),
                  ("ver_calendario", {"mes": "{d}", "equipos": ["{xw}", "{xw}"]}, ["ausentes el {d}: {xnum} de {xnum}"], ["calendario {xid} bloqueado"]),
                  ("enviar_correo", {"a": "{e}", "asunto": "Expediente {o}", "texto": "Hola {n}:\nsu saldo es {xnum}."}, ["enviado con el número {xid}"], ["el servidor rechazó a {e} ({xnum})"])],
    },
    "research": {
        "system": "Answer the question with evidence from the documents.",
        "tasks": ["In which year was the {w} bridge in {c} opened?", "Who wrote the first report on {p} safety in {c}?", "Which of {n} and {xw} published more papers before {d}?"],
        "thoughts": ["I should search for {w} and {c} together.", "The second page may hold the year.", "Source {xnum} contradicts source {xnum}; I check a third.", "Now I can work out the answer from {xid}."],
        "says": ["I found {xnum} documents on {w}.", "Two sources differ by {xnum} years."], "replies": ["Trust the newer one.", "Please name the source, too."],
        "good": ["It was in {xnum}, according to {xid}."], "bad": ["I found no document that says so about {w}.", "My best guess is {xnum}, without a source."],
        "tools": [("search_docs", {"q": "{w} {c} {xw}", "top": "int:{xnum}"}, ["1. {xw} of {c} [{xid}]\n2. History of {w} [{xid}]\n3. {n}, a life [{xid}]"], ["index unavailable, try again in {xnum} s"]),
                  ("open_doc", {"doc": "{xid}", "page": "int:{xnum}"}, ["(page {xnum}) The {w} bridge was built by {n} for {xamt} crowns near {c}."], ["document {xid} has no page {xnum}"]),
                  ("calculate", {"expression": "{xnum} - {xnum} * {xamt}"}, ["= {xamt}"], ["syntax error at position {xnum}"]),
                  ("note", {"text": "{n} worked in {c}; see {xid}", "tags": ["{xw}"]}, ["noted as {xid}"], ["notebook full ({xnum} notes)"])],
    },
}  # fmt: skip
_SLOTS: dict[str, list[str]] = {
    "p": ["kettle", "desk lamp", "bicycle helmet", "rain coat", "coffee grinder", "keyboard", "tent"],
    "c": ["Ghent", "Porto", "Aarhus", "Lyon", "Graz", "Tampere", "Bilbao", "Leeds"],
    "n": ["Ines Faber", "Tom Okafor", "Mara Lindt", "Yusuf Kaya", "Lena Sorel", "Piet Hovland"],
    "w": ["ledger", "harbor", "falcon", "cedar", "orbit", "velvet", "quartz", "meadow", "lantern", "saffron"],
    "h": ["edge-03", "db-north-1", "worker-17", "cache-b2"],
    "st": ["shipped", "delivered", "packed", "on hold"],
}


class _Slots(dict):
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def __missing__(self, key: str) -> str:
        rng, name = self.rng, key.removeprefix("x")
        if name in _SLOTS:
            value = rng.choice(_SLOTS[name])
        elif name == "num":
            value = str(rng.randint(2, 999))
        elif name == "pct":
            value = str(rng.randint(82, 99))
        elif name == "amt":
            value = f"{rng.randint(3, 900)}.{rng.randint(10, 98)}1"
        elif name == "d":
            value = f"20{rng.randint(21, 26)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        elif name == "e":
            value = f"{rng.choice(_SLOTS['w'])}{rng.randint(10, 99)}@mail.example"
        else:  # o, id
            value = "".join(rng.choices("ABCDEFGHKLMNPRSTUVWX", k=2)) + str(rng.randint(10_000, 99_999))
        if key == name:
            self[key] = value
        return value


def _filled(spec: Any, slots: _Slots) -> Any:
    if isinstance(spec, dict):
        return {key: _filled(value, slots) for key, value in spec.items()}
    if isinstance(spec, list):
        return [_filled(value, slots) for value in spec]
    kind, _, rest = spec.partition(":")
    if kind in ("int", "float", "bool") and rest:
        value = rest.format_map(slots)
        return {"int": int, "float": float, "bool": lambda text: text == "1"}[kind](value)
    return spec.format_map(slots)


def episodes(seed: int, runs: int, domain: str, *, dialogue: bool = False, parallel: bool = False,
             unknown: int = 0, failures: float = 0.4) -> Iterator[Episode]:  # fmt: skip
    """Runs of 4 to 15 agent steps. dialogue: the user answers in between. parallel: turns of up to three calls.

    unknown: how many end without a verdict. failures: share of the others that failed.
    """
    rng = random.Random(f"{domain}/{seed}")
    outcomes = ["unknown"] * unknown + ["failure"] * round((runs - unknown) * failures)
    outcomes += ["success"] * (runs - len(outcomes))
    rng.shuffle(outcomes)
    world = WORLD[domain]
    for number, outcome in enumerate(outcomes):
        slots = _Slots(rng)

        def text(key: str, slots: _Slots = slots) -> str:
            return rng.choice(world[key]).format_map(slots)

        turns: list[Turn] = []
        left = rng.randint(3 + (outcome == "unknown"), 9 if outcome == "success" else 14)
        task = text("tasks")
        last: Call | None = None
        while left > 0:
            if dialogue and turns and rng.random() < 0.3:
                turns += [Turn("agent", text("says")), Turn("user", text("replies"))]
                left -= 1
                continue
            count = min(left, rng.choice([1, 1, 2, 3])) if parallel else 1
            calls: list[Call] = []
            for _ in range(count):
                name, args, results, errors = rng.choice(world["tools"])
                bad = rng.random() < (0.12 if outcome == "success" else 0.4)
                call = Call(name, _filled(args, slots), rng.choice(errors if bad else results).format_map(slots), bad)
                if outcome == "failure" and last and rng.random() < 0.25:  # the same again
                    call = Call(last.tool, last.args, last.result, last.error)
                calls.append(call)
                last = call
            turns.append(Turn("agent", text("thoughts") if rng.random() < 0.85 else "", calls))
            left -= count
        if outcome != "unknown":
            turns.append(Turn("agent", text("good" if outcome == "success" else "bad")))
        score = rng.uniform(0.7, 1.0) if outcome == "success" else rng.uniform(0.0, 0.68)
        yield Episode(number, f"{domain[:4]}-{rng.randint(100, 999)}-{number}", task, world["system"], turns, outcome, round(score, 3))  # fmt: skip


class Clock:
    """Times that go forward. Deterministic."""

    def __init__(self, seed: object, start: str = "2026-03-02T08:00:00") -> None:
        self.rng = random.Random(f"clock/{seed}")
        self.now = datetime.fromisoformat(start).replace(tzinfo=UTC) + timedelta(seconds=self.rng.randint(0, 200_000))

    def tick(self, most: float = 9.0) -> datetime:
        self.now += timedelta(milliseconds=self.rng.randint(20, int(most * 1000)))
        return self.now

    def iso(self) -> str:
        return self.tick().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def ms(self) -> int:
        return int(self.tick().timestamp() * 1000)


def hexes(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("0123456789abcdef", k=length))


def put(path: Path, value: Any, *, indent: int | None = None, ascii_only: bool = False) -> None:
    """Text as it is; anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(value, str):
        value = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    path.write_text(value, encoding="utf-8", newline="")


def put_lines(path: Path, values: Iterable[Any], *, ascii_only: bool = False) -> None:
    put(path, "".join(json.dumps(value, ensure_ascii=ascii_only) + "\n" for value in values))


def as_value(text: str) -> Any:
    """The text's JSON value where it is an object or a list, else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict | list) else text


def sorted_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


# Self-check.


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield str(key)
            yield from _strings(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _strings(entry)
    elif isinstance(value, str):
        yield value
        with_in = as_value(value)
        if not isinstance(with_in, str):
            yield from _strings(with_in)
        elif value[:1] == '"':
            yield from _strings(as_value(json.loads(value)) if value[-1:] == '"' else "")
    else:
        yield json.dumps(value)


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


def _haystack(path: Path) -> str:
    raw = path.read_text(encoding="utf-8")
    parts = [raw, raw.replace("\\n", " "), re.sub(r"(?m)^\S+ [A-Z]+ +\[agent:\w+\+\] ", "", raw)]
    for piece in [raw] if path.suffix == ".json" else raw.splitlines():
        try:
            parts += _strings(json.loads(piece))
        except ValueError:
            parts += [json.dumps(piece.replace('""', '"'))]
    return "\n".join(_bare(part) for part in parts)


def check(name: str, folder: Path, seed: int = 1, runs: int = 12) -> list[str]:
    """What is wrong with a format: texts that its files lack, no determinism, odd lengths. Writes below the folder."""
    faults: list[str] = []
    truths = FORMATS[name].write(folder / "a", seed, runs)
    if truths != FORMATS[name].write(folder / "b", seed, runs):
        faults.append("the truth differs from call to call")
    files = {path.relative_to(folder / "a"): path.read_bytes() for path in sorted((folder / "a").rglob("*")) if path.is_file()}  # fmt: skip
    again = {path.relative_to(folder / "b"): path.read_bytes() for path in sorted((folder / "b").rglob("*")) if path.is_file()}  # fmt: skip
    if files != again:
        faults.append("the files differ from call to call")
    if len(truths) != runs or len({truth.run for truth in truths}) != runs:
        faults.append(f"{len(truths)} runs, not {runs}, or a name twice")
    stacks: dict[str, str] = {}
    everything = "\n".join(_haystack(folder / "a" / path) for path in files) + _bare(" ".join(map(str, files)))
    for truth in truths:
        stack = stacks.setdefault(truth.file, _haystack(folder / "a" / truth.file))
        acts = sum(step.kind != "observe" for step in truth.steps)
        if not 4 <= acts <= 16:
            faults.append(f"{truth.run}: {acts} steps")
        for needle in (truth.task, truth.task_id, truth.run):
            if _bare(needle) not in everything:
                faults.append(f"{truth.run}: nowhere {needle!r}")
        for step in truth.steps:
            needles = [*_strings(as_value(step.text)), step.said, "" if step.tool == "respond" else step.tool]
            needles += _strings(step.arguments or {})
            faults += [f"{truth.run}: lacks {needle!r}" for needle in needles if _bare(needle) not in stack]
    return faults
