"""One run, played out: the customer, the agent of a given profile, and the faults it makes on the way.

The agent knows the task; its faults are drawn at the points of the plan (`observer.plan`). Three streams keep
apart what must not influence each other: `fate` (which fault, how customer and service behave), `words` (how things
are said) and `slips` (what a fault looks like). So a run with a silent fault and the same run without it differ in one
value and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prefixguard.simulation.rng import Rng
from prefixguard.simulation.support.dice import Dice
from prefixguard.simulation.support.faults import FAULTS, NOTICES, Profile, broken, made_up_order, other_email
from prefixguard.simulation.support.observer import Chances, Observer, Point, comes_through, remembers_in_time
from prefixguard.simulation.support.shop import Order
from prefixguard.simulation.support.tasks import Task, Wish
from prefixguard.simulation.support.tools import Database
from prefixguard.simulation.support.transcript import Call, ChatTranscript, StepCap, phrase, system_prompt

_OUTAGES = 0.015  # share of calls that the service does not answer; nobody's fault
_MISSPELLINGS = 0.06  # share of customers who give a wrong email first; not the agent's fault
_HARMLESS = ("repeated_read", "unconfirmed")


class _Over(Exception):
    """The conversation ended before the plan did."""


class Script:
    """One run of `task` by `profiles[player]`, on a fresh `database`, named `name` (which decides everything).

    dice: its chances; None: one stream of that name.
    After `play`: `transcript.messages`, `faults`, `risks`: the true risk after every step, and `choices`: for
    every point that was passed its place, its name, the fault made there (None: none), the step that comes next, and
    the number of messages before; `paused`: whether it was stopped.
    """

    def __init__(
        self,
        task: Task,
        points: Sequence[Point],
        profiles: Sequence[Profile],
        player: int,
        database: Database,
        name: str,
        cap: int | None = None,
        dice: Dice | None = None,
    ) -> None:
        self.choices: list[tuple[int, str, str | None, int, int]] = []
        self.faults: list[dict[str, Any]] = []
        self.risks: list[float] = []
        self.paused = False
        self._task = task
        self._points = enumerate(points)
        self._profiles = profiles
        self._player = player
        self._name = name
        self._dice = Dice(name) if dice is None else dice
        self._words, self._slips = (Rng(f"{name}/{kind}") for kind in ("words", "slips"))
        self._observer = Observer(points, profiles)
        self.transcript = ChatTranscript(
            database, self._words, lambda: self.risks.append(round(self._observer.risk(), 6)), system_prompt(), cap
        )
        self._customer = task.customer
        self._by_name = self._fate("by_name").chance(0.25)  # gives name and zip code rather than an email
        # names all wishes in the first message
        self._at_once = len(task.wishes) > 1 and self._fate("at_once").chance(0.5)
        self._named = [self._fate("named").chance(0.6) for _ in task.wishes]  # gives the order's number
        self._open_identity: dict[str, Any] | None = None
        self._account_seen = False
        self._orders_listed = False

    def play(self) -> None:
        try:
            self._identify()
            self._verify()
            for number, wish in enumerate(self._task.wishes):
                self._serve(number, wish)
            self._close()
        except _Over:
            pass
        except StepCap:
            self.paused = True

    # ---- drawing ----------------------------------------------------------------------------------------------

    def _each(self, rate: Callable[[Profile], float]) -> Chances:
        return tuple(rate(profile) for profile in self._profiles)

    def _fate(self, decision: str) -> Rng:
        """Chances for a decision of the customer, the service or the agent."""
        return self._dice.draw(decision)

    def _pass(self) -> str | None:
        """Pass the next point; the fault made there, if any."""
        place, point = next(self._points)
        steps = self.transcript.steps
        self._dice.enter(place)
        chosen = self._dice.choose(place, point, self._player)
        self.choices.append((place, point.name, chosen, steps + 1, len(self.transcript.messages)))
        if chosen is not None:  # what one fault looks like does not depend on the faults before it
            self._slips = Rng(f"{self._name}/slips/{steps}")
        self._observer.passed(point, chosen)
        return chosen

    def _fault(self, kind: str) -> dict[str, Any]:
        """Write down a fault that the next step makes."""
        step = self.transcript.steps + 1
        fault = {"kind": kind, "step": step, "visible": FAULTS[kind], "harmless": kind in _HARMLESS, "repaired": False}
        self.faults.append(fault)
        return fault

    def _decide(self, rate: Callable[[Profile], float]) -> bool:
        """A choice of the agent's that the trace shows."""
        chances = self._each(rate)
        yes = self._fate("decide").chance(chances[self._player])
        self._observer.saw(chances if yes else tuple(1.0 - chance for chance in chances))
        return yes

    # ---- talking and calling ----------------------------------------------------------------------------------

    def _phrase(self, act: str, wish: Wish | None = None, **slots: str) -> str:
        if wish is not None:
            order = wish.order
            slots = {
                "order_id": order.order_id, "product": wish.product, "detail": wish.detail, "status": order.status,
                "date": order.placed_on, "carrier": order.carrier, **slots,
            }  # fmt: skip
        return phrase(self._words, act, **slots)

    def _say(self, act: str, wish: Wish | None = None, **slots: str) -> None:
        self.transcript.say(self._phrase(act, wish, **slots))

    def _hear(self, act: str, wish: Wish | None = None, **slots: str) -> None:
        self.transcript.hear(self._phrase(act, wish, **slots))

    def _call(self, tool: str, arguments: Mapping[str, Any], text: str = "") -> None:
        """One right call, again if the service is away."""
        self._calls([(tool, arguments)], text)

    def _calls(self, calls: Sequence[Call], text: str = "") -> None:
        while self._fate("outage").chance(_OUTAGES):
            self.transcript.calls(calls, text, outage=True)
            text = self._phrase("retry")
        self.transcript.calls(calls, text)

    def _wish_text(self, number: int) -> str:
        wish = self._task.wishes[number]
        order = self._phrase("order_known" if self._named[number] else "order_unknown", wish)
        reason = self._phrase(f"reason_{wish.detail}") if wish.kind == "cancel" else ""
        text = self._phrase(f"wish_{wish.kind}", wish, order=order, reason=reason)
        return text[:1].upper() + text[1:]

    # ---- the stages -------------------------------------------------------------------------------------------

    def _identify(self) -> None:
        who = self._customer
        given = "give_name" if self._by_name else "give_email"
        slots = {"email": who.email, "first": who.first, "last": who.last, "zip": who.address.zip}
        misspelt = not self._by_name and self._fate("misspelt").chance(_MISSPELLINGS)
        first_email = other_email(self._slips, who.email) if misspelt else who.email
        introduction = phrase(self._words, given, **{**slots, "email": first_email})
        wishes = range(len(self._task.wishes)) if self._at_once else range(1)
        opening = [self._phrase("greeting")]
        for number in wishes:
            opening += [self._phrase("next_wish") if number else "", self._wish_text(number)]
        if self._fate("introduced").chance(0.4):
            self.transcript.hear(*opening, introduction)
        else:
            self.transcript.hear(*opening)
            self._say("ask_email")
            self.transcript.hear(introduction)
        if misspelt:
            self._call("find_user", {"email": first_email}, self._phrase("look_up"))
            self._say("ask_email_again")
            self._hear("correct_email", email=who.email)
        if self._pass() is not None:
            self._errors("mistyped_lookup", None, lambda: ("find_user", {"email": other_email(self._slips, who.email)}))
        if self._by_name:
            named = {"first_name": who.first, "last_name": who.last, "zip": who.address.zip}
            self._call("find_user_by_name", named, self._phrase("look_up"))
        else:
            self._call("find_user", {"email": who.email}, self._phrase("look_up"))

    def _verify(self) -> None:
        if self._pass() is not None:
            self._open_identity = self._fault("unverified")
            self._observer.unverified = self._each(lambda z: remembers_in_time(z, len(self._task.wishes)))
            return
        if not self._by_name or self._fate("asks_zip").chance(0.3):
            self._say("ask_zip", first=self._customer.first)
            self._hear("give_zip", zip=self._customer.address.zip)
        self._confirm_identity()
        if self._fate("sees_account").chance(0.4):
            self._account_seen = True
            self._call("get_user", {"user_id": self._customer.user_id})

    def _confirm_identity(self) -> None:
        self._call("verify_identity", {"user_id": self._customer.user_id, "zip": self._customer.address.zip})

    def _remember(self, wishes_left: int) -> None:
        """A chance to confirm the identity after all; `wishes_left`: how many more such chances come later."""
        if self._open_identity is None:
            return
        if self._decide(lambda z: z.remembers):
            self._observer.unverified = self._observer.certain
            self._open_identity["repaired"], self._open_identity = True, None
            self._say("late_verify")
            self._hear("give_zip", zip=self._customer.address.zip)
            self._confirm_identity()
        else:
            self._observer.unverified = self._each(lambda z: remembers_in_time(z, wishes_left))

    def _serve(self, number: int, wish: Wish) -> None:
        chosen = self._pass()
        if chosen == "forgotten_wish":
            self._forget(number, wish)
        elif number and not self._at_once:
            self.transcript.hear(self._phrase("next_wish"), self._wish_text(number))
        if chosen == "gave_up":
            self._give_up(wish)
        self._remember(len(self._task.wishes) - number - 1)
        if self._locate(number, wish):
            self._confirm(wish)
            self._write(wish)
        else:  # the wish was given up: its other points do not come
            next(self._points)
            next(self._points)

    def _forget(self, number: int, wish: Wish) -> None:
        fault = self._fault("forgotten_wish")
        self._observer.trouble = (NOTICES["forgotten_wish"],) * len(self._profiles)
        self._say("farewell")
        if not self._fate("reminds").chance(NOTICES["forgotten_wish"]):
            self._observer.lost = True
            self._hear("farewell_customer")
            self._linger("farewell")
            raise _Over
        self._observer.trouble = self._observer.certain
        fault["repaired"] = True
        self._hear("remind", wish, again=self._wish_text(number))

    def _locate(self, number: int, wish: Wish) -> bool:
        """Find and open the order; False: the agent insists on another one."""
        mine = [order for order in self._task.shop.orders if order.user_id == self._customer.user_id]
        others = [order for order in mine if order is not wish.order]
        if not self._named[number]:
            if self._fate("asks_which").chance(0.5):
                self._say("ask_which")
                self._named[number] = self._fate("gives_number").chance(0.4)
                self._hear("order_known" if self._named[number] else "no_number", wish)
            if not self._named[number] and not self._orders_listed:
                self._orders_listed = True
                self._call("list_orders", {"user_id": self._customer.user_id}, self._phrase("look_up"))
            if not self._named[number] and self._fate("looks_around").chance(0.5):  # into another one on the way
                self._call("get_order", {"order_id": self._fate("looked_at").pick(others).order_id})
        chosen = self._pass()
        if chosen == "made_up_order":
            ids = {order.order_id for order in self._task.shop.orders}
            self._errors(chosen, wish, lambda: ("get_order", {"order_id": made_up_order(self._slips, ids)}))
        elif chosen == "wrong_order" and not self._wrong_order(wish, self._slips.pick(others)):
            return False
        self._open_order(wish)
        if chosen == "repeated_read":
            self._fault(chosen)
            self.transcript.call("get_order", {"order_id": wish.order.order_id})
            while not self._decide(lambda z: z.recovers):
                self.transcript.call("get_order", {"order_id": wish.order.order_id}, self._phrase("look_up"))
        return True

    def _open_order(self, wish: Wish) -> None:
        calls: list[Call] = [("get_order", {"order_id": wish.order.order_id})]
        if not self._account_seen and "payment_id" in wish.arguments:
            self._account_seen = True
            calls.append(("get_user", {"user_id": self._customer.user_id}))
        if wish.kind == "exchange":
            calls.append(("get_product", {"name": wish.product}))
        if self._fate("opens_at_once").chance(0.25):
            self._calls(calls, self._phrase("look_up"))
            return
        for call in calls:
            self._calls([call], self._phrase("look_up"))

    def _wrong_order(self, wish: Wish, other: Order) -> bool:
        fault = self._fault("wrong_order")
        self._observer.trouble = self._each(lambda z: z.mends)
        self.transcript.call("get_order", {"order_id": other.order_id}, self._phrase("look_up"))
        self._say("found_order", wish, order_id=other.order_id, date=other.placed_on, status=other.status)
        self._hear("object_order", wish)
        self._observer.trouble = self._observer.certain
        if self._decide(lambda z: z.mends):
            fault["repaired"] = True
            return True
        self._observer.lost = True
        self._say("insist_order", wish, order_id=other.order_id)
        self._hear("displeased")
        return False

    def _confirm(self, wish: Wish) -> None:
        if self._pass() is not None:
            self._fault("unconfirmed")
            return
        self._say(f"propose_{wish.kind}", wish)
        self._hear("agree")

    def _write(self, wish: Wish) -> None:
        chosen = self._pass()
        if chosen == "mistyped_value" and wish.mistyped is not None:
            self._contested(chosen, wish, wish.mistyped, "object_value", "insist_value")
            return
        if chosen == "lost_write":
            self._contested(chosen, wish, None, "object_missing", "insist_done")
            return
        arguments = wish.arguments
        if chosen == "bad_argument":
            self._errors(chosen, wish, lambda: (wish.tool, broken(self._slips, wish.tool, wish.arguments)))
        elif chosen == "wrong_value":
            self._fault(chosen)
            arguments = self._slips.pick(wish.silent)
        self._call(wish.tool, arguments)
        self._report(wish, wish.arguments)
        self._hear("thanks")

    def _report(self, wish: Wish, arguments: Mapping[str, Any]) -> None:
        value = wish.detail
        if wish.kind == "address":
            value = f"{arguments['street']}, {arguments['city']}, {arguments['state']} {arguments['zip']}"
        elif wish.kind == "refund":
            value = f"{arguments['amount']:.2f}"
        done = self._phrase(f"done_{wish.kind}", wish, value=value)
        self.transcript.say(done, self._phrase("anything_else") if wish.kind != "escalate" else "")

    def _contested(
        self, kind: str, wish: Wish, arguments: Mapping[str, Any] | None, objection: str, insists: str
    ) -> None:
        """A change that went wrong in sight; the customer may notice, and the agent may then put it right."""
        fault, notices = self._fault(kind), NOTICES[kind]
        self._observer.trouble = self._each(lambda z: notices * z.mends)
        if arguments is not None:
            self._call(wish.tool, arguments)
        self._report(wish, wish.arguments if arguments is None else arguments)
        if not self._fate("notices").chance(notices):
            self._observer.lost = True
            self._hear("thanks")
            return
        self._hear(objection, wish)
        self._observer.trouble = self._observer.certain
        if self._decide(lambda z: z.mends):
            fault["repaired"] = True
            self._call(wish.tool, wish.arguments, self._phrase("apology"))
            self._say("fixed")
            self._hear("thanks")
        else:
            self._observer.lost = True
            self._say(insists)
            self._hear("displeased")

    def _errors(self, kind: str, wish: Wish | None, wrong: Callable[[], Call]) -> None:
        """A loop of refused calls, until the agent recovers; or gives up, which ends the run."""
        fault = self._fault(kind)
        self._observer.trouble = self._each(comes_through)
        call, text = wrong(), self._phrase("look_up")
        while True:
            self.transcript.calls([call], text)
            mark, profile = self._fate("recovers").unit(), self._profiles[self._player]
            if mark < profile.recovers:
                self._observer.saw(self._each(lambda z: z.recovers))
                self._observer.trouble = self._observer.certain
                fault["repaired"] = True
                return
            if mark < profile.recovers + profile.despairs:
                self._observer.saw(self._each(lambda z: z.despairs))
                self._give_up(wish)
            self._observer.saw(self._each(lambda z: 1.0 - z.recovers - z.despairs))
            if self._slips.chance(0.4):
                call = wrong()
            text = self._phrase("apology")
            if self._words.chance(0.15):
                self._say("apology_said")
                self._hear("puzzled")

    def _give_up(self, wish: Wish | None) -> None:
        self._fault("gave_up")
        self._observer.lost = True
        human = wish is not None and wish.kind == "escalate"  # there a transfer would be the right thing to do
        if human or self._fate("silent_quit").chance(0.5):
            self._say("give_up")
            self._hear("displeased")
            self._linger("give_up")
        else:
            summary = f"Customer {self._customer.first} {self._customer.last} needs further help."
            self._call("transfer_to_human", {"summary": summary}, self._phrase("hand_over"))
            self._say("handed_over")
        raise _Over

    def _linger(self, act: str) -> None:
        """A customer who does not let go at once."""
        while self._fate("lingers").chance(0.4):
            self._say(act)
            self._hear("displeased")

    def _close(self) -> None:
        if self._task.wishes[-1].kind == "escalate":
            return
        while self._fate("asks_more").chance(0.4):
            self._question()
        self._hear("no_more")
        self._say("farewell")
        if self._words.chance(0.3):
            self._hear("farewell_customer")

    def _question(self) -> None:
        """The customer asks something that changes nothing."""
        wish, who = self._fate("asked").pick(self._task.wishes), self._customer
        kind = self._fate("topic").pick(("tracking", "stock", "account", "policy"))
        self._hear(f"ask_{kind}", wish)
        if kind == "tracking":
            self._call("track_shipment", {"order_id": wish.order.order_id}, self._phrase("look_up"))
        elif kind == "stock":
            self._call("get_product", {"name": wish.product}, self._phrase("look_up"))
        elif kind == "account":
            self._call("get_user", {"user_id": who.user_id}, self._phrase("look_up"))
        count = self._fate("count").between(3, 6) if kind == "stock" else len(who.payments)
        self._say(f"answer_{kind}", wish, count=str(count), street=who.address.street, city=who.address.city)
        self._hear("thanks")
