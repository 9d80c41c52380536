"""SentencePiece models as Hugging Face `tokenizer.json`, with the same ids."""

from collections.abc import Sequence

import tokenizers
from tokenizers import (
    AddedToken,
    Regex,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from maxlm.config import ConfigError
from maxlm.data.huggingface_tokenizer import HuggingFaceTokenizer
from maxlm.data.sentencepiece_model import Kind, Model, Piece, lowest_score, parse
from maxlm.data.tokenizer import SPACE_MARK, SentencePieceTokenizer

CHECKED_TEXTS = (
    "The patient was given 5 mg of aspirin, twice a day.",
    "患者每天服用阿司匹林５毫克，共两次。“引号”（括号）　全角空格",
    "  leading,   runs of      spaces and trailing  ",
    "\tdef f(x):\n\t\treturn  x  \n\n\n        y = {'é': 1}\r\n",
    "🙂 👩‍👩‍👧 𝔘𝔫𝔦 𠮷野家 が カ\u3099 ﬁ A\u030a \u0000\u0001\ufeff\u2047\u2585\u2581\u2581 \u2581",
    "<s> </s> <unk> <pad> <0x41> <0xE2><0x96><0x81>",
    "-----======______......。。。。。。！！！aaaaaaaaaa  \n\n\n\n\n\t\t\t\t\t\t\t",
    "2026年11月30日 12345 3.14159 ١٢٣",
    "",
)
"""Texts whose ids every export is compared on."""

_UNKNOWN_PENALTY = 10.0  # what a character without a piece costs, below the lowest score


def to_huggingface(tokenizer: SentencePieceTokenizer, texts: Sequence[str] = ()
                   ) -> HuggingFaceTokenizer:
    """A Hugging Face tokenizer with the ids of a SentencePiece model.

    It puts BOS before a text when asked to add special tokens, as Llama's do, and no EOS.

    Args:
      tokenizer: BPE or unigram, without normalisation, as data_beam.train_tokenizer makes them.
      texts: compared besides `CHECKED_TEXTS`.

    Raises:
      ConfigError: a model of another kind, or one whose ids would differ on one of the texts.
    """
    model = parse(tokenizer.model)
    if model.algorithm not in ("bpe", "unigram"):
        raise ConfigError(f"--tokenizer: a SentencePiece model of kind {model.algorithm!r} has no "
                          "counterpart; only bpe and unigram do")
    if model.changes_text:
        raise ConfigError("--tokenizer: the SentencePiece model normalises texts; only models "
                          "with identity normalisation and no dummy prefix are exported")
    built = tokenizers.Tokenizer(_bpe(model, tokenizer) if model.algorithm == "bpe" else
                                 _unigram(model, tokenizer))
    built.normalizer = normalizers.Replace(" ", SPACE_MARK)
    if model.algorithm == "unigram":
        _keep_unknown_apart(built, model)
    built.decoder = decoders.Sequence(
        [decoders.Replace(SPACE_MARK, " "), decoders.ByteFallback(), decoders.Fuse()])
    built.add_special_tokens([
        AddedToken(piece.text, normalized=False, special=True)
        for piece in model.pieces if piece.kind in (Kind.CONTROL, Kind.UNKNOWN)])
    if model.algorithm == "bpe":
        # Matched, the longest first, in the text with its spaces written as U+2581.
        built.add_tokens([AddedToken(piece.text, normalized=True)
                          for piece in model.pieces if piece.kind is Kind.USER_DEFINED])
    if tokenizer.bos_id >= 0:
        bos = model.pieces[tokenizer.bos_id].text
        built.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, tokenizer.bos_id)])
    exported = HuggingFaceTokenizer(built.to_str(pretty=True).encode(), {
        name: model.pieces[token].text if token >= 0 and
        model.pieces[token].kind is Kind.CONTROL else None
        for name, token in (("bos_token", tokenizer.bos_id), ("eos_token", tokenizer.eos_id),
                            ("pad_token", tokenizer.pad_id))})
    for text in (*CHECKED_TEXTS, *texts):
        ours, theirs = tokenizer.encode(text), exported.encode(text)
        lost = tokenizer.unk_id in ours  # which the two show differently
        if ours != theirs or (not lost and tokenizer.decode(ours) != exported.decode(theirs)):
            raise ConfigError(f"--tokenizer: tokenizer.json would give other ids than the model on "
                              f"{text[:60]!r}: {theirs[:12]} instead of {ours[:12]}")
    return exported


def _bpe(model: Model, tokenizer: SentencePieceTokenizer) -> models.BPE:
    """SentencePiece merges the pair whose union has the best score. So every split of a piece into
    two is a merge, and the merges are ordered by score."""
    ids = {piece.text: number for number, piece in enumerate(model.pieces)}
    normal = {piece.text for piece in model.pieces if piece.kind is Kind.NORMAL}
    pairs = []
    for piece in model.pieces:
        if piece.kind is Kind.NORMAL:
            for cut in range(1, len(piece.text)):
                left, right = piece.text[:cut], piece.text[cut:]
                if left in normal and right in normal:
                    pairs.append((-piece.score, ids[left], ids[right], left, right))
    pairs.sort()
    return models.BPE(ids, [pair[3:] for pair in pairs], byte_fallback=model.byte_fallback,
                      fuse_unk=True, unk_token=model.pieces[tokenizer.unk_id].text)


def _unigram(model: Model, tokenizer: SentencePieceTokenizer) -> models.Unigram:
    """User-defined pieces are part of the lattice, with the score that SentencePiece gives them:
    its bonus, -0.1 + bytes * highest score, where the highest is at least (nearly) 0.

    In SentencePiece, control, unknown and byte pieces never match a text. `tokenizers` matches all
    pieces, so these get a cost above that of any other segmentation of their texts.
    """
    lowest = lowest_score(model.pieces)
    highest = max(0.0, *(piece.score for piece in model.pieces if piece.kind is Kind.NORMAL))

    def score(piece: Piece) -> float:
        if piece.kind is Kind.NORMAL:
            return piece.score
        if piece.kind is Kind.USER_DEFINED:
            return highest * len(piece.text.encode()) - 0.1
        return (len(piece.text) + 1) * (lowest - _UNKNOWN_PENALTY)

    return models.Unigram([(piece.text, score(piece)) for piece in model.pieces],
                          tokenizer.unk_id, model.byte_fallback)


def _keep_unknown_apart(built: tokenizers.Tokenizer, model: Model) -> None:
    """Splits texts around characters without a piece, if names of control and byte pieces contain
    such characters. To `tokenizers`, only these characters cost more than such a name."""
    spelled = {character for piece in model.pieces for character in piece.text
               if piece.kind in (Kind.NORMAL, Kind.USER_DEFINED)}
    if any(set(piece.text) - spelled for piece in model.pieces):
        known = "".join(f"\\x{{{ord(character):X}}}" for character in sorted(spelled))
        # Without byte pieces a run of them is one unknown token.
        run = "" if model.byte_fallback else "+"
        built.pre_tokenizer = pre_tokenizers.Split(Regex(f"[^{known}]{run}"), "isolated")
