# Shared by scripts/demo, scripts/test and scripts/lint: set-up, then building one preset.

say() { printf '%s: %s\n' "${0##*/}" "$*"; }

build_preset() {
  local preset=$1
  shift
  say "building preset $preset"
  local log
  log=$(mktemp)
  if ! cmake --preset "$preset" -DONSET_TORCH_DIR="$PWD/.deps/torch" > "$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
  cmake --build --preset "$preset" "$@"
}

# A cache of this repository's own, so that its size and settings are nobody else's concern.
export CCACHE_DIR="${CCACHE_DIR:-$HOME/.cache/onset-ccache}"
export CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-5G}"
