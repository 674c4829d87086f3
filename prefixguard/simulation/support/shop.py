"""The shop a task plays in: its catalogue, and the few customers and orders that a task is about.

Every task has a shop of its own (the customer, some neighbours, their orders) over one catalogue that all tasks of a
seed share. Money is in cents.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from prefixguard.simulation.rng import Rng


@lru_cache(maxsize=1)
def _stock() -> dict[str, Any]:
    """Names, places and products that shops are made of (`stock.json`)."""
    stock: dict[str, Any] = json.loads(files(__package__).joinpath("stock.json").read_text(encoding="utf-8"))
    return stock


@dataclass(frozen=True, slots=True)
class ProductVariant:
    """One thing that can be bought. options: what sets it apart from the others of its product."""

    item_id: str
    product: str
    options: tuple[tuple[str, str], ...]
    cents: int

    @property
    def stock(self) -> int:
        """How many are left."""
        return 3 + int(self.item_id) % 40

    def words(self) -> str:
        return ", ".join(f"{axis} {value}" for axis, value in self.options)


@dataclass(frozen=True, slots=True)
class Address:
    street: str
    city: str
    state: str
    zip: str


@dataclass(frozen=True, slots=True)
class Payment:
    payment_id: str
    kind: str
    detail: str

    def words(self) -> str:
        return f"{self.kind} {self.detail}".strip()


@dataclass(frozen=True, slots=True)
class Customer:
    user_id: str
    first: str
    last: str
    email: str
    address: Address
    payments: tuple[Payment, ...]


@dataclass(frozen=True, slots=True)
class Order:
    order_id: str
    user_id: str
    status: str
    placed_on: str
    address: Address
    payment_id: str
    carrier: str
    items: tuple[ProductVariant, ...]


@dataclass(frozen=True, slots=True)
class Shop:
    """All that a task starts with."""

    seed: int
    customers: tuple[Customer, ...]
    orders: tuple[Order, ...]


@lru_cache(maxsize=4)
def catalogue(seed: int) -> dict[str, tuple[ProductVariant, ...]]:
    """All products of a seed's shop, with three to six variants each. Sold-out variants do not exist."""
    rng = Rng(f"{seed}/support/catalogue")
    products: dict[str, tuple[ProductVariant, ...]] = {}
    for name, axes in _stock()["products"].items():
        (first, firsts), (second, seconds) = axes.items()
        pairs = rng.some([(a, b) for a in firsts for b in seconds], rng.between(3, 6))
        base = rng.between(12, 180) * 100
        products[name] = tuple(
            ProductVariant(rng.digits(10), name, ((first, a), (second, b)), base + rng.between(-8, 20) * 50 + 99)
            for a, b in pairs
        )
    return products


@lru_cache(maxsize=4)
def product_ids(seed: int) -> dict[str, str]:
    """Name of every product -> its id."""
    rng = Rng(f"{seed}/support/products")
    return {name: rng.digits(8) for name in _stock()["products"]}


def make_address(rng: Rng) -> Address:
    city, state, prefix = rng.pick(_stock()["cities"])
    return Address(
        f"{rng.between(2, 990)} {rng.pick(_stock()['streets'])}", city, state, prefix + f"{rng.below(100):02d}"
    )


def make_customer(rng: Rng, place: int) -> Customer:
    """place: the customer's place in its shop (0..9); part of the ids, so that no two are alike."""
    first, last = rng.pick(_stock()["first"]), rng.pick(_stock()["last"])
    number = f"{rng.digits(3)}{place}"
    kinds = rng.some(
        [
            ("credit_card", "Visa", f"ending in {rng.digits(4)}"),
            ("credit_card", "Mastercard", f"ending in {rng.digits(4)}"),
            ("gift_card", "gift card", ""),
            ("paypal", "PayPal", ""),
        ],
        rng.between(2, 3),
    )
    return Customer(
        user_id=f"{first}_{last}_{number}".lower(),
        first=first,
        last=last,
        email=f"{first}.{last}{rng.digits(1)}{place}@{rng.pick(_stock()['mail_hosts'])}".lower(),
        address=make_address(rng),
        payments=tuple(Payment(f"{stem}_{rng.digits(7)}", kind, detail) for stem, kind, detail in kinds),
    )


def make_order(rng: Rng, seed: int, customer: Customer, status: str, place: int) -> Order:
    """place: the order's place in its shop (0..9); part of the id, so that no two are alike."""
    products = catalogue(seed)
    names = rng.some(list(products), rng.between(2, 4))
    return Order(
        order_id=f"#W{rng.digits(6)}{place}",
        user_id=customer.user_id,
        status=status,
        placed_on=f"2025-{rng.between(1, 12):02d}-{rng.between(1, 28):02d}",
        address=customer.address,
        payment_id=rng.pick(customer.payments).payment_id,
        carrier=rng.pick(_stock()["carriers"]),
        items=tuple(rng.pick(products[name]) for name in names),
    )
