"""maxlm: a JAX framework for pretraining language models on TPU pods, GPUs and laptops."""

__version__ = "0.1.0"
