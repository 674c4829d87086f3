"""PrefixGuard: compile raw agent traces into small online failure monitors."""
