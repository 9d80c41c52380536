#!/usr/bin/env bash
# From nothing to a trained and sampled language model, on this machine's CPU.
#
#   bash scripts/quickstart.sh             outputs in runs/quickstart
#   bash scripts/quickstart.sh OUTPUT      outputs in OUTPUT
#
# Makes .venv, installs maxlm, then: documents -> tokenizer -> tokens -> training -> evaluation ->
# text. Needs Python 3.11 or later with pip, 2 GB of disk and 4 GB of memory, and takes about eight
# minutes on 2 cores, installation included. Stop it at any moment and run it again: it skips finished
# steps and continues.
#
# Environment variables:
#   PYTHON          interpreter to make the environment with (default: python3.11, 3.12, 3.13, ...)
#   VENV            the environment (default: .venv)
#   JAX_PLATFORMS   where to train (default: cpu)
#   STEPS           training steps (default: those of configs/tiny.py); fewer are faster and worse
set -euo pipefail

case "${1:-}" in
    -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"
        exit 0 ;;
    -*)
        echo "error: unknown option $1; see --help" >&2
        exit 2 ;;
esac

STEPS=${STEPS:-}
case "$STEPS" in
    *[!0-9]* | 0*)
        echo "error: STEPS must be a whole number of at least 1, got '$STEPS'" >&2
        exit 2 ;;
esac

# OUTPUT is relative to where the user is; everything else to the repository.
output=${1:-}
case "$output" in
    "" | /*) ;;
    *) output=$PWD/$output ;;
esac
cd "$(dirname "$0")/.."
output=${output:-runs/quickstart}

. scripts/environment.sh
trap 'echo; echo "interrupted; run the same command again to continue" >&2; exit 130' INT TERM
make_environment
export JAX_PLATFORMS=${JAX_PLATFORMS:-cpu}

corpus=$output/corpus
tokenizer=$output/tokenizer
tokens=$output/tokens
run=$output/run
done_file=$output/.done # line N: what step N was done with
mkdir -p "$output"
touch "$done_file"

# quoted WORD...: a command as it can be typed.
quoted() {
    local word
    for word in "$@"; do
        case "$word" in
            *\'*) printf ' %q' "$word" ;;
            *[!A-Za-z0-9_./:=,+@%-]* | "") printf " '%s'" "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
}

number=0
# step TITLE CONFIG-FILE OUTPUTS COMMAND...: runs the command, unless it ran before with the same
# arguments and config file and its outputs (names below $output) exist. A step that runs may change
# its outputs, so the later steps run too. Each command checks by itself whether it has work to do.
step() {
    local title=$1 settings=$2 outputs=$3 key name word started missing=""
    shift 3
    number=$((number + 1))
    key=$(cksum <"$settings")
    for word in "$@"; do
        case "$word" in
            --config.telemetry.*) ;; # how often to report changes no result
            *) key="$key $word" ;;
        esac
    done
    for name in $outputs; do
        if [ ! -s "$output/$name" ]; then missing=$name; fi
    done
    if [ -z "$missing" ] && [ "$(sed -n "${number}p" "$done_file")" = "$key" ]; then
        echo "[$number/6] $title: done before"
        return 0
    fi
    sed "$number,\$d" "$done_file" >"$done_file.part"
    mv "$done_file.part" "$done_file"
    echo
    echo "[$number/6] $title"
    started=$SECONDS
    "$@"
    echo "$key" >>"$done_file"
    echo "      $((SECONDS - started)) s"
}

# python ARGUMENT...: shows the command and runs it.
python() {
    echo "     $(quoted "$PYTHON" "$@")" >&3
    "$PYTHON" "$@"
}
exec 3>&1

# keep FILE COMMAND...: the command's standard output in a file, whole or not at all.
keep() {
    local file=$1
    shift
    "$@" >"$file.part"
    mv "$file.part" "$file"
}

recipe=configs/corpus/quickstart.py
config=configs/tiny.py
workers=$("$PYTHON" -c 'import os; print(max(1, min(8, os.cpu_count() or 1)))')
step "Documents: read, cleaned, deduplicated, split" $recipe corpus/manifest.json \
    python -m data_beam.prepare --config=$recipe "--output=$corpus" \
    --runner=FnApiRunner --direct_running_mode=multi_processing "--direct_num_workers=$workers"
step "Tokenizer: 8192 pieces learned from them" $config "tokenizer/tokenizer.model tokenizer/report.json" \
    python -m data_beam.train_tokenizer "--corpus=$corpus" "--output=$tokenizer" \
    --vocab_size=8192 --byte_fallback
step "Tokens: documents as numbers, shuffled" $config \
    "tokens/train/manifest.json tokens/validation/manifest.json tokens/test/manifest.json" \
    python -m data_beam.tokenize "--corpus=$corpus" "--tokenizer=$tokenizer/tokenizer.model" \
    "--output=$tokens" \
    --runner=FnApiRunner --direct_running_mode=multi_processing "--direct_num_workers=$workers"
set --
if [ -n "$STEPS" ]; then
    set -- "--config.run.steps=$STEPS" "--config.schedule.warmup_steps=$((STEPS / 10))"
fi
if [ ! -t 2 ]; then # a log does not need a line every two seconds
    set -- "$@" --config.telemetry.console_seconds=10
fi
step "Training" $config "run/metrics.jsonl run/config.json run/tokenizer.model run/checkpoints" \
    python -m maxlm.train --config=$config "--workdir=$run" "--config.data.tokens=$tokens" \
    --huge_pages "$@"
step "Evaluation on held-out documents" $config evaluation.json \
    keep "$output/evaluation.json" python -m maxlm.evaluate "--workdir=$run"
step "Text: three continuations" $config continuations.txt \
    keep "$output/continuations.txt" python -m maxlm.generate "--workdir=$run" \
    --max_tokens=48 --temperature=0.7 --top_p=0.9 --seed=1 \
    "--prompt=The function returns" "--prompt=第一条　为了" "--prompt=def __init__(self, "

echo
cat "$output/continuations.txt"
echo
"$PYTHON" - "$run" <<'END'
import json, sys
try:
    with open(f"{sys.argv[1]}/metrics.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
except FileNotFoundError:
    rows = []
held_out = [row for row in rows if "eval/perplexity" in row]
if not held_out:
    sys.exit(f"error: {sys.argv[1]} has checkpoints but no metrics.jsonl with held-out losses; "
             f"remove {sys.argv[1]} and run this again to train anew")
first, last = held_out[0], held_out[-1]
print(f"held-out perplexity: {first['eval/perplexity']:,.0f} before training, "
      f"{last['eval/perplexity']:,.1f} after {last['step']} steps "
      f"({last['eval/bits_per_byte']:.2f} bits per byte)")
END
cat <<END
outputs:
  $corpus      documents as Parquet, what was left out and why, manifest.json
  $tokenizer   tokenizer.model, report.json
  $tokens      by split: token shards, index, manifest.json
  $run         metrics.jsonl, checkpoints, config.json
  $output/evaluation.json, $output/continuations.txt
next: README.md, or try a prompt of your own:
 $(quoted "$PYTHON" -m maxlm.generate "--workdir=$run" "--prompt=Once upon a time")
END
