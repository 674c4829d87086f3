"""What a visible fault looks like: values nobody gave, and calls that a tool refuses."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from prefixguard.lab.dice import Dice


def other_email(dice: Dice, email: str) -> str:
    """An email that is nearly `email` and belongs to nobody (every shop's emails end in a digit before the @)."""
    name, _, host = email.partition("@")
    stem = name.rstrip("0123456789")
    return dice.pick(
        (f"{stem}@{host}", f"{stem.replace('.', '')}{dice.digits(2)}@{host}", f"{stem.replace('.', '_')}@{host}")
    )


def made_up_order(dice: Dice, taken: Collection[str]) -> str:
    """The number of an order that does not exist."""
    while (order_id := f"#W{dice.digits(7)}") in taken:
        pass
    return order_id


def broken(dice: Dice, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """A call that its tool refuses, made from a right one."""
    ways: list[Mapping[str, Any] | str] = []
    for key in arguments:
        ways.append({k: v for k, v in arguments.items() if k != key})
    ways.append(json.dumps(dict(arguments))[: -dice.between(1, 12)])  # cut off in the middle
    if "order_id" in arguments:
        ways += 2 * [{**arguments, "order_id": str(arguments["order_id"]).lstrip("#")}]
    if "payment_id" in arguments:
        ways += 2 * [{**arguments, "payment_id": f"credit_card_{dice.digits(6)}"}]
    if "reason" in arguments:
        ways += 2 * [{**arguments, "reason": dice.pick(("customer request", "other", "changed mind"))}]
    if tool == "return_items":
        ways += 2 * [{**arguments, "item_ids": [dice.digits(9)]}]
    if tool == "exchange_item":
        ways += 2 * [{**arguments, "new_item_id": dice.digits(9)}]
    return dice.pick(ways)
