"""A step changes what is kept of a run, and gives the behaviours that hold at it.

What holds at step t depends on the records 1 to t alone. A call is looked at in three ways: against calls before it
(loops), by its error (errors), and by what it is for (results, edits, tests); what the agent says, against the calls.
The world may have changed when something arrived, or when a call that is no reading succeeded and was new or gave
another result than before: a call that is made again after that is no loop. Once an adapter has cut a text, nobody
knows which identifiers it held, so none is said to be from nowhere.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefixguard.behaviours import signs
from prefixguard.behaviours.behaviour import BehaviourFinding
from prefixguard.behaviours.catalogue import BY_NAME, CONSEQUENCES, PATIENT
from prefixguard.behaviours.consequences import (
    Consequence,
    command_in,
    consequence_of,
    is_shell,
    is_speech,
    said_in,
)
from prefixguard.behaviours.edited_files import tried_and_edited
from prefixguard.behaviours.grounding import made_up
from prefixguard.behaviours.shell import is_prose
from prefixguard.behaviours.spending import spend
from prefixguard.behaviours.tracker import MOST_STEPS, BehaviourTracker, name_hash, text_hash
from prefixguard.context import FEATURES, ContextState
from prefixguard.encoder import Tokens
from prefixguard.stepview import CUT_MARK, StepRecord, plain

Findings = dict[str, tuple[int, int, str]]

_RESULT_SEEN: Final = [feature.name for feature in FEATURES].index("result_seen")
_LONG: Final = 1800  # code points; adapters cut a result at about 2,000
#: A call of an agent whose tools have no names.
_NAMELESS: Final = Consequence("acts", "call")
_SHORT_MESSAGE: Final = 16
_ANSWER: Final = 240
_EVIDENCE: Final = 100
_OFTEN: Final = 1 << 15
_PLACE: Final = {name: place for place, name in enumerate(BY_NAME)}
_FAILED: Final = 0x9E3779B97F4A7C15  # what a tool's key is crossed with for its failures
_LOOKING: Final = frozenset(("reads", "searches"))
#: What is counted in a row, until the agent makes a call.
_ENDED_BY_CALL: Final = ("call_as_text", "reply_refused")
#: What repairs a failed call of unknown consequence, or a failed test.
_TRIED: Final = frozenset(("acts", "tests"))
#: Of a command that there is not nothing was run.
_NOTHING_RAN: Final = frozenset(("missing_tool", "prose_as_command"))
#: Calls that change nothing by themselves; `acts` may, and is taken to where it is new.
_IDLE: Final = frozenset(("reads", "searches", "thinks", "waits", "speaks"))


def update(
    tracker: BehaviourTracker,
    record: StepRecord,
    tokens: Tokens,
    context: ContextState,
    numbers: NDArray[np.float32],
) -> tuple[BehaviourFinding, ...]:
    """Take one step into the tracker (in place) and return what holds at it: in the order of the catalogue, then what
    was declared.

    tokens: of the serialised record. context, numbers: the run's context and its vector after this step.
    """
    t = tracker
    t.step = min(t.step + 1, MOST_STEPS)
    found: Findings = {}
    if t.cap and t.step >= 0.9 * t.cap:
        found["near_step_cap"] = t.step, 1, f"step {t.step} of {t.cap}"
    if record.observation:
        arrived = text_hash(record.observation)
        if arrived != t.observation:
            t.observation, t.changed, t.messages = arrived, t.step, 0
    if record.actor in ("user", "environment", "system"):
        t.changed, t.messages = t.step, 0
        return _findings(found)
    found |= spend(t, record)
    speaker = name_hash(record.agent)
    if speaker != t.speaker:
        t.speaker, t.messages = speaker, 0
    what = consequence_of(record, t.declared.tools if t.declared is not None else None)
    t.named = t.named or int(what.name != "")
    if not t.named and not record.tool and (record.arguments or record.result):
        what = _NAMELESS
    if what.kind in ("speaks", "thinks"):
        _say(t, record, what, found)
    else:
        _call(t, record, what, tried_and_edited(t, what, tokens, context), found)
        whole = not t.cut and not is_shell(record.tool) and "://" not in record.arguments
        identifier = made_up(context, record, tokens, what.kind) if whole else ""
        if identifier:
            found["identifier_from_nowhere"] = (
                t.step,
                min(context.ungrounded_calls, _OFTEN),
                plain(identifier, _EVIDENCE),
            )
    if is_speech(what, record.tool) and "reply_refused" not in found:
        text = f"{'' if what.name else record.action}\n{said_in(record.arguments)}".strip()
        written = signs.call_in_text(text, lambda name: _is_tool(t, name))
        if written:
            found["call_as_text"] = *t.once_more("call_as_text"), plain(written, _EVIDENCE)
    if not t.cut and (CUT_MARK in record.result or CUT_MARK in record.observation):
        t.cut = t.step
    if len(record.result) >= _LONG:
        found["long_result"] = t.step, 1, f"{len(record.result):,} characters"
    if numbers[_RESULT_SEEN] > 0 and len(record.result) >= _SHORT_MESSAGE and "same_call_same_result" not in found:
        found["result_seen"] = t.step, 1, plain(record.result, _EVIDENCE)
    found[what.kind] = t.step, 1, plain(what.name, _EVIDENCE)
    if t.declared is None or t.declared_counts is None:
        return _findings(found)
    shown = plain(f"{record.tool} {record.arguments}" if what.name else record.action, _EVIDENCE)
    own = t.declared_counts.step(t.declared, record, what.kind, t.step)
    return (*_findings(found), *(BehaviourFinding(one.behaviour, since, n, shown) for one, since, n in own))


def _findings(found: Findings) -> tuple[BehaviourFinding, ...]:
    return tuple([BehaviourFinding(BY_NAME[name], *found[name]) for name in sorted(found, key=_PLACE.__getitem__)])


def _call(
    t: BehaviourTracker, record: StepRecord, what: Consequence, files: tuple[bool, bool], found: Findings
) -> None:
    """A call: loops, errors, and what it is for. files: from `tried_and_edited`."""
    t.messages = t.quiet = 0
    if what.kind == "waits":
        t.waited = t.step
    else:
        t.calls += 1
        for name in _ENDED_BY_CALL:
            t.start_over(name)
    spelled = record.arguments if record.tool else f"{record.action} {record.arguments}".strip()
    shown = plain(f"{record.tool} {spelled}".strip(), _EVIDENCE)
    failed = record.status == "error"
    key = text_hash(record.tool, spelled)
    told = bool(record.result) or record.status != "unknown"  # whether anybody knows what came back
    result = text_hash(record.result)
    _tools(t, what, failed, found)
    is_new = _repeats(t, key, result, told, what.kind, shown, found)
    if what.kind not in _IDLE and not failed and is_new:
        t.changed = t.step
    tries = files[0] and (what.kind == "tests" or is_shell(record.tool))
    _errors(t, record, what, key, failed, tries, shown, found)
    if _NOTHING_RAN.isdisjoint(found) if tries else files[0] and not failed:
        t.edits = 0  # whatever ran may have tried the edits out, and if it failed, so it has
    if files[1] and not failed:
        t.edits_since = t.edits_since if t.edits else t.step
        t.edits += 1
        if t.edits >= 3:
            found["edits_without_test"] = t.edits_since, t.edits, shown
    _purposes(t, record, what, failed, told, shown, found)
    t.failed_last = t.step if failed else 0
    t.last_length = min(len(record.arguments), MOST_STEPS)
    t.last_tool, t.last_name = name_hash(record.tool), name_hash(what.name)


def _tools(t: BehaviourTracker, what: Consequence, failed: bool, found: Findings) -> None:
    """The tool, against those that were used before."""
    tool = name_hash(what.name)
    failures = t.names.get(tool ^ _FAILED)
    if failures:
        found["failed_tool_again"] = t.step, failures, plain(what.name, _EVIDENCE)
    if failed:
        t.names.bump(tool ^ _FAILED)
    if not t.names.bump(tool):
        found["new_tool"] = t.step, 1, plain(what.name, _EVIDENCE)
    t.same_tool = t.same_tool + 1 if tool == t.last_name else 1
    if t.same_tool >= 4:
        found["same_tool_many"] = t.step - t.same_tool + 1, t.same_tool, plain(what.name, _EVIDENCE)


def _repeats(t: BehaviourTracker, key: int, result: int, told: bool, kind: str, shown: str, found: Findings) -> bool:
    """The call, against the latest calls. Returns whether it, or its result, is new."""
    known = t.deeds.get(key)
    is_new = known is None or (told and known[0] != result)
    first, times = t.step, 1
    if known is not None and told:
        before, since, last, n = known
        if before != result:
            found["same_call_other_result"] = last, 2, shown
        elif t.changed <= last:
            first, times = since, min(n + 1, _OFTEN)
            is_patient = kind == "waits" or t.waited > last
            if times >= (PATIENT if is_patient else 2):
                found["same_call_same_result"] = first, times, shown
    t.deeds.put(key, result, first, t.step, times)
    if kind != "waits":
        pair = (key + 3 * result) & ((1 << 64) - 1)
        if not told or t.changed == t.step:  # something arrived
            t.alternating, t.before = 1, 0
        elif pair == t.before and pair != t.last:
            t.alternating += 1
        else:
            t.alternating = 2 if t.last and pair != t.last else 1
        t.before, t.last = t.last, pair
        if t.alternating >= 4:
            found["alternating_calls"] = t.step - t.alternating + 1, t.alternating, shown
    return is_new


def _errors(
    t: BehaviourTracker, record: StepRecord, what: Consequence, key: int, failed: bool, tries: bool, shown: str,
    found: Findings,
) -> None:  # fmt: skip
    """The call's error, against errors before it. tries: whether the call tries out what was edited."""
    said = record.status != "ok" and signs.says_missing_tool(record.result, record.tool, shell=is_shell(record.tool))
    if (said or failed) and is_shell(record.tool) and is_prose(command_in(record.arguments)):
        found["prose_as_command"] = *t.once_more("prose_as_command"), shown
    elif said or t.is_offered(record.tool) is False:
        found["missing_tool"] = *t.once_more("missing_tool"), plain(what.name, _EVIDENCE)
    is_longer = len(record.arguments) > max(1.1 * t.last_length, t.last_length + 4)
    if not (t.failed_last and is_longer and t.last_tool == name_hash(record.tool)):
        t.growth, t.growth_since = 0, t.step
    else:
        t.growth += 1
        if t.growth >= 2:
            found["growing_retry"] = t.growth_since, t.growth + 1, f"{len(record.arguments):,} characters: {shown}"
    if not failed:
        if t.errors:
            found["recovered"] = t.errors_since, t.errors, shown
        t.errors = 0
        return
    found["call_failed"] = t.step, 1, plain(record.result or shown, _EVIDENCE)
    t.errors_since = t.errors_since if t.errors else t.step
    t.errors += 1
    if t.errors >= 3:
        found["errors_in_a_row"] = t.errors_since, t.errors, plain(record.result or shown, _EVIDENCE)
    if signs.names_no_error(record.result):
        return
    error = text_hash(signs.masked(record.result))
    call, since, times = t.errors_said.get(error) or (key, t.step, 0)
    is_edited = tries and t.edits > 0 and what.kind != "tests" and _NOTHING_RAN.isdisjoint(found)
    if call != key or (times and is_edited):
        found["same_error_again"] = since, times + 1, plain(record.result, _EVIDENCE)
    t.errors_said.put(error, key, since, min(times + 1, _OFTEN))


def _purposes(
    t: BehaviourTracker, record: StepRecord, what: Consequence, failed: bool, told: bool, shown: str, found: Findings
) -> None:
    """What the call is for: reading, writing, editing, testing, handing in."""
    kind = what.kind
    if kind in _LOOKING:
        nothing = not failed and told and signs.is_empty(record.result)
        t.failed_read = t.step if failed or nothing else 0
        if not nothing:
            t.empty = 0
        else:
            t.empty_since = t.empty_since if t.empty else t.step
            t.empty += 1
            if t.empty >= 2:
                found["empty_result_again"] = t.empty_since, t.empty, shown
    elif kind != "waits":
        if kind == "writes" and t.failed_read and t.changed <= max(t.failed_read, t.step * (not failed)):
            found["write_after_failed_read"] = *t.once_more("write_after_failed_read"), shown
        t.failed_read = 0
    if kind == "tests":
        _tests(t, record, failed, shown, found)
    elif kind == "submits":
        if t.edits:
            found["edits_without_test"] = t.edits_since, t.edits, shown
        bad = t.tests_failed or t.failed_last
        if bad:
            found["result_ignored"] = bad, 1, shown
        if t.failed_step and signs.claims_success(f"{record.action}\n{record.arguments}"):
            found["claim_over_failure"] = t.failed_step, 1, plain(t.failed_name, _EVIDENCE)
    _repairs(t, what, failed)


def _tests(t: BehaviourTracker, record: StepRecord, failed: bool, shown: str, found: Findings) -> None:
    failing = signs.failing_tests(record.result, failed=failed)
    if failing is None:
        t.tests_failed = t.tests_hash = t.tests_again = 0
        if record.status == "ok":
            found["tests_pass"] = t.step, 1, shown
        return
    t.tests_failed = t.step
    which = text_hash(failing)
    t.tests_again = t.tests_again + 1 if which == t.tests_hash else 1
    t.tests_since = t.tests_since if t.tests_again > 1 else t.step
    t.tests_hash = which
    if t.tests_again >= 2:
        found["same_tests_fail"] = t.tests_since, t.tests_again, plain(failing, _EVIDENCE)


def _repairs(t: BehaviourTracker, what: Consequence, failed: bool) -> None:
    """Keep the last call that failed and was to change or to prove something, until one of its tool or kind succeeds,
    or a human takes over."""
    if what.kind in _LOOKING or what.kind == "waits":
        return
    kind = CONSEQUENCES.index(what.kind)
    if failed:
        t.failed_step, t.failed_tool, t.failed_kind = t.step, name_hash(what.name), kind
        t.failed_name = what.name[:40]
    elif t.failed_step:
        is_tried = what.kind in _TRIED and CONSEQUENCES[t.failed_kind] in _TRIED
        if is_tried or what.kind == "escalates" or t.failed_kind == kind or t.failed_tool == name_hash(what.name):
            t.failed_step = 0


def _say(t: BehaviourTracker, record: StepRecord, what: Consequence, found: Findings) -> None:
    """A message or a thought: what it says, against what was done."""
    text = record.action if not what.name else f"{record.action}\n{record.arguments}".strip()
    shown = plain(text, _EVIDENCE)
    t.quiet += 1
    if t.quiet >= 5:
        found["no_call"] = t.step - t.quiet + 1, t.quiet, shown
    if len(text) >= _SHORT_MESSAGE:
        key, result = text_hash(text), text_hash(record.result)
        _, since, _, times = t.deeds.get(key) or (0, t.step, 0, 0)
        t.deeds.put(key, result, since, t.step, min(times + 1, _OFTEN))
        if times:
            found["same_message"] = since, times + 1, shown
    if what.kind == "thinks":
        return
    t.messages_since = t.messages_since if t.messages else t.step
    t.messages += 1
    if t.messages >= 3:
        found["messages_in_a_row"] = t.messages_since, t.messages, shown
    if record.result:  # it was answered
        t.messages, t.changed = 0, t.step
    t.failed_read = 0
    if not what.name and record.status == "error":
        found["reply_refused"] = *t.once_more("reply_refused"), plain(record.result or record.action, _EVIDENCE)
        return
    claims = signs.claims_success(text)
    if t.failed_step and claims:
        found["claim_over_failure"] = t.failed_step, 1, plain(t.failed_name, _EVIDENCE)
    if not t.calls and not signs.asks(text) and (claims or len(text) >= _ANSWER):
        found["answer_without_call"] = *t.once_more("answer_without_call"), shown


def _is_tool(t: BehaviourTracker, name: str) -> bool:
    """Whether this is the name of a tool that the run was offered, or has used."""
    return bool(t.is_offered(name)) or t.names.get(name_hash(name)) > 0
