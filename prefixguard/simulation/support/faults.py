"""Who plays the agent, and the faults it makes: named skill profiles, each a table of how often it does what, and what
a visible fault looks like.

A fault is a choice at a point of the script, made with the profile's rate and nothing else. That is what makes the
true risk computable (`observer`): given the profile, points are independent. A visible one shows in values nobody gave
and in calls that a tool refuses.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from prefixguard.simulation.rng import Rng

#: Every fault, and whether the trace shows it. A silent fault changes one value of one call, and nothing else.
FAULTS: Mapping[str, bool] = MappingProxyType(
    {
        "mistyped_lookup": True,  # looks the customer up under an email nobody gave: an error
        "unverified": True,  # never confirms who it is talking to
        "forgotten_wish": True,  # takes leave with a wish still open
        "gave_up": True,  # hands over or excuses itself without a need
        "made_up_order": True,  # opens an order whose number it invented: an error
        "wrong_order": True,  # opens another order of the customer, who objects
        "repeated_read": True,  # makes the very same look-up again and again; costs time only
        "unconfirmed": True,  # changes something without asking first; against the policy, harmless here
        "bad_argument": True,  # a call its tool refuses
        "mistyped_value": True,  # a call with a value nobody said
        "lost_write": True,  # says it is done, and never made the call
        "wrong_value": False,  # a call with the wrong one of the values on screen
    }
)


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of agent. All numbers but `share` are probabilities.

    share: how often this profile plays, against the others'.
    lookup, unverified, forgets, quits, made_up, wrong_order, rereads, unconfirmed, bad_argument, mistyped, lost_write,
        silent: of the fault, at each point where it can happen.
    remembers: to confirm the identity after all, before each wish.
    recovers, despairs: after each error of its own making: does it right, gives up; else it tries the like again.
    mends: to put right what the customer objects to.
    """

    name: str
    share: float
    lookup: float
    unverified: float
    remembers: float
    forgets: float
    quits: float
    made_up: float
    wrong_order: float
    rereads: float
    unconfirmed: float
    bad_argument: float
    mistyped: float
    lost_write: float
    silent: float
    recovers: float
    despairs: float
    mends: float


PROFILES: tuple[Profile, ...] = (
    Profile(
        "careful", 0.20, lookup=0.01, unverified=0.01, remembers=0.8, forgets=0.01, quits=0.0, made_up=0.01,
        wrong_order=0.02, rereads=0.02, unconfirmed=0.02, bad_argument=0.02, mistyped=0.01, lost_write=0.005,
        silent=0.02, recovers=0.85, despairs=0.02, mends=0.95,
    ),
    Profile(
        "steady", 0.27, lookup=0.03, unverified=0.02, remembers=0.5, forgets=0.03, quits=0.005, made_up=0.03,
        wrong_order=0.05, rereads=0.04, unconfirmed=0.08, bad_argument=0.07, mistyped=0.04, lost_write=0.01,
        silent=0.05, recovers=0.7, despairs=0.05, mends=0.85,
    ),
    Profile(
        "hasty", 0.18, lookup=0.06, unverified=0.10, remembers=0.25, forgets=0.05, quits=0.01, made_up=0.06,
        wrong_order=0.08, rereads=0.03, unconfirmed=0.45, bad_argument=0.12, mistyped=0.14, lost_write=0.03,
        silent=0.10, recovers=0.6, despairs=0.10, mends=0.7,
    ),
    Profile(
        "forgetful", 0.13, lookup=0.04, unverified=0.12, remembers=0.3, forgets=0.16, quits=0.01, made_up=0.05,
        wrong_order=0.10, rereads=0.14, unconfirmed=0.12, bad_argument=0.07, mistyped=0.06, lost_write=0.10,
        silent=0.06, recovers=0.6, despairs=0.08, mends=0.75,
    ),
    Profile(
        "guessing", 0.12, lookup=0.20, unverified=0.04, remembers=0.4, forgets=0.04, quits=0.03, made_up=0.30,
        wrong_order=0.15, rereads=0.05, unconfirmed=0.15, bad_argument=0.25, mistyped=0.10, lost_write=0.03,
        silent=0.09, recovers=0.35, despairs=0.13, mends=0.6,
    ),
    Profile(
        "stubborn", 0.10, lookup=0.08, unverified=0.03, remembers=0.3, forgets=0.03, quits=0.02, made_up=0.12,
        wrong_order=0.15, rereads=0.25, unconfirmed=0.10, bad_argument=0.22, mistyped=0.07, lost_write=0.03,
        silent=0.06, recovers=0.14, despairs=0.09, mends=0.3,
    ),
)  # fmt: skip

#: How often the customer notices: a value that is not the one given, a change that never arrives, a wish left open.
NOTICES: Mapping[str, float] = MappingProxyType({"mistyped_value": 0.5, "lost_write": 0.5, "forgotten_wish": 0.6})


def other_email(rng: Rng, email: str) -> str:
    """An email that is nearly `email` and belongs to nobody (every shop's emails end in a digit before the @)."""
    name, _, host = email.partition("@")
    stem = name.rstrip("0123456789")
    return rng.pick(
        (f"{stem}@{host}", f"{stem.replace('.', '')}{rng.digits(2)}@{host}", f"{stem.replace('.', '_')}@{host}")
    )


def made_up_order(rng: Rng, taken: Collection[str]) -> str:
    """The number of an order that does not exist."""
    while (order_id := f"#W{rng.digits(7)}") in taken:
        pass
    return order_id


def broken(rng: Rng, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """A call that its tool refuses, made from a right one."""
    ways: list[Mapping[str, Any] | str] = []
    for key in arguments:
        ways.append({k: v for k, v in arguments.items() if k != key})
    ways.append(json.dumps(dict(arguments))[: -rng.between(1, 12)])  # cut off in the middle
    if "order_id" in arguments:
        ways += 2 * [{**arguments, "order_id": str(arguments["order_id"]).lstrip("#")}]
    if "payment_id" in arguments:
        ways += 2 * [{**arguments, "payment_id": f"credit_card_{rng.digits(6)}"}]
    if "reason" in arguments:
        ways += 2 * [{**arguments, "reason": rng.pick(("customer request", "other", "changed mind"))}]
    if tool == "return_items":
        ways += 2 * [{**arguments, "item_ids": [rng.digits(9)]}]
    if tool == "exchange_item":
        ways += 2 * [{**arguments, "new_item_id": rng.digits(9)}]
    return rng.pick(ways)
