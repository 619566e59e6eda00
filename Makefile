# Each target is one call of the command. RECIPE: a built-in name or a .toml file. MIRROR: a folder of raw files.
RECIPE ?= pocket
ifdef MIRROR
export SHIKHA_MIRROR = $(MIRROR)
endif
SHIKHA = cargo run --release --locked --quiet --

.PHONY: test test-burn arbiter reproduce figures study defects bench
test: ; cargo test --release --locked --workspace
test-burn: ; cd burn && cargo test --release --locked --workspace
arbiter: ; $(SHIKHA) arbiter score
reproduce: ; $(SHIKHA) reproduce $(RECIPE)
figures: ; $(SHIKHA) fertility figures && $(SHIKHA) figures $(RECIPE)
study: ; $(SHIKHA) fertility study && $(SHIKHA) fertility figures
defects: ; $(SHIKHA) defects
bench: ; cargo bench --locked --bench training && cargo bench --locked --bench monitor && cargo bench --locked --bench encode
