"""Bytes to tokens to n-grams to a sparse TF-IDF row, and the vocabulary that says which n-grams count."""

from prefixguard.encoder.fit import Documents, FitReport, fit_vocabulary
from prefixguard.encoder.tokens import TOKENIZER_VERSION, Tokens, ngram_names, ngrams, tokenize
from prefixguard.encoder.vocabulary import SparseRow, Vocabulary

__all__ = [
    "TOKENIZER_VERSION",
    "Documents",
    "FitReport",
    "SparseRow",
    "Tokens",
    "Vocabulary",
    "fit_vocabulary",
    "ngram_names",
    "ngrams",
    "tokenize",
]
