"""Documents made from those that are there."""

import dataclasses

from maxlm.config.schema import ConfigError, setting


@dataclasses.dataclass(frozen=True)
class AugmentConfig:
    """Documents made from training documents, or from a table of facts. Off while none of
    `synonyms`, `templates` and `back_translation` is set."""

    max_share: float = setting(
        0.2, "made documents may be up to this share of the characters that a source trains on",
        above=0.0, maximum=0.9)
    synonyms: str = setting(
        "", "dictionary of terms: .tsv with a term and its synonyms a line, or .json with an "
        "object of lists")
    synonym_share: float = setting(
        0.5, "share of a document's terms that become a synonym", above=0.0, maximum=1.0)
    synonym_copies: int = setting(1, "documents made of one by synonyms", minimum=1)
    templates: str = setting(
        "", ".json with fields, records and templates by language, from which sentences are made")
    template_source: str = setting("", "source of the recipe that documents of templates belong to")
    back_translation: str = setting(
        "", "module:function that takes a list of paragraphs and returns as many, each translated "
        "to another language and back; loaded once a worker")

    @property
    def enabled(self) -> bool:
        """Whether anything is made."""
        return bool(self.synonyms or self.templates or self.back_translation)

    def check(self, path: str) -> None:
        if bool(self.templates) != bool(self.template_source):
            raise ConfigError(f"{path}.template_source: must be set with {path}.templates, and "
                              "only then")
        if not self.synonyms and (self.synonym_share, self.synonym_copies) != (
                AugmentConfig.synonym_share, AugmentConfig.synonym_copies):
            raise ConfigError(f"{path}.synonyms: is empty, so synonym_share and synonym_copies do "
                              "nothing")
        if not self.enabled and self.max_share != AugmentConfig.max_share:
            raise ConfigError(f"{path}.max_share: does nothing while no document is made; set "
                              "synonyms, templates or back_translation")
