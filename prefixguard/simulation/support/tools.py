"""The tools an agent has: each is SQL over the shop's database.

A tool answers with JSON, or with a line that begins with "Error:". An error changes nothing.
"""

from __future__ import annotations

import inspect
import json
import sqlite3
from collections.abc import Callable
from typing import Any

#: What a tool answers while the service behind it is away for a moment; the call did nothing.
OUTAGE = "Error: the service did not answer in time, please try again"

CANCEL_REASONS = ("no longer needed", "ordered by mistake", "found cheaper elsewhere", "arrives too late")
REFUND_REASONS = ("damaged", "missing part", "late delivery", "price adjustment")

Database = sqlite3.Connection


class _Refused(Exception):
    """A tool's own refusal; its text becomes the tool's answer."""


def call_tool(database: Database, name: str, arguments: str) -> str:
    """What tool `name` answers to `arguments` (the raw string a model wrote).

    Never raises for what a model can write: bad JSON, unknown tools and wrong arguments are answered with an error.
    """
    try:
        given = json.loads(arguments)
    except ValueError:
        return "Error: arguments are not valid JSON"
    if name not in _TOOLS:
        return f"Error: there is no tool named {name}"
    wanted = tool_arguments(name)
    if not isinstance(given, dict):
        return "Error: arguments must be an object"
    for key in wanted:
        if key not in given:
            return f"Error: missing argument '{key}'"
    for key in given:
        if key not in wanted:
            return f"Error: unexpected argument '{key}'"
    try:
        for key, value in given.items():
            if key not in _NO_TEXTS:
                _check_text(key, value)
        return json.dumps(_TOOLS[name](database, **given))
    except _Refused as refusal:
        return f"Error: {refusal}"


def tool_names() -> tuple[str, ...]:
    return tuple(_TOOLS)


def tool_arguments(name: str) -> tuple[str, ...]:
    """Names of the arguments a tool requires."""
    return _ARGUMENTS[name]


def _check_text(key: str, value: object) -> None:
    if not isinstance(value, str):
        raise _Refused(f"'{key}' must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate: SQLite could not store it
        raise _Refused(f"'{key}' is not valid text") from None


def _row(database: Database, sql: str, values: tuple[Any, ...], otherwise: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = database.execute(sql, values).fetchone()
    if row is None:
        raise _Refused(otherwise)
    return row


def _order(database: Database, order_id: str, *statuses: str) -> tuple[Any, ...]:
    sql = (
        "SELECT order_id, user_id, status, placed_on, street, city, state, zip, payment_id, carrier, cancel_reason"
        " FROM orders WHERE order_id = ?"
    )
    row = _row(database, sql, (order_id,), f"order {order_id} not found")
    if statuses and row[2] not in statuses:
        raise _Refused(f"order {order_id} is {row[2]}, this needs a {statuses[0]} order")
    return row


def _check_payment(database: Database, payment_id: str, user_id: str) -> None:
    sql = "SELECT 1 FROM payment_methods WHERE payment_id = ? AND user_id = ?"
    _row(database, sql, (payment_id, user_id), f"payment method {payment_id} not found for this customer")


def _check_reason(reason: str, known: tuple[str, ...]) -> None:
    if reason not in known:
        raise _Refused(f"reason must be one of: {', '.join(known)}")


def find_user(database: Database, email: str) -> Any:
    row = _row(database, "SELECT user_id FROM users WHERE email = ?", (email.lower(),), f"no user with email {email}")
    return {"user_id": row[0]}


def find_user_by_name(database: Database, first_name: str, last_name: str, zip: str) -> Any:
    sql = "SELECT user_id FROM users WHERE first_name = ? AND last_name = ? AND zip = ?"
    return {"user_id": _row(database, sql, (first_name, last_name, zip), "no user with that name and zip code")[0]}


def get_user(database: Database, user_id: str) -> Any:
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


def verify_identity(database: Database, user_id: str, zip: str) -> Any:
    sql = "SELECT 1 FROM users WHERE user_id = ? AND zip = ?"
    _row(database, sql, (user_id, zip), "the details do not match our records")
    database.execute("UPDATE cases SET user_id = ?, verified = 1", (user_id,))
    return {"user_id": user_id, "identity": "confirmed"}


def list_orders(database: Database, user_id: str) -> Any:
    _row(database, "SELECT 1 FROM users WHERE user_id = ?", (user_id,), f"user {user_id} not found")
    rows = database.execute(
        "SELECT order_id, status, placed_on FROM orders WHERE user_id = ? ORDER BY placed_on DESC, order_id", (user_id,)
    )
    return {"orders": [{"order_id": o, "status": s, "placed_on": p} for o, s, p in rows]}


def get_order(database: Database, order_id: str) -> Any:
    row = _order(database, order_id)
    lines = database.execute(
        "SELECT v.item_id, p.name, v.options, v.cents, l.state, l.successor FROM order_items l"
        " JOIN variants v ON v.item_id = l.item_id JOIN products p ON p.product_id = v.product_id"
        " WHERE l.order_id = ? ORDER BY l.line",
        (order_id,),
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
        "order_id": order_id,
        "user_id": row[1],
        "status": row[2],
        "placed_on": row[3],
        "address": {"street": row[4], "city": row[5], "state": row[6], "zip": row[7]},
        "payment_id": row[8],
        "items": items,
    }


def get_product(database: Database, name: str) -> Any:
    row = _row(database, "SELECT product_id FROM products WHERE name = ?", (name,), f"no product named {name}")
    variants = database.execute(
        "SELECT item_id, options, cents, stock FROM variants WHERE product_id = ? ORDER BY item_id", row
    )
    shown = [{"item_id": i, "options": json.loads(o), "price": c / 100, "in_stock": s} for i, o, c, s in variants]
    return {"product_id": row[0], "name": name, "variants": shown}


def track_shipment(database: Database, order_id: str) -> Any:
    row = _order(database, order_id)
    return {"order_id": order_id, "status": row[2], "carrier": row[9], "destination": f"{row[5]}, {row[6]}"}


def cancel_order(database: Database, order_id: str, reason: str) -> Any:
    _order(database, order_id, "pending")
    _check_reason(reason, CANCEL_REASONS)
    database.execute("UPDATE orders SET status = 'cancelled', cancel_reason = ? WHERE order_id = ?", (reason, order_id))
    return {"order_id": order_id, "status": "cancelled", "reason": reason}


def _line_of(database: Database, order_id: str, item_id: str) -> tuple[int, int]:
    sql = (
        "SELECT l.line, v.cents FROM order_items l JOIN variants v ON v.item_id = l.item_id"
        " WHERE l.order_id = ? AND l.item_id = ? AND l.state = 'kept'"
    )
    line, cents = _row(database, sql, (order_id, item_id), f"item {item_id} is not in order {order_id}")
    return line, cents


def return_items(database: Database, order_id: str, item_ids: Any, payment_id: str) -> Any:
    _check_payment(database, payment_id, _order(database, order_id, "delivered")[1])
    if not isinstance(item_ids, list) or not item_ids or not all(isinstance(item, str) for item in item_ids):
        raise _Refused("'item_ids' must be a list of item ids")
    if len(set(item_ids)) != len(item_ids):
        raise _Refused("'item_ids' names an item twice")
    for item in item_ids:
        _check_text("item_ids", item)
    lines = [_line_of(database, order_id, item) for item in item_ids]
    database.executemany("UPDATE order_items SET state = 'returning' WHERE line = ?", [(line,) for line, _ in lines])
    cents = sum(price for _, price in lines)
    _put_refund(database, order_id, payment_id, cents, "return")
    return {"order_id": order_id, "returning": item_ids, "refund": cents / 100, "payment_id": payment_id}


def exchange_item(database: Database, order_id: str, item_id: str, new_item_id: str, payment_id: str) -> Any:
    _check_payment(database, payment_id, _order(database, order_id, "delivered")[1])
    line, cents = _line_of(database, order_id, item_id)
    sql = "SELECT product_id, cents FROM variants WHERE item_id = ?"
    product, price = _row(database, sql, (new_item_id,), f"item {new_item_id} not found")
    if product != _row(database, sql, (item_id,), f"item {item_id} not found")[0] or new_item_id == item_id:
        raise _Refused(f"item {new_item_id} is not another variant of the same product")
    database.execute("UPDATE order_items SET state = 'exchanging', successor = ? WHERE line = ?", (new_item_id, line))
    _put_refund(database, order_id, payment_id, cents - price, "exchange")
    return {"order_id": order_id, "item_id": item_id, "new_item_id": new_item_id, "difference": (price - cents) / 100}


def _put_refund(database: Database, order_id: str, payment_id: str, cents: int, reason: str) -> None:
    """A refund that is not yet paid out is replaced by a later one for the same order."""
    database.execute("INSERT OR REPLACE INTO refunds VALUES (?, ?, ?, ?)", (order_id, payment_id, cents, reason))


def modify_address(database: Database, order_id: str, street: str, city: str, state: str, zip: str) -> Any:
    _order(database, order_id, "pending")
    if len(zip) != 5 or not zip.isdigit():
        raise _Refused("zip must have five digits")
    database.execute(
        "UPDATE orders SET street = ?, city = ?, state = ?, zip = ? WHERE order_id = ?",
        (street, city, state, zip, order_id),
    )
    return {"order_id": order_id, "address": {"street": street, "city": city, "state": state, "zip": zip}}


def change_payment(database: Database, order_id: str, payment_id: str) -> Any:
    _check_payment(database, payment_id, _order(database, order_id, "pending")[1])
    database.execute("UPDATE orders SET payment_id = ? WHERE order_id = ?", (payment_id, order_id))
    return {"order_id": order_id, "payment_id": payment_id}


def refund(database: Database, order_id: str, amount: Any, payment_id: str, reason: str) -> Any:
    _check_payment(database, payment_id, _order(database, order_id, "delivered")[1])
    _check_reason(reason, REFUND_REASONS)
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise _Refused("'amount' must be a number")
    sql = "SELECT sum(v.cents) FROM order_items l JOIN variants v ON v.item_id = l.item_id WHERE l.order_id = ?"
    total = database.execute(sql, (order_id,)).fetchone()[0]
    if not 0 < amount * 100 <= total:
        raise _Refused(f"amount must be above 0 and at most {total / 100}")
    _put_refund(database, order_id, payment_id, round(amount * 100), reason)
    return {"order_id": order_id, "refund": amount, "payment_id": payment_id, "reason": reason}


def transfer_to_human(database: Database, summary: str) -> Any:
    database.execute("UPDATE cases SET state = 'transferred'")
    return {"transfer": "queued"}


#: Arguments that are no texts; their tools check them.
_NO_TEXTS = ("item_ids", "amount")
_TOOLS: dict[str, Callable[..., Any]] = {
    tool.__name__: tool
    for tool in (
        *(find_user, find_user_by_name, get_user, verify_identity, list_orders, get_order, get_product),
        *(track_shipment, cancel_order, return_items, exchange_item, modify_address, change_payment, refund),
        transfer_to_human,
    )
}
_ARGUMENTS = {name: tuple(inspect.signature(tool).parameters)[1:] for name, tool in _TOOLS.items()}
