"""Invented runs of an agent, told once; the writers beside this file put them into the formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """A call and what came back. error: the tool failed; a result that begins with "Error" says so itself."""

    tool: str
    args: dict[str, Any]
    result: str
    error: bool = False


@dataclass(frozen=True)
class Turn:
    """One reply of the agent. user: what was said to it before. order: in which the results come, by call. late: calls
    whose result comes only after the next reply, where a format can tell."""

    say: str = ""
    calls: tuple[Call, ...] = ()
    user: str = ""
    order: tuple[int, ...] = ()
    late: tuple[int, ...] = ()

    @property
    def results(self) -> list[int]:
        """Calls in the order of their results."""
        return list(self.order or range(len(self.calls)))


@dataclass(frozen=True)
class Story:
    """A run. success: how it ended; never visible while it is going on."""

    name: str
    task: str
    success: bool
    turns: tuple[Turn, ...]


def call(tool: str, result: str, *, error: bool = False, **args: Any) -> Call:
    return Call(tool, args, result, error)


STORIES: tuple[Story, ...] = (
    Story(
        "s01",
        "double-charge",
        True,
        (
            Turn(
                "Let me look at your account and the last charges.",
                (
                    call(
                        "find_customer",
                        '{"customer_id": "C-204", "name": "Mira Holt", "tier": "gold"}',
                        email="mira@holt.example",
                    ),
                    call(
                        "list_charges",
                        '[{"charge": "ch_881", "amount": 49.5}, {"charge": "ch_882", "amount": 49.5}]',
                        customer="mira@holt.example",
                        days=30,
                        include_pending=False,
                    ),
                ),
                user="I was charged twice for my July subscription, mira@holt.example. Please refund one of them.",
                order=(1, 0),
            ),
            Turn("I see two charges of 49.50 on 3 July. Shall I refund ch_882 to the original card?"),
            Turn(
                "",
                (
                    call(
                        "refund_charge", '{"refund": "re_17", "status": "queued"}', charge="ch_882", reason="duplicate"
                    ),
                ),
                user="Yes, please do.",
            ),
            Turn(
                "",
                (
                    call(
                        "send_mail",
                        "queued as msg-5521",
                        to="mira@holt.example",
                        subject="Your refund",
                        body="49.50 will be back on your card within five days.",
                    ),
                ),
            ),
            Turn("The second charge is refunded; a confirmation is on its way to your inbox."),
        ),
    ),
    Story(
        "s02",
        "double-charge",
        False,
        (
            Turn(
                "",
                (call("find_customer", "Error: no customer with this address", error=True, email="mira@holt.exmple"),),
                user="I was charged twice for my July subscription, mira@holt.example. Please refund one of them.",
            ),
            Turn(
                "The address gave nothing, I will try the name.",
                (
                    call(
                        "find_customer",
                        '{"customer_id": "C-118", "name": "Mirna Holt", "tier": "basic"}',
                        name="M. Holt",
                    ),
                ),
            ),
            Turn("", (call("list_charges", "[]", customer="C-118", days=30, include_pending=False),)),
            Turn("", (call("list_charges", "[]", customer="C-118", days=90, include_pending=True),)),
            Turn("I cannot see any charge on your account. Could you send a screenshot?"),
            Turn(
                "Without a charge id there is nothing I can refund, sorry.",
                user="That is not my account, I think you have the wrong person.",
            ),
        ),
    ),
    Story(
        "s03",
        "rotate-logs",
        True,
        (
            Turn(
                "First I look at what fills the disk.",
                (
                    call(
                        "run_command",
                        "9.1G\t/var/log/relay\n1.2G\t/var/log/journal\n210M\t/var/log/nginx",
                        command="du -sh /var/log/* | sort -rh | head -3",
                        timeout=20,
                    ),
                ),
                user="The disk of relay-2 is 97 % full. Find out why and set up rotation for whatever grows.",
            ),
            Turn(
                "",
                (
                    call(
                        "read_file",
                        "/var/log/nginx/*.log {\n  weekly\n  rotate 8\n  compress\n}",
                        path="/etc/logrotate.d/nginx",
                    ),
                    call("read_file", "cannot open: file does not exist", error=True, path="/etc/logrotate.d/relay"),
                ),
            ),
            Turn(
                "There is no rule for relay, so I write one.",
                (
                    call(
                        "write_file",
                        "wrote 88 bytes",
                        path="/etc/logrotate.d/relay",
                        text="/var/log/relay/*.log {\n  daily\n  rotate 5\n  compress\n  copytruncate\n}\n",
                    ),
                ),
            ),
            Turn(
                "",
                (
                    call(
                        "run_command",
                        "rotating pattern: /var/log/relay/*.log after 1 days (5 rotations)\nconsidering 14 logs",
                        command="logrotate -d /etc/logrotate.d/relay",
                        timeout=20,
                    ),
                ),
            ),
            Turn(
                "",
                (
                    call(
                        "run_command",
                        "Filesystem Size Used Avail Use%\n/dev/vda1 40G 21G 19G 53%",
                        command="logrotate -f /etc/logrotate.d/relay && df -h /",
                        timeout=60,
                    ),
                ),
            ),
            Turn("relay's logs are now rotated daily, five kept; the disk is at 53 %."),
        ),
    ),
    Story(
        "s04",
        "rotate-logs",
        False,
        (
            Turn(
                "I will remove the biggest file.",
                (
                    call(
                        "run_command",
                        "Error: rm: cannot remove '/var/log/relay/out.log': Permission denied",
                        error=True,
                        command="rm /var/log/relay/out.log",
                        timeout=20,
                    ),
                ),
                user="The disk of relay-2 is 97 % full. Find out why and set up rotation for whatever grows.",
            ),
            Turn(
                "",
                (
                    call(
                        "run_command",
                        "Error: rm: cannot remove '/var/log/relay/out.log': Permission denied",
                        error=True,
                        command="rm /var/log/relay/out.log",
                        timeout=20,
                    ),
                ),
            ),
            Turn(
                "Once more.",
                (
                    call(
                        "run_command",
                        "Error: rm: cannot remove '/var/log/relay/out.log': Permission denied",
                        error=True,
                        command="rm -f /var/log/relay/out.log",
                        timeout=20,
                    ),
                ),
            ),
            Turn("", (call("run_command", "root", command="stat -c %U /var/log/relay/out.log", timeout=20),)),
            Turn(
                "",
                (
                    call(
                        "run_command",
                        "Error: sudo: a password is required",
                        error=True,
                        command="sudo -n rm /var/log/relay/out.log",
                        timeout=20,
                    ),
                ),
            ),
            Turn("I have no rights on this machine, so I stop here."),
        ),
    ),
    Story(
        "s05",
        "sales-by-region",
        True,
        (
            Turn(
                "I check the schema before I query.",
                (call("query_db", "orders(id, region_id, total, placed_on)\nregions(id, name)", sql="\\d", limit=50),),
                user="Which region sold most in May, and how does it compare with April?",
            ),
            Turn(
                "",
                (
                    call(
                        "query_db",
                        "north 1820.10\nsouth 2410.75\nwest 990.00",
                        limit=50,
                        sql="select r.name, sum(total) from orders o join regions r on r.id = region_id "
                        "where placed_on between '2026-05-01' and '2026-05-31' group by 1",
                    ),
                    call(
                        "query_db",
                        "north 1905.00\nsouth 2100.20\nwest 1011.40",
                        limit=50,
                        sql="select r.name, sum(total) from orders o join regions r on r.id = region_id "
                        "where placed_on between '2026-04-01' and '2026-04-30' group by 1",
                    ),
                    call(
                        "get_holidays",
                        '{"2026-05": ["05-01", "05-14"], "2026-04": ["04-03", "04-06"]}',
                        year=2026,
                        months=[4, 5],
                    ),
                ),
                order=(2, 0, 1),
            ),
            Turn("", (call("calculate", "14.79", expression="(2410.75 / 2100.20 - 1) * 100", digits=2),)),
            Turn("South sold most in May: 2,410.75, which is 14.8 % over April (2,100.20)."),
            Turn("North was second with 1,820.10, 4.5 % under April.", user="And who was second?"),
        ),
    ),
    Story(
        "s06",
        "sales-by-region",
        False,
        (
            Turn(
                "",
                (
                    call(
                        "query_db",
                        'near "form": syntax error',
                        error=True,
                        limit=50,
                        sql="select region, sum(total) form orders",
                    ),
                ),
                user="Which region sold most in May, and how does it compare with April?",
            ),
            Turn(
                "A typo; I try again.",
                (
                    call(
                        "query_db",
                        "no such column: region",
                        error=True,
                        limit=50,
                        sql="select region, sum(total) from orders group by region",
                    ),
                    call("get_holidays", '{"2026-05": ["05-01", "05-14"]}', year=2026, months=[5]),
                ),
                late=(1,),
            ),
            Turn("", (call("query_db", "3\n2\n1", limit=3, sql="select id from regions order by id desc"),)),
            Turn("", (call("query_db", "south", limit=1, sql="select name from regions where id = 2"),)),
            Turn("South sold most in May. I have no figure for April."),
        ),
    ),
    Story(
        "s07",
        "book-train",
        True,
        (
            Turn(
                "Happy to help. On which day would you like to travel, and from which station?",
                user="Hello, I need a train to Lindau.",
            ),
            Turn(
                "",
                (
                    call(
                        "search_trains",
                        '[{"id": "R8", "dep": "08:12", "price": 31}, {"id": "R11", "dep": "10:40", "price": 24}]',
                        origin="Ulm",
                        destination="Lindau",
                        date="2026-06-02",
                        seats=2,
                    ),
                ),
                user="Tuesday 2 June, from Ulm, two seats. The cheaper the better.",
            ),
            Turn("R11 at 10:40 is the cheapest, 24 each. Shall I book it?"),
            Turn(
                "One moment.",
                (call("hold_seats", "Error: seat map is being updated, try again", error=True, train="R11", seats=2),),
                user="Yes, window seats if you can.",
            ),
            Turn("", (call("hold_seats", '{"hold": "H-71", "seats": ["14A", "15A"]}', train="R11", seats=2),)),
            Turn(
                "",
                (
                    call("confirm_hold", '{"booking": "B-9033", "total": 48}', hold="H-71", pay_with="invoice"),
                    call(
                        "send_mail",
                        "queued as msg-5602",
                        to="k.wirth@example.org",
                        subject="Your tickets",
                        body="Booking B-9033, seats 14A and 15A.",
                    ),
                ),
            ),
            Turn("Booked: R11 on 2 June, seats 14A and 15A, both at the window. Booking B-9033."),
            Turn("You are welcome. Have a good trip!", user="Perfect, thank you very much."),
        ),
    ),
    Story(
        "s08",
        "fix-date-parser",
        False,
        (
            Turn(
                "I read the failing test first.",
                (
                    call(
                        "run_command",
                        "FAILED tests/test_dates.py::test_leap_day - ValueError: day is out of range\n1 failed, 11 passed",  # noqa: E501
                        command="pytest -q tests/test_dates.py",
                        timeout=120,
                    ),
                    call(
                        "read_file",
                        "def parse(text):\n    y, m, d = text.split('-')\n    return date(int(y), int(m), min(int(d), 28))",  # noqa: E501
                        path="dates.py",
                    ),
                ),
                user="test_leap_day fails since yesterday. Please mend dates.py; do not touch the tests.",
                order=(1, 0),
            ),
            Turn(
                "The day is clipped to 28, which is wrong in leap years.",
                (
                    call(
                        "edit_file",
                        "no match for the old text in dates.py",
                        error=True,
                        path="dates.py",
                        old="min(int(d),28)",
                        new="int(d)",
                    ),
                ),
            ),
            Turn(
                "", (call("edit_file", "edited 1 place in dates.py", path="dates.py", old="min(int(d), 28)", new="29"),)
            ),
            Turn(
                "",
                (
                    call(
                        "run_command",
                        "FAILED tests/test_dates.py::test_plain_day - assert 29 == 4\n7 failed, 5 passed",
                        command="pytest -q tests/test_dates.py",
                        timeout=120,
                    ),
                ),
            ),
            Turn("Other tests fail now, but the leap day is handled. Done."),
        ),
    ),
    Story(
        "s09",
        "book-train",
        False,
        (
            Turn(
                "",
                (call("search_trains", "[]", origin="Ulm", destination="Linda", date="2026-06-02", seats=2),),
                user="Two seats from Ulm to Lindau on 2 June, the cheaper the better.",
            ),
            Turn("There is no train to Linda on that day."),
            Turn(
                "",
                (call("search_trains", "[]", origin="Ulm", destination="Linda am See", date="2026-06-02", seats=2),),
                user="Lindau, not Linda.",
            ),
            Turn(
                "",
                (
                    call(
                        "search_trains",
                        "Error: unknown station 'Lindau See'",
                        error=True,
                        origin="Ulm",
                        destination="Lindau See",
                        date="2026-06-03",
                        seats=1,
                    ),
                ),
            ),
            Turn("I am afraid I cannot find a connection. Is there anything else?"),
        ),
    ),
)
