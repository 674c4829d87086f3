"""What a name may mean: keys split into words, and a vocabulary of the meanings that the names in traces have.

Names help and never decide: every use weighs `affinity` against what the values, their places and their order say.
The vocabulary is of words of the field ("reward", "tool", "verdict"), not of formats.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

import prefixguard.distribution  # noqa: F401, says what to do where another package of this name is around it


class Meaning(StrEnum):
    """What a place of a trace may hold. The four ROLE_ meanings are of values of a role, the others of keys."""

    OUTCOME = "outcome"  # whether the run reached its goal
    AFTER_END = "after the end"  # known only when the run is over: reasons, totals, durations, submissions
    HARNESS = "harness"  # known to those who set the task: answers, expected actions, difficulty
    MISTAKE = "mistake"  # which step, or who, made the decisive mistake
    TASK_ID = "task id"
    TASK_TEXT = "task text"
    RUN_ID = "run id"
    GROUP = "group"  # domain, environment, data set, repository
    AGENT = "agent"
    MODEL = "model"
    SETUP = "setup"  # known at the start: system prompt, tools, configuration, seed
    ROLE = "role"
    TOOL = "tool"
    ARGUMENTS = "arguments"
    CALL_ID = "call id"
    TEXT = "text"
    THOUGHT = "thought"
    RESULT = "result"
    EVENTS = "events"
    ERROR = "error"
    STATUS = "status"
    TIME = "time"
    ROLE_AGENT = "role: agent"
    ROLE_USER = "role: user"
    ROLE_TOOL = "role: tool"
    ROLE_SYSTEM = "role: system"


def _phrases(text: str, weight: float) -> dict[tuple[str, ...], float]:
    return {tuple(phrase.split()): weight for phrase in text.replace("\n", " ").split(", ")}


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Phrases by meaning: how much a name that is exactly this phrase speaks for the meaning, in [0, 1].
_VOCABULARY: dict[Meaning, dict[tuple[str, ...], float]] = {
    Meaning.OUTCOME: {
        **_phrases(
            "reward, success, successful, succeeded, resolved, solved, passed, correct, corrected, verdict, outcome, "
            "task success, run success, is success, final reward, max reward, total reward, test passed, tests passed, "
            "all tests passed, goal reached, goal achieved, task completed, resolution status",
            1.0,
        ),
        **_phrases(
            "score, final score, accuracy, result status, run status, final status, success rate, pass, grade, win, "
            "won, accepted, achieved, unresolved, failed, failure, incorrect, evaluation result, eval result, "
            "task status, final result, test result, judgement, judgment, correctness, points, resolution",
            0.85,
        ),
        **_phrases(
            "label, rating, vote, thumb, feedback, return, completed, done, finished, solution found, satisfied, em, "
            "f1",
            0.6,
        ),
        **_phrases("result, status, eval, evaluation, error, is error, subtype, exit code, target, class, y", 0.4),
        **_phrases("state, ok, valid, answer correct, match, check", 0.35),
    },
    Meaning.AFTER_END: {
        **_phrases(
            "termination reason, exit reason, stop reason, finish reason, exit status, end reason, end time, "
            "ended at, finished at, completed at, stop time, end timestamp, duration, total cost, agent cost, "
            "user cost, total tokens, total time, submission, final answer, final response, final result response, "
            "final output, final metrics, final state, num turns, num steps, n steps, total steps, steps taken, "
            "turns taken, number of steps, review, parser results, patch, model patch, model stats, failure mode, "
            "traceback, summary, exit code, error message, elapsed, latency, postmortem, report, run time, wall time, "
            "instance cost, api calls, scores, test output, test results, max reward idx, termination, timed out",
            1.0,
        ),
        **_phrases(
            "usage, cost, metrics, stats, statistics, ended, finished, result, results, reason, tokens, error, errors, "
            "exception, length, prediction, output, response, reflection, reflections, comment, feedback, critique, "
            "max steps reached, total input tokens, total output tokens, steps, turns, records",
            0.6,
        ),
    },
    Meaning.HARNESS: {
        **_phrases(
            "ground truth, gold, gold answer, gold patch, expected, expected answer, expected output, answer, "
            "reference, reference answer, reference solution, correct answer, evaluation criteria, rubric, "
            "expected actions, level, hardness, difficulty, user scenario, hint, hints, oracle, solution, "
            "golden, target answer, test patch, fail to pass, pass to pass, assertions, evaluator, eval config, "
            "user instruction, simulator instruction, user info, user simulator, simulator guidelines, "
            "annotation, annotations, annotator, gt",
            1.0,
        ),
        **_phrases("label, labels, target, persona, required documents, issues, criteria, checks, tests, trial", 0.5),
    },
    Meaning.MISTAKE: {
        **_phrases(
            "mistake step, mistake agent, mistake reason, mistake type, mistake, error step, failure step, "
            "decisive step, responsible agent, failure agent, culprit, root cause, blame, failure responsible agent, "
            "faulty agents, injected agents, is injected, is injection successful, injection strategy, "
            "malicious action description, mast annotation, unsafe source",
            1.0,
        ),
    },
    Meaning.TASK_ID: {
        **_phrases(
            "task id, instance id, question id, problem id, task name, sample id, query id, example id, case id, "
            "scenario id, task key, issue id, challenge id, task index, item id, intent id, goal id, test id",
            1.0,
        ),
        **_phrases("task, instance, problem, question, task number, puzzle id, episode id, data id, idx", 0.7),
        **_phrases(
            "id, index, number, case, scenario, example, sample, goal, query, intent, instruction, prompt", 0.35
        ),
    },
    Meaning.TASK_TEXT: {
        **_phrases(
            "question, problem, problem statement, instruction, instructions, task description, task text, query, "
            "intent, goal, prompt, task prompt, user prompt, task instruction, confirmed task, objective, user query, "
            "user request, task, initial prompt, issue text, ask",
            1.0,
        ),
        **_phrases("description, input, request, issue, challenge, statement, title, ticket, purpose, text", 0.5),
    },
    Meaning.RUN_ID: {
        **_phrases(
            "run id, trace id, session id, conversation id, trajectory id, rollout id, simulation id, execution id, "
            "episode id, thread id, uuid, guid, trial id, trial name, attempt id, chat id, dialog id, run, session, "
            "job id, workflow id, context id, group",
            1.0,
        ),
        **_phrases("id, identifier, trial, key, name, trace, request id, conversation, _id", 0.5),
    },
    Meaning.GROUP: {
        **_phrases(
            "domain, domain name, environment, env, env name, dataset, benchmark, split, category, repository, repo, "
            "suite, website, site, language, subset, data source, project, app, subject, topic",
            1.0,
        ),
        **_phrases("type, kind, name, version, tag, folder, source", 0.3),
    },
    Meaning.AGENT: {
        **_phrases("agent, agent name, agent id, actor, author, speaker, sender, role name, agent type, scaffold", 1.0),
        **_phrases("name, source, node, assistant, from", 0.5),
    },
    Meaning.MODEL: _phrases("model, model name, llm, engine, model id, provider, deployment, agent model", 1.0),
    Meaning.SETUP: {
        **_phrases(
            "system prompt, system message, tools, tool defs, tool definitions, functions, config, configuration, "
            "settings, policy, seed, temperature, max steps, max turns, start time, started at, created at, created, "
            "begin time, version, schema version, git commit, turns max, max errors, model, agent, domain, dataset, "
            "environment, format, trajectory format, cwd, agents, available tools, llm args, timestamp, start",
            1.0,
        ),
    },
    Meaning.ROLE: {
        **_phrases("role, speaker, actor, author, from, sender, source, src, message type, who", 1.0),
        **_phrases("type, kind, event, event type, name, source type", 0.5),
    },
    Meaning.TOOL: {
        **_phrases(
            "tool, tool name, function name, action type, command name, action name, api name, recipient, tool title, "
            "method, function, operation, skill",
            1.0,
        ),
        **_phrases("name, action, command, title, api, kind, type", 0.5),
    },
    Meaning.ARGUMENTS: {
        **_phrases(
            "arguments, args, parameters, params, kwargs, tool input, action input, tool args, tool arguments, "
            "raw input, input, function args, action args, tool parameters, inputs, payload",
            1.0,
        ),
        **_phrases("command, code, query, data, body, action, cmd, value", 0.4),
    },
    Meaning.CALL_ID: {
        **_phrases(
            "call id, tool call id, tool use id, function call id, invocation id, source call id, action id, "
            "request id, cause, correlation id, tool id, callback id",
            1.0,
        ),
        **_phrases("id, uuid, parent id, ref, index, span id", 0.5),
    },
    Meaning.TEXT: {
        **_phrases("content, text, message, body, utterance, msg, parts, value", 1.0),
        **_phrases("output, response, input, output text, data, completion, reply, description, line", 0.6),
    },
    Meaning.THOUGHT: {
        **_phrases("thought, thoughts, reasoning, thinking, rationale, reasoning content, reflection, plan", 1.0),
        **_phrases("analysis, explanation, memory, summary, discussion, scratchpad", 0.6),
    },
    Meaning.RESULT: {
        **_phrases(
            "observation, result, tool result, output, tool output, response, obs, tool response, function response, "
            "stdout, raw output, return value, observations, execution result, tool use result, results",
            1.0,
        ),
        **_phrases("content, text, feedback, reply, stderr, data, state, body, page", 0.5),
    },
    Meaning.EVENTS: {
        **_phrases(
            "messages, trajectory, traj, steps, events, history, conversation, turns, chat, log, logs, dialog, "
            "dialogue, spans, items, actions, transcript, records, trace, rollout, interactions, chat history, "
            "action history, turn history, entries, rounds, observations",
            1.0,
        ),
    },
    Meaning.ERROR: {
        **_phrases(
            "error, is error, exception, stderr, traceback, error message, error type, failed, failure, fault, "
            "error code, exception info",
            1.0,
        ),
        **_phrases("exit code, returncode, return code, status code, ok, success", 0.7),
    },
    Meaning.STATUS: {
        **_phrases("status, state, exit code, return code, returncode, status code, is error, ok, success", 1.0),
        **_phrases("error, result, code, valid, failed, level, severity", 0.5),
    },
    Meaning.TIME: {
        **_phrases(
            "time, timestamp, ts, date, created at, started at, start time, end time, ended at, datetime, "
            "start time unix nano, end time unix nano, created, updated at, time stamp, t",
            1.0,
        ),
        **_phrases("start, end, begin, duration, at, when", 0.5),
    },
    Meaning.ROLE_AGENT: _phrases(
        "assistant, ai, agent, bot, model, gpt, claude, llm, assistant message, aimessage, ai message, action, "
        "chatbot, gemini, orchestrator, planner, executor, response, thought",
        1.0,
    ),
    Meaning.ROLE_USER: _phrases(
        "user, human, customer, client, human message, user message, requester, question, instruction, operator", 1.0
    ),
    Meaning.ROLE_TOOL: _phrases(
        "tool, function, environment, env, observation, result, tool result, tool message, function call output, "
        "tool output, terminal, ipython, computer, executor output, computer terminal, obs",
        1.0,
    ),
    Meaning.ROLE_SYSTEM: _phrases("system, developer, system message, system prompt, instructions, setup, meta", 1.0),
}

#: A name that ends in one of these is about the thing, not the thing: reward_basis, max_reward_idx, score_threshold.
_ABOUT = _set("idx index count basis threshold config type kind reason breakdown info version spec")
_EMPTY = _set("field column attr attribute property prop value item element")
_QUESTION = _set("is has was did are")

#: How much a name further out says: of the place itself 1, of what holds it less. What lies in "reward_info" or in
#: "evaluation_criteria" is hidden with it, whatever it is called.
_OUTER: dict[Meaning, tuple[float, ...]] = {
    Meaning.AFTER_END: (1.0, 0.85, 0.7, 0.6),
    Meaning.HARNESS: (1.0, 0.85, 0.7, 0.6),
    Meaning.MISTAKE: (1.0, 0.7),
    Meaning.OUTCOME: (1.0, 0.5, 0.4),
    Meaning.SETUP: (1.0, 0.8, 0.6),
}
_OUTER_ELSE = (1.0, 0.5, 0.3)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_STEP = re.compile(r"\[\"([^\"]*)\"\]|\['([^']*)'\]|\[[^\]]*\]|([^.\[\]%$@^]+)")

#: Beside English, the words of other languages that stand in verdicts and folders most often, without their accents.
_POSITIVE = _set(
    "success successful successfully succeed succeeded pass passed passes resolved solved correct right completed "
    "complete accepted ok okay win won good true yes approved achieved satisfied perfect fulfilled valid reached "
    "finished done positive accomplished green kept merged delivered fixed verified met satisfactory erfolg "
    "erfolgreich bestanden geloest gelost richtig reussi reussie "
    "succes exito exitoso exitosa aprobado correcto sucesso riuscito"
)
_NEGATIVE = _set(
    "fail failed fails failure failing error errored errors incorrect wrong unresolved unsolved unsuccessful "
    "rejected timeout exceeded crash crashed abort aborted invalid halted lost loss lose bad false no denied "
    "incomplete unsatisfied mistake exception negative killed stuck broken limit missed escalated abandoned "
    "cancelled canceled declined gaveup nok ko red undone reverted reopened discarded dismissed withdrawn refused "
    "unmet regressed defeated broke fehler fehlschlag fehlgeschlagen gescheitert misserfolg falsch echec "
    "echoue fallido fallida fallo fracaso erreur falha fallito"
)
_FLIP = _set("not no non never un without")
_HALF = _set("partial partially partly pending running unknown skipped mixed none na maybe unset")
_LIMIT = _set("max limit timed budget cap")


@lru_cache(maxsize=8192)
def words(key: str) -> tuple[str, ...]:
    """The words of a name, in lower case: camelCase, snake_case, kebab-case, dotted, digits apart.

    >>> words("maxReward_idx2"), words("gen_ai.tool-name"), words("HTTPStatus")
    (('max', 'reward', 'idx', '2'), ('gen', 'ai', 'tool', 'name'), ('http', 'status'))
    """
    key = key[:200]
    return tuple(word.lower() for word in _WORD.findall(key if key.isascii() else _bare(key)))


def _bare(text: str) -> str:
    """Latin letters without their accents; other letters as they are."""
    split = unicodedata.normalize("NFD", text)
    plain = (c for i, c in enumerate(split) if not (unicodedata.combining(c) and i and split[i - 1].isascii()))
    return unicodedata.normalize("NFC", "".join(plain))


@lru_cache(maxsize=8192)
def path_names(path: str) -> tuple[str, ...]:
    """The names on a path, or in a dotted key, from the outside in; positions and filters are left out.

    >>> path_names('$.info["a.b"].list[*].max_reward'), path_names("tool.name")
    (('info', 'a.b', 'list', 'max_reward'), ('tool', 'name'))
    """
    found = (a or b or c for a, b, c in _STEP.findall(path[:1000]))
    return tuple(name for name in found if name and name != "*")


@lru_cache(maxsize=65536)
def affinity(key_or_path: str, meaning: Meaning) -> float:
    """How much the name speaks for the meaning, in [0, 1]; 0 for a name without a word of it.

    The innermost name counts most; the names of what it stands in less.

    >>> affinity("$.summary.max_reward", Meaning.OUTCOME) > affinity("$.summary.max_reward_idx", Meaning.OUTCOME)
    True
    """
    names = path_names(key_or_path)[::-1]
    outer = _OUTER.get(meaning, _OUTER_ELSE)
    best = 0.0
    for name, weight in zip(names, outer, strict=False):
        for whole in (name, name.rpartition(".")[2]) if "." in name else (name,):
            best = max(best, weight * _speaks(words(whole), meaning))
    return best


def _speaks(found: tuple[str, ...], meaning: Meaning) -> float:
    """What one name says, from its words."""
    if not found:
        return 0.0
    phrases = _VOCABULARY[meaning]
    best = phrases.get(found, 0.0)
    bare = found[1:] if len(found) > 1 and found[0] in _QUESTION else found
    glued = "".join(found)
    for phrase, weight in phrases.items():
        if weight <= best:
            continue
        if bare == phrase or glued == "".join(phrase):
            best = weight
            continue
        n = len(phrase)
        if _alike(bare[-n:], phrase):
            best = max(best, weight * (0.95 if len(bare) == n else 0.85))
        elif any(_alike(bare[i : i + n], phrase) for i in range(len(bare) - n)):
            best = max(best, weight * (0.3 if bare[-1] in _ABOUT else 0.55))
    return best


def _alike(found: tuple[str, ...], phrase: tuple[str, ...]) -> bool:
    return len(found) == len(phrase) and all(a == b or a == b + "s" for a, b in zip(found, phrase, strict=True))


@lru_cache(maxsize=8192)
def says_something(path: str) -> bool:
    """Is the innermost name made of words, in whatever language (not k12, x, field_3)?

    >>> says_something("$.sampled"), says_something("$.info.k12"), says_something("")
    (True, False, False)
    """
    names = path_names(path)
    return bool(names) and any(len(word) >= 4 and word not in _EMPTY for word in words(names[-1]))


def is_foreign(names: Iterable[str]) -> bool:
    """Are most of a format's names of words that the vocabulary does not have, so that not knowing one says nothing?

    >>> is_foreign(["aufgabe", "schritte", "ergebnis", "werkzeug", "text"]), is_foreign(["steps", "goal", "sampled"])
    (True, False)
    """
    telling = sorted({name for name in names if any(len(word) >= 4 for word in words(name))})
    known = sum(1 for name in telling if _VOCABULARY_WORDS & set(words(name)))
    return len(telling) >= 4 and known < 0.4 * len(telling)


_VOCABULARY_WORDS = frozenset(
    word for phrases in _VOCABULARY.values() for phrase in phrases for word in phrase if len(word) >= 3
)


@lru_cache(maxsize=8192)
def is_undecided(text: str) -> bool:
    """Does a verdict say that it is none: pending, unknown, partly?"""
    return not text.strip() or bool(_HALF & set(words(text)))


@lru_cache(maxsize=8192)
def polarity(text: str) -> int:
    """Does a short text, or a name, speak of success (1), of failure (-1), or of neither (0)?

    >>> polarity("success"), polarity("error_max_turns"), polarity("not resolved"), polarity("partially correct")
    (1, -1, -1, 0)
    """
    found = words(text)
    if not found or len(found) > 6 or len(text) > 60 or _HALF & set(found):
        return 0
    if found in (("gave", "up"), ("give", "up"), ("given", "up")):
        return -1
    signs = []
    flip = False
    for word in found:
        if word in _FLIP and len(found) > 1:
            flip = True
        elif word in _POSITIVE or word in _NEGATIVE:
            signs.append((1 if word in _POSITIVE else -1) * (-1 if flip else 1))
            flip = False
    if not signs:
        return -1 if _LIMIT & set(found) else 0
    return -1 if min(signs) < 0 else 1
