"""Configuration: the fields and their checks, config files, and command-line overrides."""

from maxlm.config.command_line import (
    Parser,
    RunFailure,
    load_config_file,
    local_path,
    resolve_config,
    run_command,
    split_overrides,
)
from maxlm.config.overrides import override
from maxlm.config.schema import (
    ConfigError,
    build,
    from_config_dict,
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
    "EvalsConfig", "MixtureStage", "ModelConfig", "OptimizerConfig", "ParallelConfig", "Parser",
    "PrecisionConfig", "RunConfig", "RunFailure", "ScheduleConfig", "TelemetryConfig",
    "TokenSource", "build", "from_config_dict", "load_config_file", "local_path",
    "natures", "override", "resolve_config", "run_command", "setting", "shrink", "split_overrides",
    "to_config_dict", "to_plain", "variant",
]
