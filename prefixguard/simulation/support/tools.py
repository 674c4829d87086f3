"""The tools an agent has: methods of the database of one run, which hold all that they can read and change.

A tool answers with JSON, or with a line that begins with "Error:". An error changes nothing.
"""

from __future__ import annotations

import copy
import inspect
import json
from dataclasses import asdict
from typing import Any

from prefixguard.simulation.support.shop import Customer, Shop, catalogue, product_ids

#: What a tool answers while the service behind it is away for a moment; the call did nothing.
OUTAGE = "Error: the service did not answer in time, please try again"

CANCEL_REASONS = ("no longer needed", "ordered by mistake", "found cheaper elsewhere", "arrives too late")
REFUND_REASONS = ("damaged", "missing part", "late delivery", "price adjustment")
#: Arguments that are no texts; their tools check them.
_NO_TEXTS = ("item_ids", "amount")


class _Refused(Exception):
    """A tool's own refusal; its text becomes the tool's answer."""


class Database:
    """A shop while a run changes it. Public methods but `call` and `state` are tools."""

    def __init__(self, shop: Shop) -> None:
        self._products = catalogue(shop.seed)
        self._product_ids = product_ids(shop.seed)
        self._variants = {v.item_id: v for variants in self._products.values() for v in variants}
        self._users = {customer.user_id: customer for customer in shop.customers}
        self._orders: dict[str, dict[str, Any]] = {
            order.order_id: {
                **{name: getattr(order, name) for name in order.__slots__},  # not asdict: it copies every item
                "address": asdict(order.address),
                "cancel_reason": None,
                "items": [{"item_id": v.item_id, "state": "kept", "successor": None} for v in order.items],
            }
            for order in shop.orders
        }
        self._refunds: dict[str, tuple[str, int, str]] = {}
        self._case: dict[str, Any] = {"user_id": None, "verified": False, "state": "open"}

    def state(self) -> Any:
        """All that a tool can change, as it is now: what a verdict compares."""
        return copy.deepcopy((self._orders, self._refunds, self._case))

    def call(self, name: str, arguments: str) -> str:
        """What tool `name` answers to `arguments` (the raw string a model wrote).

        Never raises for what a model can write: bad JSON, unknown tools and wrong arguments are answered with an error.
        """
        try:
            given = json.loads(arguments)
        except ValueError:
            return "Error: arguments are not valid JSON"
        if name not in TOOLS:
            return f"Error: there is no tool named {name}"
        if not isinstance(given, dict):
            return "Error: arguments must be an object"
        for key in TOOLS[name]:
            if key not in given:
                return f"Error: missing argument '{key}'"
        for key in given:
            if key not in TOOLS[name]:
                return f"Error: unexpected argument '{key}'"
        try:
            for key, value in given.items():
                if key not in _NO_TEXTS:
                    _check_text(key, value)
            return json.dumps(getattr(self, name)(**given))
        except _Refused as refusal:
            return f"Error: {refusal}"

    def find_user(self, email: str) -> Any:
        found = [user for user in self._users.values() if user.email == email.lower()]
        return self._first(found, f"no user with email {email}")

    def find_user_by_name(self, first_name: str, last_name: str, zip: str) -> Any:
        given = (first_name, last_name, zip)
        found = [user for user in self._users.values() if (user.first, user.last, user.address.zip) == given]
        return self._first(found, "no user with that name and zip code")

    def get_user(self, user_id: str) -> Any:
        user = self._user(user_id)
        return {
            "user_id": user_id,
            "name": f"{user.first} {user.last}",
            "email": user.email,
            "address": asdict(user.address),
            "payment_methods": [asdict(payment) for payment in user.payments],
        }

    def verify_identity(self, user_id: str, zip: str) -> Any:
        if user_id not in self._users or self._users[user_id].address.zip != zip:
            raise _Refused("the details do not match our records")
        self._case |= {"user_id": user_id, "verified": True}
        return {"user_id": user_id, "identity": "confirmed"}

    def list_orders(self, user_id: str) -> Any:
        self._user(user_id)
        mine = sorted((o for o in self._orders.values() if o["user_id"] == user_id), key=lambda o: str(o["order_id"]))
        mine.sort(key=lambda o: str(o["placed_on"]), reverse=True)
        return {"orders": [{name: order[name] for name in ("order_id", "status", "placed_on")} for order in mine]}

    def get_order(self, order_id: str) -> Any:
        order, items = self._order(order_id), []
        for line in order["items"]:
            v = self._variants[line["item_id"]]
            item = {"item_id": v.item_id, "name": v.product, "options": dict(v.options), "price": v.cents / 100}
            if line["state"] != "kept":
                item["state"] = line["state"]
            if line["successor"]:
                item["exchanged_for"] = line["successor"]
            items.append(item)
        shown = ("order_id", "user_id", "status", "placed_on", "address", "payment_id")
        return {**{name: order[name] for name in shown}, "items": items}

    def get_product(self, name: str) -> Any:
        if name not in self._products:
            raise _Refused(f"no product named {name}")
        shown = [
            {"item_id": v.item_id, "options": dict(v.options), "price": v.cents / 100, "in_stock": v.stock}
            for v in sorted(self._products[name], key=lambda v: v.item_id)
        ]
        return {"product_id": self._product_ids[name], "name": name, "variants": shown}

    def track_shipment(self, order_id: str) -> Any:
        order = self._order(order_id)
        place = order["address"]
        destination = f"{place['city']}, {place['state']}"
        return {
            "order_id": order_id, "status": order["status"], "carrier": order["carrier"], "destination": destination
        }  # fmt: skip

    def cancel_order(self, order_id: str, reason: str) -> Any:
        order = self._order(order_id, "pending")
        _check_reason(reason, CANCEL_REASONS)
        order |= {"status": "cancelled", "cancel_reason": reason}
        return {"order_id": order_id, "status": "cancelled", "reason": reason}

    def return_items(self, order_id: str, item_ids: Any, payment_id: str) -> Any:
        order = self._paid(order_id, payment_id, "delivered")
        if not isinstance(item_ids, list) or not item_ids or not all(isinstance(item, str) for item in item_ids):
            raise _Refused("'item_ids' must be a list of item ids")
        if len(set(item_ids)) != len(item_ids):
            raise _Refused("'item_ids' names an item twice")
        for item in item_ids:
            _check_text("item_ids", item)
        lines = [_kept(order, item) for item in item_ids]
        for line in lines:
            line["state"] = "returning"
        cents = sum(self._variants[item].cents for item in item_ids)
        self._refunds[order_id] = (payment_id, cents, "return")
        return {"order_id": order_id, "returning": item_ids, "refund": cents / 100, "payment_id": payment_id}

    def exchange_item(self, order_id: str, item_id: str, new_item_id: str, payment_id: str) -> Any:
        line = _kept(self._paid(order_id, payment_id, "delivered"), item_id)
        if new_item_id not in self._variants:
            raise _Refused(f"item {new_item_id} not found")
        old, new = self._variants[item_id], self._variants[new_item_id]
        if old.product != new.product or new_item_id == item_id:
            raise _Refused(f"item {new_item_id} is not another variant of the same product")
        line |= {"state": "exchanging", "successor": new_item_id}
        self._refunds[order_id] = (payment_id, old.cents - new.cents, "exchange")
        difference = (new.cents - old.cents) / 100
        return {"order_id": order_id, "item_id": item_id, "new_item_id": new_item_id, "difference": difference}

    def modify_address(self, order_id: str, street: str, city: str, state: str, zip: str) -> Any:
        order = self._order(order_id, "pending")
        if len(zip) != 5 or not zip.isdigit():
            raise _Refused("zip must have five digits")
        order["address"] = {"street": street, "city": city, "state": state, "zip": zip}
        return {"order_id": order_id, "address": order["address"]}

    def change_payment(self, order_id: str, payment_id: str) -> Any:
        self._paid(order_id, payment_id, "pending")["payment_id"] = payment_id
        return {"order_id": order_id, "payment_id": payment_id}

    def refund(self, order_id: str, amount: Any, payment_id: str, reason: str) -> Any:
        order = self._paid(order_id, payment_id, "delivered")
        _check_reason(reason, REFUND_REASONS)
        if isinstance(amount, bool) or not isinstance(amount, int | float):
            raise _Refused("'amount' must be a number")
        total = sum(self._variants[line["item_id"]].cents for line in order["items"])
        if not 0 < amount * 100 <= total:
            raise _Refused(f"amount must be above 0 and at most {total / 100}")
        self._refunds[order_id] = (payment_id, round(amount * 100), reason)
        return {"order_id": order_id, "refund": amount, "payment_id": payment_id, "reason": reason}

    def transfer_to_human(self, summary: str) -> Any:
        self._case["state"] = "transferred"
        return {"transfer": "queued"}

    def _first(self, found: list[Customer], otherwise: str) -> Any:
        if not found:
            raise _Refused(otherwise)
        return {"user_id": found[0].user_id}

    def _user(self, user_id: str) -> Customer:
        if user_id not in self._users:
            raise _Refused(f"user {user_id} not found")
        return self._users[user_id]

    def _order(self, order_id: str, status: str = "") -> dict[str, Any]:
        """The order, in this status where one is named."""
        if order_id not in self._orders:
            raise _Refused(f"order {order_id} not found")
        order = self._orders[order_id]
        if status and order["status"] != status:
            raise _Refused(f"order {order_id} is {order['status']}, this needs a {status} order")
        return order

    def _paid(self, order_id: str, payment_id: str, status: str) -> dict[str, Any]:
        """The order, whose customer has this way to pay."""
        order = self._order(order_id, status)
        if payment_id not in {payment.payment_id for payment in self._users[order["user_id"]].payments}:
            raise _Refused(f"payment method {payment_id} not found for this customer")
        return order


def _check_text(key: str, value: object) -> None:
    if not isinstance(value, str):
        raise _Refused(f"'{key}' must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        raise _Refused(f"'{key}' is not valid text") from None


def _check_reason(reason: str, known: tuple[str, ...]) -> None:
    if reason not in known:
        raise _Refused(f"reason must be one of: {', '.join(known)}")


def _kept(order: dict[str, Any], item_id: str) -> Any:
    """The line of an order that holds this item, which was neither returned nor exchanged."""
    for line in order["items"]:
        if line["item_id"] == item_id and line["state"] == "kept":
            return line
    raise _Refused(f"item {item_id} is not in order {order['order_id']}")


#: Every tool, and the names of its arguments, all of which it needs.
TOOLS = {
    name: tuple(inspect.signature(tool).parameters)[1:]
    for name, tool in vars(Database).items()
    if not name.startswith("_") and name not in ("call", "state")
}
