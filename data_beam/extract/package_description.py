"""The long description in an installed package's METADATA file."""

import email
import email.policy
import textwrap

from data_beam.extract import markdown
from data_beam.extract.errors import ExtractionError


def description(metadata: str) -> str:
    """The description as text: cleaned like Markdown where the package says it is Markdown.

    Both places of the core metadata specification count: the message's body, and the older
    `Description` header.

    Raises:
      ExtractionError: the file has no `Metadata-Version` header.
    """
    message = email.message_from_string(metadata.replace("\r\n", "\n"),
                                        policy=email.policy.compat32)
    if "Metadata-Version" not in message:
        raise ExtractionError("no package metadata", "there is no Metadata-Version header")
    body = message.get_payload()
    text = body if isinstance(body, str) and body.strip() else ""
    if not text and message["Description"]:
        first, _, rest = str(message["Description"]).partition("\n")
        text = first + "\n" + textwrap.dedent(rest)
    content_type = str(message.get("Description-Content-Type", "")).lower()
    return markdown.prose(text) if content_type.startswith("text/markdown") else text
