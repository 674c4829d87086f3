"""Reference interpreters of table.json, copied beside it as they are; nothing imports them."""
