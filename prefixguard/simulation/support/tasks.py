"""What a customer wants, the tool calls that bring it about, and whether a run got there: only the database decides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.simulation.rng import Rng
from prefixguard.simulation.support import shop
from prefixguard.simulation.support.tools import CANCEL_REASONS, REFUND_REASONS, Database

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing the customer wants.

    kind: cancel, return, exchange, address, payment, refund or escalate (only a human may do it).
    order: the order it is about.
    product: name of the product the customer speaks of.
    detail: the particulars in the customer's words.
    tool, arguments: the one call that does it right.
    silent: calls that look right and are not: every value in them is real and was on screen.
    mistyped: the right call with one value garbled into something nobody said; None where nothing can be garbled.
    """

    kind: str
    order: shop.Order
    product: str
    detail: str
    tool: str
    arguments: Arguments
    silent: tuple[Arguments, ...] = ()
    mistyped: Arguments | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A customer, what the customer wants, and the shop before the first message."""

    task_id: str
    customer: shop.Customer
    wishes: tuple[Wish, ...]
    shop: shop.Shop


_KINDS = ("cancel", "return", "exchange", "address", "payment", "refund")
_KIND_WEIGHTS = (1.0, 1.2, 1.4, 1.0, 0.7, 0.9)
_STATUS = {"cancel": "pending", "address": "pending", "payment": "pending"}
_ESCALATIONS = (
    "the warranty repair it was promised",
    "a defect that gave me a small burn",
    "an invoice made out to my company",
    "a complaint about the courier's driver",
)


def make_task(seed: int, number: int) -> Task:
    """Task `number` of a seed's world: always the same, whichever tasks are made before it."""
    rng = Rng(f"{seed}/support/task/{number}")
    customer, *others = (shop.make_customer(rng, place) for place in range(4))
    kinds = [rng.weighted(_KINDS, _KIND_WEIGHTS) for _ in range(rng.weighted((1, 2, 3), (0.35, 0.4, 0.25)))]
    if rng.chance(0.07):
        kinds[-1] = "escalate"
    wanted = [(customer, _STATUS.get(kind, "delivered")) for kind in kinds]
    wanted += [(customer, rng.pick(("pending", "delivered", "shipped"))) for _ in range(rng.between(1, 2))]
    wanted += [(other, rng.pick(("pending", "delivered"))) for other in others]
    orders = [shop.make_order(rng, seed, who, status, place) for place, (who, status) in enumerate(wanted)]
    wishes = tuple(_make_wish(rng, seed, kind, customer, order) for kind, order in zip(kinds, orders, strict=False))
    return Task(f"support-{number:05d}", customer, wishes, shop.Shop(seed, (customer, *others), tuple(orders)))


def _make_wish(rng: Rng, seed: int, kind: str, customer: shop.Customer, order: shop.Order) -> Wish:
    right: Arguments
    item = rng.pick(order.items)
    paid = next(p for p in customer.payments if p.payment_id == order.payment_id)
    if kind == "cancel":
        reason = rng.pick(CANCEL_REASONS)
        right = {"order_id": order.order_id, "reason": reason}
        wrong = tuple({**right, "reason": other} for other in CANCEL_REASONS if other != reason)
        return Wish(kind, order, item.product, reason, "cancel_order", right, wrong)
    if kind == "return":
        pay = rng.pick(customer.payments)
        right = {"order_id": order.order_id, "item_ids": [item.item_id], "payment_id": pay.payment_id}
        wrong = tuple({**right, "item_ids": [v.item_id]} for v in order.items if v is not item)
        wrong += tuple({**right, "payment_id": p.payment_id} for p in customer.payments if p is not pay)
        return Wish(kind, order, item.product, pay.words(), "return_items", right, wrong)
    if kind == "exchange":
        others = [v for v in shop.catalogue(seed)[item.product] if v is not item]
        new = rng.pick(others)
        right = {
            "order_id": order.order_id,
            "item_id": item.item_id,
            "new_item_id": new.item_id,
            "payment_id": paid.payment_id,
        }
        wrong = tuple({**right, "new_item_id": v.item_id} for v in others if v is not new)
        return Wish(kind, order, item.product, new.words(), "exchange_item", right, wrong)
    if kind == "address":
        return _address_wish(rng, order, item.product)
    if kind == "payment":
        pay = rng.pick([p for p in customer.payments if p is not paid])
        right = {"order_id": order.order_id, "payment_id": pay.payment_id}
        wrong = tuple({**right, "payment_id": p.payment_id} for p in customer.payments if p not in (pay, paid))
        wrong += ({**right, "payment_id": paid.payment_id},)
        return Wish(kind, order, item.product, pay.words(), "change_payment", right, wrong)
    if kind == "refund":
        return _refund_wish(rng, customer, order, item)
    topic = rng.pick(_ESCALATIONS)
    summary = {"summary": f"Customer {customer.first} {customer.last} asks about {topic}; order {order.order_id}."}
    return Wish(kind, order, item.product, topic, "transfer_to_human", summary)


def _address_wish(rng: Rng, order: shop.Order, product: str) -> Wish:
    old, new = order.address, shop.make_address(rng)
    while new.street == old.street or new.zip == old.zip:
        new = shop.make_address(rng)
    right = {"order_id": order.order_id, "street": new.street, "city": new.city, "state": new.state, "zip": new.zip}
    wrong = ({**right, "zip": old.zip}, {**right, "street": old.street})
    garbled = new.zip[:3] + str((int(new.zip[3]) + rng.between(1, 9)) % 10) + str((int(new.zip[4]) + 3) % 10)
    mistyped = {**right, "zip": garbled} if garbled != old.zip else None
    detail = f"{new.street}, {new.city}, {new.state} {new.zip}"
    return Wish("address", order, product, detail, "modify_address", right, wrong, mistyped)


def _refund_wish(rng: Rng, customer: shop.Customer, order: shop.Order, item: shop.ProductVariant) -> Wish:
    reason, pay = rng.pick(REFUND_REASONS), rng.pick(customer.payments)
    right = {
        "order_id": order.order_id,
        "amount": item.cents / 100,
        "payment_id": pay.payment_id,
        "reason": reason,
    }
    wrong = tuple({**right, "amount": v.cents / 100} for v in order.items if v.cents != item.cents)
    wrong += tuple({**right, "payment_id": p.payment_id} for p in customer.payments if p is not pay)
    garbled = (item.cents // 10 - rng.between(11, 90)) / 10  # below the price, so the tool takes it
    mistyped = {**right, "amount": garbled} if garbled > 0 else None
    return Wish("refund", order, item.product, f"{pay.words()} ({reason})", "refund", right, wrong, mistyped)


def reach_goal(database: Database, task: Task) -> Any:
    """Identify the customer and carry out every wish on a fresh database; the state that leads to is the goal."""
    customer = task.customer
    database.call("verify_identity", json.dumps({"user_id": customer.user_id, "zip": customer.address.zip}))
    for wish in task.wishes:
        database.call(wish.tool, json.dumps(dict(wish.arguments)))
    return database.state()
