"""How sure a model was of a label, from the log-probabilities of the tokens that spell it."""

from __future__ import annotations

import math

from prefixguard.escalate.endpoint import Reply


def label_probability(reply: Reply, at: tuple[int, int]) -> float | None:
    """The probability, in [0, 1], of the tokens that spell `reply.text[at[0]:at[1]]`, given what stands before them.

    None where the server sent no log-probabilities, or their tokens, joined, do not hold the reply's text once, or one
    of them is no number of at most 0. Tokens that stick out over the label's ends (a quotation mark, a blank) count
    whole: what they add is nearly certain in the form that was asked for.
    """
    joined = "".join(token for token, _ in reply.logprobs)
    offset = joined.find(reply.text) if reply.text else -1
    if offset < 0 or joined.find(reply.text, offset + 1) >= 0:
        return None
    begin, end = offset + at[0], offset + at[1]
    total, position, met = 0.0, 0, False
    for token, value in reply.logprobs:
        if position < end and position + len(token) > begin:
            if math.isnan(value) or value > 0:
                return None
            total, met = total + value, True
        position += len(token)
    return math.exp(total) if met else None


__all__ = ["label_probability"]
