"""The stages of training on TRL: the only files that import it, with torch, transformers, peft and datasets."""
