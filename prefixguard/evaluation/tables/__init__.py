"""From scores of runs to tables: figures of a risk, rows to compare with, first alerts, verdict, and their results."""
