"""What texts of a step tell, where a protocol or a few words fix how it is said.

Words of people are looked for in English, German, Spanish, French and Chinese. In another language these signs are
absent; no other behaviour rests on words. A text is looked at in its first and last 3,000 characters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import re2

from prefixguard.stepview import repair

_HALF: Final = 3000


def ends(text: str) -> str:
    """The text, or its beginning and its end where it is long; without half characters."""
    if len(text) > 2 * _HALF:
        text = f"{text[:_HALF]}\n{text[-_HALF:]}"
    return repair(text)


#: How frameworks and protocols say that a tool does not exist, where they also name it.
_UNKNOWN = re2.compile(
    r"(?i)unknown (?:tool|function|action)|no such (?:tool|function|action)|not found|does(?: not|n't) exist"
    r"|not a valid (?:tool|function|action)|is not (?:available|defined|registered)|invalid (?:tool|function)"
    r"|unrecognized (?:tool|function)|not in the list of (?:tools|functions)"
    r"|unbekannt|nicht gefunden|gibt es nicht|existiert nicht|no existe|desconocid[oa]|no se encontr"
    r"|n['’]existe pas|introuvable|inconnue?|不存在|未知|找不到|没有"
)
_OF_TOOLS = re2.compile(
    r"(?i)\b(?:tools?|functions?|actions?|werkzeuge?|funktion(?:en)?|herramientas?|funci[oó]n(?:es)?|outils?|fonctions?)\b"
    r"|工具|函数"
)
_NO_COMMAND = re2.compile(
    r"(?m): command not found|: not found\s*$|is not recognized as an internal or external command"
    r"|is not recognized as (?:the|a) name of a cmdlet"
)
_NO_METHOD = re2.compile(r"-32601\b|\bMethod not found\b")
#: What the Model Context Protocol answers to a call of a tool that the server does not have.
_NO_MCP_TOOL = re2.compile(r"-32602\b[^\n]{0,40}\bUnknown tool\b")
_SAID_WITHIN: Final = 400


def says_missing_tool(result: str, tool: str, *, shell: bool) -> bool:
    """Does a result say that the tool that was called does not exist? shell: whether the tool is a shell.

    >>> says_missing_tool("Error: refund is not a valid tool, try one of [pay].", "refund", shell=False)
    True
    >>> says_missing_tool("Error: payment method not found", "refund", shell=False)
    False
    """
    head = repair(result[:_SAID_WITHIN])
    if shell:
        return _NO_COMMAND.search(head) is not None
    if _NO_MCP_TOOL.search(head):
        return True
    if _NO_METHOD.search(head):
        return "-32601" in head or len(head) < 60
    at = head.find(tool)
    if at < 0:
        return False
    near = head[max(at - 60, 0) : at] + head[at + len(tool) : at + len(tool) + 60]
    return _UNKNOWN.search(near) is not None and _OF_TOOLS.search(near) is not None


_FAILING = re2.compile(
    r"(?m)^(?:FAILED|FAIL:?|ERROR:|--- FAIL:|not ok \d+ -?|[✗✕×])\s+(\S+)|^test (\S+) \.\.\. FAILED"
    r"|^\s*\d+\) (\S[^\n]{3,80})$"
)
_FAILURES = re2.compile(
    r"(?im)\b[1-9]\d* (?:failed|failures?|failing|errors?)\b|\b(?:failures|errors|failed)[=:] ?[1-9]|FAILED \("
    r"|BUILD FAILURE|FAILURES!|^FAIL\b"
)
_DIGITS = b"0123456789"


def failing_tests(result: str, *, failed: bool) -> str | None:
    """What fails, as a text that is equal where the same fails; None where all pass.

    failed: whether the step's status is error. It is the names of the tests that fail, where the result has them.
    """
    text = ends(result)
    if not failed and not _FAILURES.search(text):
        return None
    names = sorted({name for found in _FAILING.findall(text) for name in found if name})
    return "\n".join(names) if names else masked(text)


def masked(text: str) -> str:
    """A text without what differs when the same is said of something else: numbers, case, blanks.

    >>> masked("No order 12 at\\n  10:31")
    'no order at :'
    """
    plainer = text[:2000].encode("utf-8", "replace").translate(None, _DIGITS)
    return b" ".join(plainer.split()).lower().decode("utf-8", "replace")


_EMPTY = re2.compile(r'(?i)[\s\[\]{}()"\']*(?:null|none|nil|0 rows?|empty set)?[\s\[\]{}()"\'.]*')
_EMPTY_FIELDS = re2.compile(r'\{(?:\s*"[^"]{0,40}"\s*:\s*(?:\[\s*\]|\{\s*\}|0|null|false|true|"")\s*,?)+\}')
_NOTHING = re2.compile(r"(?i)\W*(?:(?:no|0\s+\pL+|zero|nothing|keine|nichts|sin|ning[uú]n|aucun)\b|没有|未找到|无)")
_WRAPPED = re2.compile(r"<returncode>0</returncode>|</?(?:output|result|stdout|stderr)>")


def is_empty(result: str) -> bool:
    """Does a result of reading hold nothing?

    >>> [is_empty(text) for text in ("", "[]", '{"items": [], "total": 0}', "No results found.", "0 rows")]
    [True, True, True, True, True]
    >>> [is_empty(text) for text in ("3 rows", "0.29", "[(0,)]")]
    [False, False, False]
    """
    text = result.strip()
    if len(text) > 300:
        return False
    text = _WRAPPED.sub("", repair(text)).strip() if "</" in text else repair(text)
    if _EMPTY.fullmatch(text) or _EMPTY_FIELDS.fullmatch(text):
        return True
    return len(text) <= 80 and "\n" not in text and _NOTHING.match(text) is not None


_CODES = re2.compile(
    r"(?i)</?(?:returncode|exit_?code|output|result|stdout|stderr|error)>"
    r"|\b(?:command |process )?(?:(?:exit(?:ed)?|return(?:ed)?|status)[ _]?)+(?:with |code|status|value|[ _:=])*-?\d+"
    r"|\(?\bno output\b\)?"
)
_NO_LETTER = re2.compile(r"[^\pL]*")
_VALUES_EMPTY = re2.compile(
    r'\{(?:\s*"[^"]{0,40}"\s*:\s*(?:\[\s*\]|\{\s*\}|-?\d+|null|false|true|"\s*")\s*,?)+\}|(?:null|none|nil)'
)


def names_no_error(result: str) -> bool:
    """Does the result of a failed call say nothing, but that it failed?

    >>> [names_no_error(text) for text in ("", "exit code: 1", '{"code": 2, "stderr": ""}', "1: no such file")]
    [True, True, True, False]
    """
    text = repair(result.strip())
    if len(text) > 300:
        return False
    return _VALUES_EMPTY.fullmatch(text) is not None or _NO_LETTER.fullmatch(_CODES.sub(" ", text)) is not None


_TAGGED = re2.compile(
    r"(?m)<(?:tool_call|function_calls?|tool_use|invoke name=|function=|\|python_tag\||｜tool▁call|\|tool_call)"
    r"|\[TOOL_CALLS\]|^\s*Action:[^\n]+\n+\s*Action Input:"
)
_CODED = re2.compile(r"`[^`\n]*`")
_WRITTEN = re2.compile(
    r"(?m)^[ \t>*-]*(?:[A-Za-z_]\w{0,40}\s*=\s*)?(?:await\s+)?(?:functions\.|tools\.)?([A-Za-z_]\w{2,80})\(([^\n]*)"
)
#: Of a text that is nothing else.
_BARE = re2.compile(r"\s*[A-Za-z_]\w{2,80}\(\s*(?:\{(?:.|\n)*\})?\s*\)\s*;?\s*")
_NAMED = r'"(?:name|tool|tool_name|function|action)"\s*:\s*"([\w.-]{2,80})"\s*,\s*'
_GIVEN = r'"(?:arguments|parameters|args|input|tool_input|action_input|kwargs)"\s*:'
_AS_JSON = re2.compile(_NAMED + _GIVEN)
#: A tag whose name says that it holds a call, and right after it an object of name and arguments.
_TAGGED_OBJECT = re2.compile(r"(?i)<[\w-]{0,24}(?:call|tool|function|invoke)[\w-]{0,24}>[\s\[]*\{\s*" + _NAMED + _GIVEN)
#: An object that begins a line, in a tag or not, and is of a call whatever its name, where it ends the text.
_OBJECT = re2.compile(
    r"(?m)^\s*(?:<[\w-]{1,40}>)?[\s\[]*\{\s*"
    + _NAMED
    + r'"(?:arguments|parameters|tool_input|action_input)"\s*:\s*["{]'
)
_OBJECT_ENDS = re2.compile(r"\}[\s\],;]*(?:</[\w-]+>\s*)*$")


def call_in_text(text: str, is_tool: Callable[[str], bool]) -> str:
    """A call that is written out in a text, from where it begins; "" where there is none.

    is_tool: whether this is the name of one of the agent's tools. A call in the form of a protocol is one whatever its
    name: a tag, an object of name and arguments in a tag of a call, or on lines of its own at the end, `name({...})`
    where the text is nothing else. A function's call and any other object are one only where the name is a tool's. What
    stands in `inline code` is quoted.
    """
    text = ends(text)
    if "(" not in text and "<" not in text and ":" not in text and "[TOOL" not in text:
        return ""
    fenced = text.replace("```", "\n")
    bare = _CODED.sub("``", fenced) if "`" in fenced else fenced
    tagged = _TAGGED.search(bare) or _TAGGED_OBJECT.search(bare)
    if _BARE.fullmatch(bare):
        return bare.strip()[:200]
    if tagged:
        return bare[tagged.start() : tagged.start() + 200].strip()
    ending = _OBJECT.search(bare) if _OBJECT_ENDS.search(bare) else None
    if ending:
        return str(bare[ending.start() : ending.start() + 200]).strip()
    for found in _WRITTEN.finditer(bare):
        if is_tool(found[1]):
            return str(found[0]).strip(" \t>*-")[:200]
    for found in _AS_JSON.finditer(bare):
        if is_tool(found[1]):
            return str(found[0])[:200]
    return ""


_CLAIM = re2.compile(
    r"(?i)\b(?:done|completed?|success(?:ful|fully)?|succeeded|fixed|resolved|all set|finished|confirmed|"
    r"(?:has|have|was|were|is now|are now|been|i|i've|now) (?:been |now |just |already |successfully )*"
    r"[a-z]{3,20}(?:ed|ked|paid|sent|set|made))\b"
    r"|\b(?:erledigt|erfolgreich|abgeschlossen|fertig)\b"
    r"|\b(?:wurden?|habe|haben)\b[^.!?\n]{1,80}\b(?:ge|be|ver|ein|um|auf|ab|zurück)?\pL+(?:iert|[^n]t|en)\b"
    r"|\b(?:hecho|completad[oa]s?|list[oa]|(?:he|hemos|ha sido|han sido|se ha|se han) \pL+(?:ad|id)[oa]s?)\b|éxito"
    r"|\b(?:terminé|réussi|succès|effectué|(?:a|ont|j'ai|avons) (?:bien )?(?:été )?\pL+(?:é|ée|és|ées))(?:\PL|$)"
    r"|成功|完成|已经|搞定|已(?:为|将|取消|更新|退|处理|提交|预订|发送)"
)
_ADMISSION = re2.compile(
    r"(?i)\b(?:not|cannot|unable|unfortunately|sorry|apologi[sz]e|fail\w*|errors?|unsuccessful|retry|try again|however|"
    r"denied|rejected|declined|impossible)\b|n['’]t\b"
    r"|\b(?:nicht|kein\w*|leider|fehl\w*|konnte\w*|problem\w*|entschuldig\w*|erneut)\b"
    r"|\b(?:no (?:se|he|ha|hemos|pude|puedo|pudo|fue|es posible|hay)|fall[oa]\w*|lamento|lo siento|imposible)\b|falló"
    r"|\b(?:pas|erreurs?|malheureusement|impossible)\b|échou|désolé|problème"
    r"|无法|失败|错误|抱歉|未能|不能|没有|没能|问题|不成功|出错"
)
_MENDED = re2.compile(
    r"(?i)\b(?:fix|solv|resolv|correct|repair|mend|remov)\w*(?: \w+){0,3} (?:errors?|failures?|failing|failed)\b"
)


def claims_success(text: str) -> bool:
    """Does the agent say that something was done, and nothing of a failure?

    >>> [claims_success(text) for text in ("Your order has been cancelled.", "I could not cancel it.", "Which order?")]
    [True, False, False]
    """
    text = ends(text)
    return _CLAIM.search(text) is not None and _ADMISSION.search(_MENDED.sub(" ", text)) is None


_REQUEST = re2.compile(
    r"(?i)[?？؟请]|\b(?:please|need|provide|share|let me know|could you|would you|bitte|benötige|brauche|nennen|geben|"
    r"por favor|necesito|indique|s'il (?:vous|te)|besoin|veuillez)\b"
)


def asks(text: str) -> bool:
    """Does a text ask for something?

    >>> [asks(text) for text in ("Which order is it?", "I need your name.", "The order is on its way.")]
    [True, True, False]
    """
    return _REQUEST.search(ends(text)) is not None
