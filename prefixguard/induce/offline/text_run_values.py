"""What a log says of its runs: what they are about, and how they ended."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.induce.offline.outcome import judge_values
from prefixguard.induce.offline.run_hints import as_spec, getter_of
from prefixguard.induce.offline.text_draft import Draft
from prefixguard.induce.offline.text_headers import outcomes, task_key, value_of
from prefixguard.induce.offline.text_heads import Lines
from prefixguard.induce.offline.text_lines import Head, heads_of, literal, mask, regex_of, tokens_of
from prefixguard.induce.offline.text_runs import RunPlan
from prefixguard.induce.offline.text_source import TextSource, flat_values
from prefixguard.induce.offline.text_words import is_prose, reads_as_prose
from prefixguard.induce.proposal import Choice, Mapped, Option
from prefixguard.lexicon import Meaning, affinity, polarity
from prefixguard.stepview import Scope


def add_task(
    draft: Draft, source: TextSource, lines: Lines, run: dict[str, Any], text_of: str, hints: Mapping[str, str]
) -> None:
    plan = draft.plan
    if "id" in hints:
        run["id"] = as_spec(hints["id"], "id")
    titles = [title for title in plan.groups.get("title", ()) if title]
    asked = any(reads_as_prose(title) for title in titles[:50]) or any(len(t.split()) >= 5 for t in titles[:50])
    title: Any = {"strip": "$.title"}
    if titles:
        again = _repeated_tail(titles)
        if again:
            title = {"strip": {"re": rf"^(.*?)(?:{literal(again)}.*)?$", "of": "$.title"}}
            draft.notes.append(f"What follows {again!r} in the line of a run tells of earlier attempts: cut.")
    if source.root:
        _member_task(draft, source, run)
        if source.root == "$" and "task" not in run and (stated := _stated_task(draft, lines)):
            run["task"] = {"strip": {"re": stated, "of": text_of}}
    elif titles:
        run["task"] = title
        if asked:
            run["preamble"] = title
            draft.mapped.append(Mapped("$.title", "preamble", len(titles) / len(plan.spans), 0.8, "the question"))
        draft.mapped.append(Mapped("$.title", "task", len(titles) / len(plan.spans), 0.8, "the line a run begins with"))
    else:
        stated = _headed_task(draft, lines) or _stated_task(draft, lines)
        key = task_key(lines.headers) if not plan.head else ""
        if key:
            run["task"] = {"strip": value_of(key, text_of)}
            draft.mapped.append(Mapped(f"{key}:", "task", 1.0, 0.85, "a key of the block above the log"))
        elif stated:
            # No preamble: a run that is still going on has no whole text; the line is seen where it stands.
            run["task"] = {"strip": {"re": stated, "of": text_of}}
        elif "number" in plan.groups:
            run["task"] = "$.number"
            draft.mapped.append(Mapped("$.number", "task", 1.0, 0.5, "the number of the run"))
        elif not plan.head:
            run["task"] = {"file": "stem"}
    if "task" in hints:
        run["task"] = as_spec(hints["task"], "task")


def _repeated_tail(titles: Sequence[str]) -> str:
    """What follows a title where others are that title and more."""
    known = set(titles)
    rests: Counter[str] = Counter()
    for title in sorted(known):
        if len(title) < 20:
            continue
        for other in sorted(known):
            if other is not title and other.startswith(title) and len(other) > len(title) + 12:
                rests[other[len(title) :].strip()[:40]] += 1
    if not rests:
        return ""
    rest, n = rests.most_common(1)[0]
    return rest.rsplit(" ", 1)[0] if n >= 3 else ""


_TASK_LINE = re.compile(
    r"(?im)^([^a-z\n]{0,40}(?:task|question|goal|instruction|objective|problem|query|intent)\w{0,4}"
    r"[^\w\n:>|=]{0,4}[:>|=]+[ \t]*)(\S.*)$"
)


def _stated_task(draft: Draft, lines: Lines) -> str:
    """A line such as `Task: ...` that stands in every run, and differs; times before it may differ too."""
    spans = draft.plan.spans
    labels: Counter[str] = Counter()
    values: dict[str, set[str]] = {}
    regexes: dict[str, str] = {}
    for span in spans:
        stop = min(span.stop, max(span.first, span.start) + 12)
        seen = set()
        for match in _TASK_LINE.finditer("\n".join(lines.docs[span.doc][span.start : stop])):
            tokens = tokens_of(match.group(1).rstrip())
            label = mask(tokens)
            if label not in seen:
                seen.add(label)
                labels[label] += 1
                values.setdefault(label, set()).add(match.group(2))
                regexes.setdefault(label, regex_of(tokens))
        for line in lines.docs[span.doc][span.start : stop]:
            for head in heads_of(line):
                label = f"{head.key} "
                if label in seen or head.whole or len(head.words) < 2 or not _asks(head):
                    continue
                size = sum(len(token.text) for token in tokens_of(line[:72])[: len(head.tokens)])
                seen.add(label)
                labels[label] += 1
                values.setdefault(label, set()).add(line[size:].strip())
                regexes.setdefault(label, regex_of(head.tokens))
    for label, n in sorted(labels.items(), key=lambda kv: (-kv[1], kv[0])):
        if n >= 0.9 * len(spans) and (len(values[label]) > 1 or n == 1):
            draft.mapped.append(Mapped(label.strip(), "task", n / len(spans), 0.8, "a line of every run"))
            return rf"(?m)^{regexes[label]}[ \t]*(.*)$"
    return ""


_ASKED = frozenset(["task", "question", "goal", "instruction", "objective", "problem", "query", "intent"])


def _asks(head: Head) -> bool:
    """Does a head, such as `[runner] task:`, end with a word for what is asked?"""
    last = head.tokens[-2] if len(head.tokens) > 1 else head.tokens[-1]
    return head.tokens[-1].text in (":", ">", "|", "=") and last.text.lower().removesuffix("s") in _ASKED


def _headed_task(draft: Draft, lines: Lines) -> str:
    """RE2 of the one line a run that begins as an event does and says what the run is about."""
    for kind, role in sorted(draft.roles.of.items()):
        if role == "task" and 0.9 * len(draft.plan.spans) <= lines.count(kind) <= 1.1 * len(draft.plan.spans):
            head = lines.heads[kind]
            draft.mapped.append(Mapped(head.name, "task", 1.0, 0.8, "once a run, before its first step"))
            return rf"(?m)^{regex_of(head.tokens)}[ \t]*" + (r"\n[ \t]*(.*)$" if head.whole else "(.*)$")
    return ""


def _member_values(source: TextSource) -> dict[str, list[Any]]:
    rows = [flat_values(record, source.root) for record in source.all_records]
    paths = sorted({path for row in rows for path in row} - {source.of})
    return {path: [row.get(path) for row in rows] for path in paths}


def _member_task(draft: Draft, source: TextSource, run: dict[str, Any]) -> None:
    values = _member_values(source)

    def best(meaning: Meaning, prose: bool) -> str | None:
        found = []
        for path, column in values.items():
            texts = [value for value in column if isinstance(value, str) and value]
            if len(texts) < 0.8 * len(column) or is_prose(texts) is not prose:
                continue
            weight = affinity(path, meaning)
            if weight >= 0.4 and len(set(texts)) > 1:
                found.append((weight, -len(path), path))
        return max(found)[2] if found else None

    task = best(Meaning.TASK_ID, False) or best(Meaning.TASK_TEXT, True)
    text = best(Meaning.TASK_TEXT, True)
    if task is not None:
        run["task"] = task
        draft.mapped.append(Mapped(task, "task", 1.0, 0.8, "by its name and by values that repeat"))
    if source.root == "$" and "id" not in run:
        named = _identities(values)
        if named:
            run["id"] = named
            draft.mapped.append(Mapped(named, "id", 1.0, 0.8, "by its name, and another in every record"))
    if text is not None:
        run["preamble"] = text
        draft.mapped.append(Mapped(text, "preamble", 1.0, 0.8, "what the run is asked to do"))


def _identities(values: Mapping[str, list[Any]]) -> str:
    """Path of a plain value that is called an id and differs in every record; empty where there is none."""
    found = []
    for path, column in values.items():
        told = [str(value) for value in column if isinstance(value, str | int) and not isinstance(value, bool)]
        weight = max(affinity(path, Meaning.RUN_ID), 0.45 if path.lower().endswith("id") else 0.0)
        if weight >= 0.4 and len(set(told)) == len(column) and all(0 < len(one) <= 120 for one in told):
            found.append((weight, -len(path), path))
    return max(found)[2] if found else ""


def hidden_members(source: TextSource, run: Mapping[str, Any]) -> list[str]:
    """Everything in the JSON beside a log but the task and what it is asked to do."""
    if not source.root:
        return []
    shown = {str(run.get("preamble", ""))}
    outcome = run.get("outcome", {}).get("of") if isinstance(run.get("outcome"), dict) else None
    keys = sorted({key for record in source.all_records if isinstance(record, dict) for key in record})
    found = []
    for key in keys:
        path = source.root + (f".{key}" if re.fullmatch(r"[A-Za-z_]\w*", key) else f'["{key}"]')
        if path != outcome and not any(one.startswith(path) for one in (*shown, source.of)):
            found.append(path)
    return found


def add_outcome(
    draft: Draft, source: TextSource, lines: Lines, run: dict[str, Any], told_in: str, hints: Mapping[str, str]
) -> None:
    options: list[Option] = []
    plan = draft.plan
    for said in outcomes(lines.headers) if not plan.head else ():
        of = value_of(said.key, told_in)
        value = {"of": of, "type": "string", "success": said.success, "failure": said.failure}
        options.append(Option(f"{said.key}: above the log", value, said.confidence, said.why, said.example))
    if source.root:
        for path, column in _member_values(source).items():
            filled = sum(value is not None for value in column) / max(1, len(column))
            for form in judge_values(column, path)[:1]:
                sure = form.confidence * (0.25 + 0.75 * filled)
                if sure >= 0.3:
                    shown = next((str(value)[:60] for value in column if value is not None), "")
                    options.append(Option(path, form.spec(path), sure, form.why, shown))
    told = [verdict for verdict in plan.verdicts if verdict is not None]
    if told:
        words = sorted(set(told))
        good = [word for word in words if polarity(word) > 0]
        bad = [word for word in words if polarity(word) < 0]
        if good and bad:
            value = {"of": "$.section.verdict", "type": "string", "success": _either(good), "failure": _either(bad)}
            share = len(told) / len(plan.spans)
            options.append(
                Option(
                    "the heading above the run", value, 0.6 + 0.38 * share, f"headings say {', '.join(words)}", told[0]
                )
            )
    for verdict in draft.ends.verdicts[:3]:
        place: Any = {"re": verdict.regex, "of": told_in}
        missing = [i for i, one in enumerate(verdict.values) if one is None]
        why = verdict.why
        if missing and verdict.failure == "else" and _ran_out(plan, verdict.values):
            place = {"first": [place, {"const": "none"}]}
            why += f"; {len(missing)} runs without it are longer than the others: they ran out of steps, and failed"
        value = {"of": place, "type": "string", "success": verdict.success, "failure": verdict.failure}
        example = next((one for one in verdict.values if one), "")
        options.append(Option("the last lines of a run", value, verdict.confidence * 0.97, why, example))
    options.extend(_from_path(source, plan))
    options.sort(key=lambda one: (-one.confidence, one.label))
    if "outcome" in hints:
        of = as_spec(hints["outcome"], "outcome")
        run["outcome"] = {"of": of, **_hinted(source, of, hints.get("success"))}
        return
    if not options:
        if "labels" not in hints:
            draft.notes.append("Nothing says how runs ended: name it with --hint outcome=PATH, or give labels.")
        return
    run["outcome"] = options[0].value
    draft.mapped.append(Mapped(options[0].label, "outcome", 1.0, options[0].confidence, options[0].why))
    if len(options) > 1 and options[1].confidence >= 0.4:
        draft.choices.append(Choice("outcome", tuple(options[:4]), 0, "the most confident place"))


def _hinted(source: TextSource, of: Any, success: str | None) -> dict[str, Any]:
    if isinstance(of, str):
        values = _member_values(source).get(of, []) if source.root else []
    else:
        values = [_at_file(of, file.path) for file in source.files]
    forms = judge_values(values, of if isinstance(of, str) else "", success=success, named=True)
    if forms:
        return {"type": forms[0].type, "success": forms[0].success, "failure": forms[0].failure}
    good: Any = {"in": ["success", "passed", "true"]} if success is None else success
    return {"type": "string", "success": good, "failure": "else"}


def _at_file(of: Any, path: str) -> Any:
    """What a value of the spec finds in the path of a file."""
    scope = Scope()
    scope.file = path
    return getter_of(of)(scope)


def _either(words: Sequence[str]) -> Any:
    return words[0] if len(words) == 1 else {"in": list(words)}


def _ran_out(plan: RunPlan, values: Sequence[str | None]) -> bool:
    """Are runs without a verdict few, and longer than the others?"""
    without = sorted(s.stop - s.first for s, v in zip(plan.spans, values, strict=True) if v is None)
    with_ = sorted(s.stop - s.first for s, v in zip(plan.spans, values, strict=True) if v is not None)
    if not without or not with_ or len(without) > 0.4 * len(values):
        return False
    return without[len(without) // 2] >= 1.2 * with_[len(with_) // 2]


def _from_path(source: TextSource, plan: RunPlan) -> list[Option]:
    """Folders or file names that say how runs went, where a file is a run."""
    if plan.head or source.root:
        return []
    options = []
    for part, regex in (("parent", r"([^/]+)/[^/]+$"), ("stem", r"([^/]+?)(?:\.[^./]*)?$")):
        names = [match.group(1) if (match := re.search(regex, file.path)) else "" for file in source.files]
        told: list[str] = []
        for one in names:
            told.extend(word for word in re.split(r"[^A-Za-z]+", one) if polarity(word))
        good = sorted({word for word in told if polarity(word) > 0})
        bad = sorted({word for word in told if polarity(word) < 0})
        if good and bad and len(told) >= 0.9 * len(names):
            either = "|".join(sorted({*good, *bad}, key=lambda word: (-len(word), word)))
            value = {
                "of": {"file": part, "re": rf"(?:^|[^A-Za-z])({either})(?:[^A-Za-z]|$)", "group": 1},
                "type": "string",
                "success": _either(good),
                "failure": _either(bad),
            }
            options.append(Option(f"the file's {part}", value, 0.8, f"names say {', '.join(good + bad)}", names[0]))
    return options
