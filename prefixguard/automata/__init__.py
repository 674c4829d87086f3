"""Symbol strings to finite automata with calibrated risks, a glossary and a picture."""
