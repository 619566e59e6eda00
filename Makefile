# Each target is one call of the command. RECIPE: a built-in name or a .toml file. MIRROR: a folder of raw files.
RECIPE ?= pocket
ifdef MIRROR
export SHIKHA_MIRROR = $(MIRROR)
endif
SHIKHA = cargo run --release --locked --quiet --

.PHONY: test test-burn arbiter reproduce figures study defects defects-store defects-matrix defects-reproducers bench native
test: ; cargo test --release --locked --workspace
test-burn: ; cd burn && cargo test --release --locked --workspace
arbiter: ; $(SHIKHA) arbiter score
reproduce: ; $(SHIKHA) reproduce $(RECIPE)
figures: ; $(SHIKHA) fertility figures && $(SHIKHA) defects --from defects/outcomes.json --figures figures && $(SHIKHA) defects --matrix defects/matrix/candle.json --figures figures && $(SHIKHA) figures $(RECIPE)
study: ; $(SHIKHA) fertility study && $(SHIKHA) fertility figures
defects: ; $(SHIKHA) defects --store runs/defects/outcomes.json && $(SHIKHA) defects --matrix defects/matrix/candle.json
defects-store: ; $(SHIKHA) defects --store defects/outcomes.json
defects-matrix: ; defects/matrix/run.sh
defects-reproducers: ; cargo test --release --locked --test all every_reproducer -- --ignored
bench: ; cargo bench --locked --bench training -- 50 $(CURDIR)/figures && cargo bench --locked --bench ops -- $(CURDIR)/figures && $(SHIKHA) bench cost --out figures && cargo bench --locked --bench monitor && cargo bench --locked --bench encode
# Compiled for the CPU of this machine alone; the vector code is chosen at run time anyway, so little is gained.
native: ; RUSTFLAGS="-C target-cpu=native" cargo build --release --locked
