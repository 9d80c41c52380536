"""Small EPUB books made for tests."""

import io
import zipfile
from collections.abc import Mapping, Sequence

CONTAINER = ('<?xml version="1.0"?>'
             '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
             '<rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>')


def chapter(title: str, body: str) -> str:
    """A chapter of one heading and one paragraph."""
    return (f'<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml">'
            f"<head><title>{title}</title></head><body><h1>{title}</h1><p>{body}</p></body></html>")


def package(spine: Sequence[str], properties: Mapping[str, str] | None = None,
            guide: str = "") -> str:
    """A package document whose spine is the files `spine`."""
    properties = properties or {}
    items = "".join(
        f'<item id="i{i}" href="{name}" media-type="application/xhtml+xml" '
        f'properties="{properties.get(name, "")}"/>' for i, name in enumerate(spine))
    order = "".join(f'<itemref idref="i{i}"/>' for i in range(len(spine)))
    return (f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>'
            f"<spine>{order}</spine>{guide}</package>")


def book(files: Mapping[str, str | bytes], spine: Sequence[str] = (), **options) -> bytes:
    """A zip of `files` under OEBPS/, with container and package unless they are among them."""
    content: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER,
        "OEBPS/content.opf": package(spine or [*files], **options)}
    content.update({name if name.startswith("META-INF/") else f"OEBPS/{name}": data
                    for name, data in files.items()})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
