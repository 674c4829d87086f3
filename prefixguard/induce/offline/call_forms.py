"""How a call stands in the agent's text: which part is the tool, which the arguments, which is only said.

Forms are told by their shape over all the texts, never by known names of tools: a form holds if enough texts have it
and the names it yields are few and repeat. They are tried from the most specific to the least; the first that holds
is taken. Text that has none of them is speech.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prefixguard.induce.offline.text_call_brackets import bracketed
from prefixguard.induce.offline.text_call_form import MOST_NAMES, CallForm, Variant, vocabulary
from prefixguard.induce.offline.text_call_json import json_call, worded
from prefixguard.induce.offline.text_call_marked import labelled, tagged
from prefixguard.induce.offline.text_call_plain import code, commands, fenced
from prefixguard.induce.offline.text_words import sampled


def infer_call_form(texts: Sequence[str], at: str) -> CallForm | None:
    """The form of calls in what an agent said or did; None where the texts are speech.

    texts: raw, one a step. at: path of the text in the spec, such as "@.content".
    """
    kept = [text for text in sampled(texts) if text.strip()]
    if not kept:
        return None
    recognisers: tuple[Callable[[list[str], str], CallForm | None], ...] = (
        labelled,
        tagged,
        worded,
        json_call,
        bracketed,
        fenced,
        commands,
        code,
    )
    for recognise in recognisers:
        form = recognise(kept, at)
        if form is not None:
            return form
    return None


__all__ = ["MOST_NAMES", "CallForm", "Variant", "infer_call_form", "vocabulary"]
