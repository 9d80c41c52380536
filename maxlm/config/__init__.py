"""Configuration: the fields and their checks, config files, and overrides of fields as text."""

from maxlm.config.files import load_config_file, resolve_config
from maxlm.config.overrides import override, split_overrides
from maxlm.config.schema import (
    ConfigError,
    RunFailure,
    build,
    from_config_dict,
    local_path,
    natures,
    setting,
    to_config_dict,
    to_plain,
)
from maxlm.config.shrink import shrink, variant
from maxlm.config.trainer import (
    MESH_AXES,
    CheckpointConfig,
    Config,
    DataConfig,
    EvalsConfig,
    MixtureStage,
    ModelConfig,
    OptimizerConfig,
    ParallelConfig,
    PrecisionConfig,
    RunConfig,
    ScheduleConfig,
    TelemetryConfig,
    TokenSource,
)

__all__ = [
    "MESH_AXES", "CheckpointConfig", "Config", "ConfigError", "DataConfig",
    "EvalsConfig", "MixtureStage", "ModelConfig", "OptimizerConfig", "ParallelConfig",
    "PrecisionConfig", "RunConfig", "RunFailure", "ScheduleConfig", "TelemetryConfig",
    "TokenSource", "build", "from_config_dict", "load_config_file", "local_path",
    "natures", "override", "resolve_config", "setting", "shrink", "split_overrides",
    "to_config_dict", "to_plain", "variant",
]
