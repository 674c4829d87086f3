"""The tools an agent has: each is SQL over the shop's database.

A tool answers with JSON, or with a line that begins with "Error:". An error changes nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

#: What a tool answers while the service behind it is away for a moment; the call did nothing.
OUTAGE = "Error: the service did not answer in time, please try again"

CANCEL_REASONS = ("no longer needed", "ordered by mistake", "found cheaper elsewhere", "arrives too late")
REFUND_REASONS = ("damaged", "missing part", "late delivery", "price adjustment")


class _Refused(Exception):
    """A tool's own refusal; its text becomes the tool's answer."""


def call_tool(database: sqlite3.Connection, name: str, arguments: str) -> str:
    """What tool `name` answers to `arguments` (the raw string a model wrote).

    Never raises for what a model can write: bad JSON, unknown tools and wrong arguments are answered with an error.
    """
    try:
        given = json.loads(arguments)
    except ValueError:
        return "Error: arguments are not valid JSON"
    if name not in _TOOLS:
        return f"Error: there is no tool named {name}"
    tool, wanted = _TOOLS[name]
    if not isinstance(given, dict):
        return "Error: arguments must be an object"
    for key in wanted:
        if key not in given:
            return f"Error: missing argument '{key}'"
    for key in given:
        if key not in wanted:
            return f"Error: unexpected argument '{key}'"
    try:
        return json.dumps(tool(database, given))
    except _Refused as refusal:
        return f"Error: {refusal}"


def tool_names() -> tuple[str, ...]:
    return tuple(_TOOLS)


def tool_arguments(name: str) -> tuple[str, ...]:
    """Names of the arguments a tool requires."""
    return _TOOLS[name][1]


def _row(database: sqlite3.Connection, sql: str, values: tuple[Any, ...], otherwise: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = database.execute(sql, values).fetchone()
    if row is None:
        raise _Refused(otherwise)
    return row


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments[key]
    if not isinstance(value, str):
        raise _Refused(f"'{key}' must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate: SQLite could not store it
        raise _Refused(f"'{key}' is not valid text") from None
    return value


def _order(database: sqlite3.Connection, order_id: str, *statuses: str) -> tuple[Any, ...]:
    row = _row(
        database,
        "SELECT order_id, user_id, status, placed_on, street, city, state, zip, payment_id, carrier, cancel_reason"
        " FROM orders WHERE order_id = ?",
        (order_id,),
        f"order {order_id} not found",
    )
    if statuses and row[2] not in statuses:
        raise _Refused(f"order {order_id} is {row[2]}, this needs a {statuses[0]} order")
    return row


def _payment_of(database: sqlite3.Connection, payment_id: str, user_id: str) -> str:
    _row(
        database,
        "SELECT 1 FROM payment_methods WHERE payment_id = ? AND user_id = ?",
        (payment_id, user_id),
        f"payment method {payment_id} not found for this customer",
    )
    return payment_id


def _find_user(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    email = _text(a, "email")
    row = _row(database, "SELECT user_id FROM users WHERE email = ?", (email.lower(),), f"no user with email {email}")
    return {"user_id": row[0]}


def _find_user_by_name(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    key = (_text(a, "first_name"), _text(a, "last_name"), _text(a, "zip"))
    sql = "SELECT user_id FROM users WHERE first_name = ? AND last_name = ? AND zip = ?"
    return {"user_id": _row(database, sql, key, "no user with that name and zip code")[0]}


def _get_user(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    user_id = _text(a, "user_id")
    sql = "SELECT first_name, last_name, email, street, city, state, zip FROM users WHERE user_id = ?"
    row = _row(database, sql, (user_id,), f"user {user_id} not found")
    payments = database.execute(
        "SELECT payment_id, kind, detail FROM payment_methods WHERE user_id = ? ORDER BY rowid", (user_id,)
    )
    return {
        "user_id": user_id,
        "name": f"{row[0]} {row[1]}",
        "email": row[2],
        "address": {"street": row[3], "city": row[4], "state": row[5], "zip": row[6]},
        "payment_methods": [{"payment_id": p, "kind": k, "detail": d} for p, k, d in payments],
    }


def _verify_identity(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    user_id = _text(a, "user_id")
    sql = "SELECT 1 FROM users WHERE user_id = ? AND zip = ?"
    _row(database, sql, (user_id, _text(a, "zip")), "the details do not match our records")
    database.execute("UPDATE cases SET user_id = ?, verified = 1", (user_id,))
    return {"user_id": user_id, "identity": "confirmed"}


def _list_orders(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    user_id = _text(a, "user_id")
    _row(database, "SELECT 1 FROM users WHERE user_id = ?", (user_id,), f"user {user_id} not found")
    rows = database.execute(
        "SELECT order_id, status, placed_on FROM orders WHERE user_id = ? ORDER BY placed_on DESC, order_id", (user_id,)
    ).fetchall()
    return {"orders": [{"order_id": o, "status": s, "placed_on": p} for o, s, p in rows]}


def _get_order(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    row = _order(database, _text(a, "order_id"))
    lines = database.execute(
        "SELECT v.item_id, p.name, v.options, v.cents, l.state, l.successor FROM order_items l"
        " JOIN variants v ON v.item_id = l.item_id JOIN products p ON p.product_id = v.product_id"
        " WHERE l.order_id = ? ORDER BY l.line",
        (row[0],),
    )
    items = []
    for item_id, name, options, cents, state, successor in lines:
        item = {"item_id": item_id, "name": name, "options": json.loads(options), "price": cents / 100}
        if state != "kept":
            item["state"] = state
        if successor:
            item["exchanged_for"] = successor
        items.append(item)
    return {
        "order_id": row[0],
        "user_id": row[1],
        "status": row[2],
        "placed_on": row[3],
        "address": {"street": row[4], "city": row[5], "state": row[6], "zip": row[7]},
        "payment_id": row[8],
        "items": items,
    }


def _get_product(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    name = _text(a, "name")
    row = _row(database, "SELECT product_id FROM products WHERE name = ?", (name,), f"no product named {name}")
    variants = database.execute(
        "SELECT item_id, options, cents, stock FROM variants WHERE product_id = ? ORDER BY item_id", row
    )
    return {
        "product_id": row[0],
        "name": name,
        "variants": [
            {"item_id": i, "options": json.loads(o), "price": c / 100, "in_stock": s} for i, o, c, s in variants
        ],
    }


def _track_shipment(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    row = _order(database, _text(a, "order_id"))
    return {"order_id": row[0], "status": row[2], "carrier": row[9], "destination": f"{row[5]}, {row[6]}"}


def _cancel_order(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    row = _order(database, _text(a, "order_id"), "pending")
    reason = _text(a, "reason")
    if reason not in CANCEL_REASONS:
        raise _Refused(f"reason must be one of: {', '.join(CANCEL_REASONS)}")
    database.execute("UPDATE orders SET status = 'cancelled', cancel_reason = ? WHERE order_id = ?", (reason, row[0]))
    return {"order_id": row[0], "status": "cancelled", "reason": reason}


def _line_of(database: sqlite3.Connection, order_id: str, item_id: str) -> tuple[int, int]:
    line, cents = _row(
        database,
        "SELECT l.line, v.cents FROM order_items l JOIN variants v ON v.item_id = l.item_id"
        " WHERE l.order_id = ? AND l.item_id = ? AND l.state = 'kept'",
        (order_id, item_id),
        f"item {item_id} is not in order {order_id}",
    )
    return line, cents


def _return_items(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    row = _order(database, _text(a, "order_id"), "delivered")
    payment_id = _payment_of(database, _text(a, "payment_id"), row[1])
    items = a["item_ids"]
    if not isinstance(items, list) or not items or not all(isinstance(item, str) for item in items):
        raise _Refused("'item_ids' must be a list of item ids")
    if len(set(items)) != len(items):
        raise _Refused("'item_ids' names an item twice")
    lines = [_line_of(database, row[0], _text({"item_ids": item}, "item_ids")) for item in items]
    database.executemany("UPDATE order_items SET state = 'returning' WHERE line = ?", [(line,) for line, _ in lines])
    cents = sum(price for _, price in lines)
    _put_refund(database, row[0], payment_id, cents, "return")
    return {"order_id": row[0], "returning": items, "refund": cents / 100, "payment_id": payment_id}


def _exchange_item(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    row = _order(database, _text(a, "order_id"), "delivered")
    payment_id = _payment_of(database, _text(a, "payment_id"), row[1])
    old, new = _text(a, "item_id"), _text(a, "new_item_id")
    line, cents = _line_of(database, row[0], old)
    sql = "SELECT product_id, cents FROM variants WHERE item_id = ?"
    product, price = _row(database, sql, (new,), f"item {new} not found")
    if product != _row(database, sql, (old,), f"item {old} not found")[0] or new == old:
        raise _Refused(f"item {new} is not another variant of the same product")
    database.execute("UPDATE order_items SET state = 'exchanging', successor = ? WHERE line = ?", (new, line))
    _put_refund(database, row[0], payment_id, cents - price, "exchange")
    return {"order_id": row[0], "item_id": old, "new_item_id": new, "difference": (price - cents) / 100}


def _put_refund(database: sqlite3.Connection, order_id: str, payment_id: str, cents: int, reason: str) -> None:
    """A refund that is not yet paid out is replaced by a later one for the same order."""
    database.execute("INSERT OR REPLACE INTO refunds VALUES (?, ?, ?, ?)", (order_id, payment_id, cents, reason))


def _modify_address(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    row = _order(database, _text(a, "order_id"), "pending")
    address = {key: _text(a, key) for key in ("street", "city", "state", "zip")}
    if len(address["zip"]) != 5 or not address["zip"].isdigit():
        raise _Refused("zip must have five digits")
    database.execute(
        "UPDATE orders SET street = ?, city = ?, state = ?, zip = ? WHERE order_id = ?", (*address.values(), row[0])
    )
    return {"order_id": row[0], "address": address}


def _change_payment(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    row = _order(database, _text(a, "order_id"), "pending")
    payment_id = _payment_of(database, _text(a, "payment_id"), row[1])
    database.execute("UPDATE orders SET payment_id = ? WHERE order_id = ?", (payment_id, row[0]))
    return {"order_id": row[0], "payment_id": payment_id}


def _refund(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    row = _order(database, _text(a, "order_id"), "delivered")
    payment_id = _payment_of(database, _text(a, "payment_id"), row[1])
    amount, reason = a["amount"], _text(a, "reason")
    if reason not in REFUND_REASONS:
        raise _Refused(f"reason must be one of: {', '.join(REFUND_REASONS)}")
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise _Refused("'amount' must be a number")
    total = database.execute(
        "SELECT sum(v.cents) FROM order_items l JOIN variants v ON v.item_id = l.item_id WHERE l.order_id = ?",
        (row[0],),
    ).fetchone()[0]
    if not 0 < amount * 100 <= total:
        raise _Refused(f"amount must be above 0 and at most {total / 100}")
    _put_refund(database, row[0], payment_id, round(amount * 100), reason)
    return {"order_id": row[0], "refund": amount, "payment_id": payment_id, "reason": reason}


def _transfer_to_human(database: sqlite3.Connection, a: Mapping[str, Any]) -> Any:
    _text(a, "summary")
    database.execute("UPDATE cases SET state = 'transferred'")
    return {"transfer": "queued"}


_Tool = Callable[[sqlite3.Connection, Mapping[str, Any]], Any]
_TOOLS: dict[str, tuple[_Tool, tuple[str, ...]]] = {
    "find_user": (_find_user, ("email",)),
    "find_user_by_name": (_find_user_by_name, ("first_name", "last_name", "zip")),
    "get_user": (_get_user, ("user_id",)),
    "verify_identity": (_verify_identity, ("user_id", "zip")),
    "list_orders": (_list_orders, ("user_id",)),
    "get_order": (_get_order, ("order_id",)),
    "get_product": (_get_product, ("name",)),
    "track_shipment": (_track_shipment, ("order_id",)),
    "cancel_order": (_cancel_order, ("order_id", "reason")),
    "return_items": (_return_items, ("order_id", "item_ids", "payment_id")),
    "exchange_item": (_exchange_item, ("order_id", "item_id", "new_item_id", "payment_id")),
    "modify_address": (_modify_address, ("order_id", "street", "city", "state", "zip")),
    "change_payment": (_change_payment, ("order_id", "payment_id")),
    "refund": (_refund, ("order_id", "amount", "payment_id", "reason")),
    "transfer_to_human": (_transfer_to_human, ("summary",)),
}
