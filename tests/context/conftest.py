"""The plain reference lives in tests/support."""
