"""The shop's database: its tables, its catalogue, and the few customers a task is about.

Every task has a small database of its own (the customer, some neighbours, their orders) over one catalogue that all
tasks of a seed share. Money is stored in cents.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from prefixguard.simulation.rng import Rng

SCHEMA = """
CREATE TABLE users (user_id TEXT PRIMARY KEY, first_name TEXT, last_name TEXT, email TEXT UNIQUE,
    street TEXT, city TEXT, state TEXT, zip TEXT);
CREATE TABLE payment_methods (payment_id TEXT PRIMARY KEY, user_id TEXT REFERENCES users, kind TEXT, detail TEXT);
CREATE TABLE products (product_id TEXT PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE variants (item_id TEXT PRIMARY KEY, product_id TEXT REFERENCES products, options TEXT, cents INTEGER,
    stock INTEGER);
CREATE TABLE orders (order_id TEXT PRIMARY KEY, user_id TEXT REFERENCES users, status TEXT, placed_on TEXT,
    street TEXT, city TEXT, state TEXT, zip TEXT, payment_id TEXT REFERENCES payment_methods, carrier TEXT,
    cancel_reason TEXT);
CREATE TABLE order_items (line INTEGER PRIMARY KEY, order_id TEXT REFERENCES orders, item_id TEXT REFERENCES variants,
    state TEXT, successor TEXT);
CREATE TABLE refunds (order_id TEXT PRIMARY KEY REFERENCES orders, payment_id TEXT, cents INTEGER, reason TEXT);
CREATE TABLE cases (case_id INTEGER PRIMARY KEY, user_id TEXT, verified INTEGER, state TEXT);
CREATE INDEX lines_of_order ON order_items (order_id);
"""

#: Tables that a tool can change: what a verdict compares.
MUTABLE_TABLES = ("orders", "order_items", "refunds", "cases")


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
    """Everything a task's database starts with."""

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


@lru_cache(maxsize=4)
def _catalogue_rows(seed: int) -> tuple[list[tuple[str, str]], list[tuple[str, str, str, int, int]]]:
    ids = product_ids(seed)
    variants = [
        (v.item_id, ids[name], json.dumps(dict(v.options)), v.cents, 3 + int(v.item_id) % 40)
        for name, variants in catalogue(seed).items()
        for v in variants
    ]
    return [(ids[name], name) for name in ids], variants


def open_catalogue(seed: int) -> sqlite3.Connection:
    """An in-memory database with the catalogue alone, in autocommit mode."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(SCHEMA)
    products, variants = _catalogue_rows(seed)
    database.execute("BEGIN")
    database.executemany("INSERT INTO products VALUES (?, ?)", products)
    database.executemany("INSERT INTO variants VALUES (?, ?, ?, ?, ?)", variants)
    database.execute("COMMIT")
    return database


def fill(database: sqlite3.Connection, shop: Shop) -> None:
    """Put the customers and orders of `shop`, and one open case, into a database that has the catalogue alone."""
    for c in shop.customers:
        a = c.address
        database.execute(
            "INSERT INTO users VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (c.user_id, c.first, c.last, c.email, a.street, a.city, a.state, a.zip),
        )
        database.executemany(
            "INSERT INTO payment_methods VALUES (?, ?, ?, ?)",
            [(p.payment_id, c.user_id, p.kind, p.detail) for p in c.payments],
        )
    for o in shop.orders:
        a = o.address
        database.execute(
            "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            (o.order_id, o.user_id, o.status, o.placed_on, a.street, a.city, a.state, a.zip, o.payment_id, o.carrier),
        )
        database.executemany(
            "INSERT INTO order_items (order_id, item_id, state) VALUES (?, ?, 'kept')",
            [(o.order_id, v.item_id) for v in o.items],
        )
    database.execute("INSERT INTO cases VALUES (1, NULL, 0, 'open')")


def open_shop(shop: Shop) -> sqlite3.Connection:
    """A fresh in-memory database of `shop`."""
    database = open_catalogue(shop.seed)
    fill(database, shop)
    return database
